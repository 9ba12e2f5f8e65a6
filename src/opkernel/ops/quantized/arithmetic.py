"""QuantizedAdd, QuantizedMul and QuantizedBiasAdd: 8 bits to 32, without a loss in between.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/quantized_add_op.cc, quantized_mul_op.cc,
quantized_bias_add_op.cc.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation, in_pieces
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import bias_add_shape, broadcast_binary_op_shape
from opkernel.opdef.common_shapes.quantized import shape_with_range
from opkernel.ops.input_checks import (
    broadcast_shape,
    require,
    require_rank_at_least,
    require_vector,
)
from opkernel.ops.quantized.quantize import (
    Range,
    dequantize,
    level_of,
    quantize,
    range_of_product,
    range_of_sum,
    scalar_range,
    unclamped_level_of,
    value_of,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType, TensorShape

_QUINT8, _QINT8, _QINT32 = DataType.DT_QUINT8, DataType.DT_QINT8, DataType.DT_QINT32
_INT32 = np.dtype(np.int32)


_TYPES = ["T1: quantizedtype", "T2: quantizedtype"]

QUANTIZED_ADD, QUANTIZED_MUL = (
    register_op(
        f"{name}(x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float) "
        "-> z: Toutput, min_z: float, max_z: float",
        attrs=[*_TYPES, "Toutput: quantizedtype = DT_QINT32"],
        shape_fn=partial(shape_with_range, plain=broadcast_binary_op_shape, scalars=scalars),
        doc=doc,
    )
    for name, scalars, doc in (
        ("QuantizedAdd", (2, 3, 4, 5), "x + y, in a range around 0 that has room for many sums."),
        ("QuantizedMul", (), "x * y, in the range that the product of both has."),
    )
)
QUANTIZED_BIAS_ADD = register_op(
    "QuantizedBiasAdd(input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, "
    "max_bias: float) -> output: out_type, min_out: float, max_out: float",
    attrs=[*_TYPES, "out_type: quantizedtype"],
    shape_fn=partial(shape_with_range, plain=bias_add_shape, scalars=(2, 3, 4, 5)),
    doc="`bias` added to the last dimension of `input`, in a range that has room for many sums.",
)
_PAIR = {"T1": _QUINT8, "T2": _QUINT8, "Toutput": _QINT32}


def _broadcast_dims(x: Array, y: Array) -> int:
    """How many dimensions are left where neighbours that are broadcast alike are joined."""
    rank = max(x.ndim, y.ndim)
    sizes = zip((1,) * (rank - x.ndim) + x.shape, (1,) * (rank - y.ndim) + y.shape, strict=True)
    kinds = [(a == 1, b == 1) if a != b else (False, False) for a, b in sizes if (a, b) != (1, 1)]
    return sum(kind != before for kind, before in zip(kinds, [None, *kinds], strict=False))


def _output_shape(x: Array, y: Array) -> tuple[int, ...]:
    """The shape of the output.

    Raises:
        InvalidArgumentError: the shapes do not fit, or one of the inputs to be repeated is empty.
        UnimplementedError: not simply the smaller one is repeated along the first dimensions.
    """
    shape = broadcast_shape(x.shape, y.shape, "Incompatible shapes: {} vs. {}")
    dims = _broadcast_dims(x, y)
    if dims > 2:
        raise UnimplementedError(
            f"Broadcast between {TensorShape(x.shape)} and {TensorShape(y.shape)} is not supported "
            "yet."
        )
    has_elements = dims != 2 or min(x.size, y.size)
    require(has_elements, "Must have some elements to add: vector must have at least 1 element")
    check_allocation(shape, _QINT32)
    if dims == 2:
        _refuse_columns(x, y, shape)
    return shape


def _refuse_columns(x: Array, y: Array, shape: tuple[int, ...]) -> None:
    """A column repeated along its rows; TensorFlow gives values of other places or of no place for it."""
    large, small = (y, x) if x.size < y.size else (x, y)
    trailing = small.shape
    while trailing and trailing[0] == 1:
        trailing = trailing[1:]
    if large.size != np.prod(shape) or tuple(shape[len(shape) - len(trailing) :]) != trailing:
        raise UnimplementedError(
            f"Broadcast between {TensorShape(x.shape)} and {TensorShape(y.shape)} is not supported: "
            "only a smaller input is repeated, along the first dimensions."
        )


def _in_wide_range(x: Array, given: Range, wide: Range) -> Array:
    """8 bits as 32, by the places of the first two levels."""
    first, second = unclamped_level_of(value_of([0, 1], x.dtype, given), wide, _INT32)
    step = np.int64(np.asarray(second - first).astype(np.int32))
    limits = np.iinfo(np.int32)
    levels: Array = np.clip(first + x.astype(np.int64) * step, limits.min, limits.max)
    return levels.astype(np.int32)


def _checked_pair(
    x: Array, y: Array, min_x: Array, max_x: Array, min_y: Array, max_y: Array
) -> tuple[Range, Range, tuple[int, ...]]:
    """The ranges of both inputs and the shape of the output; raises as `_output_shape`, or for an empty range."""
    x_range = scalar_range("{}_x", min_x, max_x)
    y_range = scalar_range("{}_y", min_y, max_y)
    shape = _output_shape(x, y)
    x_range.check_width("x")
    y_range.check_width("y")
    return x_range, y_range, shape


@register_kernel(QUANTIZED_ADD, types=_PAIR)
def quantized_add(x: Any, y: Any, min_x: Any, max_x: Any, min_y: Any, max_y: Any) -> Any:
    x_range, y_range, shape = _checked_pair(x, y, min_x, max_x, min_y, max_y)
    with np.errstate(all="ignore"):
        wide = range_of_sum(x_range, y_range, room_bits=14)
        sums = in_pieces(partial(_sums, (x_range, y_range), wide, _as_numbers(x, y)), x, y)
    return np.broadcast_to(sums, shape).copy(), wide.low, wide.high


def _as_numbers(x: Array, y: Array) -> tuple[bool, bool]:
    """Whether these count as single numbers."""
    if _broadcast_dims(x, y) > 1:
        return False, False
    return x.size == 1, x.size != 1 and y.size == 1


def _sums(
    ranges: tuple[Range, Range], wide: Range, as_numbers: tuple[bool, bool], x: Array, y: Array
) -> Array:
    """The sums of both in the wide range; a single number by the rule for single values."""
    first, second = (
        level_of(value_of(v, v.dtype, given), wide, _INT32)
        if single
        else _in_wide_range(v, given, wide)
        for v, given, single in zip((x, y), ranges, as_numbers, strict=True)
    )
    return np.add(first, second)


def without_offset(x: Array, given: Range) -> Array:
    """Integers, moved so that 0 stands for 0; int32, as TensorFlow computes them."""
    offset = np.asarray(unclamped_level_of(0.0, given, x.dtype)).astype(np.int32)
    return x.astype(np.int32) - offset


@register_kernel(QUANTIZED_MUL, types=_PAIR)
def quantized_mul(x: Any, y: Any, min_x: Any, max_x: Any, min_y: Any, max_y: Any) -> Any:
    x_range, y_range, shape = _checked_pair(x, y, min_x, max_x, min_y, max_y)
    with np.errstate(all="ignore"):
        product = in_pieces(
            lambda a, b: without_offset(a, x_range) * without_offset(b, y_range), x, y
        )
        limits = range_of_product(x_range, x.dtype, y_range, y.dtype)
    return np.broadcast_to(product, shape).copy(), limits.low, limits.high


def quantized_bias_add(
    x: Any, bias: Any, min_input: Any, max_input: Any, min_bias: Any, max_bias: Any
) -> Any:
    x_range = scalar_range("{}_input", min_input, max_input)
    bias_range = scalar_range("{}_bias", min_bias, max_bias)
    require_rank_at_least(x, 2, "Input tensor must be at least 2D: {}")
    require_vector(bias, "Biases must be 1D: {}")
    if bias.size != x.shape[-1]:
        raise InvalidArgumentError(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{TensorShape(bias.shape)} vs. {TensorShape(x.shape)}"
        )
    require(bias.size, "Must provide at least 1 bias")
    with np.errstate(all="ignore"):
        wide = range_of_sum(x_range, bias_range, room_bits=17)
        zero = level_of(0.0, wide, _INT32)
        offsets = quantize(dequantize(bias, bias_range), wide, _INT32) + zero
        sums = in_pieces(
            lambda v, offset: quantize(dequantize(v, x_range), wide, _INT32) + offset, x, offsets
        )
        return sums, wide.low, wide.high


for _type in (_QUINT8, _QINT8):
    register_kernel(
        QUANTIZED_BIAS_ADD, types={"T1": (_type,), "T2": (_type,), "out_type": _QINT32}
    )(quantized_bias_add)
