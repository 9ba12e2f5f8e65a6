"""The forms that element-wise kernels have beside a call: operators of Python, and functions that write into a tile.

A plan writes `x + y` for the ufunc `add`. NumPy's numbers have arithmetic of their own behind the operators, with
the results of the ufuncs, twenty times as fast; for arrays the operators are the ufuncs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from opkernel.kernel import FunctionKernel, OpKernel
from opkernel.records import dataclass
from opkernel.types import DataType

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


FEWEST = 4
"""Nodes that a group has: asking for the sizes of its inputs must not weigh against them."""


@dataclass(frozen=True, slots=True)
class PointwiseFunction:
    """A kernel whose result at a place depends on the inputs at that place alone.

    Attributes:
        whole: The kernel's function.
        into: Writes what it gives into an array: `into(*inputs, array)`.
        dtype: The type of the result.
        never_raises: Whether it raises nothing whatever the values are.
        same_shapes: Whether this holds for inputs of one shape only.
    """

    whole: Callable[..., Any]
    into: Callable[..., Any]
    dtype: np.dtype[Any]
    never_raises: bool
    same_shapes: bool = False

    def writer(self, are_numbers: Sequence[bool]) -> Callable[..., Any]:
        """The form of `into` for kernels some of whose inputs are single numbers."""
        clip = _CLIPS.get(self.whole) if self.dtype.kind == "f" else None
        if clip is None or sum(are_numbers) != 1:
            return self.into
        return partial(_swapped, clip) if are_numbers[0] else clip


def pointwise_function(kernel: OpKernel) -> PointwiseFunction | None:
    """The form of a kernel for tiles; None for kernels that cannot work on tiles."""
    if not isinstance(kernel, FunctionKernel) or not is_elementwise(kernel):
        return None
    if not _are_numbers(kernel.input_types + kernel.output_types):
        return None
    if any(arg.is_list for arg in kernel.properties.input_args):
        return None
    function, dtype = kernel.function, kernel.output_dtypes[0]
    if isinstance(function, np.ufunc):
        return _of_ufunc(function, dtype, kernel.num_inputs)
    if isinstance(function, partial) and isinstance(function.func, np.ufunc):
        return _of_partial(function, dtype, kernel.num_inputs)
    claims = kernel.contract
    into = _by_keyword if claims.takes_out else _copy_into
    return PointwiseFunction(function, partial(into, function), dtype, False, claims.same_shapes)


@cache
def _of_ufunc(ufunc: np.ufunc, dtype: np.dtype[Any], num_inputs: int) -> PointwiseFunction | None:
    if (ufunc.nin, ufunc.nout) != (num_inputs, 1):
        return None
    into = partial(_by_keyword, ufunc) if ufunc in _CLIPS else ufunc
    return PointwiseFunction(ufunc, into, dtype, ufunc is not np.power)


def _of_partial(
    function: partial[Any], dtype: np.dtype[Any], num_inputs: int
) -> PointwiseFunction | None:
    """A ufunc with its first operands filled in."""
    ufunc = _of_ufunc(function.func, dtype, num_inputs + len(function.args))
    if ufunc is None or function.keywords:
        return None
    clip = _CLIPS.get(function.func) if dtype.kind == "f" else None
    into = ufunc.into if clip is None else partial(_swapped, clip)
    return PointwiseFunction(function, partial(into, *function.args), dtype, ufunc.never_raises)


@cache
def _are_numbers(types: tuple[DataType, ...]) -> bool:
    """Whether types are those of values, and of no objects."""
    return not any(dtype.is_ref or dtype.numpy_dtype.hasobject for dtype in types)


def _at_least(x: Any, low: Any, out: Any) -> None:
    np.clip(x, low, _INFINITY, out)


def _at_most(x: Any, high: Any, out: Any) -> None:
    np.clip(x, -_INFINITY, high, out)


_INFINITY = np.float16(np.inf)
_CLIPS: dict[Any, Callable[..., None]] = {np.maximum: _at_least, np.minimum: _at_most}
"""Faster functions for ufuncs whose second operand is a number."""


def _swapped(function: Callable[..., None], first: Any, second: Any, out: Any) -> None:
    function(second, first, out)


def _by_keyword(function: Callable[..., Any], *operands: Any) -> None:
    """NumPy wants it so for extremes."""
    function(*operands[:-1], out=operands[-1])


def _copy_into(function: Callable[..., Any], *operands: Any) -> None:
    operands[-1][...] = function(*operands[:-1])
