"""Which operations a step needs, in an order in which they can run."""

from collections.abc import Collection, Iterable

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.control_flow_ops import MERGE_OPS, NEXT_ITERATION_OPS
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import PLACEHOLDER_OPS
from opkernel.graph.core.tensor import Tensor


class Needs:
    """The edges to follow when certain tensors are fed."""

    def __init__(self, feeds: Collection[Tensor]) -> None:
        self._fed = {(tensor.op, tensor.value_index) for tensor in feeds}
        self._fed_ops = {tensor.op for tensor in feeds}

    def is_fed(self, tensor: Tensor) -> bool:
        """Whether a value for the tensor is given."""
        return (tensor.op, tensor.value_index) in self._fed

    def sources(self, op: Operation) -> list[Operation]:
        """The producers of inputs that are not fed, and the control inputs."""
        sources = [*op.edges[::2], *op.control_inputs]
        if self._fed_ops.isdisjoint(sources):
            return sources
        ends = zip(op.edges[::2], op.edges[1::2], strict=True)
        return [*(end[0] for end in ends if end not in self._fed), *self.controls(op)]

    def controls(self, op: Operation) -> list[Operation]:
        """The control inputs.

        A control edge makes an operation run although its output is fed, unless the operation is a
        placeholder for the feed.
        """
        return [
            control
            for control in op.control_inputs
            if control.type not in PLACEHOLDER_OPS or (control, 0) not in self._fed
        ]


class DataNeeds(Needs):
    """The edges on which values depend: no control edges."""

    def sources(self, op: Operation) -> list[Operation]:
        """The producers of inputs that are not fed."""
        edges = zip(op.edges[::2], op.edges[1::2], strict=True)
        return [edge[0] for edge in edges if edge not in self._fed]


def prune_and_order(
    fetches: Iterable[Tensor],
    targets: Iterable[Operation],
    feeds: Collection[Tensor],
    kind: type[Needs] = Needs,
) -> list[Operation]:
    """The operations that `fetches` and `targets` need, inputs before consumers.

    Operations behind a fed tensor are not needed. A depth-first walk gives the order, which is therefore
    the same for the same graph. In a loop of TensorFlow 1, a NextIteration comes after the Merge that it
    leads back to.

    Args:
        fetches: tensors that are needed.
        targets: operations that are.
        feeds: the tensors that are given.
        kind: says what an operation needs.

    Raises:
        InvalidArgumentError: the operations depend on each other in a cycle.
    """
    needs = kind(feeds)
    roots = [*targets, *(t.op for t in fetches if not needs.is_fed(t))]
    order: list[Operation] = []
    done: dict[Operation, bool] = {}  # False while an operation's inputs are still being walked
    while roots:
        roots = _walk(roots, needs, order, done)
    return order


def _walk(
    roots: list[Operation], needs: Needs, order: list[Operation], done: dict[Operation, bool]
) -> list[Operation]:
    """Put the operations that `roots` need in order; returns those found at the other ends of back edges.

    An operation stays on the stack while its inputs are walked. Other places where it stands there are
    below: an input that needed it would close a cycle.
    """
    behind_back_edges: list[Operation] = []
    stack = roots[::-1]
    while stack:
        op = stack[-1]
        is_done = done.get(op)
        if is_done is not None:
            stack.pop()
            if not is_done:
                done[op] = True
                order.append(op)
            continue
        done[op] = False
        sources = needs.sources(op)
        if op.signature.op_type in MERGE_OPS:
            behind_back_edges += [s for s in sources if s.type in NEXT_ITERATION_OPS]
            sources = [s for s in sources if s.type not in NEXT_ITERATION_OPS]
        for needed in reversed(sources):
            is_done = done.get(needed)
            if is_done is None:
                stack.append(needed)
            elif not is_done:
                raise InvalidArgumentError(
                    f"The graph has a cycle through node {needed.name!r} ({needed.type})",
                    node=needed.name,
                    op=needed.type,
                )
    return behind_back_edges
