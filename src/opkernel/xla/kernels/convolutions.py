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
from opkernel.ops.kernel_types import NARROW_FLOATS
from opkernel.ops.nn.conv.attrs import (
    check_num_spatial,
    conv2d_windows,
    conv3d_windows,
    windows_of_conv,
)
from opkernel.ops.nn.conv.kernels import check_filter, convolution
from opkernel.ops.nn.geometry import (
    Windows,
    check_rank,
    check_shape,
    sizes_from_tensor,
)
from opkernel.ops.nn.windows import Geometry
from opkernel.types import as_dtype
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.kernels.window_elements import elements_of_windows
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
    return convolution(
        x,
        grouped,
        windows,
        lambda x, _, geometry, windows: _depthwise(x, filters, geometry, windows),
    )


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


_SizesOf = Callable[[Any, Any, Any], Sequence[int]]
"""The shape of the gradient, from the input that tells it, the other one, and the gradient by the output."""


def _told(name: str) -> _SizesOf:
    """It is the value of an input of that name."""
    return lambda given, other, gradient: sizes_from_tensor(name, given)


def _like(given: Any, other: Any, gradient: Any) -> Sequence[int]:
    """It is that of the input."""
    return tuple(given.shape)


def _of_images(windows: Windows) -> _SizesOf:
    """It is the value of the input, which may have rows and columns alone."""

    def sizes_of(given: Any, filters: Any, gradient: Any) -> Sequence[int]:
        sizes = sizes_from_tensor("input_sizes", given)
        if len(sizes) != 2:
            return sizes
        check_rank("filter", filters, 4)
        check_rank("out_backprop", gradient, 4)
        return windows.shape(gradient.shape[0], sizes, filters.shape[2])

    return sizes_of


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


def _by_input(windows: Windows, sizes_of: _SizesOf, *, depthwise: bool = False) -> Any:
    """The kernel of the gradient by the input."""

    def by_input(given: Any, filters: Any, gradient: Any) -> Any:
        sizes = tuple(sizes_of(given, filters, gradient))
        compute, expected = _forward(sizes, filters.shape, windows, depthwise)
        check_shape("out_backprop", gradient.shape, expected)
        if 0 in sizes or not (filters.size and gradient.size):
            return np.zeros(sizes, gradient.dtype)
        wide = _in_float(filters)
        return _transposed(lambda x: compute(x, wide), sizes, gradient)

    return by_input


def _by_filters(windows: Windows, sizes_of: _SizesOf, *, depthwise: bool = False) -> Any:
    """The kernel of the gradient by the filters."""

    def by_filters(x: Any, given: Any, gradient: Any) -> Any:
        sizes = tuple(sizes_of(given, x, gradient))
        compute, expected = _forward(x.shape, sizes, windows, depthwise)
        check_shape("out_backprop", gradient.shape, expected)
        if 0 in sizes or not (x.size and gradient.size):
            return np.zeros(sizes, gradient.dtype)
        wide = _in_float(x)
        return _transposed(lambda filters: compute(wide, filters), sizes, gradient)

    return by_filters


@register_xla_kernel("Conv2DBackpropInput", compile_time_constants=["input_sizes"], factory=True)
@from_attrs(windows=conv2d_windows)
def conv2d_backprop_input(*, windows: Windows) -> Any:
    return _by_input(windows, _of_images(windows))


def _gradient(op: str, told_by: str, windows_of: Callable[..., Windows]) -> Callable[..., Any]:
    """The maker of a gradient's kernel; an input tells its shape, or has it."""
    by = _by_filters if "BackpropFilter" in op else _by_input
    sizes_of = _told(told_by) if told_by else _like

    @from_attrs(windows=windows_of)
    def make(*, windows: Windows) -> Any:
        return by(windows, sizes_of, depthwise=op.startswith("Depthwise"))

    return make


_IMAGES = partial(conv2d_windows, refusal=InvalidArgumentError)
_LIKE_VOLUMES = partial(conv3d_windows, data_format="NDHWC")
for _op, _told_by, _windows_of in (
    ("Conv2DBackpropFilter", "filter_sizes", _IMAGES),
    ("DepthwiseConv2dNativeBackpropInput", "input_sizes", _IMAGES),
    ("DepthwiseConv2dNativeBackpropFilter", "filter_sizes", _IMAGES),
    ("Conv3DBackpropInputV2", "input_sizes", conv3d_windows),
    ("Conv3DBackpropFilterV2", "filter_sizes", conv3d_windows),
    ("Conv3DBackpropInput", "", _LIKE_VOLUMES),
    ("Conv3DBackpropFilter", "", _LIKE_VOLUMES),
):
    register_xla_kernel(_op, compile_time_constants=[_told_by] if _told_by else [], factory=True)(
        _gradient(_op, _told_by, _windows_of)
    )
