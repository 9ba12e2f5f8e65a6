"""UniformQuantize, UniformDequantize and UniformRequantize: a scale and a zero point for each tensor or channel.

UniformQuantizedAdd and UniformQuantizedClipByValue.

Source: TensorFlow core/ops/uniform_quant_ops.cc, core/kernels/uniform_quant_ops/uniform_quantize_op.cc,
uniform_dequantize_op.cc, uniform_requantize_op.cc,
core/kernels/uniform_quant_ops/uniform_quantized_add_op.cc, uniform_quantized_clip_by_value_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, from_attrs
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_shape, unchanged_shape
from opkernel.ops.quantized.conversion import Array, as_int32, to_int32
from opkernel.ops.quantized.uniform_scales import (
    SCALED_INPUTS,
    Limits,
    ScaledOperands,
    Scaling,
    along,
    axis_attrs,
    check_axis,
    check_positive,
    check_scales,
    multiplied,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_TYPES = (DataType.DT_QINT8, DataType.DT_QUINT8, DataType.DT_QINT32)
_FLOAT = (DataType.DT_FLOAT,)
_ATTRS = [
    "quantization_axis: int = -1",
    "quantization_min_val: int",
    "quantization_max_val: int",
]

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


@register_kernel(
    UNIFORM_QUANTIZE, device="CPU", types={"Tin": _FLOAT, "Tout": _TYPES}, factory=True
)
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


@register_kernel(
    UNIFORM_DEQUANTIZE, device="CPU", types={"Tin": _TYPES, "Tout": _FLOAT}, factory=True
)
def uniform_dequantize(*, quantization_axis: int) -> Callable[[Any, Any, Any], Any]:
    check_axis("quantization_axis", quantization_axis)

    def kernel(x: Any, scales: Any, zero_points: Any) -> Any:
        scales, zero_points = along(x, quantization_axis, scales, zero_points)
        with np.errstate(all="ignore"):
            return (as_int32(x) - zero_points).astype(np.float32) * scales

    return kernel


@register_kernel(
    UNIFORM_REQUANTIZE,
    device="CPU",
    types={"Tin": (DataType.DT_QINT8, DataType.DT_QINT32), "Tout": (DataType.DT_QINT8,)},
    factory=True,
)
@from_attrs(limits=Limits.of)
def uniform_requantize(
    *,
    Tout: DataType,
    input_quantization_axis: int,
    output_quantization_axis: int,
    limits: Limits,
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    check_axis("input_quantization_axis", input_quantization_axis)
    check_axis("output_quantization_axis", output_quantization_axis)
    axes = {input_quantization_axis, output_quantization_axis}
    if len(axes - {-1}) > 1:
        raise InvalidArgumentError(
            "If input and output is both per-axis quantized, the quantization axis must be same."
        )

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
    "UniformQuantizedClipByValue",
    inputs=["operand: T", "min: T", "max: T", "scales: float", "zero_points: int32"],
    outputs=["output: T"],
    attrs=["T: {qint32}", *_ATTRS],
    shape_fn=unchanged_shape,
    doc="Integers between `min` and `max`, of which each channel has its own where there is an axis.",
)


def _check_same_axis(name: str, axis: int, x: Array, output_axis: int, rank: int) -> None:
    """An operand and the output that both have an axis have the same one, counted from the last."""
    if axis >= 0 and output_axis >= 0 and x.ndim - axis != rank - output_axis:
        raise InvalidArgumentError(
            f"If {name} and output is both per-axis quantized, the quantization axis must match."
        )


def _output_shape(lhs: Array, rhs: Array) -> tuple[int, ...]:
    try:
        shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    except ValueError:
        raise InvalidArgumentError(
            f"Cannot Add tensors of shapes: {TensorShape(lhs.shape)} {TensorShape(rhs.shape)}"
        ) from None
    check_allocation(shape, _QINT32)
    return shape


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


@register_kernel(UNIFORM_QUANTIZED_ADD, device="CPU", types={"T": (_QINT32,)}, factory=True)
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
        shape = _output_shape(x.lhs, x.rhs)
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


@register_kernel(
    UNIFORM_QUANTIZED_CLIP_BY_VALUE, device="CPU", types={"T": (_QINT32,)}, factory=True
)
def uniform_quantized_clip_by_value(
    *, quantization_axis: int
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    def kernel(operand: Any, low: Any, high: Any, scales: Any, zero_points: Any) -> Any:
        along(operand, quantization_axis, scales, zero_points)
        low, high = along(operand, quantization_axis, low, high)
        return np.minimum(np.maximum(operand, low), high)

    return kernel
