"""functional: what computes some tensors, with While and If in place of control flow of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.core.edges import Edge
from opkernel.graph.edit.prune import prune_and_order
from opkernel.optimization.control_flow.functionalize_control_flow import functionalize
from opkernel.optimization.optimize import copy_to_optimize


def functional(
    feeds: Sequence[Edge], fetches: Sequence[Tensor], targets: Sequence[Operation]
) -> tuple[Sequence[Edge], Sequence[Tensor], Sequence[Operation]]:
    """The feeds, fetches and targets in a graph without loops and conditionals of TensorFlow 1, but those of odd form.

    Where there are none it is the graph that was given.
    """
    tensors = [op.outputs[index] for op, index in feeds]
    needed = prune_and_order(fetches, (), tensors)
    # What the results need anyway may become part of a loop; a target stays outside.
    others = [op for op in targets if op not in set(needed)]
    order = prune_and_order(fetches, others, tensors)
    if not _has_control_flow(order):
        return feeds, fetches, targets
    copied = copy_to_optimize(order[0].graph, fetches, tensors, others)
    functionalize(copied.editor)
    edges = [(tensor.op, tensor.value_index) for tensor in copied.feeds]
    return edges, copied.fetches, copied.targets


def _has_control_flow(order: Sequence[Operation]) -> bool:
    """Whether some operations, or functions that they call, are such control flow."""
    if any(op.type in LOW_LEVEL_CONTROL_FLOW for op in order):
        return True
    calls = [op for op in order if op.traits.calls or op.type in op.graph.function_library]
    if not calls:
        return False
    library = calls[0].graph.function_library
    called = library.reachable_definitions([op.message for op in calls]).values()
    return any(
        node.op in LOW_LEVEL_CONTROL_FLOW for function in called for node in function.node_def
    )
