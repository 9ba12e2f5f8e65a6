"""Garbage collection, paused where a million objects are made that all stay."""

import gc
from collections.abc import Iterator

from opkernel.interrupts import contextmanager


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Keep the collector from looking at new objects again and again."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()
