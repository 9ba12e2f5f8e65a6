"""Integers of one range as integers of another, and the range that they need.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/requantize.cc, requantization_range_op.cc,
quantize_down_and_shrink_range.cc.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.declared.rules import check_ranks
from opkernel.ops.quantized.conversion import (
    QUANTIZED_ATTR,
    Array,
    Range,
    first_range,
    requantize,
    scalar_range,
    value_of,
)
from opkernel.ops.quantized.shapes import unchanged_with_range
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
    shape_fn=partial(unchanged_with_range, scalars=(1, 2, 3, 4)),
    doc="Integers of the range [input_min, input_max] as integers of the requested range.",
)
QUANTIZE_DOWN_AND_SHRINK_RANGE = register_op(
    "QuantizeDownAndShrinkRange",
    inputs=["input: Tinput", *_RANGE_INPUTS],
    outputs=["output: out_type", *_RANGE_OUTPUTS],
    attrs=_TYPE_ATTRS,
    shape_fn=partial(unchanged_with_range, scalars=(1, 2)),
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
