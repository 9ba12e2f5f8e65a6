"""The clock is looked at by the work that is done: after much of it in few turns, and after many turns of little."""

import time
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from opkernel.device import budget as budgets
from opkernel.device.budget import Budget, spending
from opkernel.device.work_clock import (
    LOOK_AFTER,
    SLOW,
    WorkClock,
    array_work,
    check_seconds,
    in_time,
    parts_work,
    string_work,
)
from opkernel.errors import DeadlineExceededError


def past() -> Budget:
    return Budget(deadline=time.monotonic() - 1)


def noted(taken: list[int]) -> Iterator[int]:
    """Numbers without an end; those that were taken are noted."""
    for number in count():
        taken.append(number)
        yield number


@pytest.mark.parametrize("work", [1 << 14, LOOK_AFTER // 3, LOOK_AFTER - 1])
def test_a_look_comes_after_so_much_work(work: int) -> None:
    with spending(past()):
        clock = WorkClock("counting")
    turns = LOOK_AFTER // work
    for _ in range(turns):
        clock.spend(work)
    with pytest.raises(DeadlineExceededError, match="Timed out while counting"):
        clock.spend(work)


def test_a_loop_ends_at_the_first_look() -> None:
    taken: list[int] = []
    with spending(past()):
        timed = in_time(noted(taken), LOOK_AFTER // 3, "counting")
    with pytest.raises(DeadlineExceededError, match="Timed out while counting"):
        sum(timed)
    assert taken == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("work", "expected"), [(SLOW, [0]), (lambda size: SLOW * (size == 2), [0, 1, 2])]
)
def test_slow_turns_have_a_look_each(work: Any, expected: list[int]) -> None:
    taken: list[int] = []
    with spending(past()):
        timed = in_time(noted(taken), work)
    with pytest.raises(DeadlineExceededError):
        sum(timed)
    assert taken == expected


@pytest.mark.parametrize("budget", [None, Budget(1 << 20), Budget(deadline=time.monotonic() + 1e6)])
def test_elements_stay_as_they_are(budget: Budget | None) -> None:
    elements = [3, 1, 2]
    if budget is None:
        assert in_time(elements) is elements  # it costs nothing
        return
    with spending(budget):
        assert list(in_time(elements, SLOW)) == elements


def test_work_that_takes_longer_than_is_left_is_not_begun() -> None:
    check_seconds(1e9, "sleeping")
    with spending(Budget(deadline=time.monotonic() + 100)):
        check_seconds(1, "sleeping")
        with pytest.raises(DeadlineExceededError, match=r"before sleeping: it takes 1000\.0 s"):
            check_seconds(1000, "sleeping")


def test_a_clock_keeps_the_budget_that_it_began_under() -> None:
    """Another thread, or what resumes a generator later, works for the one that made it."""
    with spending(past()):
        clock = WorkClock("waiting")
    with pytest.raises(DeadlineExceededError):
        clock.spend(SLOW)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (string_work(b""), 4096),
        (string_work(b"a" * 100), 4096 + 800),
        (array_work(0), 8 * 1024),
        (array_work(1000), 8 * 2024),
        (array_work(1000, 3), 3 * 2024),
        (parts_work([]), 4096),
        (parts_work(range(10)), 4096 + 1280),
    ],
)
def test_work_is_about_so_many_nanoseconds(work: int, expected: int) -> None:
    """A turn takes 4 µs, a function of NumPy 1 µs, a byte of a string 8 ns, a part 128 ns."""
    assert work == expected


def test_a_turn_of_a_loop_is_4_microseconds_of_work() -> None:
    taken: list[int] = []
    with spending(past()):
        timed = in_time(noted(taken))
    with pytest.raises(DeadlineExceededError, match="computing a kernel's elements"):
        sum(timed)
    assert len(taken) == LOOK_AFTER // 4096 + 1


def test_exactly_the_time_that_is_left_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "time", SimpleNamespace(monotonic=lambda: 10.0))
    with spending(Budget(deadline=15.0)):
        check_seconds(5.0, "sleeping")
        with pytest.raises(DeadlineExceededError, match=r"5\.2 s at least, and 5\.0 s are left"):
            check_seconds(5.25, "sleeping")


def test_a_clock_looks_again_after_as_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    budget = Budget(deadline=time.monotonic() + 1e6)
    monkeypatch.setattr(budget, "check_time", looks.append)
    with spending(budget):
        clock = WorkClock("counting")
    for number in range(1, 13):
        clock.spend(LOOK_AFTER // 4 + 1)
        assert len(looks) == number // 4
    assert looks == ["counting"] * 3


def test_the_clock_is_looked_at_some_60_times_a_second() -> None:
    """The work is in nanoseconds."""
    assert 50 < 1e9 / LOOK_AFTER < 100
    assert SLOW > LOOK_AFTER
