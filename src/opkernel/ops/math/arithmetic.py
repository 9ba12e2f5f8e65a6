"""Sums, differences, products, quotients, remainders, extrema.

Integers: division by zero is an error, and the smallest number divided by -1 wraps around.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cwise_op_add_1.cc and its siblings, cwise_op_div.cc,
cwise_op_floor_div.cc, cwise_op_floor_mod.cc, cwise_op_mod.cc, cwise_op_xdivy.cc, cwise_ops.h, aggregate_ops.cc.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import in_time, parts_work
from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import explicit_shape
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.ops.math.elementwise import (
    COMPLEX_SPEC,
    FLOATS_SPEC,
    Types,
    binary_op,
    complex_quotient,
    counts_as_zero,
    flush_subnormals,
    register_body,
    register_flushed,
    register_ufunc,
    unary_op,
)
from opkernel.ops.registration import (
    COMPLEX,
    FLOATS,
    INDEX,
    INTEGERS,
    NUMBERS,
    REAL_NUMBERS,
    SIGNED_INTEGERS,
    WIDE_FLOATS,
    register_kernel,
)
from opkernel.types import DataType, object_scalar

_SIGNED_SPEC = "int8, int16, int32, int64"

ADD = binary_op(
    "Add",
    f"{FLOATS_SPEC}, uint8, int8, int16, int32, int64, {COMPLEX_SPEC}, string",
    "The sum `x + y`; strings are joined.",
    traits="keeps_not_negative value_rule=add int32_on_host function_gradient=yes",
)
ADD_V2 = binary_op(
    "AddV2",
    f"{FLOATS_SPEC}, uint8, uint16, uint32, uint64, {_SIGNED_SPEC}, {COMPLEX_SPEC}",
    "The sum `x + y`.",
    is_commutative=True,
    is_aggregate=True,
    traits="keeps_not_negative value_rule=add int32_on_host function_gradient=yes",
)
SUB = binary_op(
    "Sub",
    f"{FLOATS_SPEC}, uint8, int8, uint16, int16, int32, int64, {COMPLEX_SPEC}, uint32, uint64",
    "The difference `x - y`.",
    traits="value_rule=subtract int32_on_host function_gradient=yes",
)
MUL = binary_op(
    "Mul",
    f"{FLOATS_SPEC}, uint8, int8, uint16, int16, int32, uint32, uint64, int64, {COMPLEX_SPEC}",
    "The product `x * y`.",
    is_commutative=True,
    traits="keeps_not_negative value_rule=multiply int32_on_host function_gradient=yes",
)
MUL_NO_NAN = binary_op(
    "MulNoNan",
    f"{FLOATS_SPEC}, {COMPLEX_SPEC}",
    "The product `x * y`; 0 where `y` is 0, whatever `x` is.",
    traits="function_gradient=yes",
)
SQUARED_DIFFERENCE = binary_op(
    "SquaredDifference",
    f"{FLOATS_SPEC}, int32, int64, {COMPLEX_SPEC}",
    "`(x - y) * (x - y)`, the first factor conjugated.",
    is_commutative=True,
    traits="not_negative int32_on_host function_gradient=yes",
)
_ORDERED_SPEC = f"{FLOATS_SPEC}, int8, uint8, int16, uint16, int32, uint32, int64, uint64"
for _name, _ufunc, _doc in (
    ("Maximum", np.maximum, "The larger of `x` and `y`; NaN if either is."),
    ("Minimum", np.minimum, "The smaller of `x` and `y`; NaN if either is."),
):
    _traits = f"value_rule={_ufunc.__name__} keeps_not_negative int32_on_host function_gradient=yes"
    register_ufunc(binary_op(_name, _ORDERED_SPEC, _doc, traits=_traits), _ufunc, REAL_NUMBERS)

_ADD_TYPES = (*FLOATS, *SIGNED_INTEGERS, DataType.DT_UINT8, *COMPLEX)
register_ufunc(ADD, np.add, _ADD_TYPES)
register_ufunc(ADD_V2, np.add, NUMBERS)
register_ufunc(SUB, np.subtract, NUMBERS)
register_ufunc(MUL, np.multiply, NUMBERS)


@register_kernel(ADD, types={"T": DataType.DT_STRING})
def join_strings(x: Any, y: Any) -> Any:
    shape = np.broadcast_shapes(x.shape, y.shape)
    rows = zip(*(np.broadcast_to(one, shape).flat for one in (x, y)), strict=True)
    return string_tensor(shape, map(joining(b""), in_time(rows, parts_work)))


def mul_no_nan(x: Any, y: Any, *, xp: Any) -> Any:
    product, is_zero = x * y, y == 0
    if xp is np and not is_zero.any():
        return product
    return xp.where(is_zero, xp.zeros_like(x), product)


def squared_difference(x: Any, y: Any, *, xp: Any) -> Any:
    difference = x - y
    return difference * difference


def squared_complex_difference(x: Any, y: Any, *, xp: Any) -> Any:
    difference = x - y
    return xp.conj(difference) * difference


register_body(MUL_NO_NAN, mul_no_nan, (*FLOATS, *COMPLEX))
register_body(SQUARED_DIFFERENCE, squared_difference, (*FLOATS, *INDEX))
register_body(SQUARED_DIFFERENCE, squared_complex_difference, COMPLEX)


ABS = unary_op(
    "Abs",
    f"{FLOATS_SPEC}, {_SIGNED_SPEC}",
    "The absolute value of `x`.",
    traits="cheap idempotent even not_negative int32_on_host function_gradient=yes",
)
NEG = unary_op(
    "Neg",
    f"{FLOATS_SPEC}, {_SIGNED_SPEC}, {COMPLEX_SPEC}",
    "The negative of `x`.",
    traits="cheap involution value_rule=negate int32_on_host function_gradient=yes",
)
SIGN = unary_op(
    "Sign",
    f"{FLOATS_SPEC}, {_SIGNED_SPEC}, {COMPLEX_SPEC}",
    "-1, 0 or 1 by the sign of `x`, NaN for NaN; of a complex number, `x / |x|`.",
    traits="cheap idempotent int32_on_host function_gradient=yes",
)
SQUARE = unary_op(
    "Square",
    f"{FLOATS_SPEC}, {_SIGNED_SPEC}, uint8, uint16, uint32, uint64, {COMPLEX_SPEC}",
    "The square of `x`.",
    traits="cheap even not_negative int32_on_host function_gradient=yes",
)

register_ufunc(ABS, np.absolute, (*FLOATS, *SIGNED_INTEGERS))
register_ufunc(NEG, np.negative, (*FLOATS, *SIGNED_INTEGERS, *COMPLEX))
register_ufunc(SIGN, np.sign, SIGNED_INTEGERS)
register_flushed(SIGN, np.sign, FLOATS)
register_ufunc(SQUARE, np.square, NUMBERS)


def complex_sign(x: Any, *, xp: Any) -> Any:
    return xp.where(x == 0, xp.zeros_like(x), x / xp.abs(x))


register_body(SIGN, complex_sign, COMPLEX)


def add_n_shape(c: InferenceContext) -> None:
    """All inputs and the output have the same shape, and hold the same."""
    shape = c.input(c.num_inputs() - 1)
    for i in reversed(range(c.num_inputs() - 1)):
        shape = c.merge(c.input(i), shape)
    c.set_output(0, shape)
    keep_contents(c)


ADD_N = register_op(
    "AddN(inputs: N * T) -> sum: T",
    attrs=["N: int >= 1", "T: {numbertype, variant}"],
    shape_fn=add_n_shape,
    is_commutative=True,
    is_aggregate=True,
    doc="The sum of the tensors of `inputs`, which have the same shape.",
    traits="cost=linear int32_on_host",
)

# No device has a kernel: TensorFlow, too, makes other nodes of such a node before the graph runs.
ACCUMULATE_N_V2 = register_op(
    "AccumulateNV2(inputs: N * T) -> sum: T",
    attrs=["N: int >= 1", "T: numbertype", "shape: shape"],
    shape_fn=explicit_shape,
    traits="no_kernel=tensorflow",
    is_commutative=True,
    is_aggregate=True,
    doc="The sum of the tensors of `inputs`, which have the shape `shape`, taken as they come.",
)


@register_kernel(ADD_N, types={"T": NUMBERS})
def add_n(inputs: list[Any]) -> Any:
    first = inputs[0]
    for i, tensor in enumerate(inputs):
        if tensor.shape != first.shape:
            raise InvalidArgumentError(
                "Inputs to operation AddN must have the same size and shape. "
                f"Input 0: {list(first.shape)} != input {i}: {list(tensor.shape)}"
            )
    if len(inputs) == 1:
        return first.copy()
    total = first + inputs[1]
    for tensor in inputs[2:]:
        total += tensor
    return total


@register_kernel(ADD_N, types={"T": DataType.DT_VARIANT})
def add_variants(inputs: list[Any]) -> Any:
    """The sum of scalars whose values define addition (`__add__`)."""
    if any(tensor.ndim for tensor in inputs):
        raise InvalidArgumentError("AddN of non-scalar Tensor with dtype=DT_VARIANT")
    total = inputs[0].item()
    for tensor in inputs[1:]:
        try:
            total = total + tensor.item()
        except TypeError as error:
            types = (
                getattr(value, "type_name", type(value).__name__)
                for value in (total, tensor.item())
            )
            raise InternalError(
                f"No addition of variant values is defined. Type names: {' and '.join(types)}"
            ) from error
    return object_scalar(total)


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
MOD, TRUNCATE_MOD = (
    binary_op(
        name,
        spec,
        "The remainder of `x / y` with the quotient rounded towards 0; it has the sign of `x`.",
        can_fail=True,
        traits="int32_on_host",
    )
    for name, spec in (
        ("Mod", "int32, int64, half, half, bfloat16, float, double"),
        ("TruncateMod", f"int32, int64, {FLOATS_SPEC}"),
    )
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
RECIPROCAL, INV = (
    unary_op(name, _RECIPROCAL_SPEC, doc, traits="cheap function_gradient=yes")
    for name, doc in (
        ("Reciprocal", "`1 / x`."),
        ("Inv", "`1 / x`; an older name of Reciprocal."),
    )
)


def reciprocal(x: Any, *, xp: Any) -> Any:
    return 1 / x


def complex_reciprocal(x: Any, *, xp: Any) -> Any:
    return complex_quotient(xp.ones_like(x), x, xp=xp)


def div_no_nan(x: Any, y: Any, *, xp: Any) -> Any:
    is_zero, quotient = counts_as_zero(y, xp), x / y
    if xp is not np or not isinstance(quotient, np.ndarray):
        return xp.where(is_zero, xp.zeros_like(x), quotient)
    np.copyto(quotient, 0, where=is_zero)
    return quotient


def complex_div_no_nan(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.where(y == 0, xp.zeros_like(x), complex_quotient(x, y, xp=xp))


def xdivy(x: Any, y: Any, *, xp: Any) -> Any:
    return quotient_or_zero(flush_subnormals(x, xp), flush_subnormals(y, xp), xp=xp)


def quotient_or_zero(x: Any, y: Any, *, xp: Any) -> Any:
    """`x / y`; `x` where that is 0."""
    quotient = x / y
    if xp is not np or not isinstance(quotient, np.ndarray):
        return xp.where(x == 0, x, quotient)
    np.copyto(quotient, x, where=x == 0)
    return quotient


def complex_xdivy(x: Any, y: Any, *, xp: Any) -> Any:
    return xp.where(x == 0, xp.zeros_like(y), complex_quotient(x, y, xp=xp))


for _op in (DIV, REAL_DIV):
    register_ufunc(_op, np.divide, FLOATS)
    register_body(_op, complex_quotient, COMPLEX)
for _op in (RECIPROCAL, INV):
    register_ufunc(_op, np.reciprocal, FLOATS[2:])
    register_body(_op, reciprocal, FLOATS[:2], in_float=True)
    register_body(_op, complex_reciprocal, COMPLEX)
register_body(DIV_NO_NAN, div_no_nan, FLOATS, in_float=True)
register_body(DIV_NO_NAN, complex_div_no_nan, COMPLEX)
register_body(XDIVY, quotient_or_zero, FLOATS[:2], in_float=True)  # `register_body` flushes these
register_body(XDIVY, xdivy, WIDE_FLOATS)
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
    *,
    by_zero: Callable[[], OpError],
) -> None:
    """Register `function` for integers; an element divided by zero raises."""

    @register_kernel(op, types={"T": types})
    def checked(x: Any, y: Any) -> Any:
        result = function(x, y)
        if result.size and not y.all():
            raise by_zero()
        return result


_BY_ZERO = partial(InvalidArgumentError, "Integer division by zero")
# TensorFlow's check for zeros does not know two of these ops, which makes this its answer.
_BY_ZERO_UNKNOWN = partial(
    InternalError,
    "Unexpected error in binary operator (only integer div and mod should have errors): integer division by zero",
)


_register_integer_kernel(DIV, truncated_quotient, INTEGERS, by_zero=_BY_ZERO)
_register_integer_kernel(FLOOR_DIV, np.floor_divide, INTEGERS, by_zero=_BY_ZERO)
_register_integer_kernel(FLOOR_MOD, np.mod, INTEGERS, by_zero=_BY_ZERO)
_register_integer_kernel(MOD, np.fmod, INDEX, by_zero=_BY_ZERO)
_register_integer_kernel(TRUNCATE_DIV, truncated_quotient, INTEGERS, by_zero=_BY_ZERO_UNKNOWN)
_register_integer_kernel(TRUNCATE_MOD, np.fmod, INDEX, by_zero=_BY_ZERO_UNKNOWN)
