"""Executables: what a session has compiled, one for each combination of feeds and fetches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph import Graph, Tensor
from opkernel.graph.garbage_collection import paused_garbage_collection
from opkernel.graph.prune import Needs
from opkernel.kernel import allocation_limit, global_kernel_registry, intra_op_parallelism
from opkernel.runtime.checking_watcher import CheckingWatcher
from opkernel.runtime.error_report import raise_reported
from opkernel.runtime.executors import Executor, ExecutorArgs, new_executor
from opkernel.runtime.feeds import Feed
from opkernel.runtime.fetches import FetchPlan
from opkernel.runtime.functions import FunctionLibraryRuntime
from opkernel.runtime.inter_op_pool import InterOpPool
from opkernel.runtime.kernels import KernelCache
from opkernel.runtime.optimized_args import Passes, optimized_args
from opkernel.runtime.placement import LocalDevices
from opkernel.runtime.sanitizer import Sanitizer
from opkernel.runtime.session_state import LocalSessionState
from opkernel.runtime.shape_specialization import (
    Shapes,
    ShapeSpecializer,
    is_on,
    specializer,
    with_shaped_functions,
)
from opkernel.runtime.step import RunStep
from opkernel.runtime.watched_functions import WatchedFunctions

__all__ = ["Executable", "ExecutableParams", "Executables", "Variant", "as_tensor"]


_LOGGER = logging.getLogger("opkernel.placement")

Variant = Literal["", "stoppable", "traced", "partial"]
"""How a graph is compiled: for plain steps, for steps that may be cancelled or have a deadline, for
steps that are recorded, for partial runs."""


@dataclass(frozen=True, slots=True)
class Executable:
    """A compiled combination of feeds and fetches.

    Attributes:
        args: What it was made from.
        executor: What runs the graph.
        feeds: They convert the fed values.
        run: The executor's function, made quiet and limited.
        answer: Gives the results the form of the fetches.
        kept: The nodes whose tensors the session keeps after a step.
        shapes: Has plans for feeds whose shapes repeat, where that gains anything.
    """

    args: ExecutorArgs
    executor: Executor
    feeds: tuple[Callable[[Any], Any], ...]
    run: Callable[..., Sequence[Any]]
    answer: Callable[[Sequence[Any]], Any]
    kept: Sequence[str]
    shapes: ShapeSpecializer | None = None

    def executor_for(self, shapes: Shapes | None) -> Executor:
        """What runs feeds of these shapes once they have come a few times."""
        if shapes is None or self.shapes is None:
            return self.executor
        return self.shapes.executor_for(shapes)

    def step(self, values: Sequence[Any], step: RunStep) -> Any:
        """Run one step on converted values."""
        try:
            results = self.run(step, *values)
            if self.kept:
                step.save_tensors(self.kept)
        except Exception as error:
            raise_reported(error)
        except BaseException:  # an interrupt: what waits must end for the step to end
            step.cancel()
            raise
        finally:
            step.end()  # and with it the work of deferred kernels
        return self.answer(results)


@dataclass(frozen=True)
class ExecutableParams:
    """What executables are made with, and what their steps share.

    Attributes:
        devices: Where nodes run.
        state: The tensors that the session keeps.
        executor_type: The registered name of the executor; empty for the default one.
        sanitizer: Checks the kernels, where given.
        pool: The threads that steps have for expensive kernels, if they have any.
        memory_limit_bytes: No single tensor may be larger; None for half of the machine's memory.
        logs_placement: Whether it is logged where each node is placed.
        optimize: The optimisation passes that run; none where kernels are checked.
    """

    devices: LocalDevices
    state: LocalSessionState
    executor_type: str = ""
    sanitizer: Sanitizer | None = None
    pool: InterOpPool | None = None
    memory_limit_bytes: int | None = None
    logs_placement: bool = False
    optimize: Passes = False


class Executables:
    """The executables of one graph; used from any thread.

    They are dropped once the graph was edited or a kernel registered anew.

    Args:
        graph: The graph, which may grow.
        params: What they are made with.

    Attributes:
        library: The functions of the graph.
    """

    def __init__(self, graph: Graph, params: ExecutableParams) -> None:
        self._graph = graph
        self._params = params
        self._lock = threading.RLock()
        self._registry = global_kernel_registry()
        self._made: dict[Hashable, Executable] = {}
        self._made_at = self._versions()
        self._is_finalized = False
        self._passes = params.optimize if params.sanitizer is None else False
        version, device = graph.graph_def_versions.producer, params.devices.all[0]
        self.library = FunctionLibraryRuntime(
            graph.function_library,
            version,
            device,
            params.sanitizer,
            params.executor_type,
            params.pool,
            params.devices.all,
            self._passes,
        )
        self._kernels = KernelCache(
            version, graph.op_registry, device, self.library, params.devices.device_of
        )

    def find(self, fetches: Any, feeds: tuple[Any, ...], variant: Variant = "") -> Executable:
        """The executable for fetches and feeds; compiled where it is not there.

        Args:
            fetches: what is asked for.
            feeds: the tensors that are fed.
            variant: "stoppable": each node checks the step; "traced": it does, and tells the step's
                `stats_collector` what it took; "partial": it is run by the dataflow executor.

        Raises:
            InvalidArgumentError, NotFoundError: a feed or fetch does not fit the graph, or a node
                cannot be run.
            FailedPreconditionError: the session was finalized, and did not have it.
            TypeError: a feed or fetch is no tensor, operation, name or structure of them.
        """
        key = _key(fetches), feeds, self._graph.edits, self._registry.version, variant
        try:
            executable = self._made.get(key)
        except TypeError:
            _refuse_unhashable("Fetch", _leaves(fetches))
            _refuse_unhashable("Feed", feeds)
            raise
        return self._make_once(key, fetches, feeds, variant) if executable is None else executable

    def for_graph(self, graph: Graph) -> Executables:
        """Executables of another graph, made in the same way."""
        other = Executables(graph, self._params)
        other._is_finalized = self._is_finalized
        return other

    def finalize(self) -> None:
        """Keep what there is, and refuse to make more."""
        with self._lock:
            if self._is_finalized:
                raise FailedPreconditionError("Session already finalized.")
            self._is_finalized = True

    def clear(self) -> None:
        """Drop them all."""
        with self._lock:
            self._made.clear()

    def _versions(self) -> tuple[int, int]:
        """What changes where executables become stale: the graph was edited, or a kernel replaced."""
        return self._graph.edits, self._registry.version

    def _make_once(
        self, key: tuple[Hashable, ...], fetches: Any, feeds: tuple[Any, ...], variant: Variant
    ) -> Executable:
        """Make what another thread has not made meanwhile; drop what has become stale."""
        with self._lock:
            versions = self._versions()
            if self._made_at != versions:
                self._made_at = versions
                self._made.clear()
            executable = self._made.get(key)
            if executable is None:
                if self._is_finalized:
                    plain = self._made.get((*key[:-1], ""))
                    if variant == "stoppable" and plain is not None:
                        return plain
                    raise FailedPreconditionError("Session has been finalized.")
                with paused_garbage_collection():
                    executable = self._made[key] = self._make(fetches, feeds, variant)
        return executable

    @cached_property
    def _traced_library(self) -> FunctionLibraryRuntime:
        """The functions of the graph, compiled apart for traced steps."""
        from opkernel.runtime.tracing import TracingWatcher  # rarely needed

        return WatchedFunctions(self.library, TracingWatcher(self._params.sanitizer))

    @cached_property
    def _stoppable_library(self) -> FunctionLibraryRuntime:
        """The functions of the graph, compiled apart for steps that can be stopped."""
        return WatchedFunctions(self.library, CheckingWatcher(self._params.sanitizer))

    def _library_of(self, variant: Variant) -> FunctionLibraryRuntime:
        if variant == "traced":
            return self._traced_library
        return self._stoppable_library if variant == "stoppable" else self.library

    def _make(self, fetches: Any, feeds: Sequence[Any], variant: Variant) -> Executable:
        params = self._params
        library = self._library_of(variant)
        fetch_plan = FetchPlan(self._graph, fetches, params.state)
        tensors = [as_tensor(self._graph, feed) for feed in feeds]
        _check_feeds(tensors)
        args = ExecutorArgs(
            tensors,
            fetch_plan.tensors,
            fetch_plan.targets,
            self._kernels,
            library,
            library.watcher,
            params.pool,
        )
        _check_references(args)
        for op in args.order:  # also those that no optimised graph has any more need a device
            device = params.devices.device_of(op)
            if params.logs_placement:
                _LOGGER.info("%s: (%s): %s", op.name, op.type, device.name)
        if variant != "partial":
            args = optimized_args(args, self._passes)
        executor_type = "DATAFLOW" if variant == "partial" else params.executor_type
        has_shapes = not variant and is_on(self._passes)
        executor = new_executor(executor_type, with_shaped_functions(args) if has_shapes else args)
        shapes = self._specializer(executor, args) if has_shapes else None
        run = executor.run if shapes is None else shapes.runner()
        return Executable(
            args,
            executor,
            tuple(Feed(tensor, params.state).converter() for tensor in tensors),
            self.limited(run if params.sanitizer is None else params.sanitizer.watched(run)),
            fetch_plan.answer(),
            fetch_plan.kept,
            shapes,
        )

    def _specializer(self, executor: Executor, args: ExecutorArgs) -> ShapeSpecializer | None:
        """What has plans for shapes that repeat, for as long as the graph and its kernels stay."""
        versions = self._versions()

        def may_compile() -> bool:
            return not self._is_finalized and self._versions() == versions

        return specializer(executor, args, self._params.executor_type, self._passes, may_compile)

    def limited(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """A function that runs kernels: quiet, and limited as the session wants it."""
        run = np.errstate(all="ignore")(run)
        if self._params.memory_limit_bytes is not None:
            run = allocation_limit(self._params.memory_limit_bytes)(run)
        threads = self._params.devices.all[0].intra_op_threads
        if threads:
            run = intra_op_parallelism(threads)(run)
        return run


def as_tensor(graph: Graph, feed: Any) -> Tensor:
    """The tensor that a feed is or names."""
    tensor = graph.as_graph_element(feed, allow_operation=False)
    assert isinstance(tensor, Tensor)
    return tensor


def _check_feeds(tensors: Sequence[Tensor]) -> None:
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise InvalidArgumentError("Tensors to be fed are given more than once")


def _check_references(args: ExecutorArgs) -> None:
    """Refuse to run an op on a fed value where it wants the reference itself."""
    if not any(tensor.dtype.is_ref for tensor in args.feeds):
        return
    needs = Needs(args.feeds)
    for op in args.order:
        for index, (tensor, dtype) in enumerate(zip(op.inputs, op.input_types, strict=True)):
            if dtype.is_ref and needs.is_fed(tensor):
                raise InvalidArgumentError(
                    f"Input {index} of node {op.name} was passed {dtype.base.string} from the feed "
                    f"of {tensor.name} incompatible with expected {dtype.string}.",
                    node=op.name,
                    op=op.type,
                )


def _leaves(fetches: Any) -> Iterator[Any]:
    """What stands in a structure of fetches."""
    if isinstance(fetches, list | tuple | Mapping):
        for one in fetches.values() if isinstance(fetches, Mapping) else fetches:
            yield from _leaves(one)
    else:
        yield fetches


def _refuse_unhashable(what: str, given: Iterable[Any]) -> None:
    """Raise TypeError for the first of some feeds or fetches that can be none."""
    for one in given:
        try:
            hash(one)
        except TypeError:
            raise TypeError(
                f"{what} argument {one!r} has invalid type {type(one).__name__}, must be a Tensor, an "
                "Operation, or the name of one"
            ) from None


def _key(fetches: Any) -> Hashable:
    """A hashable form of fetches: equal for equal structures of equal leaves."""
    if isinstance(fetches, list | tuple):
        return type(fetches), tuple(_key(fetch) for fetch in fetches)
    if isinstance(fetches, Mapping):
        return type(fetches), tuple((key, _key(fetch)) for key, fetch in fetches.items())
    leaf: Hashable = fetches  # a name, Tensor or Operation
    return leaf
