"""EngineTrial: the strategy for engines, which finds the one that computes a program fastest.

The first steps run by the plan. Meanwhile another thread builds the program with clusters for each engine, for the shapes that
were fed, and compiles them. Then the plan and the engines take turns of some steps; the fastest runs all further steps with
these shapes. Results of a program are compared with the plan's where it is first used (`XlaLaunchOp`).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from opkernel.errors import OpError
from opkernel.logs import logger
from opkernel.records import replace
from opkernel.runtime.adaptive.adaptive import (
    Adaptive,
    Candidate,
    Patience,
    Run,
    Search,
    take_turns,
)
from opkernel.runtime.adaptive.shapes import Build, FedShapes, facts_of, fed, shapes_of
from opkernel.runtime.engines.background import in_background
from opkernel.runtime.program.request import Jit

if TYPE_CHECKING:
    from opkernel.graph.edit.jit_options import JitOptions
    from opkernel.runtime.program.request import ProgramRequest

_TURNS = 2
_TIMED = 3
"""So many steps a candidate is timed at a turn, after one that takes what variables hold from another's memory."""
_PATIENCE = (1, 3, 3, 3)
"""The shapes of the first step get programs of their own at once, and those of three others that come so often."""
_SHORTEST_S = 50e-6
"""Steps that take less time gain nothing."""


class EngineTrial(Adaptive):
    """Tries what engines make of a program.

    Args:
        request: The program.
        general: Runs it by the plan.
        build: Builds programs.
    """

    name = "engines"

    def __init__(self, request: ProgramRequest, general: Run, build: Build) -> None:
        super().__init__(general, request.part.names, request.findings, Patience(_PATIENCE))
        self._request, self._build = request, build

    key_of = staticmethod(shapes_of)
    describe = staticmethod(fed)

    def search(self, shapes: FedShapes) -> Search:
        """Try all engines for feeds of some shapes."""
        plan, others = Candidate("plan", self.general), list[Candidate]()
        yield plan
        prepared = in_background(
            partial(_prepare, weakref.ref(self), self._request.jit, shapes, others)
        )
        while not prepared.done():
            yield plan
        yield from take_turns(others, timed=0, untimed=1)  # has their clusters compiled
        while any(launch.is_compiling for one in others for launch in one.launches):
            yield plan
        best = (yield from _fastest([plan, *others])) if others else plan
        for one in others:
            if one is not best:
                for launch in one.launches:
                    launch.let_go()
        return best

    def candidate(self, options: JitOptions, shapes: FedShapes) -> Candidate | None:
        """The program with clusters for an engine; None where there are none."""
        request = self._request
        if not request.is_current():
            return None
        special = self._build(replace(request, jit=Jit(options), feed_facts=facts_of(shapes)))
        launches = [
            args.kernels.kernel(op)
            for args in special.args
            for op in args.order
            if op.type == "XlaLaunch"
        ]
        return Candidate(options.compiler.name, special.run, launches) if launches else None


def _prepare(
    trial: weakref.ref[EngineTrial], jit: Jit, shapes: FedShapes, found: list[Candidate]
) -> None:
    """Build the program for each engine, as long as there is somebody to run it."""
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


def _fastest(candidates: Sequence[Candidate]) -> Search:
    """The fastest of the plan, which comes first, and the others; the plan where its steps are short."""
    plan = candidates[0]
    for _ in range(_TURNS):
        yield from take_turns(candidates, timed=_TIMED, untimed=1)
        if min(plan.times) < _SHORTEST_S:
            return plan
    return min(candidates, key=lambda one: one.seconds or 0.0)
