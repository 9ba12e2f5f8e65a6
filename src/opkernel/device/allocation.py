"""The one place where kernels take memory whose size the data decides.

A model file is data: it must not make the process take more memory than its user allowed. Kernels
whose output may be much larger than their inputs ask here before they allocate. Where there is a
budget (`device/budget.py`), it answers; else one tensor may take half of the machine's memory.

While it computes one tile, a kernel takes `scratch` memory. Each thread keeps the memory used last, so that tile
after tile, and kernel after kernel, works in memory that is in the processor's cache. Fresh memory costs more than
the arithmetic of most kernels.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.budget import Budget, current_budget, spending
from opkernel.errors import InvalidArgumentError
from opkernel.interrupts import setting
from opkernel.types import MAX_DIMENSIONS, Array, DataType, as_dtype

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from opkernel.device.allocator import Allocator


_MAX_ELEMENTS = 2**63 - 1


def _default_limit() -> int:
    """Half of the machine's memory, in bytes; 8 GiB where the system does not tell it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def num_bytes(tensor: Any) -> int:
    """The bytes of a tensor's elements; a device's own tensor tells only its type and shape."""
    count: int = prod(tensor.shape)
    return count * int(tensor.dtype.itemsize)


_policy: ContextVar[tuple[int, Allocator | None]] = ContextVar(
    "allocation_policy", default=(_default_limit(), None)
)
"""How many bytes a tensor may take unasked, and the allocator to ask if there is one."""

allocation_policy = _policy.get
"""How many bytes a tensor of this thread may take unasked, and the allocator if there is one."""


def under_budget(budget: Budget) -> AbstractContextManager[Budget]:
    """Within the block, this thread works under a budget, which every allocation asks."""
    unasked, allocator = _policy.get()
    return spending(
        budget, {_policy: (unasked if budget.memory_limit_bytes is None else 0, allocator)}
    )


def allocation_limit(limit_bytes: int) -> AbstractContextManager[Budget]:
    """Within the block, this thread allocates no tensor of more than `limit_bytes`."""
    return under_budget(Budget(limit_bytes, outer=current_budget(), of_each=True))


def current_allocation_limit() -> int:
    """How many bytes the kernels of this thread may take for one tensor."""
    budget = current_budget()
    limit = None if budget is None else budget.memory_limit_bytes
    return _policy.get()[0] if limit is None else limit


def allocating_from(allocator: Allocator) -> AbstractContextManager[None]:
    """Within the block, `allocate` takes the memory of this thread's tensors from `allocator`."""
    return setting({_policy: (_policy.get()[0], allocator)})


def check_allocation(shape: Iterable[int], dtype: DataType) -> tuple[int, ...]:
    """The shape as a tuple of ints, if a tensor of it may be allocated.

    Raises:
        InvalidArgumentError: a size is negative, there are too many, or the number of elements overflows
            int64.
        ResourceExhaustedError: the tensor would be larger than the allocation limit.
    """
    sizes = tuple(map(int, islice(shape, MAX_DIMENSIONS + 1)))
    size_bytes = prod(sizes) * dtype.numpy_dtype.itemsize
    limit = _policy.get()[0]
    if 0 < size_bytes <= limit and len(sizes) <= MAX_DIMENSIONS and min(sizes, default=0) >= 0:
        return sizes  # all is well, most likely
    if len(sizes) > MAX_DIMENSIONS:
        raise InvalidArgumentError(f"The shape has more than {MAX_DIMENSIONS} dimensions")
    if sizes and min(sizes) < 0:
        raise InvalidArgumentError(f"Dimensions must be >= 0, got shape {list(sizes)}")
    counted = prod(filter(None, sizes))  # NumPy counts an empty shape so
    if counted > _MAX_ELEMENTS:
        raise InvalidArgumentError(f"Shape {list(sizes)} would have more than 2**63 - 1 elements")
    if 0 in sizes and counted * dtype.numpy_dtype.itemsize > _MAX_ELEMENTS:
        raise InvalidArgumentError(
            f"NumPy has no array of shape {list(sizes)}, though it would be empty"
        )
    if size_bytes > limit:
        budget = current_budget() or Budget(limit)
        budget.check_memory(size_bytes, f"tensor with shape{list(sizes)} and type {dtype.string}")
    return sizes


def counted(array: Any) -> Any:
    """The array, which counts as memory of the step from here on: for kernels that make several."""
    budget = current_budget()
    if budget is not None and budget.memory_limit_bytes is not None:
        budget.hold(array)
    return array


def allocate(shape: Sequence[int], dtype: DataType) -> Array:
    """An uninitialised array, within the allocation limit (`check_allocation`)."""
    limit, allocator = allocation_policy()
    if allocator is not None:
        return allocator.allocate(shape, dtype)
    kind = dtype.numpy_dtype
    if 0 < prod(shape) * kind.itemsize <= limit:  # all is well, most likely
        try:
            return np.empty(shape, kind)
        except (ValueError, TypeError):
            pass  # the check reports the error
    return np.empty(check_allocation(shape, dtype), kind)


_KEPT_BYTES = 8 << 20
_buffers = threading.local()
"""The buffers of a thread, by their purpose."""


def scratch(purpose: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An uninitialised array that is the caller's until this thread asks again for that purpose.

    Nothing of it may be left in results, nor be handed to threads that outlive the call.

    Raises:
        ResourceExhaustedError: it is larger than the allocation limit.
    """
    size = math.prod(shape) * dtype.itemsize
    buffer: Array | None = vars(_buffers).get(purpose)
    if buffer is None or buffer.size < size:
        if size > _KEPT_BYTES:
            return allocate(shape, as_dtype(dtype))
        buffer = vars(_buffers)[purpose] = np.empty(size, np.uint8)
    return buffer[:size].view(dtype).reshape(shape)
