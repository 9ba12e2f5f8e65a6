"""TracingWatcher: has the collector of a step know what each node took.

Graphs that are to be traced are compiled apart, with a watcher; all others pay nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from opkernel.graph import Operation
from opkernel.kernel import (
    AsyncOpKernel,
    ContextParams,
    FunctionKernel,
    OpKernel,
    OpKernelContext,
    Step,
    forward_input,
)
from opkernel.proto import NodeDef
from opkernel.runtime.traces.node_exec_stats import NodeExecStatsWrapper
from opkernel.runtime.traces.step_stats_collector import (
    Place,
    StepStatsCollector,
    current_place,
    enter,
    in_place,
)
from opkernel.runtime.watch.kernel_watcher import (
    CallWatcher,
    Computer,
    KernelWatcher,
    Requests,
    Runner,
    Starter,
)
from opkernel.runtime.watch.watched_computation import computation
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.runtime.dataflow.frames import Iteration, PendingCall
    from opkernel.runtime.dataflow.node_item import NodeItem
    from opkernel.runtime.dataflow.run import DataflowRun

_now = time.perf_counter_ns
_MAX_CALLS = 8  # that a name tells, the innermost ones
_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"  # of nodes that no kernel computes


class TracingWatcher(KernelWatcher):
    """Takes statistics for `step.stats_collector`; the nodes of steps that have none just run.

    Args:
        inner: Runs the kernels, where given: another watcher.
    """

    def __init__(self, inner: KernelWatcher | None = None) -> None:
        self._inner = inner

    def runner(self, op: Operation, kernel: OpKernel, params: ContextParams) -> Runner:
        """The function that runs the kernel of a node and takes its statistics.

        Of a kernel that passes its input on, which plans do not call, they are that it took no time.
        """
        compute = computation(op, kernel, self._inner, params)
        node, types, device = kernel.node_def, kernel.output_types, kernel.device.name

        def run(step: Step, *inputs: Any) -> Sequence[Any]:
            step.check()
            if step.stats_collector is None:
                return compute(step, inputs, None)
            stats = _begin(step.stats_collector, node)
            outputs: Sequence[Any] = ()
            try:
                outputs = compute(step, inputs, stats)
                return outputs
            finally:
                _end(stats, outputs, types, device)

        def forward(step: Step, *tensors: Any) -> Sequence[Any]:
            if step.stats_collector is not None:
                stats = step.stats_collector.create_node_exec_stats(node)
                stats.record_executor_started()
                stats.set_outputs(tensors, types)
                stats.done(device)
            return tensors

        passes_on = isinstance(kernel, FunctionKernel) and kernel.function is forward_input
        return forward if passes_on and self._inner is None else run

    def computer(self, op: Operation, kernel: OpKernel) -> Computer | None:
        """A function that computes a kernel in a context and takes its statistics."""
        if self._inner is not None:
            return self._inner.computer(op, kernel)
        types, device = kernel.output_types, kernel.device.name

        def compute(ctx: OpKernelContext) -> None:
            if ctx.step.stats_collector is None:
                kernel.compute(ctx)
                return
            stats = _begin(ctx.step.stats_collector, kernel.node_def)
            ctx.set_record_memory_consumption(True)
            try:
                kernel.compute(ctx)
            finally:
                stats.set_memory(ctx)
                _end(stats, ctx.outputs, types, device)

        return compute

    def starter(self, op: Operation, kernel: AsyncOpKernel) -> Starter | None:
        """A function that starts an asynchronous kernel and takes its statistics."""
        if self._inner is not None:
            return None
        types, device = kernel.output_types, kernel.device.name

        def start(ctx: OpKernelContext, done: Callable[[], None]) -> None:
            def end() -> None:
                try:
                    stats.set_memory(ctx)
                    _end(stats, () if ctx.status else ctx.outputs, types, device)
                finally:
                    done()

            if ctx.step.stats_collector is None:
                kernel.start(ctx, done)
                return
            stats = _begin(ctx.step.stats_collector, kernel.node_def, is_on_thread=False)
            ctx.set_record_memory_consumption(True)
            kernel.start(ctx, end)

        return start

    def call_watcher(self, op: Operation) -> CallWatcher:
        """The watcher that takes the statistics of a node that calls functions."""
        return _TracedCall(op.node_def, op.output_types)


class _TracedCall:
    """A node that calls functions; the nodes in these are named after it."""

    def __init__(self, node: NodeDef, types: Sequence[DataType]) -> None:
        self._node = node
        self._types = types

    def call(self, function: Runner, step: Step, *inputs: Any) -> Sequence[Any]:
        if step.stats_collector is None:
            return function(step, *inputs)
        stats = _begin(step.stats_collector, self._node)
        outputs: Sequence[Any] = ()
        try:
            with in_place(Place(f"{stats.name}/")):
                outputs = function(step, *inputs)
            return outputs
        finally:
            _end(stats, outputs, self._types, _DEVICE)

    def requests(self, requests: Requests) -> Requests:
        return lambda inputs: self._followed(requests(inputs))

    def _followed(
        self, requests: Generator[Any, Any, Sequence[Any]]
    ) -> Generator[Any, Any, Sequence[Any]]:
        place = current_place()
        if place.collector is None:
            return (yield from requests)
        stats = _begin(place.collector, self._node, is_on_thread=False)
        inside = Place(f"{stats.name}/", 0, place.collector)
        results = None
        while True:
            try:
                request = requests.send(results)
            except StopIteration as end:
                outputs: Sequence[Any] = end.value
                stats.record_compute_started()  # the time was that of the nodes inside
                _end(stats, outputs, self._types, _DEVICE)
                return outputs
            enter(inside)  # for functions that the executor calls on this thread
            results = yield request


def _begin(collector: Any, node: NodeDef, *, is_on_thread: bool = True) -> NodeExecStatsWrapper:
    stats: NodeExecStatsWrapper = collector.create_node_exec_stats(node)
    stats.record_executor_started()
    if not is_on_thread:
        stats.thread_id = 0
    stats.record_compute_started()
    return stats


def _end(
    stats: NodeExecStatsWrapper, outputs: Sequence[Any], types: Sequence[DataType], device: str
) -> None:
    stats.record_compute_ended()
    stats.set_outputs(outputs, types)
    stats.record_executor_ended()
    stats.done(device)


def run_traced(run: DataflowRun, collector: StepStatsCollector, feeds: Sequence[Any]) -> Any:
    """The result of `run.run(feeds)`, which records when each node became ready, and in which calls."""
    place = current_place()
    run.ready = _TracedReady(collector, place.scope)
    with in_place(place):
        return run.run(feeds)


class _TracedReady(list["tuple[NodeItem, Iteration]"]):
    """The ready nodes; a thread that takes one is at the node's place from then on."""

    def __init__(self, collector: StepStatsCollector, scope: str) -> None:
        super().__init__()
        self._since: list[int] = []
        self._collector = collector
        self._scope = scope

    def append(self, node: tuple[NodeItem, Iteration]) -> None:
        super().append(node)
        self._since.append(_now())

    def __iadd__(self, nodes: Iterable[tuple[NodeItem, Iteration]]) -> Self:  # type: ignore[override, misc]  # of lists
        for node in nodes:
            self.append(node)
        return self

    def pop(self, index: Any = -1) -> tuple[NodeItem, Iteration]:
        node = super().pop(index)
        call = node[1].frame.call
        scope = self._scope if call is None else self._scope + _scope_of(call)
        enter(Place(scope, self._since.pop(index), self._collector))
        return node

    def clear(self) -> None:
        super().clear()
        self._since.clear()


def _scope_of(call: PendingCall | None) -> str:
    """The names of the calls that a call is in, and its own."""
    names: list[str] = []
    while call is not None and len(names) < _MAX_CALLS:
        names.append(call.item.name)
        call = call.iteration.frame.call
    return "".join(f"{name}/" for name in reversed(names))
