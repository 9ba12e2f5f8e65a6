"""Convolutions, and means and maxima over windows.

OpenVINO wants the channels first: axes are turned around each, and turns between two meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.tensors import (
    Shapes,
    channels_first,
    in_layout,
    permuted,
    reshaped,
    shape_of,
)
from opkernel.kernel import from_attrs
from opkernel.ops.nn.conv.kernels import conv2d_windows, conv3d_windows
from opkernel.ops.nn.pooling import Pool, padded_pool_in_layout, pool_in_layout
from opkernel.ops.nn.windows import Geometry, Windows

__all__ = ["convolved", "depthwise"]


def convolved(x: Any, filters: Any, windows: Windows) -> Any:
    """The convolution, channels first; in groups where the filter has fewer channels than the input."""
    *window, depth, _ = shape_of(filters)
    geometry = windows.geometry(windows.spatial(shape_of(x)), window)
    images = channels_first(x, windows)
    groups = shape_of(images)[1] // depth
    convolve = opset().convolution if groups == 1 else opset().group_convolution
    kernels = _kernels(filters, groups)
    before, after = zip(*geometry.padding, strict=True)
    return convolve(images, kernels, windows.strides, before, after, windows.dilations).output(0)


def _kernels(filters: Any, groups: int) -> Any:
    """Filters with their channels first; group by group where there are several."""
    *window, depth, features = shape_of(filters)
    rank = len(window) + 2
    kernels = permuted(filters, (rank - 1, rank - 2, *range(rank - 2)))
    if groups == 1:
        return kernels
    return reshaped(kernels, (groups, features // groups, depth, *window))


def depthwise(x: Any, filters: Any, windows: Windows) -> Any:
    """The convolution of each channel by itself, channels first."""
    *window, channels, multiplier = shape_of(filters)
    return convolved(x, reshaped(filters, (*window, 1, channels * multiplier)), windows)


@openvino_op("Conv2D", differs_for_non_finite=True)
@from_attrs(windows=conv2d_windows)
def conv2d(x: Any, filters: Any, *, windows: Windows) -> Any:
    return in_layout(convolved(x, filters, windows), windows)


@openvino_op("Conv3D", differs_for_non_finite=True)
@from_attrs(windows=conv3d_windows)
def conv3d(x: Any, filters: Any, *, windows: Windows) -> Any:
    return in_layout(convolved(x, filters, windows), windows)


@openvino_op("DepthwiseConv2dNative", differs_for_non_finite=True)
@from_attrs(windows=conv2d_windows)
def depthwise_conv2d(x: Any, filters: Any, *, windows: Windows) -> Any:
    return in_layout(depthwise(x, filters, windows), windows)


@openvino_op("Conv2DBackpropInput", constants=["input_sizes"], differs_for_non_finite=True)
@from_attrs(windows=conv2d_windows)
def conv2d_backprop_input(
    input_sizes: Any, filters: Any, gradient: Any, *, windows: Windows, output_shapes: Shapes
) -> Any:
    *window, depth, _ = shape_of(filters)
    sizes = windows.spatial(output_shapes[0])
    geometry = windows.geometry(sizes, window)
    images = channels_first(gradient, windows)
    groups = _channels(output_shapes[0], windows) // depth
    ops = opset()
    transposed = (
        ops.convolution_backprop_data if groups == 1 else ops.group_convolution_backprop_data
    )
    kernels = _kernels(filters, groups)
    before, after = zip(*geometry.padding, strict=True)
    places = {"pads_begin": before, "pads_end": after, "dilations": windows.dilations}
    left = _left_over(sizes, geometry)
    made = transposed(images, kernels, windows.strides, output_padding=left, **places)
    return in_layout(made.output(0), windows)


def _channels(shape: Sequence[int], windows: Windows) -> int:
    return shape[windows.data_format.feature_index(len(shape))]


def _left_over(sizes: Sequence[int], g: Geometry) -> list[int]:
    """How much larger the input is than what the windows see of it."""
    axes = zip(sizes, g.padding, g.output, g.strides, g.window, g.dilations, strict=True)
    return [
        size + sum(padding) - ((count - 1) * stride + (window - 1) * dilation + 1)
        for size, padding, count, stride, window, dilation in axes
    ]


def _pooled(x: Any, pool: Pool, *, is_mean: bool) -> Any:
    """The means or the maxima of windows."""
    ops, windows = opset(), pool.windows
    geometry = windows.geometry(windows.spatial(shape_of(x)), pool.ksize)
    padding = zip(*geometry.padding, strict=True)
    images, strides = channels_first(x, windows), windows.strides
    if is_mean:
        made = ops.avg_pool(images, strides, *padding, pool.ksize, exclude_pad=True)
    else:
        made = ops.max_pool(images, strides, windows.dilations, *padding, pool.ksize)
    return in_layout(made.output(0), windows)


def _over_channels(*, ksize: list[int], strides: list[int], data_format: str) -> str:
    axis = data_format.index("C")
    return "its windows are over channels" if (ksize[axis], strides[axis]) != (1, 1) else ""


@openvino_op("AvgPool", refuses=_over_channels)
@from_attrs(pool=pool_in_layout)
def avg_pool(x: Any, *, pool: Pool) -> Any:
    return _pooled(x, pool, is_mean=True)


@openvino_op("AvgPool3D", refuses=_over_channels)
@from_attrs(pool=partial(pool_in_layout, rank=5))
def avg_pool_3d(x: Any, *, pool: Pool) -> Any:
    return _pooled(x, pool, is_mean=True)


@openvino_op("MaxPool", refuses=_over_channels)
@from_attrs(pool=padded_pool_in_layout)
def max_pool(x: Any, *, pool: Pool) -> Any:
    return _pooled(x, pool, is_mean=False)


@openvino_op("MaxPool3D", refuses=_over_channels, differs_for_non_finite=True)
@from_attrs(pool=partial(pool_in_layout, rank=5))
def max_pool_3d(x: Any, *, pool: Pool) -> Any:
    return _pooled(x, pool, is_mean=False)
