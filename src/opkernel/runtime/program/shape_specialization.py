"""ShapeSpecializer: when fed shapes repeat, it makes a plan of their own for them.

A graph that asks for the shapes of its feeds computes the same sizes at every step. Once feeds have had
the same shapes a few times, the graph is optimised again for these shapes. Shapes are constants then, and
all nodes that depend on shapes alone are gone, with broadcasts that do nothing and reshapes to the same
shape. The kernels are those of the general plan, with their state.

State: `_plans` holds the plan for each set of shapes: the general plan where nothing is gained. `_runs`
counts steps of other shapes. `_wanted` is the number of steps that the next plan asks for. It doubles each
time, so that shapes which keep changing cost little.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.interrupts import trying
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.program.request import ProgramRequest
from opkernel.runtime.program.shaped_functions import ShapedFunctions
from opkernel.types import TensorShape

if TYPE_CHECKING:
    from opkernel.runtime.program.builder import Program

__all__ = ["ShapeSpecializer", "Shapes"]

Shapes = Sequence[Sequence[int]]
"""The shapes of all feeds, in order."""

_Shapes = tuple[tuple[int, ...], ...]

_LOGGER = logging.getLogger("opkernel.optimization")
_FIRST_WANTED = 3
_MAX_PLANS = 4
_MAX_COUNTED = 64


class ShapeSpecializer:
    """Runs a graph by the general plan, and by plans for the shapes that come often."""

    def __init__(self, general: Program, build: Callable[[ProgramRequest], Program]) -> None:
        self._program = general
        self._build = build
        self._plans: dict[_Shapes, Callable[..., Sequence[Any]]] = {}
        self._runs: dict[_Shapes, int] = {}
        self._wanted = _FIRST_WANTED
        self._lock = threading.Lock()

    def runner(self) -> Callable[..., Sequence[Any]]:
        """The function that runs a step, in place of the executor's `run`."""
        plans, runs, run_general = self._plans, self._runs, self._program.executor.run

        def run(step: Any, *values: Any) -> Sequence[Any]:
            shapes = tuple([value.shape for value in values])
            plan = plans.get(shapes)
            if plan is not None:
                return plan(step, *values)
            count = runs.get(shapes, 0) + 1
            if count >= self._wanted:
                plan = self._find(shapes)
                if plan is not None:
                    return plan(step, *values)
            results = run_general(step, *values)
            if count == 1 and len(runs) >= _MAX_COUNTED:
                runs.clear()
            runs[shapes] = count  # of steps that came to their end
            return results

        return run

    def executor_for(self, shapes: Shapes) -> Executor:
        """The executor for feeds of these shapes when they repeat; else the general one.

        Raises:
            InvalidArgumentError: these are no shapes, not those that the feeds may have, or not as
                many as there are feeds.
        """
        feeds, known = self._program.part.feeds, [TensorShape(shape) for shape in shapes]
        if len(known) != len(feeds):
            raise InvalidArgumentError(f"Expected {len(feeds)} shapes of feeds, got {len(known)}")
        for tensor, shape in zip(feeds, known, strict=True):
            tensor.shape.merge_with(shape)
        return self._specialized(tuple(known)) or self._program.executor

    def _specialized(self, shapes: _Shapes) -> Executor | None:
        """The plan for feeds of these shapes; None where nothing is gained."""
        general = self._program
        facts = [TensorFacts(ShapeAlgebra.make_shape(shape)) for shape in shapes]
        special = self._build(replace(general.request, part=general.part, feed_facts=facts))
        if not _has_shaped_calls(special) and _work(special) >= _work(general):
            return None
        if special.executor.uses_step and not general.executor.uses_step:
            return None
        return special.executor

    def _find(self, shapes: _Shapes) -> Callable[..., Sequence[Any]] | None:
        """The plan for shapes that have come often enough; None while another thread makes one."""
        with trying(self._lock) as is_ours:
            if not is_ours:
                return None
            plan = self._plans.get(shapes)
            if plan is None:
                plan = self._make(shapes)
                self._wanted *= 2
                self._runs.pop(shapes, None)
                if len(self._plans) >= _MAX_PLANS:
                    del self._plans[next(iter(self._plans))]
                self._plans[shapes] = plan
            return plan

    def _make(self, shapes: _Shapes) -> Callable[..., Sequence[Any]]:
        executor = None
        if self._program.request.is_current():
            try:
                executor = self._specialized(shapes)
            except Exception as error:  # the general plan needs none of this
                _LOGGER.info("There is no plan for the shapes %s: %s", shapes, error)
        return (executor or self._program.executor).run


def _work(program: Program) -> int:
    """How many operations are more than constants."""
    return sum(op.type != "Const" for op in program.part.operations)


def _has_shaped_calls(program: Program) -> bool:
    """Whether functions that it calls are compiled for the known facts of their arguments."""
    libraries = [args.library for args in program.args]
    return any(isinstance(one, ShapedFunctions) and one.has_any for one in libraries)
