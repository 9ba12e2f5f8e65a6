"""Keys: tensors as plans know them."""

from opkernel.graph import Operation, Tensor

__all__ = ["Key", "key_of", "keys_of_inputs"]

Key = tuple[str, int]
"""A tensor, as the name of its operation and its place among the outputs."""


def key_of(tensor: Tensor) -> Key:
    """The name of a tensor's operation, and which of its outputs it is."""
    return tensor.op.name, tensor.value_index


def keys_of_inputs(op: Operation) -> list[Key]:
    """The keys of the tensors that an operation takes, which need not be made for it."""
    edges = op.edges
    return [(edges[i].name, edges[i + 1]) for i in range(0, len(edges), 2)]
