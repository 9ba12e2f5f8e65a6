"""Kernels that plans write as operators of Python: `x + y` for the ufunc `add`.

NumPy's numbers have arithmetic of their own behind the operators, with the results of the ufuncs,
twenty times as fast; for arrays the operators are the ufuncs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.kernel import FunctionKernel
from opkernel.types import DataType

__all__ = ["BY_KEYWORD", "as_number", "is_ufunc", "operator_of", "ufunc_of"]

_ARITHMETIC: dict[Any, str] = {
    np.add: "{} + {}",
    np.subtract: "{} - {}",
    np.multiply: "{} * {}",
    np.less: "{} < {}",
    np.less_equal: "{} <= {}",
    np.greater: "{} > {}",
    np.greater_equal: "{} >= {}",
    np.equal: "{} == {}",
    np.not_equal: "{} != {}",
}
_LOGIC: dict[Any, str] = {np.logical_and: "{} & {}", np.logical_or: "{} | {}", np.equal: "{} == {}"}

BY_KEYWORD = (np.maximum, np.minimum)
"""Ufuncs that want to be told by keyword where to write their result."""

_INTEGERS = frozenset(
    {
        DataType.DT_INT8,
        DataType.DT_INT16,
        DataType.DT_INT32,
        DataType.DT_INT64,
        DataType.DT_UINT8,
        DataType.DT_UINT16,
        DataType.DT_UINT32,
        DataType.DT_UINT64,
    }
)
_NUMBERS = _INTEGERS | {DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE}


def operator_of(kernel: FunctionKernel) -> str | None:
    """The expression for a kernel, to be formatted with the inputs; None where there is none."""
    if not isinstance(kernel.function, np.ufunc) or not kernel.input_types:
        return None
    dtype = kernel.input_types[0]
    if dtype in _NUMBERS:
        return _ARITHMETIC.get(kernel.function)
    return _LOGIC.get(kernel.function) if dtype == DataType.DT_BOOL else None


def ufunc_of(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The ufunc that a function is with its first operands filled in, and these; else itself."""
    if isinstance(function, partial) and isinstance(function.func, np.ufunc):
        return (function, ()) if function.keywords else (function.func, function.args)
    return function, ()


def is_ufunc(kernel: FunctionKernel) -> bool:
    """Whether a kernel is a ufunc, which gives arrays of its own."""
    if kernel.kind != "elementwise" or kernel.num_outputs != 1:
        return False
    return isinstance(ufunc_of(kernel.function)[0], np.ufunc)


def as_number(value: Any) -> Any:
    """An integer or truth value of rank 0 as a NumPy number; other tensors as they are.

    They count and index, mostly with others of their kind, and operators of numbers are fast. Of
    floats they mostly go together with arrays, where an array of rank 0 is faster.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iub":
        return value[()]
    return value
