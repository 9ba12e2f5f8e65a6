"""Convolutions. OpenVINO wants the channels first: axes are turned around each, and turns between two meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel.engines.openvino.layout import channels_first, in_layout
from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.tensors import permuted, reshaped, shape_of
from opkernel.kernel import from_attrs
from opkernel.ops.nn.conv.attrs import conv2d_windows, conv3d_windows
from opkernel.ops.nn.geometry import Windows

__all__ = ["convolved", "depthwise"]


def convolved(x: Any, filters: Any, windows: Windows) -> Any:
    """The convolution, channels first; in groups where the filter has fewer channels than the input."""
    *window, depth, features = shape_of(filters)
    geometry = windows.geometry(windows.spatial(shape_of(x)), window)
    rank = len(window) + 2
    images = channels_first(x, windows)
    kernels = permuted(filters, (rank - 1, rank - 2, *range(rank - 2)))
    groups = shape_of(images)[1] // depth
    convolve = opset().convolution
    if groups > 1:
        kernels = reshaped(kernels, (groups, features // groups, depth, *window))
        convolve = opset().group_convolution
    before, after = zip(*geometry.padding, strict=True)
    return convolve(images, kernels, windows.strides, before, after, windows.dilations).output(0)


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
    input_sizes: Any,
    filters: Any,
    gradient: Any,
    *,
    windows: Windows,
    output_shapes: list[tuple[int, ...]],
) -> Any:
    *window, depth, features = shape_of(filters)
    sizes = windows.spatial(output_shapes[0])
    geometry = windows.geometry(sizes, window)
    images = channels_first(gradient, windows)
    groups = _channels(output_shapes[0], windows) // depth
    kernels = permuted(filters, (3, 2, 0, 1))
    transposed = opset().convolution_backprop_data
    if groups > 1:
        kernels = reshaped(kernels, (groups, features // groups, depth, *window))
        transposed = opset().group_convolution_backprop_data
    before, after = zip(*geometry.padding, strict=True)
    made = transposed(
        images,
        kernels,
        windows.strides,
        pads_begin=before,
        pads_end=after,
        dilations=windows.dilations,
        output_padding=_left_over(sizes, geometry),
    )
    return in_layout(made.output(0), windows)


def _channels(shape: Sequence[int], windows: Windows) -> int:
    return shape[windows.data_format.feature_index(len(shape))]


def _left_over(sizes: Sequence[int], geometry: Any) -> list[int]:
    """How much larger the input is than what the windows see of it."""
    return [
        size + sum(padding) - ((count - 1) * stride + (window - 1) * dilation + 1)
        for size, padding, count, stride, window, dilation in zip(
            sizes,
            geometry.padding,
            geometry.output,
            geometry.strides,
            geometry.window,
            geometry.dilations,
            strict=True,
        )
    ]
