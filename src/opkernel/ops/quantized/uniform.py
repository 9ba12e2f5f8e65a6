"""UniformQuantize, UniformDequantize, UniformRequantize, UniformQuantizedAdd and UniformQuantizedClipByValue.

Uniformly quantised tensors have a scale and a zero point for each tensor or channel.

Source: TensorFlow core/ops/uniform_quant_ops.cc, core/kernels/uniform_quant_ops/math_utils.{h,cc},
tensor_utils.{h,cc}, uniform_quantize_op.cc, uniform_dequantize_op.cc, uniform_requantize_op.cc,
uniform_quantized_add_op.cc, uniform_quantized_clip_by_value_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, from_attrs, in_pieces
from opkernel.opdef import DimensionHandle, InferenceContext, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_shape, unchanged_shape
from opkernel.ops.input_checks import broadcast_shape, int32_attr, require, require_equal
from opkernel.ops.quantized.quantize import as_int32, round_half_away, to_int32, to_int64
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType, TensorShape

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
        message = "If rhs is per-tensor quantized, output must be also per-tensor quantized."
        require(self.rhs_scales.ndim or not self.scales.ndim, message)
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
    require(axis == -1, "lhs_quantization_axis Attr must be -1 (per-tensor).")


def check_positive(name: str, scales: Array) -> None:
    """Refuse scales that are not positive; TensorFlow's threads take subnormal numbers for zeros."""
    if not (scales >= _TINY).all():
        raise InvalidArgumentError(f"{name} scales elements must be all positive.")


def check_scales(shape: tuple[int, ...], axis: int, scales: Array, zero_points: Array) -> None:
    """Scales and zero points fit a tensor of this shape.

    Raises:
        InvalidArgumentError: they are not scalars, or with an axis a vector of its size each.
    """
    message = f"quantization_axis must be -1 or in range [0, input.rank), but given {axis}"
    require(axis < len(shape), message)
    wanted = () if axis == -1 else (shape[axis],)
    for name, values in (("scales", scales), ("zero_points", zero_points)):
        message = f"With quantization_axis {axis}, {name} must have shape {{}}, got {{}}"
        require_equal(wanted, values.shape, message)


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
    are_positive = ((ratios > 0) & np.isfinite(ratios)).all()
    require(are_positive, "Ratios of scales must be positive finite floating-point numbers.")
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


_TYPES = (DataType.DT_QINT8, DataType.DT_QUINT8, DataType.DT_QINT32)
_FLOAT = (DataType.DT_FLOAT,)
_ATTRS = ["quantization_axis: int = -1", "quantization_min_val: int", "quantization_max_val: int"]

UNIFORM_QUANTIZE = register_op(
    "UniformQuantize(input: Tin, scales: float, zero_points: int32) -> output: Tout",
    attrs=["Tin: {float}", "Tout: {qint8, quint8, qint32}", *_ATTRS],
    shape_fn=unchanged_shape,
    doc="input / scale + zero point, rounded, between the limits of the attrs.",
)
UNIFORM_DEQUANTIZE = register_op(
    "UniformDequantize(input: Tin, scales: float, zero_points: int32) -> output: Tout",
    attrs=["Tin: {qint8, quint8, qint32}", "Tout: {float}", *_ATTRS],
    shape_fn=unchanged_shape,
    doc="(input - zero point) * scale.",
)
UNIFORM_REQUANTIZE = register_op(
    "UniformRequantize(input: Tin, input_scales: float, input_zero_points: int32, "
    "output_scales: float, output_zero_points: int32) -> output: Tout",
    attrs=[
        "Tin: {qint8, qint32}",
        "Tout: {qint8, qint32}",
        *(f"input_{attr}" for attr in _ATTRS),
        *(f"output_{attr}" for attr in _ATTRS),
    ],
    shape_fn=unchanged_shape,
    doc="Integers of one scale and zero point as those of another.",
)


@register_kernel(UNIFORM_QUANTIZE, types={"Tin": _FLOAT, "Tout": _TYPES}, factory=True)
def uniform_quantize(
    *, Tout: DataType, quantization_axis: int, quantization_min_val: int, quantization_max_val: int
) -> Callable[[Any, Any, Any], Any]:
    check_axis("quantization_axis", quantization_axis)
    limits = Limits.named("quantization", quantization_min_val, quantization_max_val)

    def kernel(x: Any, scales: Any, zero_points: Any) -> Any:
        scales, zero_points = along(x, quantization_axis, scales, zero_points)
        with np.errstate(all="ignore"):
            whole = np.floor(x * (np.float32(1) / scales) + np.float32(0.5))
            levels = to_int32(whole) + zero_points
        return limits.clamped(levels).astype(Tout.numpy_dtype)

    return kernel


@register_kernel(UNIFORM_DEQUANTIZE, types={"Tin": _TYPES, "Tout": _FLOAT}, factory=True)
def uniform_dequantize(*, quantization_axis: int) -> Callable[[Any, Any, Any], Any]:
    check_axis("quantization_axis", quantization_axis)

    def kernel(x: Any, scales: Any, zero_points: Any) -> Any:
        scales, zero_points = along(x, quantization_axis, scales, zero_points)
        check_positive("input", scales)
        with np.errstate(all="ignore"):
            return in_pieces(_dequantized, x, scales, zero_points)

    return kernel


def _dequantized(x: Any, scales: Any, zero_points: Any) -> Any:
    levels = as_int32(x) - zero_points
    if not isinstance(levels, np.ndarray):
        return levels.astype(np.float32) * scales
    return np.multiply(levels, scales, dtype=np.float32, casting="unsafe")


@register_kernel(
    UNIFORM_REQUANTIZE,
    types={"Tin": (DataType.DT_QINT8, DataType.DT_QINT32), "Tout": (DataType.DT_QINT8,)},
    factory=True,
)
@from_attrs(limits=Limits.of)
def uniform_requantize(
    *, Tout: DataType, input_quantization_axis: int, output_quantization_axis: int, limits: Limits
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    check_axis("input_quantization_axis", input_quantization_axis)
    check_axis("output_quantization_axis", output_quantization_axis)
    axes = {input_quantization_axis, output_quantization_axis}
    message = "If input and output is both per-axis quantized, the quantization axis must be same."
    require(len(axes - {-1}) <= 1, message)

    def kernel(x: Any, in_scales: Any, in_zeros: Any, out_scales: Any, out_zeros: Any) -> Any:
        in_scales, in_zeros = along(x, input_quantization_axis, in_scales, in_zeros)
        out_scales, out_zeros = along(x, output_quantization_axis, out_scales, out_zeros)
        check_positive("input", in_scales)
        check_positive("output", out_scales)
        with np.errstate(all="ignore"):
            ratios = in_scales.astype(np.float64) / out_scales
            levels = multiplied(as_int32(x) - in_zeros, ratios) + out_zeros
        return limits.clamped(levels).astype(Tout.numpy_dtype)

    return kernel


_QINT32 = DataType.DT_QINT32

UNIFORM_QUANTIZED_ADD = register_op(
    "UniformQuantizedAdd",
    inputs=["lhs: T", "rhs: T", *SCALED_INPUTS],
    outputs=["output: T"],
    attrs=[*axis_attrs("lhs", "rhs", "output"), "T: {qint32}"],
    shape_fn=broadcast_binary_op_shape,
    doc="lhs + rhs, each as integers of the output's scale first.",
)
UNIFORM_QUANTIZED_CLIP_BY_VALUE = register_op(
    "UniformQuantizedClipByValue(operand: T, min: T, max: T, scales: float, zero_points: int32) "
    "-> output: T",
    attrs=["T: {qint32}", *_ATTRS],
    shape_fn=unchanged_shape,
    doc="Integers between `min` and `max`, of which each channel has its own where there is an axis.",
)


def _check_same_axis(name: str, axis: int, x: Array, output_axis: int, rank: int) -> None:
    """An operand and the output that both have an axis have the same one, counted from the last."""
    message = "and output is both per-axis quantized, the quantization axis must match."
    if axis >= 0 and output_axis >= 0:
        require_equal(x.ndim - axis, rank - output_axis, f"If {name} {message}")


def _in_output_scale(
    name: str, x: Array, axis: int, scales: Array, zero_points: Array, output_scales: Array
) -> Array:
    """An operand as integers of the output's scale, without a zero point.

    Along `axis` the operand may be shorter than the output, which is broadcast: its first scales count.

    Raises:
        InvalidArgumentError: the output has a scale for each channel, and the operand has other channels.
    """
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    if output_scales.ndim:
        if axis == -1 and output_scales.size == 1:
            output_scales = output_scales.reshape(())
        elif not 0 <= axis < x.ndim or x.shape[axis] > output_scales.size:
            raise InvalidArgumentError(
                f"{name} of shape {TensorShape(x.shape)} does not have the output's "
                f"{output_scales.size} channels in its dimension {axis}"
            )
        else:
            output_scales = output_scales[: x.shape[axis]].reshape(shape)
    if scales.ndim:
        scales, zero_points = scales.reshape(shape), zero_points.reshape(shape)
    with np.errstate(all="ignore"):
        ratios = scales.astype(np.float64) / output_scales
        return as_int32(multiplied(as_int32(x) - zero_points, ratios))


@register_kernel(UNIFORM_QUANTIZED_ADD, types={"T": _QINT32}, factory=True)
@from_attrs(scaling=Scaling.of)
def uniform_quantized_add(*, scaling: Scaling) -> Callable[..., Any]:
    """Axes are TensorFlow's: an operand without an axis takes the output's number if it is rhs, not lhs."""
    lhs_axis, rhs_axis, axis, limits = scaling
    for name, given in (("lhs", lhs_axis), ("rhs", rhs_axis), ("output", axis)):
        check_axis(f"{name}_quantization_axis", given)

    def kernel(*inputs: Any) -> Any:
        x = ScaledOperands(*inputs)
        check_scales(x.lhs.shape, lhs_axis, x.lhs_scales, x.lhs_zeros)
        check_scales(x.rhs.shape, rhs_axis, x.rhs_scales, x.rhs_zeros)
        message = "Cannot Add tensors of shapes: {} {}"
        shape = check_allocation(broadcast_shape(x.lhs.shape, x.rhs.shape, message), _QINT32)
        check_scales(shape, axis, x.scales, x.zeros)
        _check_same_axis("lhs", lhs_axis, x.lhs, axis, len(shape))
        _check_same_axis("rhs", rhs_axis, x.rhs, axis, len(shape))
        x.check_positive()
        lhs = _in_output_scale("lhs", x.lhs, lhs_axis, x.lhs_scales, x.lhs_zeros, x.scales)
        own_axis = rhs_axis if rhs_axis >= 0 else axis
        rhs = _in_output_scale("rhs", x.rhs, own_axis, x.rhs_scales, x.rhs_zeros, x.scales)
        total = lhs + rhs
        total = total + along(total, axis, x.scales, x.zeros)[1]
        return np.where(total < limits.low, limits.low, np.minimum(total, limits.high))

    return kernel


@register_kernel(UNIFORM_QUANTIZED_CLIP_BY_VALUE, types={"T": _QINT32}, factory=True)
def uniform_quantized_clip_by_value(
    *, quantization_axis: int
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    def kernel(operand: Any, low: Any, high: Any, scales: Any, zero_points: Any) -> Any:
        along(operand, quantization_axis, scales, zero_points)
        low, high = along(operand, quantization_axis, low, high)
        return np.minimum(np.maximum(operand, low), high)

    return kernel
