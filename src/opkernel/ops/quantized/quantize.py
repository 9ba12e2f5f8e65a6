"""QuantizeV2 and Dequantize, and the rules between floats and the integers that stand for them in a range.

A range [low, high] of floats is divided evenly among all integers of a type. TensorFlow has two sets of
rules for it, and their results differ in the last place: one in double for single values
(`value_of`, `level_of`), one in float for whole tensors (`dequantize`, `quantize`). Each op says which it follows.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/quantize_op.cc, dequantize_op.cc, quantization_utils.h.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import in_pieces
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import quantize_v2_shape, unchanged_shape
from opkernel.opdef.common_shapes.quantized import range_along_axis
from opkernel.ops.input_checks import require, require_equal, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType

_QUINT8 = DataType.DT_QUINT8.numpy_dtype
_MOST_INT32_OF_FLOAT = np.float32(2147483520)
_FRACTION_BITS = 16


class Range(NamedTuple):
    """What the lowest and the highest integer stand for, two numbers in float."""

    low: np.float32
    high: np.float32

    @classmethod
    def of(cls, low: Array, high: Array) -> Range:
        """The range between two arrays of one element."""
        return cls(np.float32(low.item()), np.float32(high.item()))

    def check_width(self, name: str) -> None:
        """Refuse the range of an input if it is no wider than a point."""
        if not self.high > self.low:
            raise InvalidArgumentError(f"max_{name} must be larger than min_{name}.")


def scalar_range(name: str, low: Array, high: Array) -> Range:
    """The range that two scalar inputs hold; `{}` in their name stands for `min` and `max`.

    Raises:
        InvalidArgumentError: one of them is no scalar.
    """
    for which, end in (("min", low), ("max", high)):
        message = f"`{name.format(which)}` must be rank 0 but is rank {end.ndim}"
        require_scalar(end, message)
    return Range.of(low, high)


def larger_end(low: Any, high: Any) -> Any:
    """How far the end of a range is from 0 that is further from it."""
    return np.where(np.abs(low) < np.abs(high), np.abs(high), np.abs(low))


def round_half_away(x: Any) -> Any:
    """The nearest whole number; halves go away from 0."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), x.dtype.type(0)).astype(x.dtype)


def _truncated(x: Any, integer: type[np.signedinteger[Any]]) -> Any:
    limits = np.iinfo(integer)
    above = x.dtype.type(2.0 ** (limits.bits - 1))
    fits = (x >= -above) & (x < above)
    if isinstance(fits, np.ndarray) and fits.all():
        return x.astype(integer)
    return np.where(fits, np.where(fits, x, 0).astype(integer), integer(limits.min))


to_int32 = partial(_truncated, integer=np.int32)
"""Floats without their fraction; what is no int32 becomes the lowest one, as on x86."""
to_int64 = partial(_truncated, integer=np.int64)
"""Floats without their fraction; what is no int64 becomes the lowest one, as on x86."""


def _steps(dtype: np.dtype[Any]) -> float:
    return float(2 ** (8 * dtype.itemsize))


def _lowest(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).min)


def as_int64(x: Array) -> Array:
    """Integers as int64; those of 32 bits by way of float, as TensorFlow's qint32 has no other."""
    return x.astype(np.float32).astype(np.int64) if x.dtype == np.int32 else x.astype(np.int64)


def as_int32(x: Array) -> Array:
    """Integers as int32; those of 32 bits by way of float, as TensorFlow's qint32 has no other."""
    return to_int32(x.astype(np.float32)) if x.dtype == np.int32 else x.astype(np.int32)


def dequantize(x: Array, given: Range) -> Array:
    """The floats that integers stand for, by the rule for tensors."""
    low, high = given
    scale = np.float32(np.float64(high - low) / (_steps(x.dtype) - 1.0))
    first = low if low == high else round_half_away(low / scale) * scale
    return (first - np.float32(_lowest(x.dtype)) * scale) + x.astype(np.float32) * scale


def quantize(x: Array, given: Range, dtype: np.dtype[Any]) -> Array:
    """The integers that stand for floats, by the rule for tensors; floats beyond the range stand at its ends."""
    low, high = given
    steps = _steps(dtype) - 1.0
    scale = np.float32(0) if low == high else np.float32(steps / np.float64(high - low))
    first = round_half_away(low * scale) - np.float32(_lowest(dtype))
    levels = round_half_away(x * scale) - first
    most = min(np.float32(np.iinfo(dtype).max), _MOST_INT32_OF_FLOAT)
    inside = np.minimum(np.maximum(levels, np.float32(_lowest(dtype))), most)
    integers: Array = to_int32(inside).astype(dtype)
    return integers


def requantize(x: Array, given: Range, wanted: Range, dtype: np.dtype[Any]) -> Array:
    """Integers of `given` as integers of another type and range; from 32 to 8 bits in fixed point."""
    if x.dtype == np.int32 and dtype == _QUINT8:
        return _requantize_in_fixed_point(x, given, wanted)
    return quantize(dequantize(x, given), wanted, dtype)


def _requantize_in_fixed_point(x: Array, given: Range, wanted: Range) -> Array:
    """With 16 bits of fraction; the centre of `given` is in float, and the rest in double."""
    one = 1 << _FRACTION_BITS
    width, new_width = given.high - given.low, np.float64(wanted.high - wanted.low)
    scale, center, offset = np.int64(0), np.int64(0), np.int64(0)
    if new_width != 0:
        scale = to_int64(np.float64(255.0 * one) * np.float64(width) / new_width)
        middle = np.float32(np.float64(given.low + given.high) / 2.0)
        center = to_int64(middle * np.float32(255.0 / new_width) * np.float32(one))
        offset = to_int64(round_half_away(one * (np.float64(wanted.low) * 255.0) / new_width))
    moved = (center - offset) + np.int64(one >> 1)
    levels = (((as_int64(x) * scale) >> 32) + moved) >> _FRACTION_BITS
    result: Array = np.clip(levels, 0, 255).astype(_QUINT8)
    return result


def value_of(x: Any, dtype: np.dtype[Any], given: Range) -> Any:
    """The floats that integers of `dtype` stand for, by the rule for single values."""
    low, high = given
    if low == high:
        return np.full(np.shape(x), low)
    steps = _steps(dtype)
    scale = np.float64(high - low) * (steps / (steps - 1.0)) / steps
    rough = np.float32(scale)
    first = np.float64(round_half_away(low / rough) * rough)
    levels = np.asarray(x).astype(np.float64) - _lowest(dtype)
    return (first + levels * scale).astype(np.float32)


def unclamped_level_of(x: Any, given: Range, dtype: np.dtype[Any]) -> Any:
    """The int64 that stand for floats, by the rule for single values; `dtype` may not hold them."""
    return _places_of(x, given, dtype) + np.int64(_lowest(dtype))


def level_of(x: Any, given: Range, dtype: np.dtype[Any]) -> Any:
    """The integers of `dtype` that stand for floats, by the rule for single values; NaN is the lowest."""
    lowest, last = _lowest(dtype), int(_steps(dtype)) - 1
    return (np.clip(_places_of(x, given, dtype), 0, last) + np.int64(lowest)).astype(dtype)


def _places_of(x: Any, given: Range, dtype: np.dtype[Any]) -> Any:
    """How many integers after the lowest of `dtype` those lie that stand for floats."""
    low, high = given
    x = np.asarray(x, np.float32)
    if low == high:
        return np.zeros(x.shape, np.int64)
    steps = _steps(dtype)
    scale = steps / (np.float64(high - low) * (steps / (steps - 1.0)))
    places = round_half_away(x.astype(np.float64) * scale) - round_half_away(
        np.float64(low) * scale
    )
    return to_int64(places)


def range_of_product(a: Range, a_type: np.dtype[Any], b: Range, b_type: np.dtype[Any]) -> Range:
    """The range in which an int32 stands for the product of two integers without offset."""
    step = _width_of_level(a, a_type) * _width_of_level(b, b_type)
    limits = np.iinfo(np.int32)
    return Range(step * np.float32(limits.min), step * np.float32(limits.max))


def _width_of_level(given: Range, dtype: np.dtype[Any]) -> np.float32:
    return (given.high - given.low) / np.float32(_steps(dtype) - 1)


def range_of_sum(a: Range, b: Range, room_bits: int) -> Range:
    """A range around 0 with room for sums: 2**room_bits times the larger of both."""
    low, high = min(a.low, b.low), max(a.high, b.high)
    most = max(abs(low), abs(high)) * np.float32(1 << room_bits)
    return Range(-most, most)


_TYPES = (
    DataType.DT_QINT8,
    DataType.DT_QUINT8,
    DataType.DT_QINT16,
    DataType.DT_QUINT16,
    DataType.DT_QINT32,
)
_MODES = "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'"
_HUGE = np.finfo(np.float32).max
_NO_MIN_FIRST = "MIN_FIRST mode is not implemented for {} with axis != -1."


def _dequantize_shape(c: InferenceContext) -> None:
    """Input 0; the range, inputs 1 and 2, is scalars or has a value for each of `axis`."""
    axis, rank = c.find_attr("axis", -1), c.rank(c.input(0))
    if axis > rank:  # -1 where the rank is unknown
        raise InvalidArgumentError(f"Axis must be less than input dimension({rank}), got {axis}")
    unchanged_shape(c)
    range_along_axis(c, 1)


QUANTIZE_V2 = register_op(
    "QuantizeV2(input: float, min_range: float, max_range: float) "
    "-> output: T, output_min: float, output_max: float",
    attrs=[
        "T: quantizedtype",
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
    "Dequantize(input: T, min_range: float, max_range: float) -> output: dtype",
    attrs=[
        "T: quantizedtype",
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
    require(not (high < low).any(), "input_max_range must be larger than input_min_range.")
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


@register_kernel(QUANTIZE_V2, types={"T": _TYPES}, factory=True)
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
    message = "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is"
    require(not to_even or mode == "SCALED", f"{message} '{mode}'.")

    def kernel(x: Any, min_range: Any, max_range: Any) -> Any:
        _check_along(axis, x, min_range, max_range)
        if min_range.size != 1 and mode == "MIN_FIRST":
            raise UnimplementedError(_NO_MIN_FIRST.format("Quantize"))
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
        message = "must have as many elements as input on the dequantization"
        message = f"input_{name}_tensor {message} axis ({axis}), got {{}}, expected {{}}"
        require_equal(end.size, count, message)


def _from_scaled(x: Array, low: Array, high: Array, narrow: bool) -> Array:
    limits = np.iinfo(x.dtype)
    scale = high / np.float32(limits.max)
    if limits.min:
        from_low = low / np.float32(int(limits.min) + narrow)
        scale = np.where(from_low < scale, scale, from_low)
    return x.astype(np.float32) * scale


def _from_combined(x: Array, low: Array, high: Array) -> Array:
    limits = np.iinfo(x.dtype)
    scale = (high - low) / (np.float32(limits.max) - np.float32(limits.min))
    return (x.astype(np.float32) - np.float32(limits.min)) * scale + low


@register_kernel(
    DEQUANTIZE,
    types={"T": _TYPES, "dtype": (DataType.DT_FLOAT, DataType.DT_BFLOAT16)},
    factory=True,
)
def dequantize_op(
    *, mode: str, narrow_range: bool, axis: int, dtype: DataType
) -> Callable[[Any, Any, Any], Any]:
    is_fine = dtype is DataType.DT_FLOAT or mode == "MIN_COMBINED"
    message = f"When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{mode}'"
    require(is_fine, message)

    def kernel(x: Any, min_range: Any, max_range: Any) -> Any:
        _check_dequantize(x, axis, min_range, max_range)
        low, high = _along(min_range, axis, x.ndim), _along(max_range, axis, x.ndim)
        if low.ndim and mode == "MIN_FIRST":
            raise UnimplementedError(_NO_MIN_FIRST.format("Dequantize"))
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
