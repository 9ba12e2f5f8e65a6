"""An index of the integers that are keys of a table, which finds many of them at once."""

from typing import Any

import numpy as np

_SPREAD, _SMALL = 8, 1 << 15
"""An array from the least key to the greatest may have so many times as many elements as there are keys, and so many
more."""


class IntegerIndex:
    """Finds the rows of many integers at once: in an array from the least key to the greatest, or by binary search.

    Args:
        rows: The row of each key; one at least.
    """

    def __init__(self, rows: dict[int, int]) -> None:
        keys = np.fromiter(rows, np.int64, len(rows))
        found = np.fromiter(rows.values(), np.int64, len(rows))
        low, high = int(keys.min()), int(keys.max())
        self._low, self._high = np.int64(low), np.int64(high)
        self._is_dense = high - low <= _SPREAD * len(rows) + _SMALL
        if self._is_dense:
            self._rows = np.full(high - low + 1, -1, np.int64)
            self._rows[keys - low] = found
        else:
            order = keys.argsort()
            self._keys, self._rows = keys[order], found[order]

    @staticmethod
    def pays_for(keys: Any, count: int) -> bool:
        """Whether it pays to make an index of so many keys, to look for others.

        Args:
            keys: What to look for: an array, or a list of keys that are no integers.
            count: How many keys the index would have.
        """
        if not isinstance(keys, np.ndarray) or keys.dtype not in (np.int32, np.int64):
            return False
        return 0 < count < keys.size << 2

    def rows_of(self, keys: Any) -> Any:
        """The rows of keys, -1 of those that are not there."""
        keys = keys.astype(np.int64, copy=False)
        if self._is_dense:
            inside = np.clip(keys, self._low, self._high)
            rows = self._rows[inside - self._low]
            return rows if (inside == keys).all() else np.where(inside == keys, rows, -1)
        at = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        return np.where(self._keys[at] == keys, self._rows[at], -1)
