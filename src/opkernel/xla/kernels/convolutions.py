"""Convolutions by `lax.conv_general_dilated`; their gradients are its transposes.

All layouts, gaps in windows and groups are computed, also those that the kernels of the CPU refuse. Half and
bfloat16 are computed in float.

Source: TensorFlow compiler/tf2xla/kernels/conv_ops.cc, conv_op_helpers.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.ops.nn.conv.kernels import (
    check_filter,
    check_num_spatial,
    conv2d_windows,
    conv3d_windows,
    convolution,
    windows_of_conv,
)
from opkernel.ops.nn.windows import Geometry, Windows, check_rank, check_shape, sizes_from_tensor
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.types import as_dtype
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.kernels.pooling import elements_of_windows
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["convolved"]

_Compute = Callable[[Any, Any], Any]

_MOST_STEPS = 64
"""Elements of a window up to which a depthwise convolution is a sum of products."""


def _in_float(x: Any) -> Any:
    return x.astype(np.float32) if as_dtype(x.dtype) in NARROW_FLOATS else x


def convolved(x: Any, filters: Any, geometry: Geometry, windows: Windows) -> Any:
    """The convolution, in groups where the filter has fewer channels than the input."""
    check_filter(filters)
    channels = x.shape[windows.data_format.feature_index(x.ndim)]
    groups, depth = channels // filters.shape[-2], filters.shape[-1]
    if depth % groups:
        raise InvalidArgumentError(
            f"output depth must be evenly divisible by number of groups: {depth} vs {groups}"
        )
    space = "DHW"[-len(windows.strides) :]
    layout = f"N{space}C" if windows.channels_last else f"NC{space}"
    result = lax().conv_general_dilated(
        _in_float(x),
        _in_float(filters),
        window_strides=windows.strides,
        padding=geometry.padding,
        rhs_dilation=windows.dilations,
        dimension_numbers=(layout, f"{space}IO", layout),
        feature_group_count=groups,
    )
    return result.astype(x.dtype)


def _depthwise(x: Any, filters: Any, geometry: Geometry, windows: Windows) -> Any:
    """The convolution of each channel by itself.

    XLA would make one of all channels of it, with zeros in the filter.
    """
    *window, channels, multiplier = filters.shape
    if math.prod(window) > _MOST_STEPS:
        grouped = filters.reshape(*window, 1, channels * multiplier)
        return convolved(x, grouped, geometry, windows)
    check_filter(filters)
    images = _in_float(x if windows.channels_last else jnp().moveaxis(x, 1, -1))
    padded = jnp().pad(images, ((0, 0), *geometry.padding, (0, 0)))
    result = _sum_of_products(padded, _in_float(filters), geometry).astype(x.dtype)
    return result if windows.channels_last else jnp().moveaxis(result, -1, 1)


def _sum_of_products(padded: Any, filters: Any, geometry: Geometry) -> Any:
    """Padded images times filters `[*window, channels, multiplier]`, one element of the window after the other."""
    total: Any = 0
    for place, spatial in elements_of_windows(geometry):
        total = total + padded[:, *spatial][..., np.newaxis] * filters[place]
    return total.reshape(*total.shape[:-2], -1)


@register_xla_kernel("Conv2D", factory=True)
@from_attrs(windows=conv2d_windows)
def conv2d(*, windows: Windows) -> _Compute:
    def kernel(x: Any, filters: Any) -> Any:
        check_rank("convolution input", x, 4)
        check_rank("convolution filter", filters, 4)
        return convolution(x, filters, windows, convolved)

    return kernel


@register_xla_kernel("Conv3D", factory=True)
@from_attrs(windows=conv3d_windows)
def conv3d(*, windows: Windows) -> _Compute:
    def kernel(x: Any, filters: Any) -> Any:
        check_rank("input", x, 5)
        check_rank("filter", filters, 5)
        check_filter(filters)
        return convolution(x, filters, windows, convolved)

    return kernel


@register_xla_kernel("DepthwiseConv2dNative", factory=True)
@from_attrs(windows=conv2d_windows)
def depthwise_conv2d(*, windows: Windows) -> _Compute:
    return lambda x, filters: depthwise_convolved(x, filters, windows)


def depthwise_convolved(x: Any, filters: Any, windows: Windows) -> Any:
    """The convolution of each channel of images by itself."""
    check_rank("input", x, 4)
    check_rank("filter", filters, 4)
    channels = x.shape[windows.data_format.feature_index(4)]
    if channels != filters.shape[2]:
        raise InvalidArgumentError(
            f"input and filter must have the same depth: {channels} vs {filters.shape[2]}"
        )
    grouped = filters.reshape(*filters.shape[:2], 1, math.prod(filters.shape[2:]))

    def convolve(x: Any, _: Any, geometry: Geometry, windows: Windows) -> Any:
        return _depthwise(x, filters, geometry, windows)

    return convolution(x, grouped, windows, convolve)


@register_xla_kernel("Conv", factory=True)
@from_attrs(windows_for=windows_of_conv)
def conv(*, windows_for: Callable[[int], Windows], batch_dims: int, groups: int) -> _Compute:
    def kernel(x: Any, filters: Any) -> Any:
        spatial = check_num_spatial(x.ndim, batch_dims)
        check_rank("filter", filters, spatial + 2)
        check_filter(filters)
        windows = windows_for(spatial)
        leading = x.shape[:batch_dims]
        batch = x.reshape(math.prod(leading), *x.shape[batch_dims:])
        channels = batch.shape[windows.data_format.feature_index(batch.ndim)]
        if channels != filters.shape[-2] * groups:
            raise InvalidArgumentError(
                f"Input depth must be equal to filter depth times groups: {channels} vs "
                f"{filters.shape[-2]} * {groups}"
            )
        result = convolution(batch, filters, windows, convolved)
        return result.reshape(*leading, *result.shape[1:])

    return kernel


_SizesOf = Callable[[Windows, Any, Any, Any], Sequence[int]]
"""The shape of the gradient, from the windows, the input that tells it, the other one, and the gradient by the output."""


def _told(name: str) -> _SizesOf:
    """It is the value of an input of that name."""
    return lambda windows, given, other, gradient: sizes_from_tensor(name, given)


def _like(windows: Windows, given: Any, other: Any, gradient: Any) -> Sequence[int]:
    """It is that of the input."""
    return tuple(given.shape)


def _of_images(windows: Windows, given: Any, filters: Any, gradient: Any) -> Sequence[int]:
    """It is the value of the input, which may have rows and columns alone."""
    sizes = sizes_from_tensor("input_sizes", given)
    if len(sizes) != 2:
        return sizes
    check_rank("filter", filters, 4)
    check_rank("out_backprop", gradient, 4)
    return windows.shape(gradient.shape[0], sizes, filters.shape[2])


def _forward(
    input_shape: Sequence[int], filter_shape: Sequence[int], windows: Windows, depthwise: bool
) -> tuple[_Compute, tuple[int, ...]]:
    """The convolution whose gradients are asked for, and the shape of its output; shapes are checked."""
    rank = len(windows.strides) + 2
    if len(input_shape) != rank or len(filter_shape) != rank:
        raise InvalidArgumentError(
            f"input and filter must be {rank}-dimensional, got {list(input_shape)} and "
            f"{list(filter_shape)}"
        )
    layout = windows.data_format
    channels, depth = input_shape[layout.feature_index(rank)], filter_shape[-2]
    if depth == 0 or channels % depth or (depthwise and channels != depth):
        raise InvalidArgumentError(
            f"input depth must be evenly divisible by filter depth: {channels} vs {depth}"
        )
    geometry = windows.geometry(windows.spatial(input_shape), filter_shape[:-2])
    features = channels * filter_shape[-1] if depthwise else filter_shape[-1]
    batch = input_shape[layout.batch_index(rank)]

    convolve = _depthwise if depthwise else convolved

    def compute(x: Any, filters: Any) -> Any:
        return convolve(x, filters, geometry, windows)

    return compute, windows.shape(batch, geometry.output, features)


def _transposed(linear: Callable[[Any], Any], shape: Sequence[int], gradient: Any) -> Any:
    """The gradient by the argument, of this shape, of a linear function; narrow floats in float."""
    wide = _in_float(gradient)
    (result,) = jax().linear_transpose(linear, jax().ShapeDtypeStruct(shape, wide.dtype))(wide)
    return result.astype(gradient.dtype)


def _gradient(
    op: str, windows_of: Callable[..., Windows], sizes_of: _SizesOf
) -> Callable[..., Any]:
    """The maker of a gradient's kernel."""
    is_depthwise, is_by_filters = op.startswith("Depthwise"), "BackpropFilter" in op

    @from_attrs(windows=windows_of)
    def make(*, windows: Windows) -> Callable[[Any, Any, Any], Any]:
        def gradient_of(first: Any, second: Any, gradient: Any) -> Any:
            given, other = (second, first) if is_by_filters else (first, second)
            sizes = tuple(sizes_of(windows, given, other, gradient))
            images, filters = (other.shape, sizes) if is_by_filters else (sizes, other.shape)
            compute, expected = _forward(images, filters, windows, is_depthwise)
            check_shape("out_backprop", gradient.shape, expected)
            if 0 in sizes or not (other.size and gradient.size):
                return np.zeros(sizes, gradient.dtype)
            wide = _in_float(other)
            if is_by_filters:
                return _transposed(lambda filters: compute(wide, filters), sizes, gradient)
            return _transposed(lambda x: compute(x, wide), sizes, gradient)

        return gradient_of

    return make


_IMAGES = partial(conv2d_windows, refusal=InvalidArgumentError)
_LIKE_VOLUMES = partial(conv3d_windows, data_format="NDHWC")
for _op, _told_by, _windows_of, _sizes_of in (
    ("Conv2DBackpropInput", ["input_sizes"], conv2d_windows, _of_images),
    ("Conv2DBackpropFilter", ["filter_sizes"], _IMAGES, _told("filter_sizes")),
    ("DepthwiseConv2dNativeBackpropInput", ["input_sizes"], _IMAGES, _told("input_sizes")),
    ("DepthwiseConv2dNativeBackpropFilter", ["filter_sizes"], _IMAGES, _told("filter_sizes")),
    ("Conv3DBackpropInputV2", ["input_sizes"], conv3d_windows, _told("input_sizes")),
    ("Conv3DBackpropFilterV2", ["filter_sizes"], conv3d_windows, _told("filter_sizes")),
    ("Conv3DBackpropInput", [], _LIKE_VOLUMES, _like),
    ("Conv3DBackpropFilter", [], _LIKE_VOLUMES, _like),
):
    register_xla_kernel(_op, compile_time_constants=_told_by, factory=True)(
        _gradient(_op, _windows_of, _sizes_of)
    )
