"""Scratch memory, which a kernel needs while it computes one tile.

Each thread keeps the memory used last, so that tile after tile, and kernel after kernel, works in memory
that is in the processor's cache. Fresh memory costs more than the arithmetic of most kernels.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.allocation import allocate
from opkernel.types import as_dtype

_KEPT_BYTES = 8 << 20


class _Buffers(threading.local):
    """The buffers of a thread, by their purpose."""

    def __init__(self) -> None:
        self.of: dict[str, np.ndarray[Any, Any]] = {}


_buffers = _Buffers()


def scratch(purpose: str, shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An uninitialised array that is the caller's until this thread asks again for that purpose.

    Nothing of it may be left in results, nor be handed to threads that outlive the call.

    Raises:
        ResourceExhaustedError: it is larger than the allocation limit.
    """
    size = math.prod(shape) * dtype.itemsize
    buffer = _buffers.of.get(purpose)
    if buffer is None or buffer.size < size:
        if size > _KEPT_BYTES:
            return allocate(shape, as_dtype(dtype))
        buffer = _buffers.of[purpose] = np.empty(size, np.uint8)
    return buffer[:size].view(dtype).reshape(shape)
