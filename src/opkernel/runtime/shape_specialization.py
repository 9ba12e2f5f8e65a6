"""ShapeSpecializer: when fed shapes repeat, a plan of its own for them.

A graph that asks for shapes of what it is fed computes the same sizes at every step. Once feeds have
had the same shapes a few times, the graph is optimised again for these: shapes are constants then,
and what is computed from shapes alone is gone, broadcasts that do nothing, reshapes to the same shape.
Kernels are those of the general plan, with their state.

State: `_plans` is what runs which shapes, the general plan where nothing is gained; `_runs` counts
steps of other shapes. `_wanted` is the number of steps that the next plan asks for, twice as many each
time, so that shapes which keep changing cost little.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Operation
from opkernel.graph.garbage_collection import paused_garbage_collection
from opkernel.graph.tensor_facts import TensorFacts
from opkernel.opdef.shape_algebra import ShapeAlgebra
from opkernel.runtime.executors import Executor, ExecutorArgs, new_executor
from opkernel.runtime.optimized_args import Passes, optimized_args
from opkernel.runtime.shaped_functions import ShapedFunctions, reads_shapes
from opkernel.types import TensorShape

__all__ = ["ShapeSpecializer", "Shapes", "is_on", "specializer", "with_shaped_functions"]

Shapes = Sequence[Sequence[int]]
"""The shapes of all feeds, in order."""

_Shapes = tuple[tuple[int, ...], ...]

_LOGGER = logging.getLogger("opkernel.optimization")
_SWITCH = "shape_specialization"
_FIRST_WANTED = 3
_MAX_PLANS = 4
_MAX_COUNTED = 64


def is_on(passes: Passes) -> bool:
    """Whether plans for known shapes are among the optimisations that run."""
    return passes is True or (passes is not False and _SWITCH in passes)


def with_shaped_functions(args: ExecutorArgs) -> ExecutorArgs:
    """The args with functions for what the graph knows, if that is the shapes of all feeds."""
    if not _are_shapes_known(args) or not reads_shapes(args.order):
        return args
    return replace(args, library=ShapedFunctions(args.library, args.order))


def specializer(
    executor: Executor,
    args: ExecutorArgs,
    executor_type: str,
    passes: Passes,
    may_compile: Callable[[], bool],
) -> ShapeSpecializer | None:
    """What runs an executor's graph by plans for shapes that repeat; None where nothing is gained.

    Args:
        executor: the executor.
        args: what it was made from: the optimised graph.
        executor_type: the registered name of what it and the others are.
        passes: the optimisation passes that run.
        may_compile: whether the graph and the kernels are as they were.
    """
    if _are_shapes_known(args) or not reads_shapes(args.order):
        return None
    return ShapeSpecializer(executor, args, executor_type, passes, may_compile)


def _are_shapes_known(args: ExecutorArgs) -> bool:
    return all(tensor.shape.is_fully_defined() for tensor in args.feeds)


class ShapeSpecializer:
    """Runs a graph by the general plan, and by plans for the shapes that come often."""

    def __init__(
        self,
        executor: Executor,
        args: ExecutorArgs,
        executor_type: str,
        passes: Passes,
        may_compile: Callable[[], bool],
    ) -> None:
        self._general = executor
        self._args = args
        self._executor_type = executor_type
        self._passes = passes
        self._may_compile = may_compile
        self._plans: dict[_Shapes, Callable[..., Sequence[Any]]] = {}
        self._runs: dict[_Shapes, int] = {}
        self._wanted = _FIRST_WANTED
        self._lock = threading.Lock()

    def runner(self) -> Callable[..., Sequence[Any]]:
        """What runs a step, in the place of the executor's `run`."""
        plans, runs, run_general = self._plans, self._runs, self._general.run

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
        """What runs feeds of these shapes when they repeat; the general one if it does as well.

        Raises:
            InvalidArgumentError: these are no shapes, not those that the feeds may have, or not as
                many as there are feeds.
        """
        feeds, known = self._args.feeds, [TensorShape(shape) for shape in shapes]
        if len(known) != len(feeds):
            raise InvalidArgumentError(f"Expected {len(feeds)} shapes of feeds, got {len(known)}")
        for tensor, shape in zip(feeds, known, strict=True):
            tensor.shape.merge_with(shape)
        return self._specialized(tuple(known)) or self._general

    def _specialized(self, shapes: _Shapes) -> Executor | None:
        """The plan for feeds of these shapes; None where nothing is gained."""
        facts = [TensorFacts(ShapeAlgebra.make_shape(shape)) for shape in shapes]
        args = self._args
        special = optimized_args(args, self._passes, feed_facts=facts)
        if special is args:
            return None
        calls = ShapedFunctions(args.library, special.order)
        executor = new_executor(self._executor_type, replace(special, library=calls))
        if not calls.has_any and _work(special.order) >= _work(args.order):
            return None
        if executor.uses_step and not self._general.uses_step:
            return None
        return executor

    def _find(self, shapes: _Shapes) -> Callable[..., Sequence[Any]] | None:
        """The plan for shapes that have come often enough; None while another thread makes one."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            plan = self._plans.get(shapes)
            if plan is None:
                plan = self._make(shapes)
                self._wanted *= 2
                self._runs.pop(shapes, None)
                if len(self._plans) >= _MAX_PLANS:
                    del self._plans[next(iter(self._plans))]
                self._plans[shapes] = plan
            return plan
        finally:
            self._lock.release()

    def _make(self, shapes: _Shapes) -> Callable[..., Sequence[Any]]:
        executor = None
        if self._may_compile():
            try:
                with paused_garbage_collection():
                    executor = self._specialized(shapes)
            except Exception as error:  # the general plan needs none of this
                _LOGGER.info("There is no plan for the shapes %s: %s", shapes, error)
        return self._general.run if executor is None else executor.run


def _work(ops: Iterable[Operation]) -> int:
    """How many operations are more than constants."""
    return sum(op.type != "Const" for op in ops)
