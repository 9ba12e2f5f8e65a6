"""QuantizedReshape and QuantizedConcat: the ops on arrays, beside which a range goes along.

QuantizedRelu and QuantizedRelu6: integers no lower than the one of 0, and no higher than that of 6.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/quantized_reshape_op.cc, quantized_concat_op.cc,
core/ops/nn_ops.cc, core/kernels/quantized_activation_ops.cc.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import in_pieces
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import concat_shape
from opkernel.opdef.common_shapes.quantized import set_scalar_range, shape_with_range
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.ops.array.concat import check_concat
from opkernel.ops.array.reshape import reshape, reshape_shape
from opkernel.ops.quantized.conversion import (
    Array,
    Range,
    dequantize,
    level_of,
    quantize,
    scalar_range,
)
from opkernel.ops.quantized.declarations import QUANTIZED_ATTR, range_args
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape


def _concat_shape(c: InferenceContext) -> None:
    """An axis, values, and as many minima and maxima."""
    count = len(c.input("values"))
    concat_shape(c, count)
    check_scalars(c, *range(count + 1, c.num_inputs()))
    set_scalar_range(c)


QUANTIZED_RESHAPE = register_op(
    "QuantizedReshape",
    inputs=["tensor: T", "shape: Tshape", "input_min: float", "input_max: float"],
    outputs=["output: T", "output_min: float", "output_max: float"],
    attrs=["T: type", "Tshape: {int32, int64} = DT_INT32"],
    shape_fn=partial(shape_with_range, plain=reshape_shape, scalars=(2, 3)),
    doc="Reshape, and the range unchanged.",
)
QUANTIZED_CONCAT = register_op(
    "QuantizedConcat",
    inputs=[
        "concat_dim: int32",
        "values: N * T",
        "input_mins: N * float",
        "input_maxes: N * float",
    ],
    outputs=["output: T", "output_min: float", "output_max: float"],
    attrs=["N: int >= 2", "T: type"],
    shape_fn=_concat_shape,
    doc="Concat; all integers become those of one range, which holds the ranges of all `values`.",
)
_TYPES = (DataType.DT_QUINT8, DataType.DT_QINT32)


@register_kernel(
    QUANTIZED_RESHAPE,
    device="CPU",
    types={"T": _TYPES},
    host_memory=["shape"],
    kind="view",
)
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
            if end.size != 1:
                raise InvalidArgumentError(
                    f"input_{name} each tensor's num elements must be 1, given num elements "
                    f"{end.size} in index {i}"
                )
    return list(map(Range.of, minima, maxima))


@register_kernel(QUANTIZED_CONCAT, device="CPU", types={"T": _TYPES}, host_memory=["concat_dim"])
def quantized_concat(
    concat_dim: Any, values: list[Any], input_mins: list[Any], input_maxes: list[Any]
) -> Any:
    if concat_dim.ndim:
        raise InvalidArgumentError(
            "Concat dim tensor should be a scalar integer, but got shape "
            f"{TensorShape(concat_dim.shape)}"
        )
    axis, rank = int(concat_dim), values[0].ndim
    if not 0 <= axis < rank:
        raise InvalidArgumentError(
            f"ConcatOp : Expected concatenating dimensions in the range [0, {rank}), but got {axis}"
        )
    ranges = _ranges(input_mins, input_maxes)
    check_concat([value.shape for value in values], axis)
    dtype = values[0].dtype
    common = _common_range(ranges, dtype.kind == "i")
    with np.errstate(all="ignore"):
        parts = [
            value
            if given == common
            else in_pieces(
                lambda v, given=given: quantize(dequantize(v, given), common, dtype), value
            )
            for value, given in zip(values, ranges, strict=True)
        ]
    return np.concatenate(parts, axis=axis), common.low, common.high


def _declare(name: str, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["features: Tinput", *range_args("features")],
        outputs=["activations: out_type", *range_args("activations")],
        attrs=[f"Tinput: {QUANTIZED_ATTR}", f"out_type: {QUANTIZED_ATTR} = DT_QUINT8"],
        shape_fn=partial(shape_with_range, scalars=(1, 2)),
        doc=doc,
    )


QUANTIZED_RELU = _declare(
    "QuantizedRelu", "max(features, 0), in integers of the range [min_features, max_features]."
)
QUANTIZED_RELU6 = _declare(
    "QuantizedRelu6",
    "min(max(features, 0), 6), in integers of the range [min_features, max_features].",
)
_TYPE_PAIRS = (DataType.DT_QUINT8, DataType.DT_QINT32)


def _between(features: Any, low: Any, high: Any, most: float | None) -> Any:
    given = scalar_range("min_input", low, "max_input", high)
    with np.errstate(all="ignore"):
        output = np.maximum(features, level_of(0.0, given, features.dtype))
        if most is not None:
            output = np.minimum(output, level_of(most, given, features.dtype))
    return output, given.low, given.high


for _type in _TYPE_PAIRS:
    for _op, _most in ((QUANTIZED_RELU, None), (QUANTIZED_RELU6, 6.0)):
        register_kernel(_op, device="CPU", types={"Tinput": (_type,), "out_type": (_type,)})(
            partial(_between, most=_most)
        )
