"""The common part of staging areas and staging maps: limits, and where nodes find them.

Source: TensorFlow core/kernels/stage_op.cc, map_stage_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import OpKernelConstruction, OpKernelContext, ResourceBase
from opkernel.ops.resource_op_kernel import container_of

__all__ = ["LIMITS", "NAMES", "NodeResource", "Room", "set_values"]

R = TypeVar("R", bound=ResourceBase)

LIMITS = ("capacity: int >= 0 = 0", "memory_limit: int >= 0 = 0")
NAMES = ("container: string = ''", "shared_name: string = ''")

_BYTES_OF_A_STRING = 24  # beyond its characters, in TensorFlow


class Room:
    """How much a staging area holds, and may hold.

    Args:
        capacity: The most entries; 0 for any number.
        memory_limit: The most bytes; 0 for any number.
    """

    def __init__(self, capacity: int, memory_limit: int) -> None:
        self._capacity = capacity
        self._memory_limit = memory_limit
        self._bytes = 0

    def check(self, tensors: Sequence[Any]) -> None:
        """Raise ResourceExhaustedError for tensors that there will never be room for."""
        size = _size_of(tensors)
        if 0 < self._memory_limit < size:
            raise ResourceExhaustedError(
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging "
                f"Area with a memory limit of '{self._memory_limit}'."
            )

    def has_memory(self, tensors: Sequence[Any]) -> bool:
        """Whether there is memory for these tensors now."""
        return not self._memory_limit or self._bytes + _size_of(tensors) <= self._memory_limit

    def is_full(self, num_entries: int) -> bool:
        """Whether there are as many entries as there may be."""
        return 0 < self._capacity <= num_entries

    def add(self, tensors: Sequence[Any]) -> None:
        """Count tensors that were put in."""
        self._bytes += _size_of(tensors)

    def remove(self, tensors: Sequence[Any]) -> None:
        """Count tensors that were taken out."""
        self._bytes -= _size_of(tensors)

    def clear(self) -> None:
        """Everything was taken out."""
        self._bytes = 0


def _size_of(tensors: Sequence[Any]) -> int:
    """The bytes of tensors."""
    return sum(map(_bytes_of, tensors))


def _bytes_of(tensor: Any) -> int:
    if tensor.dtype != object:
        return int(tensor.nbytes)
    return sum(
        _BYTES_OF_A_STRING + (len(value) if isinstance(value, bytes) else 0)
        for value in tensor.reshape(-1)
    )


def set_values(ctx: OpKernelContext, tensors: Sequence[Any]) -> None:
    """Set the output `values`.

    Raises:
        InvalidArgumentError: the node has another number of outputs.
    """
    start, stop = ctx.kernel.output_range("values")
    if len(tensors) != stop - start:
        raise InvalidArgumentError(f"Mismatch stage/unstage: {len(tensors)} vs. {stop - start}")
    ctx.set_output_list("values", tensors)


class NodeResource(Generic[R]):
    """Finds the resource that nodes of one shared name share, or makes it.

    Args:
        construction: Of the kernel.
        resource_type: The class that the resource is found by.
        create: Makes it, given the room that it has.
    """

    def __init__(
        self,
        construction: OpKernelConstruction,
        resource_type: type[R],
        create: Callable[[Room], R],
    ) -> None:
        self._capacity: int = construction.get_attr("capacity")
        self._memory_limit: int = construction.get_attr("memory_limit")
        self._resource_type = resource_type
        self._create = create

    def find(self, ctx: OpKernelContext) -> R:
        """The resource, with one more reference, for the caller to give up."""
        info = container_of(ctx.kernel, ctx)
        return info.resource_manager.lookup_or_create(
            info.container,
            info.name,
            self._resource_type,
            lambda: self._create(Room(self._capacity, self._memory_limit)),
        )
