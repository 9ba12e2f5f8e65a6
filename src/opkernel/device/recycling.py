"""Memory of dead results for new ones: fresh pages cost more than most arithmetic.

The system takes back the memory of large arrays when they die, and clears every page that it gives out
again. A virtual machine may even have to get the page from its host. So `recycled` remembers its arrays,
and gives out again an array to which nobody else, not even a view, has a reference.

The remembered arrays, with those in use, take `_MAX_BYTES` at most. They are forgotten when a session is
closed, and when kernels have had no work for a while (`intra_op`).
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel.device.ownership import counts_mean_ownership, others

Array = np.ndarray[Any, Any]

_MIN_BYTES = 32 << 20
"""The C library keeps the memory of smaller arrays when they are freed."""

_MAX_BYTES = 256 << 20

# glibc does so only after an array of about that size was freed; until then each is fresh pages.
np.empty(_MIN_BYTES - (64 << 10), np.uint8)


class _Recycler:
    """Remembers arrays by their ids, the ones given out last at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arrays: dict[int, Array] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """A new or unused array."""
        with self._lock:
            known = self._arrays if counts_mean_ownership() else ()
            key = next((k for k in known if _is_free(self._arrays, k, shape, dtype)), None)
            array = np.empty(shape, dtype) if key is None else self._arrays.pop(key)
            array.setflags(write=True)
            self._arrays[id(array)] = array
            while sum([kept.nbytes for kept in self._arrays.values()]) > _MAX_BYTES:
                self._arrays.pop(next(iter(self._arrays)))
        return array

    def has(self, array: Array) -> bool:
        """Whether an array is remembered."""
        return id(array) in self._arrays

    def forget(self, array: Array) -> bool:
        """Let go of an array that somebody wants for good; False where it was not remembered."""
        with self._lock:
            return self._arrays.pop(id(array), None) is not None

    def forget_all(self) -> None:
        """Let go of all arrays."""
        with self._lock:
            self._arrays.clear()

    def after_fork(self) -> None:
        """In a child, the lock may be held by a thread that is not there."""
        self._lock = threading.Lock()


def _is_free(
    arrays: Mapping[int, Array], key: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> bool:
    """Whether an array is as wanted, and has no other references."""
    if others(arrays, key) > 0:
        return False
    array = arrays[key]
    return array.shape == shape and array.dtype == dtype and not weakref.getweakrefcount(array)


_recycler = _Recycler()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_recycler.after_fork)

is_recycled = _recycler.has
forget = _recycler.forget
forget_recycled = _recycler.forget_all


def recycled(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialised array of a type of numbers; a large one may be a dead one."""
    if _MIN_BYTES <= math.prod(shape) * dtype.itemsize <= _MAX_BYTES:
        return _recycler.take(shape, dtype)
    return np.empty(shape, dtype)
