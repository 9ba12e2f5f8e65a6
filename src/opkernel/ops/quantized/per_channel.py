"""RequantizationRangePerChannel and RequantizePerChannel: each channel has a range around 0.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/mkl/mkl_requantize_per_channel_op.cc,
mkl_requantization_range_per_channel_op.cc.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.ops.quantized.conversion import QUANTIZED_ATTR, Array, as_int64, to_int32
from opkernel.ops.quantized.requantize import requantization_range_shape
from opkernel.ops.quantized.shapes import unchanged_with_range
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_QINT32, _NARROW = DataType.DT_QINT32, (DataType.DT_QINT8, DataType.DT_QUINT8)
_INT32_LEVELS = np.float32(2.0**31)

REQUANTIZE_PER_CHANNEL = register_op(
    "RequantizePerChannel",
    inputs=[
        "input: T",
        "input_min: float",
        "input_max: float",
        "requested_output_min: float",
        "requested_output_max: float",
    ],
    outputs=["output: out_type", "output_min: float", "output_max: float"],
    attrs=[f"T: {QUANTIZED_ATTR} = DT_QINT32", f"out_type: {QUANTIZED_ATTR} = DT_QUINT8"],
    shape_fn=partial(unchanged_with_range, vectors=(1, 2), scalars=(3, 4)),
    doc="Requantize, where each channel of images has a range of its own; 0 stands for 0.",
)
REQUANTIZATION_RANGE_PER_CHANNEL = register_op(
    "RequantizationRangePerChannel",
    inputs=["input: T", "input_min: float", "input_max: float"],
    outputs=["output_min: float", "output_max: float"],
    attrs=[f"T: {QUANTIZED_ATTR} = DT_QINT32", "clip_value_max: float"],
    shape_fn=partial(requantization_range_shape, rank=1),
    doc="The range around 0 that the values of all channels need; not beyond `clip_value_max`.",
)


def _largest(low: Any, high: Any) -> Any:
    """The end of a range that is further from 0."""
    return np.where(np.abs(low) < np.abs(high), np.abs(high), np.abs(low))


def _check_images(x: Array, depth: int) -> None:
    if x.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional, got shape {list(x.shape)}")
    if x.shape[3] != depth:
        raise InvalidArgumentError(
            "input must have same number of channels as length of input_min: "
            f"{x.shape[3]} vs {depth}"
        )


@register_kernel(REQUANTIZE_PER_CHANNEL, device="CPU", types={"T": (_QINT32,), "out_type": _NARROW})
def requantize_per_channel(
    x: Any,
    input_min: Any,
    input_max: Any,
    requested_output_min: Any,
    requested_output_max: Any,
    *,
    out_type: DataType,
) -> Any:
    if input_max.size != input_min.size:
        raise InvalidArgumentError(
            f"input_max has incorrect size, expected {input_min.size} was {input_max.size}"
        )
    for name, end in (("min", requested_output_min), ("max", requested_output_max)):
        if end.size != 1:
            raise InvalidArgumentError(f"requested_output_{name} must be a scalar")
    low, high = (end.reshape(()) for end in (requested_output_min, requested_output_max))
    limits = np.iinfo(out_type.numpy_dtype)
    if limits.min and not low < 0:
        raise InvalidArgumentError(
            f"If out_type is QINT8, requested_output_min must be negative, got {low:g}"
        )
    _check_images(x, input_min.size)
    with np.errstate(all="ignore"):
        part = _largest(input_min, input_max).reshape(-1) / _largest(low, high) / _INT32_LEVELS
        levels = np.rint(x.astype(np.float32) * (np.float32(limits.max) * part))
        limited = np.minimum(np.maximum(levels, np.float32(limits.min)), np.float32(limits.max))
    return to_int32(limited).astype(out_type.numpy_dtype), low.copy(), high.copy()


@register_kernel(REQUANTIZATION_RANGE_PER_CHANNEL, device="CPU", types={"T": (_QINT32,)})
def requantization_range_per_channel(
    x: Any, input_min: Any, input_max: Any, *, clip_value_max: float
) -> Any:
    depth = input_max.size
    for name, end in (("min", input_min), ("max", input_max)):
        if end.shape != (depth,):
            raise InvalidArgumentError(
                f"input_{name} must be a vector of {depth} elements, got shape {list(end.shape)}"
            )
    if not x.size:
        raise InvalidArgumentError("input must not be empty")
    _check_images(x, depth)
    with np.errstate(all="ignore"):
        most = np.abs(as_int64(x)).max(axis=(0, 1, 2))
        most = np.where(most == 2**31, -(2**31), most)  # no int32 is the absolute value
        ranges = _largest(input_min, input_max) * most.astype(np.float32) / _INT32_LEVELS
        end = np.fmax(np.fmax.reduce(ranges), np.finfo(np.float32).tiny)
    if end > np.float32(clip_value_max):
        end = np.float32(clip_value_max)
    return (-end if x.min() < 0 else np.float32(0)), end
