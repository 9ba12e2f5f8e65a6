"""TrackingAllocator: charges allocations through it to one user of an allocator.

Source: TensorFlow core/framework/tracking_allocator.cc.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.allocation_ledger import AllocationLedger, AllocatorStats, AllocRecord
from opkernel.device.allocator import Allocator, AllocatorMemoryType
from opkernel.types import DataType

Array = np.ndarray[Any, Any]


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


class TrackingAllocator:
    """Passes allocations on to `allocator` and records them; used from any thread.

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
        """The number of the allocation among the allocations of this object, from 1."""
        return self._ledger.find(array).allocation_id

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
