"""Which nodes may run beside others, and which graphs have nodes that could."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from opkernel.errors import OpError
from opkernel.graph import FunctionLibraryDefinition, Operation
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW, TRANSFER_OPS
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.runtime.plan.functional_ops import FUNCTIONAL_OPS, RUN_BY_EXECUTORS
from opkernel.runtime.program.kernels import KernelCache
from opkernel.types import DataType

_WITH_STATE = frozenset({DataType.DT_RESOURCE, DataType.DT_VARIANT})


def may_branch(order: Sequence[Operation], kernels: KernelCache) -> bool:
    """Whether two nodes that may take long do not need each other: the others are in a chain.

    Graphs with control flow of TensorFlow 1 have an order of their own.
    """
    examples = {op.type: op for op in order}
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
    if op.type in FUNCTIONAL_OPS or op.type in op.graph.function_library:
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
    library = op.graph.function_library
    if op.type in FUNCTIONAL_OPS or op.type in library or op.type == GRADIENT_OP:
        reached = library.reachable_definitions([op.node_def])
        ops = {node.op for name in reached for node in reached[name].node_def}
        return not any(_has_state(library, name) for name in ops)
    return True


def _has_state(library: FunctionLibraryDefinition, name: str) -> bool:
    try:
        return library.look_up(name).op_def.is_stateful
    except OpError:  # nothing is known of an unknown op
        return True
