"""Integers of a range as those of another, and arrays of them: Requantize, QuantizedConcat, QuantizedRelu.

RequantizationRangePerChannel and RequantizePerChannel: each channel has a range around 0.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/quantized_reshape_op.cc, quantized_concat_op.cc,
core/ops/nn_ops.cc, core/kernels/quantized_activation_ops.cc, core/ops/math_ops.cc, core/kernels/requantize.cc,
requantization_range_op.cc, quantize_down_and_shrink_range.cc,
core/kernels/mkl/mkl_requantize_per_channel_op.cc, mkl_requantization_range_per_channel_op.cc.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opkernel.device.work_clock import array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import in_pieces
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import concat_shape
from opkernel.opdef.common_shapes.quantized import set_scalar_range, shape_with_range
from opkernel.opdef.common_shapes.rules import check_scalars, shape_rule
from opkernel.ops.array.concat import check_concat
from opkernel.ops.array.shape import reshape, reshape_shape
from opkernel.ops.input_checks import require, require_equal, require_scalar
from opkernel.ops.nn.windows import check_rank
from opkernel.ops.quantized.quantize import (
    Range,
    as_int64,
    dequantize,
    larger_end,
    level_of,
    quantize,
    requantize,
    scalar_range,
    to_int32,
    value_of,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType


def _concat_shape(c: InferenceContext) -> None:
    """An axis, values, and as many minima and maxima."""
    count = len(c.input("values"))
    concat_shape(c, count)
    check_scalars(c, *range(count + 1, c.num_inputs()))
    set_scalar_range(c)


QUANTIZED_RESHAPE = register_op(
    "QuantizedReshape(tensor: T, shape: Tshape, input_min: float, input_max: float) "
    "-> output: T, output_min: float, output_max: float",
    attrs=["T: type", "Tshape: {int32, int64} = DT_INT32"],
    shape_fn=partial(shape_with_range, plain=reshape_shape, scalars=(2, 3)),
    doc="Reshape, and the range unchanged.",
)
QUANTIZED_CONCAT = register_op(
    "QuantizedConcat(concat_dim: int32, values: N * T, input_mins: N * float, "
    "input_maxes: N * float) -> output: T, output_min: float, output_max: float",
    attrs=["N: int >= 2", "T: type"],
    shape_fn=_concat_shape,
    doc="Concat; all integers become those of one range, which holds the ranges of all `values`.",
)
_TYPES = (DataType.DT_QUINT8, DataType.DT_QINT32)


@register_kernel(QUANTIZED_RESHAPE, types={"T": _TYPES}, host_memory=["shape"], kind="view")
def quantized_reshape(tensor: Any, shape: Any, input_min: Any, input_max: Any) -> Any:
    output = reshape(tensor, shape)
    for name, end in (("min", input_min), ("max", input_max)):
        if end.shape not in ((), (1,)):
            raise InvalidArgumentError(
                f"input_{name} must be a scalar or a vector of 1 element, got shape "
                f"{list(end.shape)}"
            )
    return output, input_min.reshape(()), input_max.reshape(())


def _common_range(ranges: list[Range], is_signed: bool) -> Range:
    """What holds all ranges; of signed integers with 0 in the middle."""
    low, high = np.finfo(np.float32).max, np.finfo(np.float32).min
    for given in ranges:
        low = min(low, given.low)
        high = max(high, given.high)
    if not is_signed:
        return Range(low, high)
    most = max(abs(low), abs(high))
    return Range(-most, most)


def _ranges(minima: list[Array], maxima: list[Array]) -> list[Range]:
    for name, ends in (("mins", minima), ("maxes", maxima)):
        for i, end in enumerate(ends):
            require_equal(
                end.size,
                1,
                f"input_{name} each tensor's num elements must be 1, given num elements {{}} "
                f"in index {i}",
            )
    return list(map(Range.of, minima, maxima))


@register_kernel(QUANTIZED_CONCAT, types={"T": _TYPES}, host_memory=["concat_dim"])
def quantized_concat(
    concat_dim: Any, values: list[Any], input_mins: list[Any], input_maxes: list[Any]
) -> Any:
    require_scalar(concat_dim, "Concat dim tensor should be a scalar integer, but got shape {}")
    axis, rank = int(concat_dim), values[0].ndim
    if not 0 <= axis < rank:
        raise InvalidArgumentError(
            f"ConcatOp : Expected concatenating dimensions in the range [0, {rank}), but got {axis}"
        )
    ranges = _ranges(input_mins, input_maxes)
    check_concat([value.shape for value in values], axis)
    common = _common_range(ranges, values[0].dtype.kind == "i")
    parts = [
        value if given == common else _moved(value, given, common)
        for value, given in zip(values, ranges, strict=True)
    ]
    return np.concatenate(parts, axis=axis), common.low, common.high


def _moved(value: Any, given: Range, common: Range) -> Any:
    """The levels in `common` of levels in `given`; of many bytes, by a table of all 256."""
    dtype = value.dtype
    with np.errstate(all="ignore"):
        if dtype.itemsize > 1 or value.size < 256:
            return in_pieces(lambda v: quantize(dequantize(v, given), common, dtype), value)
        levels = np.arange(256, dtype=np.uint8).view(dtype)
        table = quantize(dequantize(levels, given), common, dtype).tobytes()
        return in_pieces(
            lambda v: np.frombuffer(v.tobytes().translate(table), dtype).reshape(v.shape), value
        )


QUANTIZED_RELU, QUANTIZED_RELU6 = (
    register_op(
        f"{name}(features: Tinput, min_features: float, max_features: float) "
        "-> activations: out_type, min_activations: float, max_activations: float",
        attrs=["Tinput: quantizedtype", "out_type: quantizedtype = DT_QUINT8"],
        shape_fn=partial(shape_with_range, scalars=(1, 2)),
        doc=f"{formula}, in integers of the range [min_features, max_features].",
    )
    for name, formula in (
        ("QuantizedRelu", "max(features, 0)"),
        ("QuantizedRelu6", "min(max(features, 0), 6)"),
    )
)


def _between(features: Any, low: Any, high: Any, most: float | None) -> Any:
    given = scalar_range("{}_input", low, high)
    with np.errstate(all="ignore"):
        output = np.maximum(features, level_of(0.0, given, features.dtype))
        if most is not None:
            output = np.minimum(output, level_of(most, given, features.dtype))
    return output, given.low, given.high


for _type in _TYPES:
    for _op, _most in ((QUANTIZED_RELU, None), (QUANTIZED_RELU6, 6.0)):
        register_kernel(_op, types={"Tinput": (_type,), "out_type": (_type,)})(
            partial(_between, most=_most)
        )


_QINT32, _NARROW = DataType.DT_QINT32, (DataType.DT_QINT8, DataType.DT_QUINT8)


REQUANTIZE = register_op(
    "Requantize(input: Tinput, input_min: float, input_max: float, requested_output_min: float, "
    "requested_output_max: float) -> output: out_type, output_min: float, output_max: float",
    attrs=["Tinput: quantizedtype", "out_type: quantizedtype"],
    shape_fn=partial(shape_with_range, scalars=(1, 2, 3, 4)),
    doc="Integers of the range [input_min, input_max] as integers of the requested range.",
)
QUANTIZE_DOWN_AND_SHRINK_RANGE = register_op(
    "QuantizeDownAndShrinkRange(input: Tinput, input_min: float, input_max: float) "
    "-> output: out_type, output_min: float, output_max: float",
    attrs=["Tinput: quantizedtype", "out_type: quantizedtype"],
    shape_fn=partial(shape_with_range, scalars=(1, 2)),
    doc="Requantize, into the range that the values have.",
)
REQUANTIZATION_RANGE = register_op(
    "RequantizationRange(input: Tinput, input_min: float, input_max: float) "
    "-> output_min: float, output_max: float",
    attrs=["Tinput: quantizedtype"],
    shape_fn=shape_rule("_, [], [] -> [], []"),
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


@register_kernel(REQUANTIZE, types={"Tinput": _QINT32, "out_type": _NARROW})
def requantize_op(
    x: Any,
    input_min: Any,
    input_max: Any,
    requested_output_min: Any,
    requested_output_max: Any,
    *,
    out_type: DataType,
) -> Any:
    given = scalar_range("input_{}", input_min, input_max)
    wanted = scalar_range("requested_output_{}", requested_output_min, requested_output_max)
    if not wanted.low <= 0:
        raise InvalidArgumentError(f"requested_output_min must be <= 0, but got {wanted.low:g}")
    if not wanted.high >= wanted.low:
        raise InvalidArgumentError(
            f"requested_output_max must be >= requested_output_min, but got {wanted.high:g} and "
            f"{wanted.low:g}"
        )
    return _requantized(x, given, wanted, out_type)


@register_kernel(
    QUANTIZE_DOWN_AND_SHRINK_RANGE, types={"Tinput": _QINT32, "out_type": DataType.DT_QUINT8}
)
def quantize_down_and_shrink_range(
    x: Any, input_min: Any, input_max: Any, *, out_type: DataType
) -> Any:
    given = scalar_range("input_{}", input_min, input_max)
    with np.errstate(all="ignore"):
        wanted = _used_range(x, given)
    return _requantized(x, given, wanted, out_type)


@register_kernel(REQUANTIZATION_RANGE, types={"Tinput": _QINT32})
def requantization_range(x: Any, input_min: Any, input_max: Any) -> Any:
    for name, end in (("min", input_min), ("max", input_max)):
        require(end.size, f"`input_{name}` must have an element, got shape {list(end.shape)}")
    given = Range(np.float32(input_min.flat[0]), np.float32(input_max.flat[0]))
    with np.errstate(all="ignore"):
        used = _used_range(x, given)
    return used.low, used.high


_INT32_LEVELS = np.float32(2.0**31)

REQUANTIZE_PER_CHANNEL = register_op(
    "RequantizePerChannel(input: T, input_min: float, input_max: float, "
    "requested_output_min: float, requested_output_max: float) "
    "-> output: out_type, output_min: float, output_max: float",
    attrs=["T: quantizedtype = DT_QINT32", "out_type: quantizedtype = DT_QUINT8"],
    shape_fn=partial(shape_with_range, vectors=(1, 2), scalars=(3, 4)),
    doc="Requantize, where each channel of images has a range of its own; 0 stands for 0.",
)
REQUANTIZATION_RANGE_PER_CHANNEL = register_op(
    "RequantizationRangePerChannel(input: T, input_min: float, input_max: float) "
    "-> output_min: float, output_max: float",
    attrs=["T: quantizedtype = DT_QINT32", "clip_value_max: float"],
    shape_fn=shape_rule("_, [?], [?] -> [], []"),
    doc="The range around 0 that the values of all channels need; not beyond `clip_value_max`.",
)


def _check_images(x: Array, depth: int) -> None:
    check_rank("input", x, 4)
    require_equal(
        x.shape[3],
        depth,
        "input must have same number of channels as length of input_min: {} vs {}",
    )


@register_kernel(REQUANTIZE_PER_CHANNEL, types={"T": _QINT32, "out_type": _NARROW})
def requantize_per_channel(
    x: Any,
    input_min: Any,
    input_max: Any,
    requested_output_min: Any,
    requested_output_max: Any,
    *,
    out_type: DataType,
) -> Any:
    require_equal(
        input_min.size, input_max.size, "input_max has incorrect size, expected {} was {}"
    )
    for name, end in (("min", requested_output_min), ("max", requested_output_max)):
        require_equal(end.size, 1, f"requested_output_{name} must be a scalar")
    low, high = (end.reshape(()) for end in (requested_output_min, requested_output_max))
    limits = np.iinfo(out_type.numpy_dtype)
    message = f"If out_type is QINT8, requested_output_min must be negative, got {low:g}"
    require(not limits.min or low < 0, message)
    _check_images(x, input_min.size)
    with np.errstate(all="ignore"):
        part = larger_end(input_min, input_max).reshape(-1) / larger_end(low, high) / _INT32_LEVELS
        levels = _scaled_levels(x, np.float32(limits.max) * part, out_type.numpy_dtype)
    return levels, low.copy(), high.copy()


_AT_ONCE = 1 << 13
"""About so many integers are scaled at once, in the processor's cache."""


def _scaled_levels(x: Any, scales: Array, dtype: np.dtype[Any]) -> Any:
    """Integers times the scale of their channel, which is last, rounded to those of a type."""
    limits = np.iinfo(dtype)
    step = max(_AT_ONCE // scales.size, 1) * scales.size
    repeated = np.tile(scales.astype(np.float32), step // scales.size)
    is_finite = np.isfinite(scales).all()
    levels, flat = np.empty(x.size, dtype), x.reshape(-1)
    for start in in_time(range(0, x.size, step), array_work(step)):
        scaled = flat[start : start + step].astype(np.float32)
        scaled *= repeated[: scaled.size]
        np.rint(scaled, out=scaled)
        np.clip(scaled, np.float32(limits.min), np.float32(limits.max), out=scaled)
        integers = scaled.astype(np.int32) if is_finite else to_int32(scaled)
        levels[start : start + step] = integers
    return levels.reshape(x.shape)


@register_kernel(REQUANTIZATION_RANGE_PER_CHANNEL, types={"T": _QINT32})
def requantization_range_per_channel(
    x: Any, input_min: Any, input_max: Any, *, clip_value_max: float
) -> Any:
    depth = input_max.size
    for name, end in (("min", input_min), ("max", input_max)):
        if end.shape != (depth,):
            raise InvalidArgumentError(
                f"input_{name} must be a vector of {depth} elements, got shape {list(end.shape)}"
            )
    require(x.size, "input must not be empty")
    _check_images(x, depth)
    with np.errstate(all="ignore"):
        most = np.abs(as_int64(x)).max(axis=(0, 1, 2))
        most = np.where(most == 2**31, -(2**31), most)  # no int32 is the absolute value
        ranges = larger_end(input_min, input_max) * most.astype(np.float32) / _INT32_LEVELS
        end = np.fmax(np.fmax.reduce(ranges), np.finfo(np.float32).tiny)
    if end > np.float32(clip_value_max):
        end = np.float32(clip_value_max)
    return (-end if x.min() < 0 else np.float32(0)), end
