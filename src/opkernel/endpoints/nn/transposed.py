"""Transposed convolutions: the gradients of convolutions with respect to their inputs.

Source: TensorFlow python/ops/nn_ops.py.
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
    like,
    static_shape,
    static_value,
)


def _transposed(
    x: Any, filters: Any, output_shape: Any, attrs: dict[str, Any], op: Callable[..., Any]
) -> Any:
    return op(input_sizes=convert(output_shape), filter=filters, out_backprop=x, **attrs)


@composed
def conv2d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The transpose of conv2d: its gradient with respect to the input.

    Args:
        input: [batch, height, width, channels].
        filters: [height, width, output channels, channels].
        output_shape: the shape of the result.
        strides: as for conv2d.
        padding: as for conv2d.
        data_format: "NHWC" or "NCHW".
        dilations: as for conv2d.
        name: a name for the scope of nodes in a graph.
    """
    x = convert(input)
    attrs = image_attrs(2, data_format or "NHWC", strides, dilations) | padding_attrs(padding)
    kernel = like(filters, dtype_of(x))
    return _transposed(x, kernel, output_shape, attrs, raw_ops.Conv2DBackpropInput)


@composed
def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    rate: int,
    padding: str,
    name: str | None = None,
) -> Any:
    """The transpose of atrous_conv2d.

    Raises:
        ValueError: `rate` is less than 1, or the value of `output_shape` is not known.
    """
    x, wanted = convert(value), static_value(output_shape)
    if rate == 1:
        return conv2d_transpose(x, filters, output_shape, 1, padding)
    if rate < 1 or wanted is None:
        raise ValueError(f"A rate of 1 or more and a known output_shape are wanted, and not {rate}")
    kernel = like(filters, dtype_of(x))
    before, after = same_padding(kernel, [rate, rate], padding)
    full = wanted[1:3] + before + after
    extra = -full % rate
    blocks = np.array([rate, rate], np.int32)
    zeros = np.zeros_like(extra)
    x = raw_ops.SpaceToBatchND(
        input=x, block_shape=blocks, paddings=np.stack([zeros, extra], 1).astype(np.int32)
    )
    sizes = [wanted[0] * rate * rate, *((full + extra) // rate), wanted[3]]
    found = raw_ops.Conv2DBackpropInput(
        input_sizes=np.array(sizes, np.int32),
        filter=kernel,
        out_backprop=x,
        strides=[1, 1, 1, 1],
        padding="VALID",
    )
    crops = np.stack([before, after + extra], 1).astype(np.int32)
    return raw_ops.BatchToSpaceND(input=found, block_shape=blocks, crops=crops)


@composed
def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The transpose of conv3d; the arguments are those of conv2d_transpose, with one axis more."""
    x = convert(input)
    attrs = image_attrs(3, data_format or "NDHWC", strides, dilations) | padding_attrs(padding)
    kernel = like(filters, dtype_of(x))
    return _transposed(x, kernel, output_shape, attrs, raw_ops.Conv3DBackpropInputV2)


@composed
def conv1d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The transpose of conv1d; the arguments are those of conv2d_transpose, with one axis less."""
    is_first = data_format == "NCW"
    axis = 2 if is_first else 1
    sizes = {
        name: full_sizes(value, 1, is_first, name)
        for name, value in (("strides", strides), ("dilations", dilations))
    }
    for numbers in sizes.values():
        numbers.insert(axis, 1)
    attrs = sizes | {"data_format": "NCHW" if is_first else "NHWC"} | padding_attrs(padding)
    x = raw_ops.ExpandDims(input=convert(input), axis=axis)
    kernel = raw_ops.ExpandDims(input=like(filters, dtype_of(x)), axis=0)
    shape = convert(output_shape)
    one = np.array([1], np.int32)
    wanted = raw_ops.ConcatV2(values=[shape[:axis], one, shape[axis:]], axis=0)
    found = _transposed(x, kernel, wanted, attrs, raw_ops.Conv2DBackpropInput)
    return raw_ops.Squeeze(input=found, axis=[axis])


@composed
def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """conv1d_transpose, conv2d_transpose or conv3d_transpose, by the length of `output_shape`.

    Raises:
        ValueError: it has another length.
    """
    shape = convert(output_shape)
    n = ((static_shape(shape) or [0])[0] or 0) - 2
    functions: dict[int, tuple[Callable[..., Any], str]] = {
        1: (conv1d_transpose, "NWC"), 2: (conv2d_transpose, "NHWC"), 3: (conv3d_transpose, "NDHWC"),
    }  # fmt: skip
    if n not in functions:
        raise ValueError(f"output_shape has 3, 4 or 5 sizes, and not {n + 2}")
    function, usual = functions[n]
    return function(input, filters, shape, strides, padding, data_format or usual, dilations)
