"""Results of kernels as the caller gets them: arrays of the caller's own, to which nothing else refers.

A kernel may hand out an input or a view of it, or an array that a variable, a constant, a queue or the
kernel itself holds. CPython's reference counts tell. If something else refers to a result, or to the array
whose memory it shows, even by a weak reference, the caller gets a copy. Other results become the caller's
as they are.
"""

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount, getweakrefs

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.kernel import is_recycled
from opkernel.types import DataType, detached

Result = Callable[..., Any]
"""Takes values, and the index of one unless it is the first; that value as the caller gets it."""


def owned(values: Sequence[Any], index: int = 0) -> Any:
    """A value of a sequence as an array that nobody else has; of rank 0, a scalar.

    The sequence must have the only reference to what is not to be copied.
    """
    value = values[index]
    count = getrefcount(value)
    if count <= _OURS and value.base is None and value.ndim and value.flags.writeable:
        return value.copy() if _is_kept_weakly(value) else value  # most are like this
    if value.ndim == 0:
        return value[()]
    return value if _is_own(value, count) else _copied(value)


def _copied(value: Any) -> Any:
    """A copy of a value; counted, where memory is limited."""
    budget = current_budget()
    if budget is None:
        return value.copy()
    budget.check_memory(value.nbytes, f"a copy of what was fetched: {value.dtype}{[*value.shape]}")
    copied = value.copy()
    budget.hold(copied)
    return copied


def _is_own(array: Any, count: int) -> bool:
    """Whether an array with so many references may be written to and nobody else sees its memory."""
    if not array.flags.writeable or not _is_alone(array, count):
        return False
    owner = array.base
    if owner is None:
        return True
    count = getrefcount(owner)
    return type(owner) is np.ndarray and owner.base is None and _is_alone(owner, count)


def _is_alone(array: Any, count: int) -> bool:
    """Whether nothing else refers to an array, except for `recycling`, which reuses the memory of dead arrays."""
    is_alone = count <= _OURS or (count == _OURS + 1 and is_recycled(array))
    return is_alone and not _is_kept_weakly(array)


def _is_kept_weakly(array: Any) -> bool:
    """Whether a possible reader has a weak reference to an array; the counters of memory do not read it."""
    if not getweakrefcount(array):
        return False
    return not all(getattr(one, "only_counts", False) for one in getweakrefs(array))


def _references(values: Sequence[Any], index: int) -> int:
    value = values[index]
    return getrefcount(value)


_OURS = _references([np.empty(1)], 0)
"""References to an array that only a sequence, or a view, and a local of `owned` refer to."""


def owned_of(dtype: DataType) -> Result:
    """`owned` for tensors of a type; quantised ones become arrays of NumPy's structured type."""
    if not dtype.is_quantized:
        return owned
    structured = dtype.as_numpy_dtype
    return lambda values, index=0: np.asarray(owned(values, index)).view(structured)[()]


def result_of(dtype: DataType) -> Result:
    """`owned_of`, for a step's results: variants, too, have tensors that no caller can write to."""
    return _owned_variants if dtype == DataType.DT_VARIANT else owned_of(dtype)


def _owned_variants(values: Sequence[Any], index: int = 0) -> Any:
    value = values[index]
    return detached(value)[()] if value.ndim == 0 else detached(value)
