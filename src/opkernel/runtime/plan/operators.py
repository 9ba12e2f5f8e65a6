"""Kernels that plans write as operators of Python: `x + y` for the ufunc `add`.

NumPy's numbers have arithmetic of their own behind the operators, with the results of the ufuncs,
twenty times as fast; for arrays the operators are the ufuncs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.kernel import FunctionKernel

ARITHMETIC: dict[Any, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
    np.equal: "==",
    np.not_equal: "!=",
}
_LOGIC: dict[Any, str] = {np.logical_and: "&", np.logical_or: "|", np.equal: "=="}

_BY_KEYWORD = (np.maximum, np.minimum)
"""Ufuncs that want to be told by keyword where to write their result."""


def operator_of(kernel: FunctionKernel) -> str | None:
    """The operator that a kernel is, which stands between its inputs; None for most."""
    if not isinstance(kernel.function, np.ufunc) or not kernel.input_types:
        return None
    kind = kernel.input_types[0].numpy_dtype.kind
    operators = ARITHMETIC if kind in "iuf" else _LOGIC if kind == "b" else {}
    return operators.get(kernel.function)


def ufunc_of(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The ufunc that a function is with its first operands filled in, and these; else itself."""
    if isinstance(function, partial) and isinstance(function.func, np.ufunc):
        return (function, ()) if function.keywords else (function.func, function.args)
    return function, ()


def is_elementwise(kernel: FunctionKernel) -> bool:
    """Whether the shape and type of a kernel's result are certain, and that its memory is new."""
    claims = kernel.contract
    return claims.elementwise and claims.outputs_as_declared and kernel.num_outputs == 1


def fills_out(kernel: FunctionKernel) -> bool:
    """Whether an element-wise kernel may be told where to write its result."""
    if not is_elementwise(kernel) or kernel.contract.same_shapes:
        return False
    return kernel.contract.takes_out or isinstance(ufunc_of(kernel.function)[0], np.ufunc)


def takes_out_by_keyword(function: Callable[..., Any]) -> bool:
    """Whether a function is told so by keyword, and not by a last argument."""
    called = ufunc_of(function)[0]
    return called in _BY_KEYWORD or not isinstance(called, np.ufunc)


def as_number(value: Any) -> Any:
    """An integer or truth value of rank 0 as a NumPy number; other tensors as they are.

    They count and index, mostly with others of their kind, and operators of numbers are fast. Of
    floats they mostly go together with arrays, where an array of rank 0 is faster.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iub":
        return value[()]
    return value
