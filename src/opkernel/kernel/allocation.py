"""The one place where kernels take memory whose size the data decides.

A model file is data: it must not make the process take more memory than its user allowed. Kernels
whose output may be much larger than their inputs ask here before they allocate.
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.types import DataType

__all__ = ["allocate", "allocation_limit", "check_allocation"]

_MAX_ELEMENTS = 2**63 - 1


def _default_limit() -> int:
    """Half of the machine's memory, in bytes; 8 GiB where the system does not tell it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 8 << 30


_DEFAULT_LIMIT_BYTES = _default_limit()
_limit_bytes: ContextVar[int] = ContextVar("allocation_limit", default=_DEFAULT_LIMIT_BYTES)


@contextmanager
def allocation_limit(limit_bytes: int) -> Iterator[None]:
    """Within the block, no kernel of this thread allocates a tensor of more than `limit_bytes`."""
    token = _limit_bytes.set(limit_bytes)
    try:
        yield
    finally:
        _limit_bytes.reset(token)


def check_allocation(shape: Iterable[int], dtype: DataType) -> tuple[int, ...]:
    """The shape as a tuple of ints, if a tensor of it may be allocated.

    Raises:
        InvalidArgumentError: a size is negative, or the number of elements overflows int64.
        ResourceExhaustedError: the tensor would be larger than the allocation limit.
    """
    sizes = tuple(int(size) for size in shape)
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"Dimensions must be >= 0, got shape {list(sizes)}")
    counted = math.prod(size or 1 for size in sizes)  # NumPy counts an empty shape so
    if counted > _MAX_ELEMENTS:
        raise InvalidArgumentError(f"Shape {list(sizes)} would have more than 2**63 - 1 elements")
    if 0 in sizes and counted * dtype.numpy_dtype.itemsize > _MAX_ELEMENTS:
        raise InvalidArgumentError(
            f"NumPy has no arrays of shape {list(sizes)}, empty ones neither"
        )
    size_bytes = math.prod(sizes) * max(dtype.size, 1)
    if size_bytes > _limit_bytes.get():
        raise ResourceExhaustedError(
            f"OOM when allocating tensor with shape{list(sizes)} and type {dtype.string}: "
            f"{size_bytes} bytes are more than the limit of {_limit_bytes.get()}"
        )
    return sizes


def allocate(shape: Sequence[int], dtype: DataType) -> np.ndarray[Any, Any]:
    """An uninitialised array, within the allocation limit (`check_allocation`)."""
    return np.empty(check_allocation(shape, dtype), dtype.numpy_dtype)
