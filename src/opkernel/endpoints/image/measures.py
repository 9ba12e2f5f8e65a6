"""Measures of images, and their edges.

Source: TensorFlow python/ops/image_ops_impl.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.image._images import floating
from opkernel.endpoints.tensors import (
    TensorLike,
    composed,
    convert,
    dtype_of,
    known_rank,
    number_like,
    shape_of,
    static_shape,
)

_IMAGE_AXES = np.array([-3, -2, -1], np.int32)


def _scaled(max_val: Any, like: Any) -> Any:
    """The largest number of images as a float, as images are converted."""
    given = np.array(max_val, dtype_of(like).numpy_dtype)
    return floating(given)


@composed
def psnr(a: TensorLike, b: TensorLike, max_val: float, name: str | None = None) -> Any:
    """The peak signal-to-noise ratio of two batches of images, in dB.

    Args:
        a: images.
        b: images of the same shape and type.
        max_val: the difference of the largest and smallest number that an image may have.
        name: a name for the scope of nodes in a graph.
    """
    first = convert(a)
    most = _scaled(max_val, first)
    x, y = floating(first), floating(b)
    error = raw_ops.Mean(input=raw_ops.SquaredDifference(x=x, y=y), axis=_IMAGE_AXES)
    peak = raw_ops.Mul(x=raw_ops.Log(x=most), y=number_like(error, 20 / math.log(10)))
    noise = raw_ops.Mul(x=raw_ops.Log(x=error), y=number_like(error, 10 / math.log(10)))
    return raw_ops.Sub(x=peak, y=noise)


@composed
def total_variation(images: TensorLike, name: str | None = None) -> Any:
    """The sum of the differences of neighbours, of an image or of each image of a batch.

    Raises:
        ValueError: the images have another rank than 3 or 4.
    """
    x = convert(images)
    rank = known_rank(x, "total_variation")
    if rank not in (3, 4):
        raise ValueError(f"total_variation takes images of rank 3 or 4, and not {rank}")
    down = raw_ops.Sub(x=x[..., 1:, :, :], y=x[..., :-1, :, :])
    across = raw_ops.Sub(x=x[..., 1:, :], y=x[..., :-1, :])
    sums = [raw_ops.Sum(input=raw_ops.Abs(x=part), axis=_IMAGE_AXES) for part in (down, across)]
    return raw_ops.AddV2(x=sums[0], y=sums[1])


@composed
def image_gradients(image: TensorLike) -> tuple[Any, Any]:
    """The differences of neighbours of a batch of images, down and across; 0 at the end.

    Raises:
        ValueError: the images have another rank than 4.
    """
    x = convert(image)
    if known_rank(x, "image_gradients") != 4:
        raise ValueError("image_gradients takes a batch of images, of rank 4")
    down = raw_ops.Sub(x=x[:, 1:], y=x[:, :-1])
    across = raw_ops.Sub(x=x[:, :, 1:], y=x[:, :, :-1])
    below = np.array([[0, 0], [0, 1], [0, 0], [0, 0]], np.int32)
    right = np.array([[0, 0], [0, 0], [0, 1], [0, 0]], np.int32)
    return raw_ops.Pad(input=down, paddings=below), raw_ops.Pad(input=across, paddings=right)


@composed
def sobel_edges(image: TensorLike) -> Any:
    """The Sobel edges of a batch of images: a new last axis with the differences down and across."""
    x = convert(image)
    channels = (static_shape(x) or [None])[-1] or 0
    down = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], dtype_of(x).numpy_dtype)
    kernel = np.stack([down, down.T], axis=-1)[:, :, None, :]
    edges = np.tile(kernel, (1, 1, channels, 1))
    pads = np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)
    padded = raw_ops.MirrorPad(input=x, paddings=pads, mode="REFLECT")
    found = raw_ops.DepthwiseConv2dNative(
        input=padded, filter=edges, strides=[1, 1, 1, 1], padding="VALID"
    )
    shape = raw_ops.ConcatV2(values=[raw_ops.Shape(input=x), np.array([2], np.int32)], axis=0)
    return raw_ops.Reshape(tensor=found, shape=shape)


def _gaussian(size: int, sigma: float, like: Any) -> Any:
    """A window of weights, [size, size, 1, 1]."""
    dtype = dtype_of(like).numpy_dtype
    places = (np.arange(size, dtype=np.float64) - (size - 1) / 2) ** 2 * (-0.5 / sigma**2)
    grid = np.exp(places[:, None] + places[None, :])
    return (grid / grid.sum()).astype(dtype)[:, :, None, None]


def _similarity(x: Any, y: Any, most: Any, window: Any, k: tuple[float, float]) -> tuple[Any, Any]:
    """The structural similarity at each place, and its part without luminance."""
    first, second = ((number_like(x, n) * most) ** 2 for n in k)
    channels = (static_shape(x) or [None])[-1] or 0
    kernel = np.tile(window, (1, 1, channels, 1))

    def smooth(images: Any) -> Any:
        rows = raw_ops.ConcatV2(
            values=[np.array([-1], np.int32), raw_ops.Shape(input=images)[-3:]], axis=0
        )
        flat = raw_ops.Reshape(tensor=images, shape=rows)
        found = raw_ops.DepthwiseConv2dNative(
            input=flat, filter=kernel, strides=[1, 1, 1, 1], padding="VALID"
        )
        shape = [raw_ops.Shape(input=images)[:-3], raw_ops.Shape(input=found)[1:]]
        return raw_ops.Reshape(tensor=found, shape=raw_ops.ConcatV2(values=shape, axis=0))

    two = number_like(x, 2.0)
    mean_x, mean_y = smooth(x), smooth(y)
    product = mean_x * mean_y * two
    squares = mean_x * mean_x + mean_y * mean_y
    luminance = (product + first) / (squares + first)
    both = smooth(x * y) * two
    own = smooth(x * x + y * y)
    contrast = (both - product + second) / (own - squares + second)
    return luminance * contrast, contrast


def _prepared(img1: Any, img2: Any, max_val: Any) -> tuple[Any, Any, Any]:
    first = convert(img1)
    shapes = static_shape(first), static_shape(convert(img2))
    if shapes[0] is not None and len(shapes[0]) < 3:
        raise ValueError(f"Images have the rank 3 or more, and not the shape {shapes[0]}")
    return floating(first), floating(img2), _scaled(max_val, first)


def _mean(x: Any, axes: list[int]) -> Any:
    return raw_ops.Mean(input=x, axis=np.array(axes, np.int32))


@composed
def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: float,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Any:
    """The structural similarity of two batches of images: 1 for equal ones.

    Args:
        img1: images.
        img2: images of the same shape and type.
        max_val: the difference of the largest and smallest number that an image may have.
        filter_size: the size of the window that is compared.
        filter_sigma: the width of its weights.
        k1: a small constant, which keeps means of 0 apart.
        k2: another for variances.
        return_index_map: give the similarity at each place, instead of one of each image.
    """
    x, y, most = _prepared(img1, img2, max_val)
    window = _gaussian(filter_size, filter_sigma, x)
    found, _ = _similarity(x, y, most, window, (k1, k2))
    by_place = _mean(found, [-1])
    return by_place if return_index_map else _mean(found, [-3, -2, -1])


@composed
def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: float,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Any:
    """The structural similarity of images at several scales, each half as large as the one before.

    Args:
        img1: images.
        img2: images of the same shape and type.
        max_val: the difference of the largest and smallest number that an image may have.
        power_factors: the weight of each scale.
        filter_size: see ssim.
        filter_sigma: see ssim.
        k1: see ssim.
        k2: see ssim.
    """
    x, y, most = _prepared(img1, img2, max_val)
    parts = []
    window = _gaussian(filter_size, filter_sigma, x)
    for number in range(len(power_factors)):
        if number:
            x, y = _smaller(x), _smaller(y)
        whole, contrast = _similarity(x, y, most, window, (k1, k2))
        is_last = number == len(power_factors) - 1
        mean = _mean(whole if is_last else contrast, [-3, -2])
        parts.append(raw_ops.Relu(features=mean))
    powers = np.array(power_factors, dtype_of(x).numpy_dtype)
    scaled = raw_ops.Pow(x=raw_ops.Pack(values=parts, axis=-1), y=powers)
    product = raw_ops.Prod(input=scaled, axis=np.array([-1], np.int32))
    return _mean(product, [-1])


def _smaller(x: Any) -> Any:
    """Images of half the size; an odd row or column is repeated first."""
    sizes = shape_of(x)
    rows = raw_ops.ConcatV2(values=[np.array([-1], np.int32), sizes[-3:]], axis=0)
    flat = raw_ops.Reshape(tensor=x, shape=rows)
    odd = raw_ops.FloorMod(x=sizes[-3:-1], y=np.int32(2))
    pads = raw_ops.Pack(values=[0, 0, 0, odd[0], 0, odd[1], 0, 0])
    paddings = raw_ops.Reshape(tensor=pads, shape=np.array([4, 2], np.int32))
    even = raw_ops.MirrorPad(input=flat, paddings=paddings, mode="SYMMETRIC")
    found = raw_ops.AvgPool(value=even, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    shape = raw_ops.ConcatV2(values=[sizes[:-3], raw_ops.Shape(input=found)[1:]], axis=0)
    return raw_ops.Reshape(tensor=found, shape=shape)
