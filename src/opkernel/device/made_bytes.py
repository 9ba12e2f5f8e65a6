"""Memory that a kernel is making: it counts as in use before an array has it.

Results whose size shows only as they are made are counted piece by piece, such as a vector whose length is known only
when all of it is there (`GrowingArray`). So is the working memory of kernels that need several times the memory of
their results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.device.allocation import check_allocation
from opkernel.device.budget import Budget, current_budget
from opkernel.interrupts import contextmanager
from opkernel.types import DataType

ASK_AFTER = 1 << 16
"""So many bytes are made before the budget is asked for more."""


class MadeBytes:
    """Counts bytes that are made piece by piece, until they are what counts by itself.

    Attributes:
        total: How many there are.
    """

    __slots__ = ("_asked", "_budget", "_what", "total")

    def __init__(self, budget: Budget | None, what: str) -> None:
        self._budget = budget
        self._what = what
        self._asked = 0
        self.total = 0

    def add(self, num_bytes: int) -> None:
        """Count more bytes.

        Raises:
            ResourceExhaustedError: all together are more than the budget has left.
        """
        self.total += num_bytes
        if self.total > self._asked + ASK_AFTER and self._budget is not None:
            before, self._asked = self._asked, 0
            self._budget.reserve(self.total, self._what, before)
            self._asked = self.total

    def end(self) -> None:
        """Count the bytes no more."""
        if self._asked and self._budget is not None:
            self._budget.give_back(self._asked)
            self._asked = 0


def check_bytes(num_bytes: int, what: str) -> None:
    """Raise ResourceExhaustedError where the budget of this thread has less memory left.

    Args:
        num_bytes: How much is needed, beside what is counted already.
        what: The thing that it is for.
    """
    budget = current_budget()
    if budget is not None:
        budget.check_memory(num_bytes, what)


@contextmanager
def making_bytes(what: str, num_bytes: int = 0) -> Iterator[MadeBytes]:
    """Within the block, bytes are made that count as memory in use of this thread's budget.

    Args:
        what: What they are, for the error: "a decompressed string".
        num_bytes: So many are needed at once.

    Raises:
        ResourceExhaustedError: they are more than the budget has left.
    """
    budget = current_budget()
    limited = budget is not None and budget.memory_limit_bytes is not None
    made = MadeBytes(budget if limited else None, what)
    try:
        made.add(num_bytes)
        yield made
    finally:
        made.end()


class GrowingArray:
    """A vector that is made piece by piece, in memory that the C library extends without a copy.

    Args:
        dtype: The type of the elements.
        made: Counts the bytes.
    """

    def __init__(self, dtype: DataType, made: MadeBytes) -> None:
        self._array = np.empty(0, dtype.numpy_dtype)
        self._dtype = dtype
        self._made = made
        self._size = 0

    def extend(self, piece: Any) -> None:
        """Add elements at the end.

        Raises:
            ResourceExhaustedError: they are more than the budget has left.
        """
        size = self._size + len(piece)
        if size > len(self._array):
            capacity = size + (size >> 3)
            self._made.add((capacity - len(self._array)) * self._array.itemsize)
            self._array.resize(capacity, refcheck=False)
        self._array[self._size : size] = piece
        self._size = size

    def finished(self) -> Any:
        """The vector; nothing is added after this.

        Raises:
            ResourceExhaustedError: it is larger than the allocation limit.
        """
        check_allocation((self._size,), self._dtype)
        self._array.resize(self._size, refcheck=False)
        return self._array
