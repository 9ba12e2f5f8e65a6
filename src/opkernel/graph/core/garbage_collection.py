"""Garbage collection, paused where a million objects are made that all stay."""

import gc
from collections.abc import Iterator

from opkernel.interrupts import contextmanager

_SOME = 1_000_000
"""New objects, some 100 MB of them, for which a collection does not pay."""


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Keep the collector from looking at new objects again and again.

    The end of the block makes up for it: without that, one collection of the young objects would follow, and graphs
    that nobody uses any more would stay until fifty others had been made.
    """
    was_enabled, before = gc.isenabled(), gc.get_count()[0]
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()
            _full_collections.note(gc.get_count()[0] - before)


class _FullCollections:
    """Collects all garbage when as many objects are new as are old."""

    def __init__(self) -> None:
        self._new = self._old = 0

    def note(self, new: int) -> None:
        """Take note of new objects, and collect if it is time."""
        self._new += new
        if self._new > max(_SOME, self._old):
            made, self._new = self._new, 0
            self._old = max(self._old + made - gc.collect(), 0)


_full_collections = _FullCollections()
