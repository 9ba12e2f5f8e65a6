"""Executors by name: each makes a graph ready to run, for certain feeds and fetches.

| name | what runs the graph |
|---|---|
| DEFAULT, or none | the compiled plan where it can and nothing waits; else, or with a pool, dataflow, in parts |
| SINGLE_THREADED_EXECUTOR | the compiled plan; it refuses the graphs that TensorFlow's refuses |
| COMPILED_PLAN | the compiled plan |
| DATAFLOW | the dataflow executor, node by node |

With the default one a plan may run its branches side by side (`adaptive/branches`).

Source: TensorFlow core/common_runtime/executor_factory.cc, single_threaded_executor.cc.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from opkernel.device.budget import current_budget
from opkernel.errors import FailedPreconditionError, NotFoundError, UnimplementedError
from opkernel.graph import Operation
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW, TRANSFER_OPS
from opkernel.registrations import Registrations, declaring_site
from opkernel.runtime.plan.builder import NotRaisedError
from opkernel.runtime.plan.compiled_plan import KernelMayWaitError, compile_plan
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS, calling, calls_functions
from opkernel.runtime.program.kernels import KernelCache, has_state
from opkernel.runtime.program.request import ExecutorArgs
from opkernel.types import DataType


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


def _dataflow(args: ExecutorArgs, *, in_parts: bool = False) -> Executor:
    from opkernel.runtime.dataflow.graph_view import GraphView  # most graphs are plans
    from opkernel.runtime.dataflow.run import DataflowExecutor

    return DataflowExecutor(GraphView(args, in_parts=in_parts))


def _default(args: ExecutorArgs) -> Executor:
    if args.pool is not None or _may_wait(args):
        return _dataflow(args, in_parts=True)
    try:
        plan = compile_plan(args, may_wait=False)
    except (KernelMayWaitError, NotRaisedError):
        return _dataflow(args, in_parts=True)
    is_plain = args.watcher is None or args.watcher.may_branch
    budget = current_budget()  # side by side, nodes take more memory than one after the other
    is_limited = budget is not None and budget.memory_limit_bytes is not None
    if is_plain and not is_limited and may_branch(args.order, args.kernels):
        from opkernel.runtime.adaptive.branches import BranchingPlan  # most graphs have none

        return BranchingPlan(plan, args)
    return plan


def _may_wait(args: ExecutorArgs) -> bool:
    """Whether any node calls a function that may wait."""
    calls = calling(args.order)
    if not calls:
        return False
    from opkernel.runtime.program.waiting import any_call_waits  # few graphs call functions

    return any_call_waits(calls, args.library)


def _single_threaded(args: ExecutorArgs) -> Executor:
    for op in args.order:
        _check_single_threaded(op)
    return compile_plan(args)


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
register_executor("COMPILED_PLAN", compile_plan)
register_executor("DATAFLOW", _dataflow)


_WITH_STATE = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT})


def may_branch(order: Sequence[Operation], kernels: KernelCache) -> bool:
    """Whether two nodes that may take long do not need each other: the others are in a chain.

    Graphs with control flow of TensorFlow 1 have an order of their own.
    """
    examples = {op.type: op for op in reversed(order)}  # the first, which have kernels
    if not LOW_LEVEL_CONTROL_FLOW.isdisjoint(examples):
        return False
    heavy = {name for name, op in examples.items() if _may_take_long(op, kernels)}
    count = sum([op.type in heavy for op in order])
    return count > 1 and _longest_chain(order, heavy) < count


def _longest_chain(order: Sequence[Operation], types: Collection[str]) -> int:
    """The most nodes of some types that need each other in turn."""
    lengths: dict[Operation, int] = {}
    for op in order:
        before = [lengths.get(source, 0) for source in op.edges[::2]]
        lengths[op] = max(before, default=0) + (op.type in types)
    return max(lengths.values())


def _may_take_long(op: Operation, kernels: KernelCache) -> bool:
    """Whether nodes like this one may take so long that a thread is worthwhile.

    Element-wise ones share their work out themselves where they are big.
    """
    if calls_functions(op):
        return not op.op_def.is_stateful
    if op.type in RUN_BY_EXECUTORS or op.op_def.is_stateful:
        return False
    kernel = kernels.kernel(op)
    is_light = kernel.const_tensor is not None or kernel.contract.elementwise
    return kernel.is_expensive and not is_light


def is_independent(op: Operation) -> bool:
    """Whether it is all the same to others when a node runs, its inputs and results aside."""
    if op.op_def.is_stateful or op.type in TRANSFER_OPS or op.type in LOW_LEVEL_CONTROL_FLOW:
        return False
    types = (*op.output_types, *(tensor.dtype for tensor in op.inputs))
    if any(dtype.is_ref or dtype in _WITH_STATE for dtype in types):
        return False
    if calls_functions(op):
        library = op.graph.function_library
        reached = library.reachable_definitions([op.node_def])
        ops = {node.op for name in reached for node in reached[name].node_def}
        return not any(has_state(library, name, if_unknown=True) for name in ops)
    return True
