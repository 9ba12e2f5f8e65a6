"""Budget: the memory and the time that a command, a session or a step may take.

A budget belongs to the thread that works under it, and to the threads to which that thread hands work.
Code asks the budget before it takes memory whose size the data decides (`check_allocation`, and the
decoding of tensors). Arrays that outlive a kernel count until they are collected (`AllocationLedger`). Code that
works for long asks now and then whether time is left. Without a budget nothing is counted.

Source: TensorFlow core/framework/cpu_allocator_impl.cc, tracking_allocator.cc.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.errors import DeadlineExceededError, InvalidArgumentError, ResourceExhaustedError
from opkernel.interrupts import setting
from opkernel.records import dataclass
from opkernel.types import Array, decoded_charge

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


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


class Budget:
    """A budget: bytes of arrays at once, and time.

    A budget within another has no more than that has left.

    Args:
        memory_limit_bytes: The most bytes at once; None for as many as the outer budget has.
        deadline: When time is up, by `time.monotonic()`; None for as long as the outer budget has.
        outer: The budget around it, where there is one.
        of_each: The limit is one for each tensor: nothing is counted here, and a tensor that a file
            holds as it is may be larger.
        work: How much may be computed, as `kernel/bounded.py` guesses; None for any amount.
        is_of_step: Whether it ends with a step, while kernels that are made meanwhile stay.

    Attributes:
        deadline: When time is up; None for never.
        lasting: The budget that counts the memory that kernels keep.
    """

    def __init__(
        self,
        memory_limit_bytes: int | None = None,
        deadline: float | None = None,
        outer: Budget | None = None,
        *,
        of_each: bool = False,
        work: int | None = None,
        is_of_step: bool = False,
    ) -> None:
        deadlines = [deadline, None if outer is None else outer.deadline]
        self.deadline: float | None = min((t for t in deadlines if t is not None), default=None)
        self.lasting: Budget = outer if is_of_step and outer is not None else self
        self._limit = memory_limit_bytes
        self._outers: tuple[Budget, ...] = () if outer is None else (outer, *outer._outers)
        self._held = None if of_each else AllocationLedger()
        self._work = work

    @property
    def memory_limit_bytes(self) -> int | None:
        """The most bytes at once; None for no limit."""
        limits = [one._limit for one in (self, *self._outers)]
        return min((n for n in limits if n is not None), default=None)

    @property
    def counts_work(self) -> bool:
        """Whether it matters how much is computed."""
        return any(one._work is not None for one in (self, *self._outers))

    @property
    def seconds_left(self) -> float | None:
        """The time that is left; None for any."""
        return None if self.deadline is None else max(self.deadline - time.monotonic(), 0)

    def check_memory(self, num_bytes: int, what: str, *, is_stored: bool = False) -> None:
        """Raise ResourceExhaustedError where so many bytes more would be too many.

        Args:
            num_bytes: How many.
            what: The thing that they are for.
            is_stored: Whether they are copied from a file as they are.
        """
        used = 0
        for budget in (self, *self._outers):
            limit = None if is_stored and budget._held is None else budget._limit
            if budget._held is not None:
                used += budget._held.bytes_in_use
            if limit is not None and used + num_bytes > limit:
                held = f" and the {used} in use" if used else ""
                raise ResourceExhaustedError(
                    f"OOM when allocating {what}: {num_bytes} bytes{held} are more than the limit "
                    f"of {limit}"
                )

    def hold(self, array: Any, content_bytes: int = 0, what: str = "") -> None:
        """Count the memory of an array until it is collected, unless it is counted already.

        Args:
            array: The array; NumPy scalars and the like are not counted.
            content_bytes: The bytes of its objects, or of others that are there as long as the array.
            what: The thing that it is for.

        Raises:
            ResourceExhaustedError: it is too much.
        """
        owner = owner_of(array)
        if owner is None or self.counts(owner):
            return
        size = owner.nbytes + content_bytes
        self.check_memory(size, what or f"what holds {owner.dtype}{list(owner.shape)}")
        ledger = self._ledger()
        if ledger is not None:
            ledger.reserve(size, "")
            ledger.add(owner, size, size)

    def reserve(self, num_bytes: int, what: str, instead_of: int = 0) -> None:
        """Count memory that is being made, until it is given back.

        Args:
            num_bytes: How much.
            what: The thing that it is for.
            instead_of: The part of it that was reserved before.

        Raises:
            ResourceExhaustedError: it is too much. Nothing of it is counted then.
        """
        ledger = self._ledger()
        if ledger is not None:
            ledger.give_back(instead_of)
        self.check_memory(num_bytes, what)
        if ledger is not None:
            ledger.reserve(num_bytes, "")

    def give_back(self, num_bytes: int) -> None:
        """Count memory that was reserved no more."""
        ledger = self._ledger()
        if ledger is not None:
            ledger.give_back(num_bytes)

    def spend(self, work: int) -> None:
        """Note work that is about to be done.

        Raises:
            ResourceExhaustedError: that is too much.
        """
        for budget in (self, *self._outers):
            if budget._work is not None:
                budget._work -= work
                if budget._work < 0:
                    raise ResourceExhaustedError(
                        "The work is more than the budget for work in advance"
                    )

    def check_time(self, doing: str, name: str = "") -> None:
        """Raise DeadlineExceededError where time is up; `doing` and `name` tell the work under way."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            what = f"{doing} {name!r}" if name else doing
            raise DeadlineExceededError(f"Timed out while {what}")

    def _ledger(self) -> AllocationLedger | None:
        """What counts the memory of this budget; None where no budget around it counts, either."""
        return next((one._held for one in (self, *self._outers) if one._held is not None), None)

    def counts(self, owner: Array) -> bool:
        """Whether an array that owns its memory is counted."""
        ledgers = [one._held for one in (self, *self._outers) if one._held is not None]
        return any(ledger.counts(owner) for ledger in ledgers)


def owner_of(array: Any) -> Array | None:
    """The array that owns the memory of an array; None for other values."""
    if not isinstance(array, np.ndarray):
        return None
    owner: Array = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)

current_budget = _current.get
"""The budget that this thread works under; None without a budget."""


def spending(
    budget: Budget, also: Mapping[ContextVar[Any], Any] = MappingProxyType({})
) -> AbstractContextManager[Budget]:
    """Within the block, this thread works under a budget, and other context variables have values as well."""
    return setting({_current: budget, decoded_charge: _charge_decoded, **also}, budget)


def check_time(doing: str, name: str = "") -> None:
    """Raise DeadlineExceededError where the time of this thread's budget is up.

    Args:
        doing: The work under way: "folding constants".
        name: The node, function or file that the work is on.
    """
    budget = _current.get()
    if budget is not None:
        budget.check_time(doing, name)


def _charge_decoded(num_bytes: int, what: str, is_stored: bool) -> None:
    """Check the memory of a tensor that is about to be decoded, and the time."""
    budget = _current.get()
    if budget is not None:
        budget.check_memory(num_bytes, what, is_stored=is_stored)
        budget.check_time(f"decoding {what}")
