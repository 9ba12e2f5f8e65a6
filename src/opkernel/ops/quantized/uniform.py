"""UniformQuantize, UniformDequantize and UniformRequantize: a scale and a zero point for each tensor or channel.

Source: TensorFlow core/ops/uniform_quant_ops.cc, core/kernels/uniform_quant_ops/uniform_quantize_op.cc,
uniform_dequantize_op.cc, uniform_requantize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.quantized.conversion import as_int32, to_int32
from opkernel.ops.quantized.uniform_scales import along, check_axis, check_positive, multiplied
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

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
    low = np.int32(int32_attr("quantization_min_val", quantization_min_val))
    high = np.int32(int32_attr("quantization_max_val", quantization_max_val))

    def kernel(x: Any, scales: Any, zero_points: Any) -> Any:
        scales, zero_points = along(x, quantization_axis, scales, zero_points)
        with np.errstate(all="ignore"):
            whole = np.floor(x * (np.float32(1) / scales) + np.float32(0.5))
            levels = to_int32(whole) + zero_points
        return np.maximum(np.minimum(levels, high), low).astype(Tout.numpy_dtype)

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
def uniform_requantize(
    *,
    Tout: DataType,
    input_quantization_axis: int,
    output_quantization_axis: int,
    output_quantization_min_val: int,
    output_quantization_max_val: int,
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    check_axis("input_quantization_axis", input_quantization_axis)
    check_axis("output_quantization_axis", output_quantization_axis)
    axes = {input_quantization_axis, output_quantization_axis}
    if len(axes - {-1}) > 1:
        raise InvalidArgumentError(
            "If input and output is both per-axis quantized, the quantization axis must be same."
        )
    low = np.int32(int32_attr("output_quantization_min_val", output_quantization_min_val))
    high = np.int32(int32_attr("output_quantization_max_val", output_quantization_max_val))

    def kernel(x: Any, in_scales: Any, in_zeros: Any, out_scales: Any, out_zeros: Any) -> Any:
        in_scales, in_zeros = along(x, input_quantization_axis, in_scales, in_zeros)
        out_scales, out_zeros = along(x, output_quantization_axis, out_scales, out_zeros)
        check_positive("input", in_scales)
        check_positive("output", out_scales)
        with np.errstate(all="ignore"):
            ratios = in_scales.astype(np.float64) / out_scales
            levels = multiplied(as_int32(x) - in_zeros, ratios) + out_zeros
        return np.maximum(np.minimum(levels, high), low).astype(Tout.numpy_dtype)

    return kernel
