"""The rules between floats and the integers that stand for them in a range.

A range [low, high] of floats is divided evenly among all integers of a type. TensorFlow has two sets of
rules for it, and their results differ in the last place: one in double for single values
(`value_of`, `level_of`), one in float for whole tensors (`dequantize`, `quantize`). Each op says which it follows.

Source: TensorFlow core/kernels/quantization_utils.h.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

Array = np.ndarray[Any, Any]

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


def scalar_range(low_name: str, low: Array, high_name: str, high: Array) -> Range:
    """The range that two scalar inputs hold.

    Raises:
        InvalidArgumentError: one of them is no scalar.
    """
    for name, end in ((low_name, low), (high_name, high)):
        if end.ndim:
            raise InvalidArgumentError(f"`{name}` must be rank 0 but is rank {end.ndim}")
    return Range.of(low, high)


def first_range(low_name: str, low: Array, high_name: str, high: Array) -> Range:
    """The range that the first elements of two inputs hold, of whatever shape they are.

    Raises:
        InvalidArgumentError: one of them has no elements.
    """
    for name, end in ((low_name, low), (high_name, high)):
        if not end.size:
            raise InvalidArgumentError(
                f"`{name}` must have an element, got shape {list(end.shape)}"
            )
    return Range(np.float32(low.flat[0]), np.float32(high.flat[0]))


def larger_end(low: Any, high: Any) -> Any:
    """How far the end of a range is from 0 that is further from it."""
    return np.where(np.abs(low) < np.abs(high), np.abs(high), np.abs(low))


def round_half_away(x: Any) -> Any:
    """The nearest whole number; halves go away from 0."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), x.dtype.type(0)).astype(x.dtype)


def to_int32(x: Any) -> Any:
    """Floats without their fraction; what is no int32 becomes the lowest one, as on x86."""
    return _truncated(x, np.int32)


def to_int64(x: Any) -> Any:
    """Floats without their fraction; what is no int64 becomes the lowest one, as on x86."""
    return _truncated(x, np.int64)


def _truncated(x: Any, integer: type[np.signedinteger[Any]]) -> Any:
    limits = np.iinfo(integer)
    above = x.dtype.type(2.0 ** (limits.bits - 1))
    fits = (x >= -above) & (x < above)
    return np.where(fits, np.where(fits, x, 0).astype(integer), integer(limits.min))


def _steps(dtype: np.dtype[Any]) -> float:
    return float(2 ** (8 * dtype.itemsize))


def _lowest(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).min)


def as_int64(x: Array) -> Array:
    """Integers as int64; those of 32 bits by way of float, as TensorFlow's qint32 has no other."""
    return x.astype(np.float32).astype(np.int64) if x.dtype == np.int32 else x.astype(np.int64)


def as_int32(x: Array) -> Array:
    """Integers as int32; those of 32 bits by way of float, as TensorFlow's qint32 has no other."""
    integers: Array = to_int32(x.astype(np.float32)) if x.dtype == np.int32 else x.astype(np.int32)
    return integers


def dequantize(x: Array, given: Range) -> Array:
    """The floats that integers stand for, by the rule for tensors."""
    low, high = given
    scale = np.float32(np.float64(high - low) / (_steps(x.dtype) - 1.0))
    first = low if low == high else round_half_away(low / scale) * scale
    values: Array = (first - np.float32(_lowest(x.dtype)) * scale) + x.astype(np.float32) * scale
    return values


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
