"""traced_run: runs the program of a cluster in a traced step, and records what the engine did in it.

The StepStats get an execution of the cluster by its engine, and within it the operations of the cluster: with times where
the engine measures them (`MeasuringCluster`), otherwise without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opkernel.graph import FunctionBody
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS
from opkernel.proto import AttrValue, NodeDef
from opkernel.runtime.engines.engine import CompiledCluster, MeasuringCluster, OperationTime
from opkernel.runtime.traces.node_exec_stats import ENGINE_MARK, NodeExecStatsWrapper

if TYPE_CHECKING:
    from opkernel.runtime.traces import StepStatsCollector

_Results = tuple[list[Any], list[Any]]

_now = time.perf_counter_ns


def traced_run(
    collector: StepStatsCollector,
    node: NodeDef,
    device: str,
    engine: str,
    body: FunctionBody,
    program: CompiledCluster,
) -> Callable[[Sequence[Any]], _Results]:
    """A function that runs a program once and records what it took.

    Args:
        collector: Takes the records.
        node: The node that launches the cluster.
        device: Its device.
        engine: The name of the engine.
        body: The function that was compiled.
        program: What was compiled.
    """
    mark = {ENGINE_MARK: AttrValue(b=True)}
    launched = NodeDef(name=f"{node.name}/{engine}", op=engine, input=node.input, attr=mark)
    stats = collector.create_node_exec_stats(launched)
    stats.record_executor_started()  # on this thread, whichever runs the program
    operations = [
        OperationTime(op.name, op.type, 0.0)
        for op in body.graph.get_operations()
        if op.type != "Const" and op.type not in ARG_OPS | RETVAL_OPS
    ]

    def record(start: int, end: int, operations: Sequence[OperationTime]) -> None:
        """Record a run, with its operations one after the other."""
        _set_times(stats, start, end)
        stats.done(device)
        total = sum(one.seconds for one in operations) * 1e9
        scale = min((end - start) / total, 1.0) if total else 1.0
        at = float(start)
        for one in operations:
            inner = NodeExecStatsWrapper(
                collector, NodeDef(name=f"{node.name}/{one.name}", op=one.op), stats.scope
            )
            inner.thread_id, until = stats.thread_id, at + one.seconds * 1e9 * scale
            _set_times(inner, int(at), int(until))
            inner.done(device)
            at = until

    def run(inputs: Sequence[Any]) -> _Results:
        if not isinstance(program, MeasuringCluster):
            start = _now()
            ran = program.run(inputs)
            record(start, _now(), operations)
            return ran
        program.prepare_to_measure()
        start = _now()
        results, updates, times = program.run_measured(inputs)
        record(start, _now(), _of_operations(operations, times))
        return results, updates

    return run


def _of_operations(
    operations: Sequence[OperationTime], times: Sequence[OperationTime]
) -> list[OperationTime]:
    """The times by the operations of the cluster; what the engine alone knows stays as it is."""
    ops = {one.name: one.op for one in operations}
    return [OperationTime(one.name, ops.get(one.name, one.op), one.seconds) for one in times]


def _set_times(stats: NodeExecStatsWrapper, start: int, end: int) -> None:
    stats.scheduled = stats.all_start = stats.op_start = start
    stats.op_end = stats.all_end = end
