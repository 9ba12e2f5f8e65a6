"""Convolutions.

Source: TensorFlow python/ops/nn_ops.py, nn_impl.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.nn._sizes import full_sizes, image_attrs, padding_attrs, same_padding
from opkernel.endpoints.tensors import (
    TensorLike,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
    static_rank,
)


def _with_one_batch(x: Any, n: int, function: Callable[[Any], Any]) -> Any:
    """Apply a function of images in a batch to images in a batch of several axes."""
    rank = static_rank(x)
    if rank is None or rank <= n + 2:
        return function(x)
    shape = raw_ops.Shape(input=x)
    inner = raw_ops.ConcatV2(values=[np.array([-1], np.int32), shape[rank - n - 1 :]], axis=0)
    found = function(raw_ops.Reshape(tensor=x, shape=inner))
    sizes = [shape[: rank - n - 1], raw_ops.Shape(input=found)[1:]]
    return raw_ops.Reshape(tensor=found, shape=raw_ops.ConcatV2(values=sizes, axis=0))


@composed
def conv1d(
    input: TensorLike,
    filters: TensorLike,
    stride: Any,
    padding: Any,
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The convolution of sequences.

    Args:
        input: [batch, width, channels], or [batch, channels, width] with "NCW". Floating point.
        filters: [width, channels, output channels].
        stride: a number.
        padding: "SAME" (zeros, so that the output is as wide as the input divided by the stride),
            "VALID" (no zeros), or how many zeros before and after each axis.
        data_format: "NWC" or "NCW".
        dilations: how far the elements of the filter are apart; 1 if None.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: `data_format` or a number of strides is not one of these.
    """
    formats: dict[str | None, Any] = {
        None: "NHWC",
        "NWC": "NHWC",
        "NHWC": "NHWC",
        "NCW": "NCHW",
        "NCHW": "NCHW",
    }
    if data_format not in formats:
        raise ValueError(f'data_format is "NWC" or "NCW", and not {data_format!r}')
    wide = formats[data_format]
    is_first = wide == "NCHW"
    axis = 2 if is_first else 1
    sizes: dict[str, Any] = {
        name: full_sizes(value, 1, is_first, name)
        for name, value in (("strides", stride), ("dilations", dilations))
    }
    for numbers in sizes.values():
        numbers.insert(axis, 1)
    attrs = padding_attrs(padding)
    if "explicit_paddings" in attrs:
        attrs["explicit_paddings"][2 * axis : 2 * axis] = [0, 0]
    image = raw_ops.ExpandDims(input=convert(input), axis=axis - 4)
    kernel = raw_ops.ExpandDims(input=like(filters, dtype_of(image)), axis=0)

    def convolved(x: Any) -> Any:
        return raw_ops.Conv2D(input=x, filter=kernel, data_format=wide, **sizes, **attrs)

    found = _with_one_batch(image, 2, convolved)
    return raw_ops.Squeeze(input=found, axis=[axis - 4])


@composed
def conv2d(
    input: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The convolution of images.

    Args:
        input: [batch, height, width, channels], or channels after the batch with "NCHW". Floating point
            or int32.
        filters: [height, width, channels, output channels], of the same type.
        strides: a number, a list of one for each axis of an image, or for each axis of the input.
        padding: "SAME" (zeros, so that the output is as large as the input divided by the strides),
            "VALID" (no zeros), or how many zeros before and after each axis.
        data_format: "NHWC" or "NCHW".
        dilations: how far the elements of the filter are apart, given as strides are; 1 if None.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: a number of strides or the padding is not one of these.
    """
    x = convert(input)
    attrs = image_attrs(2, data_format or "NHWC", strides, dilations) | padding_attrs(padding)
    kernel = like(filters, dtype_of(x))
    return _with_one_batch(
        x, 2, lambda images: raw_ops.Conv2D(input=images, filter=kernel, **attrs)
    )


@composed
def conv3d(
    input: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: str,
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The convolution of volumes; the arguments are those of conv2d, with one axis more."""
    x = convert(input)
    attrs = image_attrs(3, data_format or "NDHWC", strides, dilations) | padding_attrs(padding)
    kernel = like(filters, dtype_of(x))
    return _with_one_batch(
        x, 3, lambda volumes: raw_ops.Conv3D(input=volumes, filter=kernel, **attrs)
    )


@composed
def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """conv1d, conv2d or conv3d, by the rank of the filters.

    Raises:
        ValueError: the filters have another rank.
    """
    kernel = convert(filters)
    n = known_rank(kernel, "convolution") - 2
    functions: dict[int, tuple[Callable[..., Any], str]] = {
        1: (conv1d, "NWC"), 2: (conv2d, "NHWC"), 3: (conv3d, "NDHWC"),
    }  # fmt: skip
    if n not in functions:
        raise ValueError(f"The filters of a convolution have the rank 3, 4 or 5, and not {n + 2}")
    function, usual = functions[n]
    steps = 1 if strides is None else strides
    return function(input, kernel, steps, padding, data_format or usual, dilations)


@composed
def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: int, padding: str, name: str | None = None
) -> Any:
    """conv2d with the elements of the filter `rate` apart."""
    return conv2d(value, filters, 1, padding, dilations=rate)


def _in_blocks(x: Any, kernel: Any, rates: list[int], padding: Any, function: Any) -> Any:
    """Apply a convolution of images without padding, as one with a dilated filter."""
    before, after = same_padding(kernel, rates, padding)
    blocks = np.array(rates, np.int32)
    full = raw_ops.AddV2(x=raw_ops.Shape(input=x)[1:3], y=before + after)
    extra = raw_ops.FloorMod(x=raw_ops.Neg(x=full), y=blocks)
    ends = raw_ops.AddV2(x=after, y=extra)
    found = function(
        raw_ops.SpaceToBatchND(
            input=x, block_shape=blocks, paddings=raw_ops.Pack(values=[before, ends], axis=1)
        )
    )
    crops = raw_ops.Pack(values=[np.zeros(2, np.int32), extra], axis=1)
    return raw_ops.BatchToSpaceND(input=found, block_shape=blocks, crops=crops)


@composed
def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The convolution of each channel with filters of its own.

    Args:
        input: [batch, height, width, channels].
        filter: [height, width, channels, M]: M filters for each channel.
        strides: four numbers, for each axis of the input.
        padding: as for conv2d.
        data_format: "NHWC", also if None, or "NCHW".
        dilations: two numbers, for height and width; 1 if None.
        name: a name for the scope of nodes in a graph.

    Returns:
        [batch, height, width, channels * M].
    """
    x = convert(input)
    form = data_format or "NHWC"
    kernel = like(filter, dtype_of(x))
    attrs = image_attrs(2, form, strides, None) | padding_attrs(padding)
    rates = [1, 1] if dilations is None else np.ravel(np.asarray(dilations)).tolist() * 2
    if max(rates) == 1:
        return raw_ops.DepthwiseConv2dNative(input=x, filter=kernel, **attrs)
    attrs |= {"padding": "VALID", "data_format": "NHWC"}
    is_first = form == "NCHW"
    if is_first:
        x = raw_ops.Transpose(x=x, perm=np.array([0, 2, 3, 1], np.int32))
        attrs["strides"] = [1, *attrs["strides"][2:], 1]

    def convolved(images: Any) -> Any:
        return raw_ops.DepthwiseConv2dNative(input=images, filter=kernel, **attrs)

    found = _in_blocks(x, kernel, rates[:2], padding, convolved)
    if is_first:
        found = raw_ops.Transpose(x=found, perm=np.array([0, 3, 1, 2], np.int32))
    return found


@composed
def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """depthwise_conv2d, and then conv2d with a filter of the size 1 x 1 that mixes the channels."""
    form = data_format or "NHWC"
    deep = depthwise_conv2d(input, depthwise_filter, strides, padding, form, dilations)
    return conv2d(deep, pointwise_filter, 1, "VALID", form)


@composed
def dilation2d(
    input: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: str,
    data_format: str,
    dilations: Any,
    name: str | None = None,
) -> Any:
    """The largest sum of a filter and the image under it, at each place.

    Raises:
        ValueError: `data_format` is not "NHWC".
    """
    if data_format != "NHWC":
        raise ValueError(f'data_format is "NHWC", and not {data_format!r}')
    mode: Any = padding
    return raw_ops.Dilation2D(
        input=input, filter=filters, strides=strides, rates=dilations, padding=mode
    )


@composed
def erosion2d(
    value: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: str,
    data_format: str,
    dilations: Any,
    name: str | None = None,
) -> Any:
    """The smallest difference of the image and a filter over it, at each place."""
    turned = raw_ops.ReverseV2(tensor=convert(filters), axis=np.array([0, 1], np.int32))
    negative = raw_ops.Neg(x=convert(value))
    found = dilation2d(negative, turned, strides, padding, data_format, dilations)
    return raw_ops.Neg(x=found)
