"""Garbage collection, paused where a million objects are made that all stay."""

import gc
from collections.abc import Iterator
from operator import call

from opkernel.interrupts import contextmanager

_SOME = 1_000_000
"""New objects, some 100 MB of them, for which a collection does not pay."""


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Keep the collector from looking at new objects again and again.

    At the end of the block all objects become old, so that no collection of young ones looks at them. Where as many
    are new as are old, a full collection follows: without it, graphs that nobody uses any more would stay.
    """
    was_enabled, before = gc.isenabled(), gc.get_count()[0]
    # What others have frozen stays frozen.
    at_end = (gc.get_count, *(() if gc.get_freeze_count() else _MAKE_OLD), gc.enable)
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            counts, *_ = map(call, at_end)  # in one go, which no interrupt parts
            _full_collections.note(counts[0] - before)


_MAKE_OLD = gc.freeze, gc.unfreeze
"""Moves all objects to the oldest generation, at no cost."""


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
