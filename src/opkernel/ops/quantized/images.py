"""Images of integers pooled, resized and normalised: QuantizedMaxPool, QuantizedInstanceNorm and the like.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/quantized_pooling_ops.cc, core/ops/image_ops.cc,
core/kernels/quantized_resize_bilinear_op.cc, core/ops/array_ops.cc, nn_ops.cc,
core/kernels/quantized_instance_norm.cc, quantized_batch_norm_op.cc, mkl/mkl_maxpooling_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import by_rows, from_attrs, in_pieces
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.opdef.common_shapes.quantized import set_scalar_range, shape_with_range
from opkernel.opdef.common_shapes.rules import check_ranks
from opkernel.ops.image.resize import (
    ALIGNMENT_ATTRS,
    Linear,
    interpolated_at,
    linear,
    output_size,
    resize_shape,
)
from opkernel.ops.input_checks import require, require_equal, require_rank, require_scalar
from opkernel.ops.nn.max_pool import max_pool_of
from opkernel.ops.nn.pooling import (
    Pool,
    channels_last_pool,
    pool_from_attrs,
    reduce_windows,
    window_sizes,
)
from opkernel.ops.nn.windows import check_rank
from opkernel.ops.quantized.quantize import (
    Range,
    as_int64,
    level_of,
    quantize,
    scalar_range,
    value_of,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType, TensorShape

_TYPES = (DataType.DT_QINT8, DataType.DT_QUINT8)
_QUINT8, _QINT32 = DataType.DT_QUINT8, DataType.DT_QINT32


QUANTIZED_MAX_POOL, QUANTIZED_AVG_POOL = (
    register_op(
        f"{name}(input: T, min_input: float, max_input: float) "
        "-> output: T, min_output: float, max_output: float",
        attrs=[
            "T: quantizedtype",
            "ksize: list(int)",
            "strides: list(int)",
            "padding: {'SAME', 'VALID'}",
        ],
        shape_fn=shape_fn,
        doc=f"{what}, and their range unchanged.",
    )
    for name, shape_fn, what in (
        (
            "QuantizedMaxPool",
            partial(shape_with_range, plain=common_shapes.max_pool_shape, scalars=(1, 2)),
            "MaxPool of integers",
        ),
        (
            "QuantizedAvgPool",
            common_shapes.quantized_avg_pool_shape,
            "AvgPool of integers, rounded towards 0",
        ),
    )
)
QUANTIZED_MAX_POOL_3D = register_op(
    "_QuantizedMaxPool3D(input: T, min_input: float, max_input: float) "
    "-> output: T, min_output: float, max_output: float",
    attrs=[
        "ksize: list(int) >= 5",
        "strides: list(int) >= 5",
        "padding: {'SAME', 'VALID'}",
        "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
        "T: quantizedtype",
    ],
    shape_fn=common_shapes.pool3d_shape,
    doc="MaxPool3D of integers in layout NDHWC, and their range unchanged.",
)


def _check_range(min_input: Array, max_input: Array) -> None:
    for name, end in (("min", min_input), ("max", max_input)):
        rank = f"{name}_input shape must be rank 0 but is rank {end.ndim}"
        require_scalar(end, f"{rank}, received shape: {{}}")


@register_kernel(QUANTIZED_MAX_POOL_3D, types={"T": _TYPES}, factory=True)
@from_attrs(pool=partial(channels_last_pool, "_QuantizedMaxPool3D", rank=5))
def quantized_max_pool_3d(*, pool: Pool) -> Callable[[Any, Any, Any], Any]:
    """The steps over channels count for nothing, as in TensorFlow."""
    if pool.depth != 1:
        raise UnimplementedError("Pooling is not yet supported on the depth dimension.")
    return _with_range(pool)


def _with_range(pool: Pool) -> Callable[[Any, Any, Any], Any]:
    def pooled(x: Any, min_input: Any, max_input: Any) -> Any:
        _check_range(min_input, max_input)
        return max_pool_of(x, pool), min_input.copy(), max_input.copy()

    return pooled


@register_kernel(QUANTIZED_MAX_POOL, types={"T": _TYPES}, factory=True)
@from_attrs(pool=pool_from_attrs)
def quantized_max_pool(*, pool: Pool) -> Callable[[Any, Any, Any], Any]:
    return _with_range(pool)


@register_kernel(QUANTIZED_AVG_POOL, types={"T": _TYPES}, factory=True)
@from_attrs(pool=pool_from_attrs)
def quantized_avg_pool(*, pool: Pool) -> Callable[[Any, Any, Any], Any]:
    def pooled(x: Any, min_input: Any, max_input: Any) -> Any:
        check_rank("tensor_in", x, 4)
        _check_range(min_input, max_input)
        if pool.depth != 1:
            raise UnimplementedError("Non-spatial pooling is not yet supported.")
        geometry = pool.geometry(x.shape)
        sums = reduce_windows(x.astype(np.int32), geometry, np.add, 0)
        counts = window_sizes(geometry, x.shape[1:-1]).astype(np.int32)

        def mean(total: Array, count: Array) -> Array:
            return (total / count).astype(x.dtype)  # exact: a quotient has 8 bits, a count 31

        return in_pieces(mean, sums, counts), min_input.copy(), max_input.copy()

    return pooled


QUANTIZED_RESIZE_BILINEAR = register_op(
    "QuantizedResizeBilinear(images: T, size: int32, min: float, max: float) "
    "-> resized_images: T, out_min: float, out_max: float",
    attrs=["T: {quint8, qint32, float}", *ALIGNMENT_ATTRS],
    shape_fn=partial(shape_with_range, plain=resize_shape, scalars=(2, 3)),
    doc="ResizeBilinear of images of integers, and their range unchanged.",
)

_FRACTION_BITS = {np.dtype(np.uint8): 7, np.dtype(np.int32): 30}


def _quotient(x: Array, bits: int) -> Array:
    """X / 2**bits, rounded towards 0."""
    below = (1 << bits) - 1
    quotient: Array = (x + (x >> 8 * x.itemsize - 1 & below)) >> bits
    return quotient


def _between_integers(x: Array, rows: Linear, columns: Linear) -> Array:
    """With 7 bits of fraction for 8 bits, 30 for 32; what lies between rows loses its fraction first."""
    bits = _FRACTION_BITS[x.dtype]
    wide: Any = np.int32 if x.itemsize == 1 else np.int64
    across, down = (
        (line.fraction * np.float32(1 << bits)).astype(wide) for line in (columns, rows)
    )
    across, down = across[:, np.newaxis], down[:, np.newaxis, np.newaxis]
    top, bottom = (
        (left << bits) + (right - left) * across
        for left, right in (
            (
                as_int64(x[:, row][:, :, column]).astype(wide, copy=False)
                for column in (columns.lower, columns.upper)
            )
            for row in (rows.lower, rows.upper)
        )
    )
    value = top + _quotient(bottom - top, bits) * down
    return _quotient(value + (1 << (bits - 1)), bits).astype(x.dtype)


@register_kernel(
    QUANTIZED_RESIZE_BILINEAR,
    types={"T": (DataType.DT_QUINT8, DataType.DT_QINT32, DataType.DT_FLOAT)},
    host_memory=["size"],
    factory=True,
)
def quantized_resize_bilinear(
    *, align_corners: bool, half_pixel_centers: bool
) -> Callable[[Any, Any, Any, Any], Any]:
    def kernel(x: Any, size: Any, low: Any, high: Any) -> Any:
        for name, end in (("min", low), ("max", high)):
            require_scalar(end, f"{name} must be a scalar")
        height, width = output_size(x, size, DataType.DT_INT64)
        if x.shape[1:3] == (height, width):
            return x.copy(), low.copy(), high.copy()
        rows = linear(x.shape[1], height, align_corners, half_pixel_centers)
        columns = linear(x.shape[2], width, align_corners, half_pixel_centers)
        for line, pixels in ((rows, x.shape[1]), (columns, x.shape[2])):
            message = "With align_corners, half_pixel_centers would read pixels beyond the images"
            require(line.lower.max(initial=0) < pixels, message)
        if x.dtype.kind == "f":
            result = interpolated_at(x, rows, columns)
        else:
            result = _between_integers(x, rows, columns)
        return result, low.copy(), high.copy()

    return kernel


_INT32 = np.dtype(np.int32)
_BATCH_NORM_RANGE = Range(np.float32(-(1 << 20)), np.float32(1 << 20))


def _batch_norm_shape(c: InferenceContext) -> None:
    """Images, and four vectors with a value for each channel; after each of them its range."""
    images = c.with_rank(c.input(0), 4)
    channels = c.dim(images, 3)
    for i in range(1, 5):
        channels = c.merge(channels, c.dim(c.with_rank(c.input(3 * i), 1), 0))
    c.set_output(0, c.replace_dim(images, 3, channels))
    set_scalar_range(c)


def _instance_norm_shape(c: InferenceContext) -> None:
    check_ranks(c, 4, 0)
    shape_with_range(c, scalars=(1, 2))


QUANTIZED_INSTANCE_NORM = register_op(
    "QuantizedInstanceNorm(x: T, x_min: float, x_max: float) -> y: T, y_min: float, y_max: float",
    attrs=[
        "T: quantizedtype",
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
        "Tinput: quantizedtype",
        "out_type: quantizedtype",
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


@register_kernel(QUANTIZED_INSTANCE_NORM, types={"T": _QUINT8}, factory=True)
def quantized_instance_norm(
    *,
    output_range_given: bool,
    given_y_min: float,
    given_y_max: float,
    variance_epsilon: float,
    min_separation: float,
) -> Callable[[Any, Any, Any], Any]:
    message = f"given_y_min must be less than given_y_max : {given_y_min:g} >= {given_y_max:g}"
    require(not output_range_given or given_y_min < given_y_max, message)

    def kernel(x: Any, x_min: Any, x_max: Any) -> Any:
        given = scalar_range("x_{}", x_min, x_max)
        message = f"input_min must be less than input_max : {given.low:g} >= {given.high:g}"
        require(given.low < given.high, message)
        require_rank(x, 4, f"x must be rank 4 but is rank {x.ndim}")
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
            require_equal(end.size, 1, f"{name}_{end_name} must have 1 element")
    for i, (name, (values, _, _)) in enumerate(zip(_PARTS, parts, strict=True)):
        rank = 1 if i else 4
        require_rank(values, rank, f"{name} must be {rank}-dimensional{{}}")
    channels = parts[1][0].size
    require(channels >= 2, f"Must have at least two channels, as TensorFlow wants; got {channels}")
    for name, (values, _, _) in zip(_PARTS, parts, strict=True):
        if values.shape[-1] != channels:
            raise InvalidArgumentError(
                f"{name} must have a value for each of the {channels} channels, got "
                f"{TensorShape(values.shape)}"
            )


@register_kernel(QUANTIZED_BATCH_NORM, types={"Tinput": _QUINT8, "out_type": _QINT32}, factory=True)
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
    x = parts[0][0]
    levels = np.arange(256, dtype=np.uint8)[:, np.newaxis]  # all that `x` may have
    values, mean, variance, beta, gamma = (
        value_of(values, values.dtype, Range.of(low, high))
        for values, low, high in [(levels, *parts[0][1:]), *parts[1:]]
    )
    scale = np.float32(1) / np.sqrt(variance + epsilon)
    if scales_after:
        scale = scale * gamma
    scales, offsets = (level_of(v, wide, _INT32) for v in (scale, -mean * scale + beta))
    products = level_of(values, wide, _INT32) * scales
    one = int(level_of(1.0, wide, _INT32))
    quotients = np.sign(products) * (np.abs(products.astype(np.int64)) // one)
    table = quotients.astype(np.int32) + offsets
    places = x.reshape(-1) * np.intp(x.shape[1])
    places += np.tile(np.arange(x.shape[1]), len(x))
    result: Array = table.take(places).reshape(x.shape)
    return result
