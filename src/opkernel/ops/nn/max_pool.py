"""Maxima over windows: MaxPool, MaxPoolV2, MaxPoolWithArgmax and MaxPool3D.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/maxpooling_op.cc, pooling_ops_3d.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import KernelRegistry, check_allocation, from_attrs
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.opdef.common_shapes.windows import Padding
from opkernel.ops.input_checks import require
from opkernel.ops.nn.channels_first import also_channels_first, pools_space_only
from opkernel.ops.nn.pooling import (
    Pool,
    argmax_windows,
    channels_last_pool,
    lowest,
    padded_channels_last_pool,
    pool_from_attrs,
    reduce_windows,
    sizes_in_tensor,
)
from opkernel.ops.nn.windows import Geometry, check_length, overlaps, pad
from opkernel.ops.registration import NARROW_FLOATS, REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType, as_dtype

_AT_ONCE = 1 << 18
"""About so many elements are pooled together: they stay in the processor's cache."""

__all__ = ["check_depth_windows", "max_pool", "max_pool_of"]

_IMAGE_TYPES = (
    "{half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT"
)
_IMAGE_LAYOUTS = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"


def _with_argmax_shape(c: InferenceContext) -> None:
    common_shapes.max_pool_shape(c)
    maxima = c.output(0)
    c.set_output(1, c.unknown_shape() if maxima is None else maxima)
    if c.get_attr("ksize")[3] != 1 or c.get_attr("strides")[3] != 1:  # kernels keep all channels
        c.doubt_output(0)
        c.doubt_output(1)


MAX_POOL = register_op(
    "MaxPool(input: T) -> output: T",
    attrs=[
        f"T: {_IMAGE_TYPES}",
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        "padding: {'SAME', 'VALID', 'EXPLICIT'}",
        "explicit_paddings: list(int) = []",
        _IMAGE_LAYOUTS,
    ],
    shape_fn=common_shapes.max_pool_shape_with_explicit_padding,
    traits="images=i:i row_rule=first_alone function_gradient=yes",
    doc="The maxima over windows of images, over rows and columns or over channels.",
)
MAX_POOL_V2 = register_op(
    "MaxPoolV2(input: T, ksize: int32, strides: int32) -> output: T",
    attrs=[f"T: {_IMAGE_TYPES}", "padding: {'SAME', 'VALID'}", _IMAGE_LAYOUTS],
    shape_fn=common_shapes.max_pool_v2_shape,
    doc="MaxPool, whose windows are inputs.",
)
MAX_POOL_WITH_ARGMAX = register_op(
    "MaxPoolWithArgmax(input: T) -> output: T, argmax: Targmax",
    attrs=[
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        "Targmax: {int32, int64} = DT_INT64",
        "padding: {'SAME', 'VALID'}",
        "include_batch_in_index: bool = false",
        "T: realnumbertype",
    ],
    shape_fn=_with_argmax_shape,
    doc="The maxima over windows of images, and where they are: the index in the flat image, or in all images.",
)
MAX_POOL_3D = register_op(
    "MaxPool3D(input: T) -> output: T",
    attrs=[
        "ksize: list(int) >= 5",
        "strides: list(int) >= 5",
        "padding: {'SAME', 'VALID'}",
        "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
        "T: {half, bfloat16, float}",
    ],
    shape_fn=common_shapes.pool3d_shape,
    traits="images=i:i",
    doc="The maxima over windows of volumes.",
)


def check_depth_windows(pool: Pool, channels: int) -> None:
    """Refuse the windows over channels that TensorFlow does not compute.

    Raises:
        UnimplementedError: they are over space too, overlap, are padded or leave channels over.
    """
    if pool.depth == 1:
        return
    if set(pool.ksize) != {1}:
        raise UnimplementedError(
            "MaxPooling supports exactly one of pooling across depth or pooling across "
            f"width/height, got {pool.depth} and {pool.ksize}"
        )
    if channels % pool.depth or pool.depth_stride != pool.depth:
        raise UnimplementedError(
            "Depthwise max pooling requires the depth window to evenly divide the input depth and "
            f"to equal the depth stride, got {pool.depth}, {channels} and {pool.depth_stride}"
        )
    if pool.windows.padding is Padding.EXPLICIT:
        raise UnimplementedError("Depthwise max pooling does not support explicit padding.")


def _max_over_depth(x: Array, window: int) -> Array:
    """The maxima of neighbouring channels; a NaN counts only where it is the first of them."""
    groups = x.reshape(*x.shape[:-1], x.shape[-1] // window, window)
    best = groups[..., 0]
    for i in in_time(range(1, window), SLOW):
        best = np.where(best < groups[..., i], groups[..., i], best)
    return best.copy() if window == 1 else best


def max_pool_of(x: Array, pool: Pool) -> Array:
    """Pool images; NaN counts as absent, and an empty window has the least finite value."""
    if x.ndim == 4:
        check_depth_windows(pool, x.shape[-1])
        if pool.depth > 1:
            return _max_over_depth(x, pool.depth)
    wide = x.astype(np.float32) if as_dtype(x.dtype) in NARROW_FLOATS else x
    result = reduce_windows(wide, pool.geometry(x.shape), np.fmax, lowest(x.dtype))
    return result.astype(x.dtype, copy=False)


@register_kernel(MAX_POOL, types={"T": REAL_NUMBERS}, factory=True)
@also_channels_first("MaxPool", where=pools_space_only)
@from_attrs(pool=partial(padded_channels_last_pool, "MaxPoolingOp", sizes_first=True))
def max_pool(*, pool: Pool) -> Callable[[Array], Array]:
    """Images in layout NHWC."""
    return lambda x: max_pool_of(x, pool)


@register_kernel(MAX_POOL_V2, types={"T": REAL_NUMBERS}, factory=True)
def max_pool_v2(*, padding: str, data_format: str) -> Callable[[Array, Array, Array], Array]:
    """Images in layout NHWC, or in NCHW_VECT_C, where each vector is an image of its own."""
    message = "MaxPoolingV2Op only supports NHWC or NCHW_VECT_C on the CPU. Got: NCHW"
    require(data_format != "NCHW", message)

    def pooled(x: Array, ksize: Array, strides: Array) -> Array:
        sizes, steps = sizes_in_tensor(ksize), sizes_in_tensor(strides)
        if data_format == "NHWC":
            check_length("ksize", sizes, 4)
            require(min(sizes) > 0, f"Sliding window ksize must be positive, got {sizes}")
            return max_pool_of(x, pool_from_attrs(sizes, steps, padding))
        if x.ndim != 5 or len(sizes) != 4 or len(steps) != 4 or sizes[1] != 1:
            raise InvalidArgumentError(
                f"NCHW_VECT_C needs an input of 5 dimensions and windows over space, got {list(x.shape)} and {sizes}"
            )
        pool = pool_from_attrs([sizes[0], *sizes[2:], 1], [steps[0], *steps[2:], 1], padding)
        result = max_pool_of(x.reshape(-1, *x.shape[2:]), pool)
        return result.reshape(*x.shape[:2], *result.shape[1:])

    return pooled


FindLargest = Callable[[Any, Any, Any, Any], Any]
"""A function as `find_largest`."""


def find_largest(x: Array, places: Array, values: Array, indices: Array) -> None:
    """Fill in the first largest element of each window.

    Args:
        x: [images, height, width, channels].
        places: int64 [3, 2]: the size of the windows, their strides, and the padding before the image.
        values: [images, windows, windows, channels]: the elements.
        indices: int64, of the same shape: where they are in the flat image.
    """
    window, strides, padding = (tuple(pair) for pair in places.tolist())
    before = (padding[0], 0), (padding[1], 0)
    geometry = Geometry(window, strides, (1, 1), before, values.shape[1:3])
    values[...], chosen = argmax_windows(x, geometry)
    indices[...] = flat_indices(chosen, x.shape, geometry)


def register_max_pool_with_argmax(
    find: FindLargest,
    types: Sequence[DataType] = REAL_NUMBERS,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernel of MaxPoolWithArgmax with a function that finds the largest elements."""

    @from_attrs(pool=partial(pool_from_attrs, sizes_first=True))
    def max_pool_with_argmax(
        *, pool: Pool, include_batch_in_index: bool, Targmax: DataType
    ) -> Callable[[Array], tuple[Array, Array]]:
        def pooled(x: Array) -> tuple[Array, Array]:
            geometry = pool.geometry(x.shape)
            if x.size == 0:
                message = f"tensor_in must not be empty, got shape {list(x.shape)}"
                raise InvalidArgumentError(message)
            check_depth_windows(pool, x.shape[-1])
            shape = check_allocation(
                (*x.shape[:1], *geometry.output, x.shape[-1]), DataType.DT_INT64
            )
            values, indices = np.empty(shape, x.dtype), np.empty(shape, np.int64)
            before = [padding[0] for padding in geometry.padding]
            places = np.array([geometry.window, geometry.strides, before])
            x = np.ascontiguousarray(x)
            at_once = max(_AT_ONCE // x[0].size, 1)
            for start in in_time(range(0, len(x), at_once), SLOW, "pooling images"):
                some = slice(start, start + at_once)
                find(x[some], places, values[some], indices[some])
            if include_batch_in_index:
                indices += np.arange(len(x)).reshape(-1, 1, 1, 1) * x[0].size
            return values, indices.astype(Targmax.numpy_dtype, copy=False)

        return pooled

    register_kernel(
        MAX_POOL_WITH_ARGMAX,
        types={"T": types, "Targmax": (DataType.DT_INT32, DataType.DT_INT64)},
        factory=True,
        registry=registry,
    )(max_pool_with_argmax)


register_max_pool_with_argmax(find_largest)


def flat_indices(chosen: Array, shape: tuple[int, ...], geometry: Geometry) -> Array:
    """The indices in a flat image of the elements that `argmax_windows` chose."""
    numbers = np.append(np.arange(math.prod(geometry.window)), -1)
    rows, columns = np.divmod(numbers, geometry.window[1])
    of_number = (rows * shape[2] + columns) * shape[3]
    first_rows, first_columns = (
        np.arange(geometry.output[i]) * geometry.strides[i] - geometry.padding[i][0] for i in (0, 1)
    )
    first = (first_rows[:, np.newaxis] * shape[2] + first_columns) * shape[3]
    indices: Array = of_number[chosen]
    indices += first[..., np.newaxis] + np.arange(shape[3])
    return indices


@register_kernel(MAX_POOL_3D, types={"T": (DataType.DT_BFLOAT16, DataType.DT_FLOAT)}, factory=True)
@also_channels_first("MaxPool3D", where=pools_space_only)
@from_attrs(pool=partial(channels_last_pool, "Pooling3DOp", rank=5, sizes_first=True))
def max_pool_3d(*, pool: Pool) -> Callable[[Array], Array]:
    """Volumes in layout NDHWC; the padding counts as the least finite value."""
    pool.refuse_depth("Pooling")

    def pooled(x: Array) -> Array:
        geometry = pool.geometry(x.shape)
        padded = pad(x, geometry, lowest(x.dtype)).astype(np.float32, copy=False)
        inside = replace(geometry, padding=((0, 0),) * 3)
        result = reduce_windows(padded, inside, np.fmax, -np.inf)
        if result.size and np.isnan(padded).any():
            alone = ~_in_packets(result.shape)
            result[alone] = _maxima_after_nan(padded, inside)[alone]
        return result.astype(x.dtype, copy=False)

    return pooled


def _in_packets(shape: tuple[int, ...]) -> Array:
    """Which elements TensorFlow computes 8 at a time: flat runs of 8 that are in one pixel."""
    size = math.prod(shape)
    first = np.arange(size) // 8 * 8
    inside = (first + 8 <= size) & (first // shape[-1] == (first + 7) // shape[-1])
    mask: Array = inside.reshape(shape)
    return mask


def _maxima_after_nan(x: Array, geometry: Geometry) -> Array:
    """The maxima as TensorFlow computes them one at a time: after a NaN each starts anew."""
    best = np.full((x.shape[0], *geometry.output, x.shape[-1]), -np.inf, x.dtype)
    for _, _, elements in overlaps(geometry, x.shape[1:-1]):
        best = np.where(x[elements] < best, best, x[elements])
    return best


def _by_maxima(pool: str, *attrs: str) -> None:
    @g.register_gradient(pool)
    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        back = getattr(g.nodes, f"{pool}Grad")
        return back(op.inputs[0], op.outputs[0], grad, **g.attrs_of(op, *attrs))


_by_maxima("MaxPool", "ksize", "strides", "padding", "explicit_paddings", "data_format")
_by_maxima("MaxPool3D", "ksize", "strides", "padding", "data_format")


@g.register_gradient("MaxPoolV2")
def max_pool_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, *window = op.inputs
    attrs = g.attrs_of(op, "padding", "data_format")
    return g.nodes.MaxPoolGradV2(x, op.outputs[0], grad, *window, **attrs), None, None


@g.register_gradient("MaxPoolWithArgmax")
def max_pool_with_argmax_gradient(op: g.Operation, grad: g.Tensor, _: Any) -> g.Gradients:
    attrs = g.attrs_of(op, "ksize", "strides", "padding", "include_batch_in_index")
    return g.nodes.MaxPoolGradWithArgmax(op.inputs[0], grad, op.outputs[1], **attrs)
