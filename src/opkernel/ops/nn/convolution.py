"""What convolutions and their gradients compute, and what they refuse, on any number of axes.

The computation is in channels-last layout, the only one that TensorFlow's CPU kernels compute in.

Source: TensorFlow core/kernels/conv_ops_impl.h, conv_grad_shape_utils.cc.
"""

from collections.abc import Callable, Sequence

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import allocate
from opkernel.ops.math.products import Finish
from opkernel.ops.nn.channelwise import convolve_channelwise
from opkernel.ops.nn.geometry import Windows, check_rank
from opkernel.ops.nn.im2col import convolve
from opkernel.ops.nn.im2col_gradients import (
    convolve_backprop_filter,
    convolve_backprop_input,
    correlate_gradient,
)
from opkernel.ops.nn.narrow_products import NARROW_FLOATS, product_for
from opkernel.ops.nn.windows import Array, Geometry
from opkernel.ops.nn.winograd import convolve_3x3
from opkernel.types import as_dtype

__all__ = [
    "backprop_filter",
    "backprop_input",
    "check_filter",
    "check_unit_dilations",
    "convolution",
    "convolve_images",
    "convolve_volumes",
]


def _widened(x: Array) -> Array:
    """The array in the type that sums of its products are computed in: narrow floats in float."""
    return x.astype(np.float32) if as_dtype(x.dtype) in NARROW_FLOATS else x


def convolution(
    x: Array,
    filters: Array,
    windows: Windows,
    compute: Callable[[Array, Array, Geometry, Windows], Array],
) -> Array:
    """The convolution of images or volumes.

    Args:
        x: the input, in the layout of `windows`.
        filters: `[*window, in, out]`.
        windows: how the filter slides.
        compute: `convolve_images` or `convolve_volumes`. As in TensorFlow it is not asked, and so
            can refuse nothing, where the result is empty or all padding.
    """
    channels, depth = x.shape[windows.data_format.feature_index(x.ndim)], filters.shape[-2]
    if depth == 0 or channels % depth:
        raise InvalidArgumentError(
            f"input depth must be evenly divisible by filter depth: {channels} vs {depth}"
        )
    geometry = windows.geometry(windows.spatial(x.shape), filters.shape[:-2])
    shape = windows.shape(x.shape[0], geometry.output, filters.shape[-1])
    if 0 in shape or x.size == 0:
        empty = allocate(shape, as_dtype(x.dtype))
        empty.fill(0)
        return empty
    return compute(x, filters, geometry, windows)


def check_filter(filters: Array) -> None:
    """Refuse a filter without elements."""
    if filters.size == 0:
        raise InvalidArgumentError(
            "filter must not have zero elements (i.e. all dimensions must be non-zero), "
            f"got shape {list(filters.shape)}"
        )


def convolve_images(
    x: Array, filters: Array, geometry: Geometry, windows: Windows, finish: Finish | None = None
) -> Array:
    """The convolution of images, in groups where the filter has fewer channels than they.

    Half and bfloat16 are computed in float. `finish` changes results in place (`convolve`).

    Raises:
        UnimplementedError: the layout is NCHW.
        InvalidArgumentError: the filter is empty, or its output cannot be divided into the groups.
    """
    if not windows.channels_last:
        raise UnimplementedError(
            "The Conv2D op currently only supports the NHWC tensor format on the CPU. "
            f"The op was given the format: {windows.data_format.value}"
        )
    check_filter(filters)
    if x.shape[-1] != filters.shape[-2]:
        compute = _convolve_groups
    else:
        result = convolve_3x3(x, filters, geometry, finish)
        if result is not None:
            return result
        compute = convolve
    return compute(_widened(x), _widened(filters), geometry, finish).astype(x.dtype, copy=False)


def convolve_volumes(x: Array, filters: Array, geometry: Geometry, windows: Windows) -> Array:
    """The convolution of volumes.

    Raises:
        InvalidArgumentError: the layout is NCDHW, the windows have gaps, there are groups, or the
            filter is empty.
    """
    if not windows.channels_last:
        raise InvalidArgumentError(
            "CPU implementation of Conv3D currently only supports the NHWC tensor format"
        )
    check_unit_dilations(windows)
    check_filter(filters)
    if x.shape[-1] != filters.shape[-2]:
        raise InvalidArgumentError(
            f"Number of channels in filter ({filters.shape[-2]}) must match last dimension of "
            f"input ({x.shape[-1]})"
        )
    return convolve(x, filters, geometry, product=product_for(x.dtype))


def check_unit_dilations(windows: Windows) -> None:
    """Refuse dilations, which some of TensorFlow's CPU kernels do not compute."""
    if max(windows.dilations) > 1:
        raise InvalidArgumentError(
            "Current CPU implementations do not yet support dilation rates larger than 1, "
            f"got {list(windows.dilations)}"
        )


def _convolve_groups(x: Array, filters: Array, geometry: Geometry, finish: Finish | None) -> Array:
    """The convolution of as many groups of channels as the filter's channels fit into the input."""
    *window, depth, out_depth = filters.shape
    groups = x.shape[-1] // depth
    if out_depth % groups:
        raise InvalidArgumentError(
            f"output depth must be evenly divisible by number of groups: {out_depth} vs {groups}"
        )
    if depth == 1 and len(window) == 2:
        by_channel = filters.reshape(*window, groups, out_depth // groups)
        result = convolve_channelwise(x, by_channel, geometry)
    else:
        inputs = np.split(x, groups, axis=-1)
        parts = np.split(filters, groups, axis=-1)
        results = [convolve(i, f, geometry) for i, f in zip(inputs, parts, strict=True)]
        result = np.concatenate(results, axis=-1)
    if finish is not None:
        finish(result, (slice(None),) * result.ndim)
    return result


def _backprop_geometry(
    op: str,
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    gradient: Array,
    windows: Windows,
) -> Geometry:
    """The geometry of the convolution whose gradients are asked for; its shapes are checked."""
    rank = len(windows.strides) + 2
    if len(input_shape) != rank or len(filter_shape) != rank:
        raise InvalidArgumentError(
            f"{op}: input and filter must be {rank}-dimensional, got {list(input_shape)} and "
            f"{list(filter_shape)}"
        )
    check_rank(f"{op}: out_backprop", gradient, rank)
    if filter_shape[-2] == 0:
        raise InvalidArgumentError(f"{op}: filter depth must be strictly greater than zero")
    if input_shape[-1] != filter_shape[-2]:
        raise InvalidArgumentError(
            "Gradients for grouped convolutions are not supported on CPU. "
            f"Input depth {input_shape[-1]} doesn't match filter input depth {filter_shape[-2]}"
        )
    geometry = windows.geometry(input_shape[1:-1], filter_shape[:-2])
    expected = (input_shape[0], *geometry.output, filter_shape[-1])
    if gradient.shape != expected:
        raise InvalidArgumentError(
            f"{op}: Size of out_backprop doesn't match computed: actual = "
            f"{list(gradient.shape)}, computed = {list(expected)}"
        )
    return geometry


def backprop_input(
    op: str, input_shape: Sequence[int], filters: Array, gradient: Array, windows: Windows
) -> Array:
    """The gradient of a convolution by its input of this shape.

    Raises:
        InvalidArgumentError: the shapes are not those of one convolution, or it has groups.
    """
    geometry = _backprop_geometry(op, input_shape, filters.shape, gradient, windows)
    return convolve_backprop_input(
        input_shape, filters, gradient, geometry, product_for(gradient.dtype)
    )


def _all_finite(*arrays: Array) -> bool:
    return all(np.isfinite(array).all() for array in arrays)


def backprop_filter(
    op: str, x: Array, filter_shape: Sequence[int], gradient: Array, windows: Windows
) -> Array:
    """The gradient of a convolution by its filter of this shape.

    Raises:
        InvalidArgumentError: the shapes are not those of one convolution, or it has groups.
    """
    geometry = _backprop_geometry(op, x.shape, filter_shape, gradient, windows)
    # Of volumes TensorFlow computes the gradient in the order of `correlate_gradient`.
    poisoned = len(windows.strides) == 3 and not _all_finite(x, gradient)
    compute = correlate_gradient if poisoned else convolve_backprop_filter
    return compute(x, filter_shape, gradient, geometry, product_for(x.dtype))
