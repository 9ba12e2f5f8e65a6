"""Ownership of arrays: who may write where. The rules stand here, and all other code asks.

An array belongs to all who can see it, and is not written to. There are three exceptions:

1. **The maker of an array**, until it hands the array on: a kernel writes to arrays that it has allocated,
   and to its `out`. A kernel never touches an array again after it has returned the array.
2. **A plan, by liveness** (`runtime/plan/lifetimes.py`). A plan knows who reads its locals. An
   element-wise function may write its result over an operand that dies there. The operand must come from
   a kernel that claims to give new memory, and only element-wise functions may have read it. Nothing is
   counted, so this rule holds on every Python.
3. **The holder of the only reference** (`others`). Four may hold it: a kernel that claims `forwards_inputs`,
   to an input (`kernel/context/outputs.py`); a group of element-wise nodes, to an operand that dies there
   (`runtime/plan/tiled.py`); a variable, to its array (`ops/variables/var.py`); and
   `recycled`, to a dead array that it gives out again. A view has a reference to the array whose memory it
   shows. Only a whole array is taken over: it owns its memory, has its elements side by side, and may be
   written to (`is_whole`).

Rule 3 asks `counts_mean_ownership` first. Without Python's lock, each thread keeps counts for itself,
and some references are not counted. A tracer, profiler or debugger holds frames, and shows or keeps their
contents. In both cases counts prove no ownership: results are the same, in new memory. The question comes
last, when all else allows to take over, so that a debugger that starts within a step counts, too. It
costs a hundredth of the new memory.

The memory of dead results serves new ones, for fresh pages cost more than most arithmetic. The system takes back the
memory of large arrays when they die, and clears every page that it gives out again. A virtual machine may even have
to get the page from its host. So `recycled` remembers its arrays, and gives out again an array to which nobody else,
not even a view, has a reference. The remembered arrays, with those in use, take `_MAX_BYTES` at most. They are
forgotten when a session is closed, and when kernels have had no work for a while (`intra_op`).
"""

from __future__ import annotations

import math
import os
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from opkernel.types import Array

_TOOLS = range(3)  # the debugger's, the coverage's and the profiler's, by `sys.monitoring`
_has_lock = getattr(sys, "_is_gil_enabled", lambda: True)
_tool = getattr(getattr(sys, "monitoring", None), "get_tool", None)


def counts_mean_ownership() -> bool:
    """Whether the holder of the only reference to an array is the only one who can see the array."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return False
    if _tool is not None and any(_tool(number) is not None for number in _TOOLS):
        return False
    return bool(_has_lock())


def others(holder: Sequence[Any] | Mapping[Any, Any], key: Any) -> int:
    """The number of references to `holder[key]` beside the holder's own."""
    return sys.getrefcount(holder[key]) - _COUNTED


_example = [np.empty(0)]
_COUNTED = sys.getrefcount(_example[0])
"""References that `others` counts where only the holder has one. No local of a function refers to the
example: a tracer would show it, and keep it."""


class _Probe:
    """Called as a plan calls an object with one of its locals."""

    def __call__(self, *inputs: Any) -> int:
        return others(inputs, 0)


@cache
def others_of_a_local() -> int:
    """The answer of `others` about an argument that only a local of the caller refers to.

    To be asked where counts mean ownership.
    """
    x, probe = np.empty(0), _Probe()
    return probe(x) if x.size == 0 else 0


def is_whole(array: Any) -> bool:
    """Whether a value is an array that owns its memory, in order, and may be written to."""
    if not isinstance(array, np.ndarray) or array.base is not None:
        return False
    return array.flags.writeable and array.flags.c_contiguous


_MIN_BYTES = 32 << 20
"""The C library keeps the memory of smaller arrays when they are freed."""

_MAX_BYTES = 256 << 20

# glibc does so only after an array of about that size was freed; until then each is fresh pages.
np.empty(_MIN_BYTES - (64 << 10), np.uint8)


_lock = threading.Lock()
_arrays: dict[int, Array] = {}
"""Arrays by their ids, the ones given out last at the end."""


def recycled(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialised array of a type of numbers; a large one may be a dead one."""
    if not _MIN_BYTES <= math.prod(shape) * dtype.itemsize <= _MAX_BYTES:
        return np.empty(shape, dtype)
    with _lock:
        known = _arrays if counts_mean_ownership() else ()
        key = next((k for k in known if _is_free(_arrays, k, shape, dtype)), None)
        array = np.empty(shape, dtype) if key is None else _arrays.pop(key)
        array.setflags(write=True)
        _arrays[id(array)] = array
        while sum([kept.nbytes for kept in _arrays.values()]) > _MAX_BYTES:
            _arrays.pop(next(iter(_arrays)))
    return array


def is_recycled(array: Array) -> bool:
    """Whether an array is remembered."""
    return id(array) in _arrays


def forget(array: Array) -> bool:
    """Let go of an array that somebody wants for good; False where it was not remembered."""
    with _lock:
        return _arrays.pop(id(array), None) is not None


def forget_recycled() -> None:
    """Let go of all arrays."""
    with _lock:
        _arrays.clear()


def _after_fork() -> None:
    """In a child, the lock may be held by a thread that is not there."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _is_free(
    arrays: Mapping[int, Array], key: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> bool:
    """Whether an array is as wanted, and has no other references."""
    if others(arrays, key) > 0:
        return False
    array = arrays[key]
    return array.shape == shape and array.dtype == dtype and not weakref.getweakrefcount(array)
