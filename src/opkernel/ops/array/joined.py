"""Many tensors joined to one, some at a time: nothing interrupts NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time

__all__ = ["concatenated", "stacked"]

_AT_ONCE = 1 << 12


def concatenated(tensors: Sequence[Any]) -> Any:
    """Tensors of one type, one after the other; there is at least one."""
    if len(tensors) <= _AT_ONCE:
        return np.concatenate(tensors)
    first = tensors[0]
    output = np.empty((sum(map(len, tensors)), *first.shape[1:]), first.dtype)
    end = 0
    for some in _some_at_a_time(tensors):
        start, end = end, end + sum(map(len, some))
        np.concatenate(some, out=output[start:end])
    return output


def stacked(tensors: Sequence[Any]) -> Any:
    """Tensors of one type and shape as the rows of one; there is at least one."""
    first = tensors[0]
    shape = (len(tensors), *first.shape)
    if len(tensors) <= _AT_ONCE:
        return np.concatenate(tensors).reshape(shape) if first.shape else np.stack(tensors)
    output, end = np.empty(shape, first.dtype), 0
    for some in _some_at_a_time(tensors):
        start, end = end, end + len(some)
        np.stack(some, out=output[start:end])
    return output


def _some_at_a_time(tensors: Sequence[Any]) -> Any:
    starts = in_time(range(0, len(tensors), _AT_ONCE), SLOW, "joining tensors")
    return (tensors[start : start + _AT_ONCE] for start in starts)
