"""Memory that programs free stays with the process.

XLA takes the memory for what a program computes on the way from the C library, at each run. glibc gives large blocks back to
the system, and blocks of other threads than the first one, too. The system then hands out empty pages, one by one, for the next
run: that takes up to half of the time of a step of training.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The parameters of glibc's `mallopt` (malloc.h)."""
_MOST_BYTES = 1 << 28
"""So much is kept at most."""


@functools.cache
def keep_freed_memory() -> None:
    """Have glibc keep what is freed, for all threads in one place, unless the environment tells it what to do."""
    is_told = "GLIBC_TUNABLES" in os.environ or any(n.startswith("MALLOC_") for n in os.environ)
    if is_told or sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in (
            (_TRIM_THRESHOLD, _MOST_BYTES),
            (_MMAP_THRESHOLD, _MOST_BYTES),
            (_ARENA_MAX, 1),
        ):
            mallopt(parameter, value)
