"""LruCache: a dict of bounded size, which drops the entries that were not used for longest.

Finding an entry again costs no more than in any dict: nothing is noted. Instead there are two
generations. New entries, and entries found in the older generation, go to the younger one. When the
younger generation holds half of the allowed entries it becomes the older one, and the entries left in
the old generation are dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(dict[K, V]):
    """The younger generation as a dict, which may be read from any thread; all else takes a lock.

    The half of what is allowed that was used last is always there.

    Args:
        most: how many values are kept of both generations together; at least 1.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._older: dict[K, V] = {}

    def find(self, key: K) -> V | None:
        """The value of a key, of whichever generation; None if there is none. It is young again."""
        if key in self._older:
            self.keep(key, self._older.pop(key))
        return self.get(key)

    def keep(self, key: K, value: V) -> V:
        """Keep a new value, and drop others where these are too many."""
        if len(self) >= max(self._most // 2, 1):
            self._older = self.copy() if self._most > 1 else {}
            super().clear()
        self[key] = value
        return value

    def stop_dropping(self) -> None:
        """Keep all that is there, and whatever comes."""
        self._most = sys.maxsize

    def clear(self) -> None:
        """Drop all."""
        super().clear()
        self._older.clear()
