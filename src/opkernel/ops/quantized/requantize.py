"""Integers of one range as integers of another, and the range that they need.

RequantizationRangePerChannel and RequantizePerChannel: each channel has a range around 0.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/requantize.cc, requantization_range_op.cc,
quantize_down_and_shrink_range.cc, core/kernels/mkl/mkl_requantize_per_channel_op.cc,
mkl_requantization_range_per_channel_op.cc.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.quantized import shape_with_range
from opkernel.opdef.common_shapes.rules import check_ranks
from opkernel.ops.nn.geometry import check_rank
from opkernel.ops.quantized.conversion import (
    Array,
    Range,
    as_int64,
    first_range,
    larger_end,
    requantize,
    scalar_range,
    to_int32,
    value_of,
)
from opkernel.ops.quantized.declarations import QUANTIZED_ATTR
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_QINT32, _NARROW = DataType.DT_QINT32, (DataType.DT_QINT8, DataType.DT_QUINT8)
_RANGE_INPUTS = ["input_min: float", "input_max: float"]
_WANTED_INPUTS = ["requested_output_min: float", "requested_output_max: float"]
_RANGE_OUTPUTS = ["output_min: float", "output_max: float"]
_TYPE_ATTRS = [f"Tinput: {QUANTIZED_ATTR}", f"out_type: {QUANTIZED_ATTR}"]


def requantization_range_shape(c: InferenceContext, rank: int) -> None:
    """The range of input 0, scalars or vectors (`rank`) -> a scalar range."""
    check_ranks(c, rank, 1, 2)
    c.set_output(0, c.scalar())
    c.set_output(1, c.scalar())


REQUANTIZE = register_op(
    "Requantize",
    inputs=["input: Tinput", *_RANGE_INPUTS, *_WANTED_INPUTS],
    outputs=["output: out_type", *_RANGE_OUTPUTS],
    attrs=_TYPE_ATTRS,
    shape_fn=partial(shape_with_range, scalars=(1, 2, 3, 4)),
    doc="Integers of the range [input_min, input_max] as integers of the requested range.",
)
QUANTIZE_DOWN_AND_SHRINK_RANGE = register_op(
    "QuantizeDownAndShrinkRange",
    inputs=["input: Tinput", *_RANGE_INPUTS],
    outputs=["output: out_type", *_RANGE_OUTPUTS],
    attrs=_TYPE_ATTRS,
    shape_fn=partial(shape_with_range, scalars=(1, 2)),
    doc="Requantize, into the range that the values have.",
)
REQUANTIZATION_RANGE = register_op(
    "RequantizationRange",
    inputs=["input: Tinput", *_RANGE_INPUTS],
    outputs=_RANGE_OUTPUTS,
    attrs=_TYPE_ATTRS[:1],
    shape_fn=partial(requantization_range_shape, rank=0),
    doc="The range that the values have, with 0.",
)


def _used_range(x: Array, given: Range) -> Range:
    """The least value, or 0, and the largest; of no values the range is turned around."""
    limits = np.iinfo(x.dtype)
    least = x.min() if x.size else limits.max
    most = x.max() if x.size else limits.min
    low, high = (value_of(end, x.dtype, given) for end in (least, most))
    return Range(np.float32(min(0, low)), np.float32(high))


def _requantized(x: Array, given: Range, wanted: Range, out_type: DataType) -> Any:
    with np.errstate(all="ignore"):
        output = requantize(x, given, wanted, out_type.numpy_dtype)
    return output, wanted.low, wanted.high


@register_kernel(REQUANTIZE, device="CPU", types={"Tinput": (_QINT32,), "out_type": _NARROW})
def requantize_op(
    x: Any,
    input_min: Any,
    input_max: Any,
    requested_output_min: Any,
    requested_output_max: Any,
    *,
    out_type: DataType,
) -> Any:
    given = scalar_range("input_min", input_min, "input_max", input_max)
    wanted = scalar_range(
        "requested_output_min", requested_output_min, "requested_output_max", requested_output_max
    )
    if not wanted.low <= 0:
        raise InvalidArgumentError(f"requested_output_min must be <= 0, but got {wanted.low:g}")
    if not wanted.high >= wanted.low:
        raise InvalidArgumentError(
            f"requested_output_max must be >= requested_output_min, but got {wanted.high:g} and "
            f"{wanted.low:g}"
        )
    return _requantized(x, given, wanted, out_type)


@register_kernel(
    QUANTIZE_DOWN_AND_SHRINK_RANGE,
    device="CPU",
    types={"Tinput": (_QINT32,), "out_type": (DataType.DT_QUINT8,)},
)
def quantize_down_and_shrink_range(
    x: Any, input_min: Any, input_max: Any, *, out_type: DataType
) -> Any:
    given = scalar_range("input_min", input_min, "input_max", input_max)
    with np.errstate(all="ignore"):
        wanted = _used_range(x, given)
    return _requantized(x, given, wanted, out_type)


@register_kernel(REQUANTIZATION_RANGE, device="CPU", types={"Tinput": (_QINT32,)})
def requantization_range(x: Any, input_min: Any, input_max: Any) -> Any:
    given = first_range("input_min", input_min, "input_max", input_max)
    with np.errstate(all="ignore"):
        used = _used_range(x, given)
    return used.low, used.high


_INT32_LEVELS = np.float32(2.0**31)

REQUANTIZE_PER_CHANNEL = register_op(
    "RequantizePerChannel",
    inputs=["input: T", *_RANGE_INPUTS, *_WANTED_INPUTS],
    outputs=["output: out_type", *_RANGE_OUTPUTS],
    attrs=[f"T: {QUANTIZED_ATTR} = DT_QINT32", f"out_type: {QUANTIZED_ATTR} = DT_QUINT8"],
    shape_fn=partial(shape_with_range, vectors=(1, 2), scalars=(3, 4)),
    doc="Requantize, where each channel of images has a range of its own; 0 stands for 0.",
)
REQUANTIZATION_RANGE_PER_CHANNEL = register_op(
    "RequantizationRangePerChannel",
    inputs=["input: T", *_RANGE_INPUTS],
    outputs=_RANGE_OUTPUTS,
    attrs=[f"T: {QUANTIZED_ATTR} = DT_QINT32", "clip_value_max: float"],
    shape_fn=partial(requantization_range_shape, rank=1),
    doc="The range around 0 that the values of all channels need; not beyond `clip_value_max`.",
)


def _check_images(x: Array, depth: int) -> None:
    check_rank("input", x, 4)
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
        part = larger_end(input_min, input_max).reshape(-1) / larger_end(low, high) / _INT32_LEVELS
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
        ranges = larger_end(input_min, input_max) * most.astype(np.float32) / _INT32_LEVELS
        end = np.fmax(np.fmax.reduce(ranges), np.finfo(np.float32).tiny)
    if end > np.float32(clip_value_max):
        end = np.float32(clip_value_max)
    return (-end if x.min() < 0 else np.float32(0)), end
