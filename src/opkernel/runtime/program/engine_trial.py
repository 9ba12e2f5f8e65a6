"""EngineTrial: finds out while a program runs which engine computes it fastest.

The first steps run by the plan. Meanwhile another thread builds the program with clusters for each engine, for the shapes that
were fed, and compiles them. Then the plan and the engines take turns of some steps; the fastest runs all further steps with
these shapes. Results of a program are compared with the plan's where it is first used (`XlaLaunchOp`).

State: `_chosen` has what runs steps with certain shapes, `_trials` those that are not decided yet.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from opkernel.errors import OpError
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.logs import logger
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.records import dataclass, field
from opkernel.runtime.engines.background import in_background
from opkernel.runtime.program.request import Jit

if TYPE_CHECKING:
    from opkernel.graph.edit.jit_options import JitOptions
    from opkernel.runtime.program.builder import Program
    from opkernel.runtime.program.request import ProgramRequest

__all__ = ["Candidate", "EngineTrial"]

_Run = Callable[..., Sequence[Any]]
_Shapes = tuple[tuple[int, ...], ...]

_IN_A_ROW = 4
"""So many steps a candidate runs at a turn. The first is not timed: it takes what variables hold from another's memory."""
_TIMED = 6
"""So many times of each candidate are compared."""
_WANTED = 3
"""Shapes that come so often get programs of their own; those of the first step do at once."""
_MAX_TRIALS = 4
_MAX_COUNTED = 64
_SHORTEST_S = 50e-6
"""Steps that take less time gain nothing."""


@dataclass(eq=False)
class Candidate:
    """What may run steps.

    Attributes:
        name: Of the engine; `plan` for the kernels of the CPU.
        run: Runs a step.
        launches: The kernels that run its clusters.
        times: What steps took, in seconds.
    """

    name: str
    run: _Run
    launches: Sequence[Any] = ()
    times: list[float] = field(default_factory=list)

    @property
    def is_ready(self) -> bool:
        """Whether nothing is being compiled for it."""
        return not any(one.is_compiling for one in self.launches)


class EngineTrial:
    """Runs a program by its plan and by what engines make of it.

    Args:
        general: The program by its plan.
        build: Builds programs.
    """

    def __init__(self, general: Program, build: Callable[[ProgramRequest], Program]) -> None:
        self._program, self._build = general, build
        self._chosen: dict[_Shapes, _Run] = {}
        self._trials: dict[_Shapes, _Trial] = {}
        self._counts: dict[_Shapes, int] = {}
        self._lock = threading.Lock()

    def runner(self, run_general: _Run) -> _Run:
        """The function that runs a step, in place of the plan's."""
        chosen = self._chosen

        def run(step: Any, *values: Any) -> Sequence[Any]:
            shapes = tuple([value.shape for value in values])
            found = chosen.get(shapes)
            if found is not None:
                return found(step, *values)
            trial = self._trials.get(shapes)
            if trial is not None:
                return trial.run(step, values)
            results = run_general(step, *values)
            self._count(shapes, run_general)
            return results

        return run

    def reports(self) -> list[tuple[_Shapes, Sequence[Candidate]]]:
        """The candidates for the shapes that were tried."""
        return [(shapes, trial.candidates) for shapes, trial in self._trials.items()]

    def _count(self, shapes: _Shapes, run_general: _Run) -> None:
        """Count a step; begin a trial where its shapes are worth it."""
        with self._lock:
            count = self._counts.get(shapes, 0) + 1
            if count == 1 and len(self._counts) >= _MAX_COUNTED:
                self._counts.clear()
            self._counts[shapes] = count
            is_wanted = count >= _WANTED or not self._trials
            if shapes in self._trials or not is_wanted or len(self._trials) >= _MAX_TRIALS:
                return
            plan = Candidate("plan", run_general)
            self._trials[shapes] = _Trial(plan, lambda run: self._choose(shapes, run))
        in_background(partial(_prepare, weakref.ref(self), self._program.request.jit, shapes))

    def _choose(self, shapes: _Shapes, run: _Run) -> None:
        self._chosen[shapes] = run

    def begin(self, shapes: _Shapes, candidates: Sequence[Candidate]) -> None:
        """Have candidates take part in the trial for some shapes."""
        self._trials[shapes].begin(candidates)

    def candidate(self, options: JitOptions, shapes: _Shapes) -> Candidate | None:
        """The program with clusters for an engine; None where there are none."""
        request = self._program.request
        if not request.is_current():
            return None
        facts = [TensorFacts(ShapeAlgebra.make_shape(shape)) for shape in shapes]
        special = self._build(replace(request, jit=Jit(options), feed_facts=facts))
        launches = [
            args.kernels.kernel(op)
            for args in special.args
            for op in args.order
            if op.type == "XlaLaunch"
        ]
        return Candidate(options.compiler.name, special.run, launches) if launches else None


def _prepare(trial: weakref.ref[EngineTrial], jit: Jit, shapes: _Shapes) -> None:
    """Build the program for each engine, as long as there is somebody to run it."""
    found = []
    for options in jit.candidates():
        there = trial()
        if there is None:
            return
        try:
            candidate = there.candidate(options, shapes)
        except OpError as error:
            logger("opkernel.engines").info(
                "%s has no program for the shapes %s: %s", options.compiler.name, shapes, error
            )
            continue
        if candidate is not None:
            found.append(candidate)
        del there
    there = trial()
    if there is not None:
        there.begin(shapes, found)


class _Trial:
    """The trial for some shapes.

    State: `_turn` counts the steps since the candidates are ready.
    """

    def __init__(self, plan: Candidate, choose: Callable[[_Run], None]) -> None:
        self.candidates: list[Candidate] = [plan]
        self._choose = choose
        self._has_begun, self._turn, self._warm = False, 0, 0
        self._lock = threading.Lock()

    def begin(self, candidates: Sequence[Candidate]) -> None:
        """Take candidates beside the plan; without any, the plan is chosen."""
        self.candidates += candidates
        self._has_begun = True
        if not candidates:
            self._keep(self.candidates[0])

    def run(self, step: Any, values: Sequence[Any]) -> Sequence[Any]:
        """Run a step by the candidate whose turn it is."""
        candidate, is_timed = self._next()
        start = time.perf_counter()
        results = candidate.run(step, *values)
        if is_timed:
            candidate.times.append(time.perf_counter() - start)
            self._decide()
        return results

    def _next(self) -> tuple[Candidate, bool]:
        """Who runs the next step, and whether its time counts."""
        plan, *others = self.candidates
        if not self._has_begun:
            return plan, False
        with self._lock:
            if self._warm < len(others):  # one step has a candidate's clusters compiled
                self._warm += 1
                return others[self._warm - 1], False
            if not all(one.is_ready for one in others):
                return plan, False
            turn, of_turn = divmod(self._turn, _IN_A_ROW)
            self._turn += 1
            return self.candidates[turn % len(self.candidates)], of_turn > 0

    def _decide(self) -> None:
        """Choose the fastest once all were timed."""
        counts = [len(one.times) for one in self.candidates]
        plan = self.candidates[0]
        if counts[0] >= 2 and min(plan.times) < _SHORTEST_S:
            self._keep(plan)
        elif min(counts) >= _TIMED:
            self._keep(min(self.candidates, key=lambda one: median(one.times)))

    def _keep(self, best: Candidate) -> None:
        """Have one run all further steps, and let go of what the others need."""
        self._choose(best.run)
        for one in self.candidates:
            if one is not best:
                one.run = best.run
                for launch in one.launches:
                    launch.let_go()
