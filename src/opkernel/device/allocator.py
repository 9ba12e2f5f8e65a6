"""Allocators: the sources of arrays, which count the memory in use.

Memory is not handed back: it is in use until the last array that looks into it is collected.

Source: TensorFlow core/framework/allocator.h, cpu_allocator_impl.cc.
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol

import numpy as np

from opkernel.device.allocation import check_allocation
from opkernel.device.allocation_ledger import AllocationLedger, AllocatorStats
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.types import DataType

ALLOCATOR_ALIGNMENT = 64
"""The alignment in bytes that suits every instruction set (kAllocatorAlignment)."""

Array = np.ndarray[Any, Any]


class AllocatorMemoryType(Enum):
    """The kind of memory of an allocator."""

    UNKNOWN = 0
    DEVICE = 1
    HOST_PAGEABLE = 2
    HOST_PINNED = 3


class Allocator(Protocol):
    """A source of arrays."""

    @property
    def name(self) -> str:
        """The name, such as `cpu`."""

    @property
    def memory_type(self) -> AllocatorMemoryType:
        """The kind of its memory."""

    def allocate(self, shape: Sequence[int], dtype: DataType) -> Array:
        """An uninitialised array.

        Raises:
            InvalidArgumentError: a size is negative, or there are too many elements.
            ResourceExhaustedError: it is more than may be allocated; nothing was.
        """

    def allocate_raw(self, alignment: int, num_bytes: int) -> Array:
        """Uninitialised bytes at an address that `alignment`, a power of 2, divides.

        Raises:
            InvalidArgumentError: the alignment is no power of 2, or the size is negative.
            ResourceExhaustedError: it is more than may be allocated; nothing was.
        """

    @property
    def tracks_allocation_sizes(self) -> bool:
        """Whether the three methods below know the allocator's arrays.

        They take an array that it gave, or one that looks into the memory of such an array, and
        raise InvalidArgumentError for others.
        """

    def requested_size(self, array: Array) -> int:
        """The bytes that were asked for."""

    def allocated_size(self, array: Array) -> int:
        """The bytes that were taken; no fewer than requested."""

    def allocation_id(self, array: Array) -> int:
        """A number that no other allocation of the allocator has; 0 where it gives none."""

    def get_stats(self) -> AllocatorStats | None:
        """The counts; None for allocators that do not count."""

    def clear_stats(self) -> bool:
        """Reset the counts except for memory in use; False for allocators that do not count."""


class CpuAllocator:
    """Gives arrays in the host's memory and counts them; used from any thread.

    Arrays from `allocate` own their memory and are aligned as NumPy aligns them. Bytes from
    `allocate_raw` are aligned as asked, which takes up to `alignment` bytes more.

    Args:
        bytes_limit: The most bytes of arrays that are alive; None for no limit.
    """

    name = "cpu"
    memory_type = AllocatorMemoryType.HOST_PAGEABLE
    tracks_allocation_sizes = True

    def __init__(self, bytes_limit: int | None = None) -> None:
        self._ledger = AllocationLedger(bytes_limit)

    def allocate(self, shape: Sequence[int], dtype: DataType) -> Array:
        """An uninitialised array.

        Raises:
            InvalidArgumentError: a size is negative, or there are too many elements.
            ResourceExhaustedError: it exceeds the limit for one tensor (`allocation_limit`), or
                all arrays together exceed this allocator's; nothing was allocated.
        """
        sizes = check_allocation(shape, dtype)
        kind = dtype.numpy_dtype
        what = f"tensor with shape{list(sizes)} and type {dtype.string}"
        num_bytes = math.prod(sizes) * kind.itemsize
        return self._take(sizes, kind, num_bytes, num_bytes, what)

    def allocate_raw(self, alignment: int, num_bytes: int) -> Array:
        """Uninitialised bytes at an address that `alignment` divides.

        Raises:
            InvalidArgumentError: the alignment is no power of 2, or the size is negative.
            ResourceExhaustedError: as `allocate`.
        """
        if alignment < 1 or alignment & (alignment - 1):
            raise InvalidArgumentError(f"alignment must be a power of 2, got {alignment}")
        check_allocation((num_bytes,), DataType.DT_UINT8)
        taken = num_bytes + alignment - 1
        memory = self._take(
            (taken,), np.dtype(np.uint8), num_bytes, taken, f"{num_bytes} aligned bytes"
        )
        start = -memory.ctypes.data % alignment
        return memory[start : start + num_bytes]

    def requested_size(self, array: Array) -> int:
        """The bytes that were asked for."""
        return self._ledger.find(array).requested

    def allocated_size(self, array: Array) -> int:
        """The bytes that were taken."""
        return self._ledger.find(array).allocated

    def allocation_id(self, array: Array) -> int:
        """The number of the allocation, from 1."""
        return self._ledger.find(array).allocation_id

    def get_stats(self) -> AllocatorStats:
        """The counts."""
        return self._ledger.stats

    def clear_stats(self) -> bool:
        """Reset the counts except for memory in use."""
        self._ledger.clear_stats()
        return True

    def _take(
        self,
        sizes: tuple[int, ...],
        kind: np.dtype[Any],
        requested: int,
        allocated: int,
        what: str,
    ) -> Array:
        what = f"{what} by allocator {self.name}"
        self._ledger.reserve(allocated, what)
        try:
            array = np.empty(sizes, kind)
        except BaseException as error:
            self._ledger.give_back(allocated)
            if isinstance(error, MemoryError):
                raise ResourceExhaustedError(f"OOM when allocating {what}: {error}") from error
            raise
        self._ledger.add(array, requested, allocated)
        return array


_CPU_ALLOCATOR = CpuAllocator()


def cpu_allocator() -> CpuAllocator:
    """The allocator of this process for memory of the host."""
    return _CPU_ALLOCATOR
