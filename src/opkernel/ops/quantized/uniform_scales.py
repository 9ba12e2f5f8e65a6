"""Scales and zero points of uniformly quantised tensors, one for a tensor or one for each channel.

Source: TensorFlow core/kernels/uniform_quant_ops/math_utils.{h,cc}, tensor_utils.{h,cc}.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.quantized.conversion import Array, round_half_away, to_int32, to_int64
from opkernel.types import TensorShape

SCALED_INPUTS = [
    f"{side}_{of_side}"
    for side in ("lhs", "rhs", "output")
    for of_side in ("scales: float", "zero_points: int32")
]
"""The inputs of ops on two quantised tensors, after these."""

_MULTIPLIER_BITS = 31
_MOST_SHIFT, _LEAST_SHIFT = 30, -31
_TINY = np.finfo(np.float32).tiny
_LEAST_INT8, _MOST_INT8 = -128, 127


def axis_attrs(*sides: str) -> list[str]:
    """The attrs that say along which axis tensors are quantised, and between which integers."""
    attrs = ("axis: int = -1", "min_val: int", "max_val: int")
    return [f"{side}_quantization_{attr}" for side in sides for attr in attrs]


class Limits(NamedTuple):
    """The least and the largest integer of an output."""

    low: np.int32
    high: np.int32

    @classmethod
    def of(cls, output_quantization_min_val: int, output_quantization_max_val: int) -> Limits:
        """The limits that the attrs of an output say."""
        return cls.named(
            "output_quantization", output_quantization_min_val, output_quantization_max_val
        )

    @classmethod
    def named(cls, prefix: str, low: int, high: int) -> Limits:
        """The limits that attrs say whose names begin so."""
        return cls(
            np.int32(int32_attr(f"{prefix}_min_val", low)),
            np.int32(int32_attr(f"{prefix}_max_val", high)),
        )

    def clamped(self, levels: Any) -> Any:
        """Integers between the limits; the lower one counts where they are exchanged."""
        return np.maximum(np.minimum(levels, self.high), self.low)


class Scaling(NamedTuple):
    """Along which axis each of two tensors and the output is quantised, -1 for none; the output's limits."""

    lhs_axis: int
    rhs_axis: int
    output_axis: int
    limits: Limits

    @classmethod
    def of(
        cls,
        lhs_quantization_axis: int,
        rhs_quantization_axis: int,
        output_quantization_axis: int,
        output_quantization_min_val: int,
        output_quantization_max_val: int,
    ) -> Scaling:
        """What the attrs of an op on two quantised tensors say."""
        limits = Limits.of(output_quantization_min_val, output_quantization_max_val)
        return cls(lhs_quantization_axis, rhs_quantization_axis, output_quantization_axis, limits)


class ScaledOperands(NamedTuple):
    """The inputs of ops on two quantised tensors."""

    lhs: Any
    rhs: Any
    lhs_scales: Any
    lhs_zeros: Any
    rhs_scales: Any
    rhs_zeros: Any
    scales: Any
    zeros: Any

    def check_positive(self) -> None:
        """Refuse scales that are not positive."""
        check_positive("lhs", self.lhs_scales)
        check_positive("rhs", self.rhs_scales)
        check_positive("output", self.scales)

    def ratios(self) -> Array:
        """What sums of products are multiplied by to be integers of the output: float64.

        Raises:
            InvalidArgumentError: channels of the output have scales of their own, and those of rhs have not.
        """
        if self.scales.ndim and not self.rhs_scales.ndim:
            raise InvalidArgumentError(
                "If rhs is per-tensor quantized, output must be also per-tensor quantized."
            )
        with np.errstate(all="ignore"):
            ratios: Array = self.rhs_scales.astype(np.float64) * self.lhs_scales / self.scales
        return ratios


def check_channel_scales(c: InferenceContext, size: DimensionHandle, i: int) -> None:
    """Inputs `i` (scales) and `i + 1` (zero points) are scalars, or have one for each of `size` channels."""
    scales, zero_points = c.input(i), c.input(i + 1)
    if scales.dims is None or zero_points.dims is None:
        return
    if len(scales.dims) != len(zero_points.dims):
        raise InvalidArgumentError("scales and zero_points must have same rank.")
    for dim in (*scales.dims, *zero_points.dims):
        c.merge(dim, size)


def check_axis(name: str, axis: int) -> None:
    if axis < -1:
        raise InvalidArgumentError(f"{name} must be >= -1, given: {axis}")


def check_left_axis(axis: int) -> None:
    if axis != -1:
        raise InvalidArgumentError("lhs_quantization_axis Attr must be -1 (per-tensor).")


def check_positive(name: str, scales: Array) -> None:
    """Refuse scales that are not positive; TensorFlow's threads take subnormal numbers for zeros."""
    if not (scales >= _TINY).all():
        raise InvalidArgumentError(f"{name} scales elements must be all positive.")


def check_scales(shape: tuple[int, ...], axis: int, scales: Array, zero_points: Array) -> None:
    """Scales and zero points fit a tensor of this shape.

    Raises:
        InvalidArgumentError: they are not scalars, or with an axis a vector of its size each.
    """
    if axis >= len(shape):
        raise InvalidArgumentError(
            f"quantization_axis must be -1 or in range [0, input.rank), but given {axis}"
        )
    wanted = () if axis == -1 else (shape[axis],)
    for name, values in (("scales", scales), ("zero_points", zero_points)):
        if values.shape != wanted:
            raise InvalidArgumentError(
                f"With quantization_axis {axis}, {name} must have shape {TensorShape(wanted)}, got "
                f"{TensorShape(values.shape)}"
            )


def along(x: Array, axis: int, scales: Array, zero_points: Array) -> tuple[Array, Array]:
    """Scales and zero points in a shape to be broadcast.

    Raises:
        InvalidArgumentError: they do not fit.
    """
    check_scales(x.shape, axis, scales, zero_points)
    if axis == -1:
        return scales, zero_points
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return scales.reshape(shape), zero_points.reshape(shape)


def _multipliers(ratios: Array) -> tuple[Array, Array]:
    """Each ratio as an int32 of 31 bits of fraction and a shift to the left.

    Raises:
        InvalidArgumentError: a ratio is not positive and finite.
    """
    if not ((ratios > 0) & np.isfinite(ratios)).all():
        raise InvalidArgumentError(
            "Ratios of scales must be positive finite floating-point numbers."
        )
    fractions, shifts = np.frexp(ratios)
    one = np.int64(1) << _MULTIPLIER_BITS
    fixed = to_int64(round_half_away(fractions * np.float64(one)))
    shifts = np.where(fixed == one, shifts + 1, shifts)
    fixed = np.where(fixed == one, one >> 1, fixed)
    fixed = np.where(shifts < _LEAST_SHIFT, 0, np.where(shifts > _MOST_SHIFT, one - 1, fixed))
    shifts = np.where(shifts < _LEAST_SHIFT, 0, np.minimum(shifts, _MOST_SHIFT))
    return fixed.astype(np.int64), shifts.astype(np.int64)


def multiplied(x: Any, ratios: Array) -> Any:
    """int32 times ratios in fixed point, halves rounded up; limited to int32."""
    multipliers, shifts = _multipliers(ratios)
    total = _MULTIPLIER_BITS - shifts
    products = (x.astype(np.int64) * multipliers + (np.int64(1) << (total - 1))) >> total
    limits = np.iinfo(np.int32)
    return np.clip(products, limits.min, limits.max).astype(np.int32)


def requantized(sums: Any, ratios: Array, zero_points: Array, limits: Limits) -> Any:
    """Sums of products as integers of an output, whose channels are the last dimension."""
    with np.errstate(all="ignore"):
        levels = multiplied(sums, ratios) + zero_points
    return limits.clamped(levels)


def dynamically_quantized(rows: Array) -> tuple[Array, Array]:
    """Rows of floats as int8, each over its own range with 0; NaN is in no range.

    Returns:
        The integers without their zero points, as int32, and the scale of each row.
    """
    low = np.fmin.reduce(rows, axis=1, initial=0).astype(np.float64)
    high = np.fmax.reduce(rows, axis=1, initial=0).astype(np.float64)
    with np.errstate(all="ignore"):
        scales = ((high - low) / 255.0).astype(np.float32)
        inverses = (255.0 / (high - low)).astype(np.float32)
        is_flat = (scales < _TINY) | ~np.isfinite(inverses)
        zero_points = _zero_points(low / scales, high / scales)[:, np.newaxis]
        whole = np.floor(rows * inverses[:, np.newaxis] + np.float32(0.5))
        levels = np.clip(to_int32(whole) + zero_points, _LEAST_INT8, _MOST_INT8) - zero_points
    levels = np.where(is_flat[:, np.newaxis], np.int32(0), levels)
    return levels, np.where(is_flat, np.float32(1), scales)


def _zero_points(low: Array, high: Array) -> Array:
    """The int8 that stand for 0, from the ends of ranges in steps; the end with the smaller error counts."""
    from_low, from_high = _LEAST_INT8 - low, _MOST_INT8 - high
    by_low = -_LEAST_INT8 + np.abs(low) < _MOST_INT8 + np.abs(high)
    places = np.clip(np.where(by_low, from_low, from_high), _LEAST_INT8, _MOST_INT8)
    zero_points: Array = to_int32(round_half_away(places)).astype(np.int8).astype(np.int32)
    return zero_points
