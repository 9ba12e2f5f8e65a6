"""AllocationLedger: counts arrays from their allocation to their collection.

Source: TensorFlow core/framework/cpu_allocator_impl.cc, tracking_allocator.cc.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.records import dataclass

__all__ = ["AllocRecord", "AllocationLedger", "AllocatorStats"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class AllocatorStats:
    """Counts of an allocator; sizes in bytes.

    Attributes:
        num_allocs: How many arrays were allocated.
        bytes_in_use: The size of the arrays that are alive.
        peak_bytes_in_use: The largest that `bytes_in_use` was.
        largest_alloc_size: The size of the largest array.
        bytes_limit: The most that `bytes_in_use` may be; None without limit.
    """

    num_allocs: int = 0
    bytes_in_use: int = 0
    peak_bytes_in_use: int = 0
    largest_alloc_size: int = 0
    bytes_limit: int | None = None

    def debug_string(self) -> str:
        """The statistics, one a line, as TensorFlow prints them."""
        lines = {
            "Limit": self.bytes_limit or 0,
            "InUse": self.bytes_in_use,
            "MaxInUse": self.peak_bytes_in_use,
            "NumAllocs": self.num_allocs,
            "MaxAllocSize": self.largest_alloc_size,
        }
        return "".join(f"{name + ':':<18}{value:>20}\n" for name, value in lines.items())


@dataclass(frozen=True, slots=True)
class AllocRecord:
    """An allocation or, with a negative size, its end.

    Attributes:
        alloc_bytes: The size.
        alloc_micros: When, in microseconds since the epoch.
    """

    alloc_bytes: int
    alloc_micros: int


class Allocation(weakref.ref[Array]):
    """An array that is counted, with its record."""

    __slots__ = ("allocated", "allocation_id", "key", "requested")
    only_counts = True  # the array is not read by it

    key: int
    allocation_id: int
    requested: int
    allocated: int


class AllocationLedger:
    """The arrays of an allocator; used from any thread.

    An array may be collected at any instruction, also while the lock of this object is held. So the
    callback of its end only notes it, and all other methods book the notes first.

    Attributes:
        bytes_limit: The most bytes of arrays that are alive; None without limit.
        total_bytes: The size of all arrays that there were.
    """

    def __init__(self, bytes_limit: int | None = None, *, keeps_records: bool = False) -> None:
        self.bytes_limit = bytes_limit
        self.total_bytes = 0
        self._keeps_records = keeps_records
        self._records: list[AllocRecord] = []
        self._num_allocs = self._in_use = self._peak = self._largest = self._last_id = 0
        self._alive: dict[int, Allocation] = {}
        self._lock = threading.RLock()  # a collection may run code that allocates
        self._collected = collected = deque[tuple[Allocation, int]]()

        def note(allocation: Any) -> None:
            """Note that an array was collected. Takes no lock, and keeps no ledger alive."""
            collected.append((allocation, _now_micros()))

        self._note = note

    def reserve(self, num_bytes: int, what: str) -> None:
        """Count memory that is about to be taken; `what` names it in the error.

        Raises:
            ResourceExhaustedError: it would exceed the limit. Nothing is counted then.
        """
        with self._lock:
            self._book()
            if self.bytes_limit is not None and self._in_use + num_bytes > self.bytes_limit:
                raise ResourceExhaustedError(
                    f"OOM when allocating {what}: {num_bytes} bytes and the {self._in_use} in use "
                    f"are more than the limit of {self.bytes_limit}"
                )
            self._in_use += num_bytes

    def give_back(self, num_bytes: int) -> None:
        """Undo a reservation."""
        with self._lock:
            self._in_use -= num_bytes

    def add(self, array: Array, requested: int, allocated: int) -> None:
        """Count an array, whose memory was reserved, until it is collected.

        Args:
            array: the array that owns the memory.
            requested: the bytes that were asked for.
            allocated: the bytes that were reserved.
        """
        allocation = Allocation(array, self._note)
        allocation.key, allocation.requested, allocation.allocated = id(array), requested, allocated
        with self._lock:
            self._book()
            self._last_id += 1
            allocation.allocation_id = self._last_id
            self._alive[allocation.key] = allocation
            self._num_allocs += 1
            self.total_bytes += allocated
            self._peak = max(self._peak, self._in_use)
            self._largest = max(self._largest, allocated)
            if self._keeps_records:
                self._records.append(AllocRecord(allocated, _now_micros()))

    def find(self, array: Array) -> Allocation:
        """The record of an array, or of the array whose memory it looks into.

        Raises:
            InvalidArgumentError: the array is none of this ledger's.
        """
        owner = array.base if isinstance(array.base, np.ndarray) else array
        with self._lock:
            self._book()
            found = self._alive.get(id(owner))
        if found is None:
            raise InvalidArgumentError(
                f"the array of shape {list(array.shape)} was not allocated here"
            )
        return found

    @property
    def bytes_in_use(self) -> int:
        """The size of the arrays that are alive."""
        with self._lock:
            self._book()
            return self._in_use

    def counts(self, array: Array) -> bool:
        """Whether an array that owns its memory is counted."""
        with self._lock:
            self._book()
            return id(array) in self._alive

    @property
    def stats(self) -> AllocatorStats:
        """The counts."""
        with self._lock:
            self._book()
            return AllocatorStats(
                self._num_allocs, self._in_use, self._peak, self._largest, self.bytes_limit
            )

    @property
    def records(self) -> list[AllocRecord]:
        """Allocations and collections in order, if the ledger keeps them."""
        with self._lock:
            self._book()
            return list(self._records)

    def clear_stats(self) -> None:
        """Reset the counts except for memory in use."""
        with self._lock:
            self._book()
            self._num_allocs = self._largest = 0
            self._peak = self._in_use

    def _book(self) -> None:
        while self._collected:
            allocation, micros = self._collected.popleft()
            if self._alive.get(allocation.key) is allocation:  # else the address is used again
                del self._alive[allocation.key]
            self._in_use -= allocation.allocated
            if self._keeps_records:
                self._records.append(AllocRecord(-allocation.allocated, micros))


def _now_micros() -> int:
    return time.time_ns() // 1000
