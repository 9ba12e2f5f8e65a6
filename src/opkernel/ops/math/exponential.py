"""Exponentials, logarithms, roots and powers.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_ops.h, cwise_op_exp.cc and its siblings,
cwise_op_pow.cc, cwise_op_xlogy.cc, cwise_op_xlog1py.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.ops.kernel_types import COMPLEX, FLOATS, SIGNED_INTEGERS, WIDE_FLOATS
from opkernel.ops.math.complex_numbers import complex_from_parts, complex_quotient
from opkernel.ops.math.elementwise import (
    COMPLEX_SPEC,
    FLOATS_SPEC,
    binary_op,
    flush_subnormals,
    kernel_of_body,
    register_body,
    register_flushed,
    register_ufunc,
    unary_op,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_SPEC = f"{FLOATS_SPEC}, {COMPLEX_SPEC}"
_TYPES = (*FLOATS, *COMPLEX)

EXP = unary_op("Exp", _SPEC, "`e ** x`.", traits="growing not_negative function_gradient=yes")
EXPM1 = unary_op("Expm1", _SPEC, "`e ** x - 1`, exact near 0.", traits="function_gradient=yes")
LOG = unary_op("Log", _SPEC, "The natural logarithm of `x`.", traits="function_gradient=yes")
LOG1P = unary_op(
    "Log1p",
    _SPEC,
    "The natural logarithm of `1 + x`, exact near 0.",
    traits="function_gradient=yes",
)
SQRT = unary_op(
    "Sqrt", _SPEC, "The square root of `x`.", traits="keeps_not_negative function_gradient=yes"
)
RSQRT = unary_op("Rsqrt", _SPEC, "`1 / sqrt(x)`.", traits="function_gradient=yes")
SIGMOID = unary_op(
    "Sigmoid", _SPEC, "`1 / (1 + e ** -x)`.", traits="growing not_negative function_gradient=yes"
)
POW = binary_op(
    "Pow",
    f"bfloat16, float, half, double, int8, int16, int32, int64, {COMPLEX_SPEC}",
    "`x ** y`; integers to a negative power are an error.",
    can_fail=True,
    traits="function_gradient=yes",
)
_PAIR_SPEC = f"half, bfloat16, float, double, {COMPLEX_SPEC}"
XLOGY = binary_op(
    "Xlogy", _PAIR_SPEC, "`x * log(y)`; 0 where `x` is 0.", traits="function_gradient=yes"
)
XLOG1PY = binary_op(
    "Xlog1py", _PAIR_SPEC, "`x * log1p(y)`; 0 where `x` is 0.", traits="function_gradient=yes"
)


register_ufunc(EXP, np.exp, _TYPES)
register_ufunc(EXPM1, np.expm1, _TYPES)
register_ufunc(LOG1P, np.log1p, FLOATS)
register_ufunc(SQRT, np.sqrt, _TYPES)
register_ufunc(LOG, np.log, COMPLEX)
register_flushed(LOG, np.log, FLOATS)
register_ufunc(POW, np.power, SIGNED_INTEGERS)  # of integers it refuses negative powers


def complex_log1p(x: Any, *, xp: Any) -> Any:
    """`log(1 + x)` with the rounding of `1 + x` taken out again."""
    shifted = complex_from_parts(1 + x.real, x.imag, xp)
    logarithm = xp.log(shifted)
    exact = x * complex_quotient(logarithm, shifted - 1, xp=xp)
    return xp.where((shifted == 1) | (shifted == logarithm), x, exact)


def rsqrt(x: Any, *, xp: Any) -> Any:
    return 1 / xp.sqrt(flush_subnormals(x, xp))


def complex_rsqrt(x: Any, *, xp: Any) -> Any:
    return xp.where(xp.isinf(x), xp.zeros_like(x), 1 / xp.sqrt(x))


def sigmoid(x: Any, *, xp: Any) -> Any:
    if x.dtype.itemsize == 2:
        power = xp.exp(x)
        return xp.where(xp.isinf(power), x.dtype.type(1), power / (power + 1))
    power = xp.exp(-x)
    power += 1
    return 1 / power


_SMALL = 1 << 10


@register_kernel(SIGMOID, types={"T": _TYPES}, kind="elementwise", factory=True)
def sigmoid_kernel(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
    """Small arrays of floats, which recurrent cells have, are computed in place."""
    general = kernel_of_body(sigmoid, T, xp)
    if xp is not np or T not in WIDE_FLOATS:
        return general
    one = np.ones((), T.numpy_dtype)  # Python's number would take as long as the addition

    def in_place(x: Any) -> Any:
        if x.size > _SMALL or not x.ndim:
            return general(x)
        power = np.negative(x)
        np.exp(power, power)
        np.add(power, one, power)
        return np.divide(one, power, power)

    return in_place


def power(x: Any, y: Any, *, xp: Any) -> Any:
    """`x ** y`; the cube, which the tanh form of gelu takes, as the product that it is.

    The power of a negative base is some 60 times slower.
    """
    x, y = flush_subnormals(x, xp), flush_subnormals(y, xp)
    if xp is np and y.ndim == 0 and y == 3:
        return x * x * x
    if xp is np and y.ndim == 0 and y == 0.5:  # NumPy takes the root, which differs at -inf and -0
        return np.where(x == -np.inf, -x, np.sqrt(x)) + x.dtype.type(0)
    return xp.power(x, y)


def complex_pow(x: Any, y: Any, *, xp: Any) -> Any:
    power = xp.exp(y * xp.log(x))
    return xp.where((x == 0) & (y.real > 0), xp.zeros_like(power), power)


def _counts_as_zero(x: Any, xp: Any) -> Any:
    """Whether a number is 0, or too small for the normal format (`flush_subnormals`)."""
    if x.dtype.itemsize == 2:  # of half those count; bfloat16 has none left
        return x == 0
    return xp.abs(x) < float(np.finfo(x.dtype).smallest_normal)


def xlogy(x: Any, y: Any, *, xp: Any) -> Any:
    if y.dtype.kind == "c":
        return xp.where(x == 0, x, x * xp.log(y))
    return xp.where(_counts_as_zero(x, xp), x, x * xp.log(flush_subnormals(y, xp)))


def xlog1py(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.where(_counts_as_zero(x, xp), x, x * xp.log1p(flush_subnormals(y, xp)))


def complex_xlog1py(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.where(x == 0, xp.zeros_like(y), x * complex_log1p(y, xp=xp))


register_body(LOG1P, complex_log1p, COMPLEX)
register_body(RSQRT, rsqrt, FLOATS, in_float=True)
register_body(RSQRT, complex_rsqrt, COMPLEX)
register_body(POW, power, FLOATS)
register_body(POW, complex_pow, COMPLEX)
register_body(XLOGY, xlogy, _TYPES)
register_body(XLOG1PY, xlog1py, FLOATS)
register_body(XLOG1PY, complex_xlog1py, COMPLEX)
