"""GrowingArray: a vector whose length is known only when all of it is there."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.device.allocation import check_allocation
from opkernel.device.made_bytes import MadeBytes
from opkernel.types import DataType


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
