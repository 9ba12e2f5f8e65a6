"""Budget: the memory and the time that a command, a session or a step may take.

A budget belongs to the thread that works under it, and to the threads to which that thread hands work.
Code asks the budget before it takes memory whose size the data decides (`check_allocation`, and the
decoding of tensors). Arrays that outlive a kernel count until they are collected. Code that works for
long asks now and then whether time is left. Without a budget nothing is counted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.allocation_ledger import AllocationLedger
from opkernel.errors import DeadlineExceededError, ResourceExhaustedError
from opkernel.interrupts import setting
from opkernel.types import decoded_charge

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["Budget", "check_time", "current_budget", "spending"]


class Budget:
    """A budget: bytes of arrays at once, and time.

    A budget within another has no more than that has left.

    Args:
        memory_limit_bytes: The most bytes at once; None for as many as the outer budget has.
        deadline: When time is up, by `time.monotonic()`; None for as long as the outer budget has.
        outer: The budget around it, where there is one.
        of_each: The limit is one for each tensor: nothing is counted here, and a tensor that a file
            holds as it is may be larger.
        work: How much may be computed, as `kernel/work.py` guesses; None for any amount.
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
        self._outer = outer
        self._held = None if of_each else AllocationLedger()
        self._work = work

    @property
    def memory_limit_bytes(self) -> int | None:
        """The most bytes at once; None for no limit."""
        outer = None if self._outer is None else self._outer.memory_limit_bytes
        return min((n for n in (self._limit, outer) if n is not None), default=None)

    @property
    def counts_work(self) -> bool:
        """Whether it matters how much is computed."""
        return self._work is not None or (self._outer is not None and self._outer.counts_work)

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
        budget: Budget | None = self
        used = 0
        while budget is not None:
            limit = None if is_stored and budget._held is None else budget._limit
            if budget._held is not None:
                used += budget._held.bytes_in_use
            if limit is not None and used + num_bytes > limit:
                held = f" and the {used} in use" if used else ""
                raise ResourceExhaustedError(
                    f"OOM when allocating {what}: {num_bytes} bytes{held} are more than the limit "
                    f"of {limit}"
                )
            budget = budget._outer

    def hold(self, array: Any, content_bytes: int = 0) -> None:
        """Count the memory of an array until it is collected, unless it is counted already.

        Args:
            array: The array; NumPy scalars and the like are not counted.
            content_bytes: The bytes of its objects.

        Raises:
            ResourceExhaustedError: it is too much.
        """
        owner = owner_of(array)
        if owner is None or self.counts(owner):
            return
        size = owner.nbytes + content_bytes
        self.check_memory(size, f"what holds {owner.dtype}{list(owner.shape)}")
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
        budget: Budget | None = self
        while budget is not None:
            if budget._work is not None:
                budget._work -= work
                if budget._work < 0:
                    raise ResourceExhaustedError(
                        "The work is more than the budget for work in advance"
                    )
            budget = budget._outer

    def check_time(self, doing: str, name: str = "") -> None:
        """Raise DeadlineExceededError where time is up; `doing` and `name` tell the work under way."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            what = f"{doing} {name!r}" if name else doing
            raise DeadlineExceededError(f"Timed out while {what}")

    def _ledger(self) -> AllocationLedger | None:
        """What counts the memory of this budget; None where no budget around it counts, either."""
        budget: Budget | None = self
        while budget is not None and budget._held is None:
            budget = budget._outer
        return None if budget is None else budget._held

    def counts(self, owner: np.ndarray[Any, Any]) -> bool:
        """Whether an array that owns its memory is counted."""
        if self._held is not None and self._held.counts(owner):
            return True
        return self._outer is not None and self._outer.counts(owner)


def owner_of(array: Any) -> np.ndarray[Any, Any] | None:
    """The array that owns the memory of an array; None for other values."""
    if not isinstance(array, np.ndarray):
        return None
    owner: np.ndarray[Any, Any] = array
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
