"""QuantizeV2 and Dequantize: floats to the integers that stand for them, and back.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/quantize_op.cc, dequantize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import in_pieces
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import quantize_v2_shape, unchanged_shape
from opkernel.opdef.common_shapes.quantized import range_along_axis
from opkernel.ops.quantized.conversion import (
    Array,
    Range,
    dequantize,
    larger_end,
    quantize,
    round_half_away,
    to_int32,
)
from opkernel.ops.quantized.declarations import QUANTIZED_ATTR
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_TYPES = (
    DataType.DT_QINT8,
    DataType.DT_QUINT8,
    DataType.DT_QINT16,
    DataType.DT_QUINT16,
    DataType.DT_QINT32,
)
_MODES = "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'"
_HUGE = np.finfo(np.float32).max


def _dequantize_shape(c: InferenceContext) -> None:
    """Input 0; the range, inputs 1 and 2, is scalars or has a value for each of `axis`."""
    axis, rank = c.find_attr("axis", -1), c.rank(c.input(0))
    if axis > rank:  # -1 where the rank is unknown
        raise InvalidArgumentError(f"Axis must be less than input dimension({rank}), got {axis}")
    unchanged_shape(c)
    range_along_axis(c, 1)


QUANTIZE_V2 = register_op(
    "QuantizeV2",
    inputs=["input: float", "min_range: float", "max_range: float"],
    outputs=["output: T", "output_min: float", "output_max: float"],
    attrs=[
        f"T: {QUANTIZED_ATTR}",
        _MODES,
        "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'",
        "narrow_range: bool = false",
        "axis: int = -1",
        "ensure_minimum_range: float = 0.01",
    ],
    shape_fn=quantize_v2_shape,
    doc="""The integers that stand for floats, and the range that they stand in.

    min_range, max_range: The range, which is made to hold 0.
    mode: MIN_COMBINED and MIN_FIRST divide the range among all integers; with SCALED 0 stands for 0.
    narrow_range: With SCALED the lowest integer is left out.
    axis: Each slice along this dimension has a range of its own; -1 for one range.
    ensure_minimum_range: So wide is the range at least, relative to its largest end.
    """,
    traits="cost=linear",
)

DEQUANTIZE = register_op(
    "Dequantize",
    inputs=["input: T", "min_range: float", "max_range: float"],
    outputs=["output: dtype"],
    attrs=[
        f"T: {QUANTIZED_ATTR}",
        _MODES,
        "narrow_range: bool = false",
        "axis: int = -1",
        "dtype: {bfloat16, float} = DT_FLOAT",
    ],
    shape_fn=_dequantize_shape,
    doc="""The floats that integers stand for in a range.

    mode, narrow_range, axis: As QuantizeV2's.
    """,
    traits="cost=linear",
)


def _scales(low: Any, high: Any, limits: Any, narrow: bool) -> tuple[Any, int, int]:
    """How many integers stand for 1 where 0 stands for 0, and the lowest and highest of them."""
    lowest, highest = int(limits.min) + narrow, int(limits.max)
    first, last = np.float32(lowest), np.float32(highest)
    from_low = np.where(first * low > 0, first / low, _HUGE)
    from_high = np.where(last * high > 0, last / high, _HUGE)
    return np.where(from_high < from_low, from_high, from_low), lowest, highest


def _scaled(
    x: Array, low: Array, high: Array, dtype: np.dtype[Any], narrow: bool, to_even: bool
) -> tuple[Array, Array, Array]:
    scale, lowest, highest = _scales(low, high, np.iinfo(dtype), narrow)
    low, high = np.float32(lowest) / scale, np.float32(highest) / scale
    scaled = np.maximum(np.minimum(x, high), low) * scale
    rounded = np.rint(scaled) if to_even else round_half_away(scaled)
    return _cast(rounded, dtype), low, high


def _combined(x: Array, low: Array, high: Array, dtype: np.dtype[Any]) -> Array:
    """The range is divided among the integers; those of signed types begin with their lowest."""
    limits = np.iinfo(dtype)
    scale = (np.float64(int(limits.max) - int(limits.min)) / (high - low)).astype(np.float32)
    above = (np.maximum(np.minimum(x, high), low) - low) * scale
    if limits.min:
        return _cast(round_half_away(above + np.float32(limits.min)), dtype)
    return _cast(above + np.float32(0.5), dtype)


def _cast(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats as integers; NaN is 0."""
    integers: Array = to_int32(np.where(np.isnan(x), np.float32(0), x)).astype(dtype)
    return integers


def _with_zero(low: Array, high: Array, least: float) -> tuple[Array, Array]:
    """The range, moved to hold 0 and made wide enough."""
    if (high < low).any():
        raise InvalidArgumentError("input_max_range must be larger than input_min_range.")
    most = np.fmax(np.float32(1), larger_end(low, high))
    moved = np.where(low < 0, low, np.float32(0))
    wide = moved + most * np.float32(least)
    end = np.where(high < wide, wide, high)
    return moved, np.where(end > 0, end, np.float32(0))


def _check_along(axis: int, x: Array, low: Array, high: Array) -> None:
    if axis >= x.ndim:
        raise InvalidArgumentError(
            "Axis is on a zero-based index, so its value must always be less than number of "
            f"input's dims, but given axis value was {axis} and input's dims was {x.ndim}"
        )
    for name, end in (("min", low), ("max", high)):
        if axis < 0 and end.size != 1:
            raise InvalidArgumentError(
                f"If axis is not specified, {name}_range must contain a single float element, but "
                f"it contains {end.size} elements"
            )
        if axis >= 0 and end.shape != (x.shape[axis],):
            raise InvalidArgumentError(
                f"If axis is specified, {name}_range must be a 1-D tensor whose size matches the "
                f"axis dimension of the input, but its shape is {list(end.shape)}"
            )


def _along(end: Array, axis: int, rank: int) -> Array:
    """The ends of ranges in a shape to be broadcast."""
    return end.reshape([-1 if i == axis else 1 for i in range(rank)] if end.size != 1 else ())


@register_kernel(QUANTIZE_V2, device="CPU", types={"T": _TYPES}, factory=True)
def quantize_v2(
    *,
    T: DataType,
    mode: str,
    round_mode: str,
    narrow_range: bool,
    axis: int,
    ensure_minimum_range: float,
) -> Callable[[Any, Any, Any], Any]:
    to_even, dtype = round_mode == "HALF_TO_EVEN", T.numpy_dtype
    if to_even and mode != "SCALED":
        raise InvalidArgumentError(
            f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode}'."
        )

    def kernel(x: Any, min_range: Any, max_range: Any) -> Any:
        _check_along(axis, x, min_range, max_range)
        if min_range.size != 1 and mode == "MIN_FIRST":
            raise UnimplementedError(
                "MIN_FIRST mode is not implemented for Quantize with axis != -1."
            )
        with np.errstate(all="ignore"):
            low, high = _with_zero(min_range, max_range, ensure_minimum_range)
            ends = _along(low, axis, x.ndim), _along(high, axis, x.ndim)
            if mode == "SCALED":
                _, low, high = _scaled(np.zeros(()), *ends, dtype, narrow_range, to_even)
                output = in_pieces(
                    lambda v, a, b: _scaled(v, a, b, dtype, narrow_range, to_even)[0], x, *ends
                )
            elif mode == "MIN_COMBINED":
                output = in_pieces(lambda v, a, b: _combined(v, a, b, dtype), x, *ends)
            else:
                whole = Range.of(*ends)
                output = in_pieces(lambda v: quantize(v, whole, dtype), x)
        shape = min_range.shape if min_range.size != 1 else ()  # as TensorFlow, whatever `axis`
        return output, np.reshape(low, shape), np.reshape(high, shape)

    return kernel


def _check_dequantize(x: Array, axis: int, low: Array, high: Array) -> None:
    if axis >= x.ndim:
        raise InvalidArgumentError(f"Axis must be less than input dimension({x.ndim}), got {axis}")
    count = x.shape[axis] if axis > -1 else 1
    for name, end in (("min", low), ("max", high)):
        if end.size != count:
            raise InvalidArgumentError(
                f"input_{name}_tensor must have as many elements as input on the dequantization "
                f"axis ({axis}), got {end.size}, expected {count}"
            )


def _from_scaled(x: Array, low: Array, high: Array, narrow: bool) -> Array:
    limits = np.iinfo(x.dtype)
    scale = high / np.float32(limits.max)
    if limits.min:
        from_low = low / np.float32(int(limits.min) + narrow)
        scale = np.where(from_low < scale, scale, from_low)
    values: Array = x.astype(np.float32) * scale
    return values


def _from_combined(x: Array, low: Array, high: Array) -> Array:
    limits = np.iinfo(x.dtype)
    scale = (high - low) / (np.float32(limits.max) - np.float32(limits.min))
    values: Array = (x.astype(np.float32) - np.float32(limits.min)) * scale + low
    return values


@register_kernel(
    DEQUANTIZE,
    device="CPU",
    types={"T": _TYPES, "dtype": (DataType.DT_FLOAT, DataType.DT_BFLOAT16)},
    factory=True,
)
def dequantize_op(
    *, mode: str, narrow_range: bool, axis: int, dtype: DataType
) -> Callable[[Any, Any, Any], Any]:
    if dtype is not DataType.DT_FLOAT and mode != "MIN_COMBINED":
        raise InvalidArgumentError(
            f"When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{mode}'"
        )

    def kernel(x: Any, min_range: Any, max_range: Any) -> Any:
        _check_dequantize(x, axis, min_range, max_range)
        low, high = _along(min_range, axis, x.ndim), _along(max_range, axis, x.ndim)
        if low.ndim and mode == "MIN_FIRST":
            raise UnimplementedError(
                "MIN_FIRST mode is not implemented for Dequantize with axis != -1."
            )
        with np.errstate(all="ignore"):
            if mode == "SCALED":
                return in_pieces(lambda v, a, b: _from_scaled(v, a, b, narrow_range), x, low, high)
            if mode == "MIN_COMBINED":
                kind = dtype.numpy_dtype
                return in_pieces(
                    lambda v, a, b: _from_combined(v, a, b).astype(kind, copy=False), x, low, high
                )
            whole = Range.of(low, high)
            return in_pieces(lambda v: dequantize(v, whole), x)

    return kernel
