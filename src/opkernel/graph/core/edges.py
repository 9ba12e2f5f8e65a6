"""Edges between operations: which may be there, and where they lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.control_flow_ops import LOOP_HEAD_OPS, NEXT_ITERATION_OPS
from opkernel.graph.core.node_signature import NodeSignature, input_type_error, types_compatible

if TYPE_CHECKING:
    from opkernel.graph.core.operation import Operation
    from opkernel.graph.core.tensor import Tensor

_T = TypeVar("_T")

Edge: TypeAlias = "tuple[Operation, int]"
"""An output of an operation."""


def edges_of(op: Operation) -> list[Edge]:
    """Where the inputs of an operation come from."""
    edges = op.edges
    return [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]


def check_inputs(op: Operation, tensors: Sequence[Tensor], signature: NodeSignature) -> None:
    """Raise InvalidArgumentError where tensors cannot be the inputs of an operation of a signature."""
    if len(tensors) != len(signature.input_types):
        raise InvalidArgumentError(
            f"Node {op.name!r} ({signature.op_type}) takes {len(signature.input_types)} inputs, "
            f"not {len(tensors)}",
            node=op.name,
            op=signature.op_type,
        )
    for index, tensor in enumerate(tensors):
        check_input(op, index, tensor, signature)


def check_input(op: Operation, index: int, tensor: Tensor, signature: NodeSignature) -> None:
    """Raise InvalidArgumentError where a tensor cannot be an input of such an operation."""
    op.graph.check_own(tensor.op, "input", op.name)
    if not types_compatible(signature.input_types[index], tensor.dtype):
        raise input_type_error(op.name, signature, index, tensor.name, tensor.dtype)


def check_outputs(op: Operation, signature: NodeSignature) -> None:
    """Raise InvalidArgumentError where an output that is taken would be of another type with a signature."""
    before, after = op.output_types, signature.output_types
    if before == after[: len(before)]:
        return
    taken = {c.edges[2 * at + 1] for c, at in op.consumer_edges() if at >= 0}
    if any(before[index : index + 1] != after[index : index + 1] for index in taken):
        raise InvalidArgumentError(
            f"Node '{op.name}' ({op.type}) cannot become a {signature.op_type}: its outputs "
            f"are of other types",
            node=op.name,
            op=op.type,
        )


def is_head_of_loop(op: Operation) -> bool:
    """Whether it is a Merge with a back edge; its outputs change from turn to turn."""
    return op.type in LOOP_HEAD_OPS and any(s.type in NEXT_ITERATION_OPS for s in op.edges[::2])


def reached(start: Iterable[_T], following: Callable[[_T], Iterable[_T]]) -> set[_T]:
    """The things that can be reached from some things, these included."""
    stack = list(start)
    found = set(stack)
    while stack:
        new = set(following(stack.pop())) - found
        found |= new
        stack += new
    return found


def behind(ops: Iterable[Operation]) -> set[Operation]:
    """Some operations, and all operations that depend on them, also by a back edge."""
    return reached(ops, lambda op: [consumer for consumer, _ in op.consumer_edges()])
