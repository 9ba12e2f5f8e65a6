"""Means over windows and their gradients: AvgPool, AvgPool3D, AvgPoolGrad and AvgPool3DGrad.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/avgpooling_op.cc, pooling_ops_3d.cc.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import allocate, check_allocation, from_attrs
from opkernel.opdef import common_shapes, register_op
from opkernel.ops.input_checks import require_equal
from opkernel.ops.nn.channels_first import also_channels_first, pools_space_only
from opkernel.ops.nn.pooling import Pool, channels_last_pool, reduce_windows, window_sizes
from opkernel.ops.nn.windows import Geometry, check_rank, overlaps, sizes_from_tensor
from opkernel.ops.registration import FLOATS, NARROW_FLOATS, register_kernel
from opkernel.types import Array, DataType, as_dtype


def _attrs(rank: int) -> list[str]:
    """The attrs of windows for inputs of a rank."""
    layouts = "{'NHWC', 'NCHW'} = 'NHWC'" if rank == 4 else "{'NDHWC', 'NCDHW'} = 'NDHWC'"
    return [
        f"ksize: list(int) >= {rank}",
        f"strides: list(int) >= {rank}",
        "padding: {'SAME', 'VALID'}",
        f"data_format: {layouts}",
        "T: {half, bfloat16, float, double}",
    ]


AVG_POOL = register_op(
    "AvgPool(value: T) -> output: T",
    attrs=_attrs(4),
    shape_fn=common_shapes.avg_pool_shape,
    doc="The means over windows of images; padding does not count.",
    traits="images=i:i row_rule=first_alone function_gradient=yes",
)
AVG_POOL_3D = register_op(
    "AvgPool3D(input: T) -> output: T",
    attrs=_attrs(5),
    shape_fn=common_shapes.pool3d_shape,
    doc="The means over windows of volumes; padding does not count.",
    traits="images=i:i",
)
AVG_POOL_GRAD = register_op(
    "AvgPoolGrad(orig_input_shape: int32, grad: T) -> output: T",
    attrs=_attrs(4),
    shape_fn=common_shapes.avg_pool_grad_shape,
    doc="The gradient of AvgPool by its input, whose shape is given.",
    traits="images=si:i",
)
AVG_POOL_3D_GRAD = register_op(
    "AvgPool3DGrad(orig_input_shape: int32, grad: T) -> output: T",
    attrs=_attrs(5),
    shape_fn=common_shapes.avg_pool3d_grad_shape,
    doc="The gradient of AvgPool3D by its input, whose shape is given.",
    traits="images=si:i",
)

_VOLUME_TYPES = (DataType.DT_BFLOAT16, DataType.DT_FLOAT)


def _refuse_channels(pool: Pool) -> None:
    if pool.depth != 1:
        raise UnimplementedError("Non-spatial pooling is not yet supported.")


def _sums(x: Array, geometry: Geometry) -> Array:
    """The sums over windows; in narrow types one element of the window after the other."""
    if as_dtype(x.dtype) not in NARROW_FLOATS:
        return reduce_windows(x, geometry, np.add, 0)
    sums = np.zeros((x.shape[0], *geometry.output, x.shape[-1]), x.dtype)
    for _, windows, elements in overlaps(geometry, x.shape[1:-1]):
        sums[windows] += x[elements]
    return sums


def _mean(x: Array, geometry: Geometry, counted: int = 2**31) -> Array:
    """The sums over windows, divided by how many elements each sees, `counted` at most."""
    counts: Array | int = math.prod(geometry.window)
    if geometry.is_padded:
        counts = window_sizes(geometry, x.shape[1:-1])
    sums = _sums(x, geometry)
    np.divide(sums, np.minimum(counts, counted).astype(x.dtype), out=sums)
    return sums


_COUNTED = {DataType.DT_HALF: 2048, DataType.DT_BFLOAT16: 256}
"""As far as a narrow float can count: TensorFlow counts elements in the type of the images."""


@register_kernel(AVG_POOL, types={"T": FLOATS}, factory=True)
@also_channels_first("AvgPool", where=pools_space_only)
@from_attrs(pool=partial(channels_last_pool, "AvgPoolingOp"))
def avg_pool(*, T: DataType, pool: Pool) -> Callable[[Array], Array]:
    """Images in layout NHWC."""
    counted = _COUNTED.get(T, 2**31)

    def pooled(x: Array) -> Array:
        check_rank("tensor_in", x, 4)
        _refuse_channels(pool)
        return _mean(x, pool.geometry(x.shape), counted)

    return pooled


@register_kernel(AVG_POOL_3D, types={"T": _VOLUME_TYPES}, factory=True)
@also_channels_first("AvgPool3D", where=pools_space_only)
@from_attrs(pool=partial(channels_last_pool, "Pooling3DOp", rank=5, sizes_first=True))
def avg_pool_3d(*, pool: Pool) -> Callable[[Array], Array]:
    """Volumes in layout NDHWC."""
    pool.refuse_depth("Pooling")

    return lambda x: _mean(x, pool.geometry(x.shape))


class _Spans:
    """Where the gradients of windows go along one axis.

    Of a padded window that is larger than the input TensorFlow takes more elements than the window
    has; that is so here too.

    Attributes:
        lengths: how many elements each window gives its gradient to.
        meetings: windows, and the elements of these that are at one offset in them, last offset
            first. The windows are neighbours, since they begin to reach to an offset, and end to,
            one after the other.
    """

    def __init__(self, count: int, size: int, window: int, stride: int, before: int) -> None:
        if (count - 1) * stride > size:
            raise InvalidArgumentError(
                f"index * stride must be less than or equal to input size, got {count - 1} * {stride} and {size}"
            )
        place = np.arange(count) * stride - before
        start = np.maximum(place, 0)
        whole = window + np.minimum(place, 0)
        self.lengths = np.where(start + window > size, np.minimum(size - start, window), whole)
        first, last = start - place, start - place + self.lengths
        self.meetings: list[tuple[slice, slice]] = []
        for offset in in_time(range(first.min(initial=window), last.max(initial=0))[::-1], SLOW):
            windows = np.flatnonzero((first <= offset) & (offset < last))
            if windows.size:
                begin, end = int(windows[0]), int(windows[-1])
                elements = slice(int(place[begin]) + offset, int(place[end]) + offset + 1, stride)
                self.meetings.append((slice(begin, end + 1), elements))


_small_spans = functools.lru_cache(maxsize=64)(_Spans)
_SMALL_WINDOW = 64
"""The size of windows up to which their spans are kept."""


def _share_out(gradient: Array, spatial: Sequence[int], pool: Pool) -> Array:
    """Give each window's gradient to its elements, in equal shares.

    There are as many windows as the gradient has, whatever number follows from the sizes, as in TensorFlow.
    """
    geometry = pool.windows.geometry(spatial, pool.ksize)
    spans = _small_spans if max(pool.ksize) <= _SMALL_WINDOW else _Spans
    axes = [
        spans(
            gradient.shape[i + 1], size, pool.ksize[i], geometry.strides[i], geometry.padding[i][0]
        )
        for i, size in enumerate(spatial)
    ]
    counts = functools.reduce(np.multiply.outer, [axis.lengths for axis in axes])
    shares = gradient * (1 / counts).astype(gradient.dtype)[..., np.newaxis]
    shape = (gradient.shape[0], *spatial, gradient.shape[-1])
    out = allocate(shape, as_dtype(gradient.dtype))
    out.fill(0)
    for found in in_time(itertools.product(*(axis.meetings for axis in axes)), SLOW):
        windows, elements = zip(*found, strict=True)
        out[(slice(None), *elements)] += shares[(slice(None), *windows)]
    return out


@register_kernel(AVG_POOL_GRAD, types={"T": FLOATS}, host_memory=["orig_input_shape"], factory=True)
@also_channels_first("AvgPoolGrad", where=pools_space_only)
@from_attrs(pool=partial(channels_last_pool, "AvgPoolingGradOp", any_depth=True))
def avg_pool_grad(*, pool: Pool) -> Callable[[Array, Array], Array]:
    """Channels and batch of the gradient need not be those of the input: see `_flat_start`."""

    def gradient_by_input(orig_input_shape: Array, gradient: Array) -> Array:
        sizes = sizes_from_tensor("orig_input_shape", orig_input_shape)
        require_equal(len(sizes), 4, "orig_input_shape must have 4 elements, got {}")
        check_rank("out_backprop", gradient, 4)
        _refuse_channels(pool)
        return _flat_start(_share_out(gradient, sizes[1:3], pool), sizes)

    return gradient_by_input


def _flat_start(values: Array, shape: tuple[int, ...]) -> Array:
    """Zeros that begin with these values, in the order of memory."""
    if values.shape == shape:
        return values
    out = allocate(shape, as_dtype(values.dtype))
    if values.size > out.size:
        raise InvalidArgumentError(
            f"Output only has {out.size} elements but computation requested would use {values.size}"
        )
    out.fill(0)
    out.reshape(-1)[: values.size] = values.reshape(-1)
    return out


@register_kernel(
    AVG_POOL_3D_GRAD, types={"T": _VOLUME_TYPES}, host_memory=["orig_input_shape"], factory=True
)
@also_channels_first("AvgPool3DGrad", where=pools_space_only)
@from_attrs(pool=partial(channels_last_pool, "AvgPooling3dGradOp", rank=5, sizes_first=True))
def avg_pool_3d_grad(*, pool: Pool) -> Callable[[Array, Array], Array]:
    pool.refuse_depth("Pooling")

    def gradient_by_input(orig_input_shape: Array, gradient: Array) -> Array:
        sizes = sizes_from_tensor("orig_input_shape", orig_input_shape)
        require_equal(len(sizes), 5, "orig_input_shape must have 5 elements, got {}")
        check_rank("out_backprop", gradient, 5)
        if (sizes[0], sizes[-1]) != (gradient.shape[0], gradient.shape[-1]):
            raise InvalidArgumentError(
                "Expected first and last dimension of orig_input_shape and out_backprop to match, "
                f"got {list(sizes)} and {list(gradient.shape)}"
            )
        if not gradient.size:
            return np.zeros(check_allocation(sizes, as_dtype(gradient.dtype)), gradient.dtype)
        return _share_out(gradient, sizes[1:4], pool)

    return gradient_by_input


def _register_gradients(pool: str) -> None:
    """Each op gives the gradient of the other; both are linear."""

    @g.register_gradient(pool)
    def pool_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        attrs = g.attrs_of(op, "ksize", "strides", "padding", "data_format")
        return getattr(g.nodes, f"{pool}Grad")(g.shape_of(op.inputs[0]), grad, **attrs)

    @g.register_gradient(f"{pool}Grad")
    def pool_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        attrs = g.attrs_of(op, "ksize", "strides", "padding", "data_format")
        return None, getattr(g.nodes, pool)(grad, **attrs)


_register_gradients("AvgPool")
_register_gradients("AvgPool3D")
