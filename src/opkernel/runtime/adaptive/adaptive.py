"""Adaptive: runs steps in the way that it finds to be best for them.

It tells steps apart by a key, such as the shapes of their feeds. When enough steps with a key have come, it searches:
a search says which candidate runs the next step, is told what the step took, and so on, until it chooses a candidate for all further
steps with this key. One step at a time is part of a search. Others that run meanwhile run as ever.

State: `_chosen` has what runs the steps with some keys, `_searches` what is not decided yet, `_counts` the steps with other
keys that came to their end.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, MutableSequence, Sequence
from typing import Any

from opkernel.interrupts import trying
from opkernel.records import dataclass, field
from opkernel.runtime.adaptive.findings import Finding, note

Run = Callable[..., Sequence[Any]]
"""Runs one step: `run(step, *feeds)` gives the fetches."""

DOUBLING = [3 << number for number in range(32)]
"""The patience of what is made after three steps, then after twice as many each time, so that changing keys cost little."""

_MOST_COUNTED = 64


@dataclass(eq=False)
class Candidate:
    """A way to run steps.

    Attributes:
        name: What reports call it.
        run: Runs a step.
        launches: The kernels that run clusters of an engine.
        times: What steps took that were measured, in seconds.
    """

    name: str
    run: Run
    launches: Sequence[Any] = ()
    times: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float | None:
        """The median of the times; None where nothing was measured."""
        return sorted(self.times)[len(self.times) // 2] if self.times else None


Search = Generator[Candidate, float, Candidate]
"""Yields the candidate for the next step, takes the seconds of that step, and returns the candidate for all further ones."""


class Patience:
    """How many steps with a key are waited for.

    Args:
        steps: How many, for each search in turn. After the last there are no more.

    Attributes:
        wanted: How many the next search asks for.
    """

    def __init__(self, steps: Iterable[float]) -> None:
        self._steps = iter(steps)
        self.wanted = next(self._steps)

    def spend(self) -> None:
        """Have the next search ask for its own number of steps."""
        self.wanted = next(self._steps, math.inf)

    def give_up(self) -> None:
        """Have no search begin."""
        self.wanted = math.inf

    @property
    def is_over(self) -> bool:
        """Whether no search begins."""
        return self.wanted == math.inf


def take_turns(
    candidates: Sequence[Candidate], *, timed: int = 1, untimed: int = 0
) -> Generator[Candidate, float, None]:
    """A part of a search: each candidate in turn runs some steps that are not timed, and some that are."""
    for one in candidates:
        for number in range(untimed + timed):
            seconds = yield one
            if number >= untimed:
                one.times.append(seconds)


class Adaptive(ABC):
    """Runs steps as it finds to be best; safe under threads. A strategy is a subclass.

    Args:
        general: Runs any step.
        fetches: The names of what the steps compute.
        findings: Take what is found out.
        patience: How many steps with a key come before a search.

    Attributes:
        run: Runs a step.
        name: The name that reports have for the strategy.
        most_kept: For how many keys a choice is kept.
    """

    name: str
    most_kept = 4

    def __init__(
        self,
        general: Run,
        fetches: Sequence[str],
        findings: MutableSequence[Finding],
        patience: Patience,
    ) -> None:
        self.general, self.patience = general, patience
        self._fetches, self._findings = fetches, findings
        self._chosen: dict[Hashable, Run] = {}
        self._searches: dict[Hashable, _SearchUnderWay] = {}
        self._counts: dict[Hashable, int] = {}
        self._lock = threading.Lock()
        self.run = self._runner()

    @abstractmethod
    def key_of(self, values: Sequence[Any]) -> Hashable:
        """What tells steps apart that were fed these values."""

    @abstractmethod
    def search(self, key: Any) -> Search:
        """Search for the best way to run steps with a key."""

    @abstractmethod
    def describe(self, key: Any) -> str:
        """Say which steps have a key."""

    def may_measure(self, step: Any) -> bool:
        """Whether a step may be part of a search."""
        return True

    def _runner(self) -> Run:
        chosen, searches, counts = self._chosen, self._searches, self._counts
        key_of, general, patience = self.key_of, self.general, self.patience

        def run(step: Any, *values: Any) -> Sequence[Any]:
            key = key_of(values)
            found = chosen.get(key)
            if found is not None:
                return found(step, *values)
            count = counts.get(key, 0) + 1
            is_due = count >= patience.wanted or (searches and key in searches)
            if is_due and self.may_measure(step):
                with trying(self._lock) as is_ours:
                    if is_ours:
                        return self._measured(key, count, step, values)
            results = general(step, *values)
            if count == 1 and len(counts) >= _MOST_COUNTED:
                counts.clear()
            counts[key] = count  # of steps that came to their end
            return results

        return run

    def _measured(
        self, key: Hashable, count: int, step: Any, values: Sequence[Any]
    ) -> Sequence[Any]:
        """Run a step that is part of a search; it may have come to its end meanwhile."""
        found = self._chosen.get(key)
        if found is not None:
            return found(step, *values)
        search = self._searches.get(key) or self._begin(key, count)
        start = time.perf_counter()
        results = search.candidate.run(step, *values)
        search.step += 1
        if key in self._searches:
            self._go_on(key, search, time.perf_counter() - start)
        return results

    def _begin(self, key: Hashable, count: int) -> _SearchUnderWay:
        self.patience.spend()
        plan = Candidate("plan", self.general)
        search = self._searches[key] = _SearchUnderWay(self.search(key), plan, count)
        self._go_on(key, search, None)
        return search

    def _go_on(self, key: Hashable, search: _SearchUnderWay, seconds: float | None) -> None:
        """Have a search say what runs the next step, or all."""
        try:
            search.take(search.candidates.send(seconds))  # type: ignore[arg-type]  # None begins it
            return
        except StopIteration as end:
            search.take(end.value or search.plan)  # where an interrupt has ended it
            error = ""
        except Exception as raised:  # steps need none of this
            search.take(search.plan)
            error = str(raised)
        except BaseException:
            self._searches.pop(key, None)
            raise
        tried = {one.name: one.seconds for one in search.tried}
        chosen, steps = search.candidate, self.describe(key)
        note(
            self._findings,
            Finding(self.name, self._fetches, steps, tried, chosen.name, search.since, error),
        )
        if len(self._chosen) >= self.most_kept:
            self._chosen.pop(next(iter(self._chosen)))
        self._chosen[key] = chosen.run
        self._counts.pop(key, None)
        self._searches.pop(key, None)


class _SearchUnderWay:
    """A search.

    Args:
        candidates: The search.
        plan: Runs any step.
        step: The number of the next step.

    Attributes:
        candidate: Runs the next step.
        since: The first step that it has run.
        tried: All that have run steps.
    """

    def __init__(self, candidates: Search, plan: Candidate, step: int) -> None:
        self.candidates, self.plan, self.step = candidates, plan, step
        self.candidate, self.since = plan, step
        self.tried: dict[Candidate, None] = {}

    def take(self, candidate: Candidate) -> None:
        """Have a candidate run the next step."""
        if candidate is not self.candidate:
            self.candidate, self.since = candidate, self.step
        self.tried[candidate] = None
