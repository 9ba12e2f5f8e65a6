"""Allocators: the sources of arrays, which count the memory in use.

Memory is not handed back: it is in use until the last array that looks into it is collected.

Source: TensorFlow core/framework/allocator.h, cpu_allocator_impl.cc, tracking_allocator.cc.
"""

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np

from opkernel.device.allocation import check_allocation
from opkernel.device.budget import AllocationLedger, AllocatorStats, AllocRecord
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.types import Array, DataType

ALLOCATOR_ALIGNMENT = 64
"""The alignment in bytes that suits every instruction set (kAllocatorAlignment)."""


class AllocatorMemoryType(Enum):
    """The kind of memory of an allocator."""

    UNKNOWN = 0
    DEVICE = 1
    HOST_PAGEABLE = 2
    HOST_PINNED = 3


class Allocator(Protocol):
    """A source of arrays; one that neither tracks nor counts them, unless it overrides the methods about that."""

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
        return False

    def requested_size(self, array: Array) -> int:
        """The bytes that were asked for."""
        raise self._tracks_nothing()

    def allocated_size(self, array: Array) -> int:
        """The bytes that were taken; no fewer than requested."""
        raise self._tracks_nothing()

    def allocation_id(self, array: Array) -> int:
        """A number that no other allocation of the allocator has; 0 where it gives none."""
        raise self._tracks_nothing()

    def get_stats(self) -> AllocatorStats | None:
        """The counts; None for allocators that do not count."""
        return None

    def clear_stats(self) -> bool:
        """Reset the counts except for memory in use; False for allocators that do not count."""
        return False

    def _tracks_nothing(self) -> InvalidArgumentError:
        return InvalidArgumentError(f"Allocator {self.name} does not track its arrays")


class _CountingAllocator(Allocator):
    """An allocator that counts its arrays in a ledger; allocations have numbers from 1."""

    _ledger: AllocationLedger

    @property
    def tracks_allocation_sizes(self) -> bool:
        """Always."""
        return True

    def requested_size(self, array: Array) -> int:
        """The bytes that were asked for."""
        return self._ledger.find(array).requested

    def allocated_size(self, array: Array) -> int:
        """The bytes that were taken."""
        return self._ledger.find(array).allocated

    def allocation_id(self, array: Array) -> int:
        """The number of the allocation, from 1."""
        return self._ledger.find(array).allocation_id


class CpuAllocator(_CountingAllocator):
    """Gives arrays in the host's memory and counts them; used from any thread.

    Arrays from `allocate` own their memory and are aligned as NumPy aligns them. Bytes from
    `allocate_raw` are aligned as asked, which takes up to `alignment` bytes more.

    Args:
        bytes_limit: The most bytes of arrays that are alive; None for no limit.
    """

    name = "cpu"
    memory_type = AllocatorMemoryType.HOST_PAGEABLE

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

    def get_stats(self) -> AllocatorStats:
        """The counts."""
        return self._ledger.stats

    def clear_stats(self) -> bool:
        """Reset the counts except for memory in use."""
        self._ledger.clear_stats()
        return True

    def _take(
        self, sizes: tuple[int, ...], kind: np.dtype[Any], requested: int, allocated: int, what: str
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


class AllocatedSizes(NamedTuple):
    """The bytes that went through a TrackingAllocator.

    Attributes:
        total: All that was allocated.
        high_watermark: The most that was alive at a time.
        still_live: The bytes that are alive.
    """

    total: int
    high_watermark: int
    still_live: int


class TrackingAllocator(_CountingAllocator):
    """Passes allocations on to `allocator`, and charges them to one user of it; used from any thread.

    Arrays are followed until they are collected, for as long as this object exists.
    """

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._ledger = AllocationLedger(keeps_records=True)

    @property
    def name(self) -> str:
        """The name of the allocator that is wrapped."""
        return self._allocator.name

    @property
    def memory_type(self) -> AllocatorMemoryType:
        """The memory that the wrapped allocator gives."""
        return self._allocator.memory_type

    def allocate(self, shape: Sequence[int], dtype: DataType) -> Array:
        """An array of the wrapped allocator, whose errors are passed on."""
        array = self._allocator.allocate(shape, dtype)
        return self._follow(array, array.nbytes)

    def allocate_raw(self, alignment: int, num_bytes: int) -> Array:
        """Bytes of the wrapped allocator, whose errors are passed on."""
        return self._follow(self._allocator.allocate_raw(alignment, num_bytes), num_bytes)

    def get_stats(self) -> AllocatorStats | None:
        """The counts of the wrapped allocator."""
        return self._allocator.get_stats()

    def clear_stats(self) -> bool:
        """Have the wrapped allocator count anew."""
        return self._allocator.clear_stats()

    def get_sizes(self) -> AllocatedSizes:
        """The bytes that went through this object so far."""
        stats = self._ledger.stats
        return AllocatedSizes(self._ledger.total_bytes, stats.peak_bytes_in_use, stats.bytes_in_use)

    def get_current_records(self) -> list[AllocRecord]:
        """Each allocation and, with a negative size, each end of one, in order."""
        return self._ledger.records

    def _follow(self, array: Array, requested: int) -> Array:
        allocator = self._allocator
        tracked = allocator.tracks_allocation_sizes
        allocated = allocator.allocated_size(array) if tracked else requested
        self._ledger.reserve(allocated, self.name)  # never refused: this ledger has no limit
        owner = array.base if isinstance(array.base, np.ndarray) else array
        self._ledger.add(owner, requested, allocated)
        return array
