"""QuantizedInstanceNorm and QuantizedBatchNormWithGlobalNormalization.

Source: TensorFlow core/ops/array_ops.cc, nn_ops.cc, core/kernels/quantized_instance_norm.cc,
quantized_batch_norm_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import by_rows, in_pieces
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.quantized import set_scalar_range, shape_with_range
from opkernel.opdef.common_shapes.rules import check_ranks
from opkernel.ops.quantized.conversion import (
    Array,
    Range,
    level_of,
    quantize,
    scalar_range,
    value_of,
)
from opkernel.ops.quantized.declarations import QUANTIZED_ATTR
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_QUINT8, _QINT32 = DataType.DT_QUINT8, DataType.DT_QINT32
_INT32 = np.dtype(np.int32)
_BATCH_NORM_RANGE = Range(np.float32(-(1 << 20)), np.float32(1 << 20))


def _instance_norm_shape(c: InferenceContext) -> None:
    check_ranks(c, 4, 0)
    shape_with_range(c, scalars=(1, 2))


def _batch_norm_shape(c: InferenceContext) -> None:
    """Images, and four vectors with a value for each channel; after each of them its range."""
    images = c.with_rank(c.input(0), 4)
    channels = c.dim(images, 3)
    for i in range(1, 5):
        channels = c.merge(channels, c.dim(c.with_rank(c.input(3 * i), 1), 0))
    c.set_output(0, c.replace_dim(images, 3, channels))
    set_scalar_range(c)


QUANTIZED_INSTANCE_NORM = register_op(
    "QuantizedInstanceNorm",
    inputs=["x: T", "x_min: float", "x_max: float"],
    outputs=["y: T", "y_min: float", "y_max: float"],
    attrs=[
        f"T: {QUANTIZED_ATTR}",
        "output_range_given: bool = false",
        "given_y_min: float = 0.0",
        "given_y_max: float = 0.0",
        "variance_epsilon: float = 1e-5",
        "min_separation: float = 1e-3",
    ],
    shape_fn=_instance_norm_shape,
    doc="""Each channel of each image with mean 0 and variance 1.

    given_y_min, given_y_max: The range of the output, where `output_range_given`; else it follows.
    min_separation: So wide is the range at least.
    """,
)
QUANTIZED_BATCH_NORM = register_op(
    "QuantizedBatchNormWithGlobalNormalization",
    inputs=[
        f"{name}{end}"
        for name in ("t", "m", "v", "beta", "gamma")
        for end in (": Tinput", "_min: float", "_max: float")
    ],
    outputs=["result: out_type", "result_min: float", "result_max: float"],
    attrs=[
        f"Tinput: {QUANTIZED_ATTR}",
        f"out_type: {QUANTIZED_ATTR}",
        "variance_epsilon: float",
        "scale_after_normalization: bool",
    ],
    shape_fn=_batch_norm_shape,
    doc="(t - m) / sqrt(v + variance_epsilon) * gamma + beta, in the range of +- 2**20.",
)


def _normalized(x: Array, given: Range, epsilon: float) -> Array:
    """Floats of mean 0 and variance 1, for each image and channel."""
    step = (given.high - given.low) / np.float32(255)
    result: Array = x.astype(np.float32)
    count = np.float32(x.shape[1] * x.shape[2])
    result -= result.sum(axis=(1, 2), keepdims=True) / count
    result *= step
    variance = np.square(result).sum(axis=(1, 2), keepdims=True) / count
    result *= np.float32(1) / np.sqrt(variance + np.float32(epsilon))
    return result


@register_kernel(QUANTIZED_INSTANCE_NORM, device="CPU", types={"T": (_QUINT8,)}, factory=True)
def quantized_instance_norm(
    *,
    output_range_given: bool,
    given_y_min: float,
    given_y_max: float,
    variance_epsilon: float,
    min_separation: float,
) -> Callable[[Any, Any, Any], Any]:
    if output_range_given and not given_y_min < given_y_max:
        raise InvalidArgumentError(
            f"given_y_min must be less than given_y_max : {given_y_min:g} >= {given_y_max:g}"
        )

    def kernel(x: Any, x_min: Any, x_max: Any) -> Any:
        given = scalar_range("x_min", x_min, "x_max", x_max)
        if not given.low < given.high:
            raise InvalidArgumentError(
                f"input_min must be less than input_max : {given.low:g} >= {given.high:g}"
            )
        if x.ndim != 4:
            raise InvalidArgumentError(f"x must be rank 4 but is rank {x.ndim}")
        with np.errstate(all="ignore"):
            normal = by_rows(lambda images: _normalized(images, given, variance_epsilon), x)
            if output_range_given:
                low, high = np.float32(given_y_min), np.float32(given_y_max)
            else:
                low = normal.min(initial=np.float32(np.inf))
                high = normal.max(initial=np.float32(-np.inf))
            if high - low < np.float32(min_separation):
                high = low + np.float32(min_separation)
            whole = Range(low, high)
            return in_pieces(lambda v: quantize(v, whole, x.dtype), normal), low, high

    return kernel


_PARTS = ("input", "mean", "var", "beta", "gamma")


def _check_batch_norm(parts: list[tuple[Array, Array, Array]]) -> None:
    for name, (_, *ends) in zip(_PARTS, parts, strict=True):
        for end_name, end in zip(("min", "max"), ends, strict=True):
            if end.size != 1:
                raise InvalidArgumentError(f"{name}_{end_name} must have 1 element")
    for i, (name, (values, _, _)) in enumerate(zip(_PARTS, parts, strict=True)):
        rank = 1 if i else 4
        if values.ndim != rank:
            raise InvalidArgumentError(
                f"{name} must be {rank}-dimensional{TensorShape(values.shape)}"
            )
    channels = parts[1][0].size
    if channels < 2:
        raise InvalidArgumentError(
            f"Must have at least two channels, as TensorFlow wants; got {channels}"
        )
    for name, (values, _, _) in zip(_PARTS, parts, strict=True):
        if values.shape[-1] != channels:
            raise InvalidArgumentError(
                f"{name} must have a value for each of the {channels} channels, got "
                f"{TensorShape(values.shape)}"
            )


@register_kernel(
    QUANTIZED_BATCH_NORM,
    device="CPU",
    types={"Tinput": (_QUINT8,), "out_type": (_QINT32,)},
    factory=True,
)
def quantized_batch_norm(
    *, variance_epsilon: float, scale_after_normalization: bool
) -> Callable[..., Any]:
    epsilon = np.float32(variance_epsilon)

    def kernel(*inputs: Any) -> Any:
        parts = [(inputs[i], inputs[i + 1], inputs[i + 2]) for i in range(0, 15, 3)]
        _check_batch_norm(parts)
        with np.errstate(all="ignore"):
            (x, low, high), *others = parts
            rows = x.reshape(-1, x.shape[-1])
            result = by_rows(
                lambda some: _batch_norm(
                    [(some, low, high), *others], epsilon, scale_after_normalization
                ),
                rows,
            ).reshape(x.shape)
        return result, *_BATCH_NORM_RANGE

    return kernel


def _batch_norm(
    parts: list[tuple[Array, Array, Array]], epsilon: np.float32, scales_after: bool
) -> Array:
    """By a scale and an offset for each channel, in integers with 10 bits of fraction."""
    wide = _BATCH_NORM_RANGE
    x, mean, variance, beta, gamma = (
        value_of(values, values.dtype, Range.of(low, high)) for values, low, high in parts
    )
    scale = np.float32(1) / np.sqrt(variance + epsilon)
    if scales_after:
        scale = scale * gamma
    scales, offsets = (level_of(v, wide, _INT32) for v in (scale, -mean * scale + beta))
    products = level_of(x, wide, _INT32) * scales
    one = int(level_of(1.0, wide, _INT32))
    quotients = np.sign(products) * (np.abs(products.astype(np.int64)) // one)
    result: Array = quotients.astype(np.int32) + offsets
    return result
