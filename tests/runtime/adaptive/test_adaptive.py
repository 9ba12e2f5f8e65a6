"""Adaptive: counts the steps with equal keys, searches once enough have come, and keeps what a search chooses."""

import logging
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import pytest

from opkernel.runtime.adaptive.adaptive import (
    DOUBLING,
    Adaptive,
    Candidate,
    Finding,
    Patience,
    Search,
    take_turns,
)


class Tries(Adaptive):
    """A strategy whose key is the value, and whose searches are told from outside."""

    name, most_kept = "tries", 2

    def __init__(self, find: Callable[[Any], Search], steps: Sequence[int] = DOUBLING) -> None:
        self.findings: list[Finding] = []
        super().__init__(general, ["y:0"], self.findings, Patience(steps))
        self.find = find
        self.allows = True

    def search(self, key: Any) -> Search:
        return self.find(key)

    def key_of(self, values: Sequence[Any]) -> Any:
        return values[0]

    def describe(self, key: Any) -> str:
        return f"fed {key}"

    def may_measure(self, step: Any) -> bool:
        return self.allows


def general(step: Any, value: Any) -> Sequence[Any]:
    if value == "fails":
        raise ValueError("no")
    return ["general"]


def candidate(name: str) -> Candidate:
    return Candidate(name, lambda step, value: [name])


def yields(*names: str) -> Callable[[Any], Search]:
    """The searches that have these run a step each, and choose the last."""

    def search(key: Any) -> Search:
        tried = [candidate(name) for name in names]
        yield from take_turns(tried)
        return tried[-1]

    return search


def steps(adaptive: Adaptive, *values: Any) -> list[Any]:
    return [adaptive.run(None, value)[0] for value in values]


def test_a_search_begins_with_the_third_step_of_a_key_then_with_the_sixth() -> None:
    adaptive = Tries(yields("a", "b"))
    assert steps(adaptive, *[1] * 6) == ["general"] * 2 + ["a", "b", "b", "b"]
    assert steps(adaptive, *[2] * 7) == ["general"] * 5 + ["a", "b"]
    assert steps(adaptive, 1) == ["b"]


def test_no_search_begins_once_patience_is_over() -> None:
    adaptive = Tries(yields("a"), [1, 2])
    assert steps(adaptive, 1, 2, 2, 3, 3, 3) == ["a", "general", "a"] + ["general"] * 3


def test_the_oldest_choice_goes_and_its_steps_are_counted_anew() -> None:
    adaptive = Tries(yields("a"), [1, 1, 1, 2])
    assert steps(adaptive, 1, 2, 3) == ["a"] * 3
    assert steps(adaptive, 2, 3, 1, 1) == ["a", "a", "general", "a"]


def test_steps_that_fail_count_for_nothing() -> None:
    adaptive = Tries(yields("a"))
    for _ in range(5):
        with pytest.raises(ValueError, match="no"):
            adaptive.run(None, "fails")


def test_a_step_that_fails_in_a_search_is_tried_again() -> None:
    fails = [True]

    def run(step: Any, value: Any) -> Sequence[Any]:
        if fails.pop() if fails else False:
            raise ValueError("no")
        return ["a"]

    def search(key: Any) -> Search:
        one = Candidate("a", run)
        yield one
        return one

    adaptive = Tries(search, [1])
    with pytest.raises(ValueError, match="no"):
        adaptive.run(None, 1)
    assert steps(adaptive, 1, 1) == ["a", "a"]


def test_a_search_that_fails_leaves_the_general_way_and_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def search(key: Any) -> Search:
        yield candidate("a")
        raise RuntimeError("no such luck")

    caplog.set_level(logging.INFO, "opkernel.optimization")
    adaptive = Tries(search, [1])
    assert steps(adaptive, 7, 7, 7) == ["a", "general", "general"]
    (found,) = adaptive.findings
    assert (found.chosen, found.error, found.since) == ("plan", "no such luck", 2)
    assert caplog.messages == ["y:0 fed 7: plan since step 2 (tries; tried a, plan; no such luck)"]


def test_an_interrupt_while_something_is_made_leaves_nothing_begun() -> None:
    interrupts = [True]

    def search(key: Any) -> Search:
        if interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        yield candidate("a")
        return candidate("a")

    adaptive = Tries(search, [1, 1])
    with pytest.raises(KeyboardInterrupt):
        adaptive.run(None, 1)
    assert steps(adaptive, 1, 1) == ["a", "a"]


def test_steps_that_may_not_be_measured_run_in_the_general_way() -> None:
    adaptive = Tries(yields("a"), [1])
    adaptive.allows = False
    assert steps(adaptive, 1, 1) == ["general"] * 2
    adaptive.allows = True
    assert steps(adaptive, 1) == ["a"]


def test_one_step_at_a_time_is_part_of_a_search() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def run(step: Any, value: Any) -> Sequence[Any]:
        inside.set()
        go_on.wait()
        return ["a"]

    def search(key: Any) -> Search:
        one = Candidate("a", run)
        yield one
        return one

    adaptive = Tries(search, [1])
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.extend(steps(adaptive, 1)))
    thread.start()
    inside.wait()
    assert steps(adaptive, 1, 2) == ["general"] * 2
    go_on.set()
    thread.join()
    assert results == ["a"]
    assert steps(adaptive, 1) == ["a"]


def test_candidates_take_turns_and_only_some_steps_are_timed() -> None:
    first, second = candidate("first"), candidate("second")
    turn = take_turns([first, second], timed=2, untimed=1)
    seconds = (9.0, 1.0, 2.0, 9.0, 3.0)
    asked = [next(turn).name, *[turn.send(one).name for one in seconds]]
    with pytest.raises(StopIteration):
        turn.send(5.0)
    assert asked == ["first"] * 3 + ["second"] * 3
    assert (first.times, second.times) == ([1, 2], [3, 5])
    assert (first.seconds, candidate("third").seconds) == (2, None)


def test_patience_doubles() -> None:
    assert [*islice(DOUBLING, 4)] == [3, 6, 12, 24]


def test_findings_say_what_was_measured() -> None:
    found = Finding(
        "engines", ["y:0"], "fed [2]", {"plan": 0.002, "xla": 0.001}, "xla", 30, jit="auto"
    )
    assert str(found) == ("y:0 fed [2]: auto: xla 1.000 ms, kernels 2.000 ms: xla since step 30")
