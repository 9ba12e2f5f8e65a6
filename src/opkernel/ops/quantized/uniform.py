"""UniformQuantize, UniformDequantize and UniformRequantize: a scale and a zero point for each tensor or channel.

Source: TensorFlow core/ops/uniform_quant_ops.cc, core/kernels/uniform_quant_ops/math_utils.{h,cc},
tensor_utils.cc, uniform_quantize_op.cc, uniform_dequantize_op.cc, uniform_requantize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.quantized.conversion import Array, as_int32, round_half_away, to_int32, to_int64
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_TYPES = (DataType.DT_QINT8, DataType.DT_QUINT8, DataType.DT_QINT32)
_FLOAT = (DataType.DT_FLOAT,)
_ATTRS = [
    "quantization_axis: int = -1",
    "quantization_min_val: int",
    "quantization_max_val: int",
]
_MULTIPLIER_BITS = 31
_MOST_SHIFT, _LEAST_SHIFT = 30, -31

UNIFORM_QUANTIZE = register_op(
    "UniformQuantize",
    inputs=["input: Tin", "scales: float", "zero_points: int32"],
    outputs=["output: Tout"],
    attrs=["Tin: {float}", "Tout: {qint8, quint8, qint32}", *_ATTRS],
    shape_fn=unchanged_shape,
    doc="input / scale + zero point, rounded, between the limits of the attrs.",
)
UNIFORM_DEQUANTIZE = register_op(
    "UniformDequantize",
    inputs=["input: Tin", "scales: float", "zero_points: int32"],
    outputs=["output: Tout"],
    attrs=["Tin: {qint8, quint8, qint32}", "Tout: {float}", *_ATTRS],
    shape_fn=unchanged_shape,
    doc="(input - zero point) * scale.",
)
UNIFORM_REQUANTIZE = register_op(
    "UniformRequantize",
    inputs=[
        "input: Tin",
        "input_scales: float",
        "input_zero_points: int32",
        "output_scales: float",
        "output_zero_points: int32",
    ],
    outputs=["output: Tout"],
    attrs=[
        "Tin: {qint8, qint32}",
        "Tout: {qint8, qint32}",
        *(f"input_{attr}" for attr in _ATTRS),
        *(f"output_{attr}" for attr in _ATTRS),
    ],
    shape_fn=unchanged_shape,
    doc="Integers of one scale and zero point as those of another.",
)


def _check_axis(name: str, axis: int) -> None:
    if axis < -1:
        raise InvalidArgumentError(f"{name} must be >= -1, given: {axis}")


def _along(x: Array, axis: int, scales: Array, zero_points: Array) -> tuple[Array, Array]:
    """Scales and zero points in a shape to be broadcast.

    Raises:
        InvalidArgumentError: they are not scalars, or with an axis a vector of its size each.
    """
    if axis >= x.ndim:
        raise InvalidArgumentError(
            f"quantization_axis must be -1 or in range [0, input.rank), but given {axis}"
        )
    wanted = () if axis == -1 else (x.shape[axis],)
    for name, values in (("scales", scales), ("zero_points", zero_points)):
        if values.shape != wanted:
            raise InvalidArgumentError(
                f"With quantization_axis {axis}, {name} must have shape {TensorShape(wanted)}, got "
                f"{TensorShape(values.shape)}"
            )
    if axis == -1:
        return scales, zero_points
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    return scales.reshape(shape), zero_points.reshape(shape)


@register_kernel(
    UNIFORM_QUANTIZE, device="CPU", types={"Tin": _FLOAT, "Tout": _TYPES}, factory=True
)
def uniform_quantize(
    *, Tout: DataType, quantization_axis: int, quantization_min_val: int, quantization_max_val: int
) -> Callable[[Any, Any, Any], Any]:
    _check_axis("quantization_axis", quantization_axis)
    low = np.int32(int32_attr("quantization_min_val", quantization_min_val))
    high = np.int32(int32_attr("quantization_max_val", quantization_max_val))

    def kernel(x: Any, scales: Any, zero_points: Any) -> Any:
        scales, zero_points = _along(x, quantization_axis, scales, zero_points)
        with np.errstate(all="ignore"):
            whole = np.floor(x * (np.float32(1) / scales) + np.float32(0.5))
            levels = to_int32(whole) + zero_points
        return np.maximum(np.minimum(levels, high), low).astype(Tout.numpy_dtype)

    return kernel


@register_kernel(
    UNIFORM_DEQUANTIZE, device="CPU", types={"Tin": _TYPES, "Tout": _FLOAT}, factory=True
)
def uniform_dequantize(*, quantization_axis: int) -> Callable[[Any, Any, Any], Any]:
    _check_axis("quantization_axis", quantization_axis)

    def kernel(x: Any, scales: Any, zero_points: Any) -> Any:
        scales, zero_points = _along(x, quantization_axis, scales, zero_points)
        with np.errstate(all="ignore"):
            return (as_int32(x) - zero_points).astype(np.float32) * scales

    return kernel


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


def _multiplied(x: Array, ratios: Array) -> Array:
    """int32 times ratios in fixed point, halves rounded up; limited to int32."""
    multipliers, shifts = _multipliers(ratios)
    total = _MULTIPLIER_BITS - shifts
    products = (x.astype(np.int64) * multipliers + (np.int64(1) << (total - 1))) >> total
    limits = np.iinfo(np.int32)
    result: Array = np.clip(products, limits.min, limits.max).astype(np.int32)
    return result


@register_kernel(
    UNIFORM_REQUANTIZE,
    device="CPU",
    types={"Tin": (DataType.DT_QINT8, DataType.DT_QINT32), "Tout": (DataType.DT_QINT8,)},
    factory=True,
)
def uniform_requantize(
    *,
    Tout: DataType,
    input_quantization_axis: int,
    output_quantization_axis: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    _check_axis("input_quantization_axis", input_quantization_axis)
    _check_axis("output_quantization_axis", output_quantization_axis)
    axes = {input_quantization_axis, output_quantization_axis}
    if len(axes - {-1}) > 1:
        raise InvalidArgumentError(
            "If input and output is both per-axis quantized, the quantization axis must be same."
        )
    low = np.int32(int32_attr("output_quantization_min_val", output_quantization_min_val))
    high = np.int32(int32_attr("output_quantization_max_val", output_quantization_max_val))

    def kernel(x: Any, in_scales: Any, in_zeros: Any, out_scales: Any, out_zeros: Any) -> Any:
        in_scales, in_zeros = _along(x, input_quantization_axis, in_scales, in_zeros)
        out_scales, out_zeros = _along(x, output_quantization_axis, out_scales, out_zeros)
        if not ((in_scales > 0).all() and (out_scales > 0).all()):
            raise InvalidArgumentError("input/output scales elements must be all positive.")
        with np.errstate(all="ignore"):
            ratios = in_scales.astype(np.float64) / out_scales
            levels = _multiplied(as_int32(x) - in_zeros, ratios) + out_zeros
        return np.maximum(np.minimum(levels, high), low).astype(Tout.numpy_dtype)

    return kernel
