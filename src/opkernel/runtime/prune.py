"""Which operations a step needs, in an order in which they can run."""

from collections.abc import Collection, Iterable

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.graph import Operation, Tensor
from opkernel.graph.structural_ops import NEXT_ITERATION_OPS

__all__ = ["prune_and_order"]

_STAND_FOR_FEEDS = frozenset({"Placeholder", "PlaceholderV2", "_Arg"})
"""Ops that do nothing but stand for a fed value; to wait for one that is fed is to wait for nothing."""


def prune_and_order(
    fetches: Iterable[Tensor], targets: Iterable[Operation], feeds: Collection[Tensor]
) -> list[Operation]:
    """The operations that `fetches` and `targets` need, inputs before consumers.

    What lies behind a fed tensor is not needed. The order is that of a depth-first walk, so it is
    the same for the same graph.

    Raises:
        InvalidArgumentError: the operations depend on each other in a cycle.
        UnimplementedError: the cycle is a loop of TensorFlow 1 control flow.
    """
    fed = {(tensor.op.name, tensor.value_index) for tensor in feeds}
    roots = [*targets, *(t.op for t in fetches if (t.op.name, t.value_index) not in fed)]
    order: list[Operation] = []
    done: dict[str, bool] = {}  # False while an operation's inputs are still being walked
    stack = [(op, False) for op in reversed(roots)]
    while stack:
        op, inputs_done = stack.pop()
        if inputs_done:
            done[op.name] = True
            order.append(op)
        elif op.name not in done:
            done[op.name] = False
            stack.append((op, True))
            for needed in reversed(_needed_by(op, fed)):
                if done.get(needed.name) is False:
                    raise _cycle(needed, [waiting for waiting, started in stack if started])
                if needed.name not in done:
                    stack.append((needed, False))
    return order


def _needed_by(op: Operation, fed: Collection[tuple[str, int]]) -> list[Operation]:
    """What an operation waits for: the producers of its inputs that are not fed, and its controls.

    Another operation whose output is fed still runs for those that wait for it by a control edge.
    """
    if not fed:
        return [*(t.op for t in op.inputs), *op.control_inputs]
    producers = [t.op for t in op.inputs if (t.op.name, t.value_index) not in fed]
    controls = [
        control
        for control in op.control_inputs
        if control.type not in _STAND_FOR_FEEDS or (control.name, 0) not in fed
    ]
    return [*producers, *controls]


def _cycle(op: Operation, waiting: list[Operation]) -> OpError:
    """The error for an operation that waits for itself; `waiting` are all that wait, in order."""
    cycle = waiting[waiting.index(op) :]
    if any(member.type in NEXT_ITERATION_OPS for member in cycle):
        return UnimplementedError(
            f"Loops of TensorFlow 1 control flow are not executed yet (node {op.name!r})",
            node=op.name,
            op=op.type,
        )
    return InvalidArgumentError(
        f"The graph has a cycle through node {op.name!r} ({op.type})", node=op.name, op=op.type
    )
