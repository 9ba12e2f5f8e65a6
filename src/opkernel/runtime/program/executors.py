"""Executors by name: each makes a graph ready to run, for certain feeds and fetches.

| name | what runs the graph |
|---|---|
| DEFAULT, or none | the compiled plan where it can and nothing waits; else, or with a pool, dataflow |
| SINGLE_THREADED_EXECUTOR | the compiled plan; it refuses the graphs that TensorFlow's refuses |
| COMPILED_PLAN | the compiled plan |
| DATAFLOW | the dataflow executor |

With the default one a plan may run its branches side by side (`branches`).

Source: TensorFlow core/common_runtime/executor_factory.cc, single_threaded_executor.cc.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from opkernel.device.budget import current_budget
from opkernel.errors import FailedPreconditionError, NotFoundError, UnimplementedError
from opkernel.graph import Operation
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW, TRANSFER_OPS
from opkernel.graph.core.node import types_given
from opkernel.registrations import Registrations, declaring_site
from opkernel.runtime.plan import functionalize
from opkernel.runtime.plan.compiled_plan import KernelMayWaitError, compile_plan
from opkernel.runtime.plan.functional_ops import FUNCTIONAL_OPS, RUN_BY_EXECUTORS
from opkernel.runtime.program.subgraph import ExecutorArgs
from opkernel.runtime.staged.candidates import may_branch


class Executor(Protocol):
    """A graph that is ready to be run."""

    @property
    def run(self) -> Callable[..., Sequence[Any]]:
        """Runs one step: `run(step, *feeds)` gives the fetches."""

    @property
    def uses_step(self) -> bool:
        """Whether any node looks at the step; if none does, any step will do."""

    @property
    def source(self) -> str:
        """The program, as text."""


ExecutorFactory = Callable[[ExecutorArgs], Executor]

_MOST_NODES = 4000
"""The most nodes of a plan without control flow of TensorFlow 1; larger tables fit no cache."""

_NODES_A_PIECE = 1000
"""The nodes of each piece of a longer plan: one function each."""

_factories = Registrations[ExecutorFactory]("An executor of type")


def register_executor(name: str, factory: ExecutorFactory) -> None:
    """Have sessions find an executor by name. A module that runs again may register its own again.

    Raises:
        AlreadyExistsError: another one has this name.
    """
    _factories.add(name, factory, declaring_site(sys._getframe(1)))


def registered_executors() -> list[str]:
    """The names of the executors."""
    return _factories.names()


def new_executor(name: str, args: ExecutorArgs) -> Executor:
    """A new executor of a graph, by the executor's name; the default one without a name.

    Raises:
        NotFoundError: no executor has this name; or a needed node has no kernel.
        InvalidArgumentError: a needed node is invalid, or the graph has a cycle.
        UnimplementedError, FailedPreconditionError: the graph needs what the executor cannot do.
    """
    factory = _factories.get(name or "DEFAULT")
    if factory is None:
        raise NotFoundError(
            f"No executor factory registered for the given executor type: {name}. "
            f"Registered are {', '.join(registered_executors())}"
        )
    return factory(args)


def _compiled_plan(args: ExecutorArgs, *, may_wait: bool = True) -> Executor:
    if len(args.order) > _MOST_NODES and _may_be_cut(args.order):
        from opkernel.runtime.staged.staged_plan import StagedPlan  # for large graphs
        from opkernel.runtime.staged.stages import Branch

        pieces = range(0, len(args.order), _NODES_A_PIECE)
        stages = [[Branch(args.order[start : start + _NODES_A_PIECE], 0.0)] for start in pieces]
        return StagedPlan(stages, args, may_wait=may_wait)
    return compile_plan(args, may_wait=may_wait)


def _may_be_cut(order: Sequence[Operation]) -> bool:
    """Whether any node may stand in another plan than the next: that takes values, and an order."""
    ops = {op.type for op in order}
    return LOW_LEVEL_CONTROL_FLOW.isdisjoint(ops) and not any(t.is_ref for t in types_given(order))


def _dataflow(args: ExecutorArgs) -> Executor:
    from opkernel.runtime.dataflow import DataflowExecutor, GraphView  # most graphs are plans

    return DataflowExecutor(GraphView(args))


def _default(args: ExecutorArgs) -> Executor:
    if args.pool is not None or _may_wait(args):
        return _dataflow(args)
    try:
        plan = _compiled_plan(args, may_wait=False)
    except (KernelMayWaitError, functionalize.NotRaisedError):
        return _dataflow(args)
    is_plain = args.watcher is None or args.watcher.may_branch
    if is_plain and not _memory_is_limited() and may_branch(args.order, args.kernels):
        from opkernel.runtime.adaptive.branches import BranchingPlan  # most graphs have none

        return BranchingPlan(plan, args)
    return plan


def _may_wait(args: ExecutorArgs) -> bool:
    """Whether any node calls a function that may wait."""
    examples = {op.type: op for op in args.order}
    calling = {
        name
        for name, op in examples.items()
        if name in FUNCTIONAL_OPS or name in op.graph.function_library
    }
    if not calling:
        return False
    from opkernel.runtime.program.asynchronous import any_call_waits  # most graphs call nothing

    return any_call_waits([op for op in args.order if op.type in calling], args.library)


def _memory_is_limited() -> bool:
    """Whether a step must not take more memory than one node after the other takes."""
    budget = current_budget()
    return budget is not None and budget.memory_limit_bytes is not None


def _single_threaded(args: ExecutorArgs) -> Executor:
    for op in args.order:
        _check_single_threaded(op)
    return _compiled_plan(args)


def _check_single_threaded(op: Operation) -> None:
    for dtype in op.output_types:
        if dtype.is_ref:
            raise UnimplementedError(
                "Single-threaded executor does not support reference-typed edges.  But saw type "
                f"{dtype.string} in outputs of node {op.name}"
            )
    if op.type in LOW_LEVEL_CONTROL_FLOW:
        raise FailedPreconditionError(
            "Single-threaded executor does not support low level control flow, but saw control "
            f"flow node {op.name}.  Perhaps your graph contains old-style control flow primitives? "
            "Try using tf.compat.v1.enable_control_flow_v2()."
        )
    if op.type in TRANSFER_OPS:
        raise UnimplementedError(
            "Single-threaded executor does not support partitioned graphs.  But saw send/recv "
            f"node {op.name}"
        )
    if op.op_def.is_distributed_communication and op.type not in RUN_BY_EXECUTORS:
        raise UnimplementedError(
            "Single-threaded executor does not support collective ops.  But saw collective node "
            f"{op.name}"
        )


register_executor("DEFAULT", _default)
register_executor("SINGLE_THREADED_EXECUTOR", _single_threaded)
register_executor("COMPILED_PLAN", _compiled_plan)
register_executor("DATAFLOW", _dataflow)
