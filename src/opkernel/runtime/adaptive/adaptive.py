"""Adaptive: runs steps in the way that it finds to be best for them.

It tells steps apart by a key, such as the shapes of their feeds. When enough steps with a key have come, it searches:
a search says which candidate runs the next step, is told what the step took, and so on, until it chooses a candidate
for all further steps with this key. One step at a time is part of a search. Others that run meanwhile run as ever.

State: `_chosen` has what runs the steps with some keys, `_searches` what is not decided yet, `_counts` the steps with
other keys that came to their end.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
    Generator,
    Hashable,
    Iterable,
    Mapping,
    MutableSequence,
    Sequence,
)
from typing import Any

from opkernel.interrupts import trying
from opkernel.logs import logger
from opkernel.records import dataclass, field

Run = Callable[..., Sequence[Any]]
"""Runs one step: `run(step, *feeds)` gives the fetches."""

DOUBLING = [3 << number for number in range(32)]
"""The patience of what is made after three steps, then after twice as many each time, so that changing keys cost little."""

ENGINES = "engines"
"""The name of the strategy that tries engines."""
PLAN = "plan"
"""The name of the candidate that was there before."""

_MOST_COUNTED = 64


@dataclass(frozen=True)
class Finding:
    """What was tried for some steps, and what was chosen.

    Attributes:
        strategy: Who tried: `shapes`, `variables`, `branches` or `engines`.
        fetches: The tensors and operations that the steps compute.
        steps: Which steps of these: those that are fed certain shapes, say.
        tried: What ran the steps meanwhile, each with the median of the seconds that steps took; None where nothing
            was measured.
        chosen: What runs them now.
        since: The first of the steps that the chosen one has run.
        error: Why there is nothing to choose from; empty where nothing failed.
        jit: Where engines were tried, whose they are: `auto`, or the name of the only one.
    """

    strategy: str
    fetches: Sequence[str]
    steps: str
    tried: Mapping[str, float | None]
    chosen: str
    since: int
    error: str = ""
    jit: str = ""

    @property
    def what_engines_took(self) -> str:
        """What a trial of engines found out: `auto: openvino 0.512 ms, kernels 12.043 ms: openvino since step 41`."""
        timed = {name: seconds for name, seconds in self.tried.items() if seconds is not None}
        fastest_first = sorted(timed, key=timed.__getitem__)
        took = [f"{_in_words(name)} {timed[name] * 1e3:.3f} ms" for name in fastest_first]
        if self.tried.keys() <= {PLAN}:
            took = ["no engine takes a part of the graph"]
        found = [", ".join(took), f"{_in_words(self.chosen)} since step {self.since}", self.error]
        return f"{self.jit}: {': '.join(filter(None, found))}"

    def __str__(self) -> str:
        if self.strategy == ENGINES:
            return f"{', '.join(self.fetches)} {self.steps}: {self.what_engines_took}"
        others = self.tried if self.tried.keys() - {self.chosen} else {}
        tried = [
            name if seconds is None else f"{name} {seconds * 1e3:.3f} ms"
            for name, seconds in others.items()
        ]
        facts = [self.strategy, *([f"tried {', '.join(tried)}"] if tried else []), self.error]
        return (
            f"{', '.join(self.fetches)} {self.steps}: {self.chosen} since step {self.since} "
            f"({'; '.join(filter(None, facts))})"
        )


def _in_words(candidate: str) -> str:
    """The name of a candidate of `auto`: the plan runs kernels."""
    return "kernels" if candidate == PLAN else candidate


def note(findings: MutableSequence[Finding], finding: Finding) -> None:
    """Add a finding, and log it; where nobody has loaded `logging`, nobody reads a log."""
    findings.append(finding)
    if "logging" in sys.modules:
        about = "engines" if finding.strategy == ENGINES else "optimization"
        logger(f"opkernel.{about}").info("%s", finding)


@dataclass(eq=False)
class Candidate:
    """A way to run steps.

    Attributes:
        name: What reports call it.
        run: Runs a step.
        launches: The kernels that run clusters of an engine.
        program: The StepProgram that it runs; None where that is the general one.
        times: What steps took that were measured, in seconds.
    """

    name: str
    run: Run
    launches: Sequence[Any] = ()
    program: Any = None
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
        jit: As in a Finding.
    """

    name: str
    most_kept = 4
    jit = ""

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
        self._programs: dict[Hashable, Any] = {}
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

    def program_for(self, values: Sequence[Any]) -> Any:
        """The StepProgram that was chosen for steps that are fed these values; None for the general one."""
        return self._programs.get(self.key_of(values))

    def program_of_shapes(self, shapes: Sequence[Sequence[int]] | None) -> Any:
        """The StepProgram that was chosen for feeds of some shapes; for None, the one that was chosen last."""
        return None

    def is_settled(self, values: Sequence[Any]) -> bool:
        """Whether all is found out about steps that are fed these values, so that the next one is no trial."""
        key = self.key_of(values)
        return key in self._chosen or (key not in self._searches and self.patience.is_over)

    def is_trying(self, values: Sequence[Any]) -> bool:
        """Whether a search is under way for steps that are fed these values."""
        return self.key_of(values) in self._searches

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
        plan = Candidate(PLAN, self.general)
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
        facts = tried, chosen.name, search.since, error, self.jit
        note(self._findings, Finding(self.name, self._fetches, steps, *facts))
        if len(self._chosen) >= self.most_kept:
            oldest = next(iter(self._chosen))
            self._chosen.pop(oldest)
            self._programs.pop(oldest, None)
        if chosen.program is not None:
            self._programs[key] = chosen.program
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
