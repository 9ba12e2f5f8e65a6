"""Quotients and remainders.

Integers: division by zero is an error, and the smallest number divided by -1 wraps around.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_op_div.cc, cwise_op_floor_div.cc,
cwise_op_floor_mod.cc, cwise_op_mod.cc, cwise_op_xdivy.cc, cwise_ops.h.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.opdef import OpHandle
from opkernel.ops.kernel_types import COMPLEX, FLOATS, INDEX, INTEGERS, WIDE_FLOATS
from opkernel.ops.math.complex_numbers import complex_quotient
from opkernel.ops.math.elementwise import (
    COMPLEX_SPEC,
    FLOATS_SPEC,
    Types,
    binary_op,
    flush_subnormals,
    register_body,
    register_flushed,
    register_ufunc,
    unary_op,
)
from opkernel.ops.registration import register_kernel

_INTEGERS_SPEC = "uint8, int8, uint16, int16, int32, uint32, uint64, int64"
_NUMBERS_SPEC = f"{FLOATS_SPEC}, {_INTEGERS_SPEC}, {COMPLEX_SPEC}"

DIV = binary_op(
    "Div",
    _NUMBERS_SPEC,
    "The quotient `x / y`; integers round towards 0.",
    traits="value_rule=truncate_divide int32_on_host function_gradient=yes",
    can_fail=True,
)
REAL_DIV = binary_op(
    "RealDiv",
    _NUMBERS_SPEC,
    "The quotient `x / y`.",
    traits="keeps_not_negative function_gradient=yes",
)
FLOOR_DIV = binary_op(
    "FloorDiv",
    _NUMBERS_SPEC,
    "The quotient `x / y`, rounded down.",
    traits="value_rule=floor_divide int32_on_host function_gradient=none",
    can_fail=True,
)
TRUNCATE_DIV = binary_op(
    "TruncateDiv",
    _NUMBERS_SPEC,
    "`x / y`, rounded towards 0.",
    traits="value_rule=truncate_divide function_gradient=none",
    can_fail=True,
)
FLOOR_MOD = binary_op(
    "FloorMod",
    f"int8, int16, int32, int64, uint8, uint16, uint32, uint64, {FLOATS_SPEC}",
    "The remainder of `x / y` with the quotient rounded down; it has the sign of `y`.",
    traits="value_rule=floor_mod int32_on_host",
    can_fail=True,
)
MOD = binary_op(
    "Mod",
    "int32, int64, half, half, bfloat16, float, double",
    "The remainder of `x / y` with the quotient rounded towards 0; it has the sign of `x`.",
    can_fail=True,
    traits="int32_on_host",
)
TRUNCATE_MOD = binary_op(
    "TruncateMod",
    f"int32, int64, {FLOATS_SPEC}",
    "The remainder of `x / y` with the quotient rounded towards 0; it has the sign of `x`.",
    can_fail=True,
    traits="int32_on_host",
)
DIV_NO_NAN = binary_op(
    "DivNoNan",
    f"half, float, bfloat16, double, {COMPLEX_SPEC}",
    "The quotient `x / y`; 0 where `y` is 0.",
    traits="function_gradient=yes",
)
XDIVY = binary_op(
    "Xdivy",
    f"half, bfloat16, float, double, {COMPLEX_SPEC}",
    "The quotient `x / y`; 0 where `x` is 0.",
    traits="function_gradient=yes",
)
_RECIPROCAL_SPEC = f"{FLOATS_SPEC}, int8, int16, int32, int64, {COMPLEX_SPEC}"
RECIPROCAL = unary_op(
    "Reciprocal", _RECIPROCAL_SPEC, "`1 / x`.", traits="cheap function_gradient=yes"
)
INV = unary_op(
    "Inv",
    _RECIPROCAL_SPEC,
    "`1 / x`; an older name of Reciprocal.",
    traits="cheap function_gradient=yes",
)


def complex_reciprocal(x: Any, *, xp: Any) -> Any:
    return complex_quotient(xp.ones_like(x), x, xp=xp)


def div_no_nan(x: Any, y: Any, *, xp: Any) -> Any:
    y = flush_subnormals(y, xp)
    return xp.where(y == 0, xp.zeros_like(x), x / y)


def complex_div_no_nan(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.where(y == 0, xp.zeros_like(x), complex_quotient(x, y, xp=xp))


def xdivy(x: Any, y: Any, *, xp: Any) -> Any:
    x, y = flush_subnormals(x, xp), flush_subnormals(y, xp)
    return xp.where(x == 0, x, x / y)


def complex_xdivy(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.where(x == 0, xp.zeros_like(y), complex_quotient(x, y, xp=xp))


for _op in (DIV, REAL_DIV):
    register_ufunc(_op, np.divide, FLOATS)
    register_body(_op, complex_quotient, COMPLEX)
for _op in (RECIPROCAL, INV):
    register_ufunc(_op, np.reciprocal, FLOATS)
    register_body(_op, complex_reciprocal, COMPLEX)
register_body(DIV_NO_NAN, div_no_nan, FLOATS)
register_body(DIV_NO_NAN, complex_div_no_nan, COMPLEX)
register_body(XDIVY, xdivy, FLOATS)
register_body(XDIVY, complex_xdivy, COMPLEX)


def floor_div(x: Any, y: Any, *, xp: Any) -> Any:
    quotient = flush_subnormals(x, xp) / flush_subnormals(y, xp)
    return xp.floor(flush_subnormals(quotient, xp))


def truncate_div(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.trunc(flush_subnormals(x, xp) / flush_subnormals(y, xp))


def floor_mod(x: Any, y: Any, *, xp: Any) -> Any:
    x, y = flush_subnormals(x, xp), flush_subnormals(y, xp)
    remainder = xp.fmod(x, y)
    wrong_side = (remainder != 0) & ((y < 0) != (remainder < 0))
    return xp.where(wrong_side, remainder + y, remainder)


register_body(FLOOR_DIV, floor_div, FLOATS)
register_body(TRUNCATE_DIV, truncate_div, FLOATS)
register_body(FLOOR_MOD, floor_mod, FLOATS)
register_flushed(MOD, np.fmod, WIDE_FLOATS)
register_flushed(TRUNCATE_MOD, np.fmod, WIDE_FLOATS)


def truncated_quotient(x: Any, y: Any) -> Any:
    """NumPy rounds down; subtracting the remainder first makes the division exact."""
    return np.floor_divide(x - np.fmod(x, y), y)


def _register_integer_kernel(
    op: OpHandle,
    function: Callable[[Any, Any], Any],
    types: Types,
    division_by_zero: Callable[[], OpError],
) -> None:
    """Register `function` for integers; an element divided by zero raises."""

    @register_kernel(op, types={"T": types})
    def checked(x: Any, y: Any) -> Any:
        result = function(x, y)
        if result.size and not y.all():
            raise division_by_zero()
        return result


def _invalid_argument() -> OpError:
    return InvalidArgumentError("Integer division by zero")


def _internal() -> OpError:
    # TensorFlow's check for zeros does not know these two ops, which makes this its answer.
    return InternalError(
        "Unexpected error in binary operator (only integer div and mod should have errors): "
        "integer division by zero"
    )


_register_integer_kernel(DIV, truncated_quotient, INTEGERS, _invalid_argument)
_register_integer_kernel(FLOOR_DIV, np.floor_divide, INTEGERS, _invalid_argument)
_register_integer_kernel(FLOOR_MOD, np.mod, INTEGERS, _invalid_argument)
_register_integer_kernel(MOD, np.fmod, INDEX, _invalid_argument)
_register_integer_kernel(TRUNCATE_DIV, truncated_quotient, INTEGERS, _internal)
_register_integer_kernel(TRUNCATE_MOD, np.fmod, INDEX, _internal)
