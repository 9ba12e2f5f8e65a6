"""Images turned, cropped, padded and resized.

Source: TensorFlow python/ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.image._images import on_batch
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    is_symbolic,
    known_rank,
    shape_of,
    static_value,
)
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

_HEIGHT, _WIDTH = 1, 2


def _turned(x: Any, *axes: int) -> Any:
    return raw_ops.ReverseV2(tensor=x, axis=np.array(axes, np.int32))


def _exchanged(x: Any) -> Any:
    return raw_ops.Transpose(x=x, perm=np.array([0, 2, 1, 3], np.int32))


@composed
def flip_left_right(image: TensorLike) -> Any:
    """Images as in a mirror."""
    return on_batch(image, lambda x: _turned(x, _WIDTH), "flip_left_right")


@composed
def flip_up_down(image: TensorLike) -> Any:
    """Images upside down."""
    return on_batch(image, lambda x: _turned(x, _HEIGHT), "flip_up_down")


@composed
def transpose(image: TensorLike, name: str | None = None) -> Any:
    """Images with rows and columns exchanged."""
    return on_batch(image, _exchanged, "transpose")


@composed
def rot90(image: TensorLike, k: TensorLike = 1, name: str | None = None) -> Any:
    """Images turned counter-clockwise by `k` times 90 degrees.

    Raises:
        InvalidArgumentError: `k` is not known before the graph runs.
    """
    times = static_value(k)
    if times is None:
        raise InvalidArgumentError("rot90 needs a number of turns that is known")
    turns = [
        lambda x: raw_ops.Identity(input=x),
        lambda x: _exchanged(_turned(x, _WIDTH)),
        lambda x: _turned(x, _HEIGHT, _WIDTH),
        lambda x: _turned(_exchanged(x), _WIDTH),
    ]
    return on_batch(image, turns[int(times) % 4], "rot90")


def _check_inside(image: Any, sizes: tuple[Any, Any, Any, Any], what: str, is_crop: bool) -> None:
    """Raise ValueError for an image, or what is to be made of it, that is not inside the other one."""
    shape = shape_of(image)
    if not isinstance(shape, np.ndarray) or is_symbolic(*sizes):
        return
    top, left, height, width = (int(np.asarray(size)) for size in sizes)
    rows, columns = int(shape[-3]), int(shape[-2])
    small, large = (
        ((height, width), (rows, columns)) if is_crop else ((rows, columns), (height, width))
    )
    fits = top + small[0] <= large[0] and left + small[1] <= large[1]
    if min(top, left) < 0 or (is_crop and min(height, width) <= 0) or not fits:
        raise ValueError(
            f"{what} of {height} x {width} at {top}, {left} does not fit an image of {rows} x {columns}"
        )


@composed
def crop_to_bounding_box(
    image: TensorLike,
    offset_height: TensorLike,
    offset_width: TensorLike,
    target_height: TensorLike,
    target_width: TensorLike,
) -> Any:
    """A part of images.

    Args:
        image: a batch of images, or an image.
        offset_height: the first row.
        offset_width: the first column.
        target_height: how many rows.
        target_width: how many columns.

    Raises:
        ValueError: the part is not inside.
    """
    x = convert(image)
    sizes = offset_height, offset_width, target_height, target_width
    _check_inside(x, sizes, "A crop", True)

    def cropped(images: Any) -> Any:
        begin = raw_ops.Pack(values=[0, offset_height, offset_width, 0])
        size = raw_ops.Pack(values=[-1, target_height, target_width, -1])
        return raw_ops.Slice(input=images, begin=begin, size=size)

    return on_batch(x, cropped, "crop_to_bounding_box")


@composed
def pad_to_bounding_box(
    image: TensorLike,
    offset_height: TensorLike,
    offset_width: TensorLike,
    target_height: TensorLike,
    target_width: TensorLike,
) -> Any:
    """Images with zeros around them.

    Args:
        image: a batch of images, or an image.
        offset_height: how many rows of zeros to add above.
        offset_width: how many columns to add on the left.
        target_height: how many rows there are to be.
        target_width: how many columns.

    Raises:
        ValueError: the result is too small.
    """
    x = convert(image)
    sizes = offset_height, offset_width, target_height, target_width
    _check_inside(x, sizes, "A padded image", False)

    def padded(images: Any) -> Any:
        shape = raw_ops.Shape(input=images)
        below = raw_ops.Sub(x=raw_ops.Sub(x=target_height, y=offset_height), y=shape[1])
        right = raw_ops.Sub(x=raw_ops.Sub(x=target_width, y=offset_width), y=shape[2])
        pairs = raw_ops.Pack(values=[0, 0, offset_height, below, offset_width, right, 0, 0])
        paddings = raw_ops.Reshape(tensor=pairs, shape=np.array([4, 2], np.int32))
        return raw_ops.Pad(input=images, paddings=paddings)

    return on_batch(x, padded, "pad_to_bounding_box")


@composed
def central_crop(image: TensorLike, central_fraction: float) -> Any:
    """The middle of images: `central_fraction`, above 0 and up to 1, of their height and width.

    Raises:
        ValueError: the fraction is out of range.
    """
    x = convert(image)
    if not 0 < central_fraction <= 1:
        raise ValueError(f"central_fraction is above 0 and up to 1, and not {central_fraction}")
    if central_fraction == 1:
        return x

    def cropped(images: Any) -> Any:
        shape = shape_of(images)
        starts = [_margin(shape[axis], central_fraction) for axis in (1, 2)]
        sizes = [
            raw_ops.Sub(x=shape[axis], y=raw_ops.Mul(x=start, y=2))
            for axis, start in zip((1, 2), starts, strict=True)
        ]
        return raw_ops.Slice(
            input=images,
            begin=raw_ops.Pack(values=[0, *starts, 0]),
            size=raw_ops.Pack(values=[-1, *sizes, -1]),
        )

    return on_batch(x, cropped, "central_crop")


def _margin(size: Any, fraction: float) -> Any:
    length = raw_ops.Cast(x=size, DstT=DataType.DT_DOUBLE)
    rest = raw_ops.Sub(x=length, y=raw_ops.Mul(x=length, y=np.float64(fraction)))
    return raw_ops.Cast(x=raw_ops.RealDiv(x=rest, y=np.float64(2)), DstT=DataType.DT_INT32)


@composed
def resize_with_crop_or_pad(
    image: TensorLike, target_height: TensorLike, target_width: TensorLike
) -> Any:
    """The middle of images, or images in the middle of zeros, of a given size."""

    def fitted(images: Any) -> Any:
        shape = shape_of(images)
        height, width = convert(target_height), convert(target_width)
        rows, columns = raw_ops.Sub(x=height, y=shape[1]), raw_ops.Sub(x=width, y=shape[2])
        top, left = (_half(raw_ops.Neg(x=more)) for more in (rows, columns))
        cropped = crop_to_bounding_box(
            images, top, left, raw_ops.Minimum(x=height, y=shape[1]),
            raw_ops.Minimum(x=width, y=shape[2]),
        )  # fmt: skip
        return pad_to_bounding_box(cropped, _half(rows), _half(columns), height, width)

    return on_batch(image, fitted, "resize_with_crop_or_pad")


def _half(more: Any) -> Any:
    """Half of a number, or 0 where it is negative."""
    return raw_ops.Maximum(x=raw_ops.FloorDiv(x=more, y=2), y=0)


_KERNELS = ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")
_ANTIALIASED = {"bilinear": "triangle", "bicubic": "keyscubic"}


@composed
def resize(
    images: TensorLike,
    size: TensorLike,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Any:
    """Images of another size.

    Args:
        images: a batch of images, or an image.
        size: the height and the width, int32.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or
            "mitchellcubic".
        preserve_aspect_ratio: make images as large as they can be within `size`, and no wider.
        antialias: smooth what is made smaller.
        name: a name for the scope of nodes in a graph.

    Returns:
        float32 images, unless the method is "nearest": it keeps the type.

    Raises:
        ValueError: there is no such method, or `size` does not have two numbers.
    """
    methods = ("bilinear", "nearest", "bicubic", "area", *_KERNELS)
    if method not in methods:
        raise ValueError(
            f"Resize method is not implemented: {method!r}; choose {', '.join(methods)}"
        )
    wanted = convert(size)
    if known_rank(wanted, "resize") != 1 or shape_of(wanted)[0] != 2:
        raise ValueError("size has to be a vector of height and width")
    wanted = cast_to(wanted, DataType.DT_INT32)

    def resized(x: Any) -> Any:
        target = _within(x, wanted) if preserve_aspect_ratio else wanted
        return _resized(x, target, method, antialias)

    return on_batch(images, resized, "resize")


def _within(x: Any, size: Any) -> Any:
    """The largest size with the proportions of the images."""
    shape = raw_ops.Cast(x=shape_of(x)[1:3], DstT=DataType.DT_FLOAT)
    ratios = raw_ops.RealDiv(x=raw_ops.Cast(x=size, DstT=DataType.DT_FLOAT), y=shape)
    ratio = raw_ops.Min(input=ratios, axis=np.array([0], np.int32))
    return raw_ops.Cast(x=raw_ops.Round(x=raw_ops.Mul(x=ratio, y=shape)), DstT=DataType.DT_INT32)


def _resized(x: Any, size: Any, method: str, antialias: bool) -> Any:
    kernel: Any = method if method in _KERNELS else _ANTIALIASED.get(method) if antialias else None
    if kernel is not None:
        shape = raw_ops.Cast(x=raw_ops.Shape(input=x)[1:3], DstT=DataType.DT_FLOAT)
        return raw_ops.ScaleAndTranslate(
            images=x,
            size=size,
            scale=raw_ops.RealDiv(x=raw_ops.Cast(x=size, DstT=DataType.DT_FLOAT), y=shape),
            translation=np.zeros(2, np.float32),
            kernel_type=kernel,
            antialias=antialias,
        )
    if method == "area":
        return raw_ops.ResizeArea(images=x, size=size)
    op: Any = {
        "bilinear": raw_ops.ResizeBilinear,
        "nearest": raw_ops.ResizeNearestNeighbor,
        "bicubic": raw_ops.ResizeBicubic,
    }[method]
    return op(images=x, size=size, half_pixel_centers=True)


@composed
def resize_with_pad(
    image: TensorLike,
    target_height: TensorLike,
    target_width: TensorLike,
    method: str = "bilinear",
    antialias: bool = False,
) -> Any:
    """Images resized within a size, with zeros around them."""

    def fitted(x: Any) -> Any:
        height, width = (
            raw_ops.Cast(x=part, DstT=DataType.DT_DOUBLE) for part in (target_height, target_width)
        )
        shape = raw_ops.Cast(x=shape_of(x), DstT=DataType.DT_DOUBLE)
        ratio = raw_ops.Maximum(
            x=raw_ops.RealDiv(x=shape[2], y=width), y=raw_ops.RealDiv(x=shape[1], y=height)
        )
        sizes = [raw_ops.RealDiv(x=shape[axis], y=ratio) for axis in (1, 2)]
        margins = [
            raw_ops.Maximum(
                x=raw_ops.Floor(x=raw_ops.RealDiv(x=raw_ops.Sub(x=all_, y=part), y=np.float64(2))),
                y=np.float64(0),
            )
            for all_, part in zip((height, width), sizes, strict=True)
        ]
        whole = [cast_to(raw_ops.Floor(x=part), DataType.DT_INT32) for part in sizes]
        found = resize(x, raw_ops.Pack(values=whole), method, antialias=antialias)
        top, left = (cast_to(part, DataType.DT_INT32) for part in margins)
        return pad_to_bounding_box(found, top, left, target_height, target_width)

    return on_batch(image, fitted, "resize_with_pad")


@composed
def extract_glimpse(
    input: TensorLike,
    size: TensorLike,
    offsets: TensorLike,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Any:
    """Windows of images, with noise where a window is beyond the image.

    Args:
        input: a batch of images.
        size: the height and the width of windows, int32.
        offsets: the middle of each window, [batch, 2], float32.
        centered: offsets count from the middle of the image.
        normalized: offsets are from -1 to 1, or from 0 to 1 where they are not centered.
        noise: "uniform", "gaussian" or "zero".
        name: a name for the scope of nodes in a graph.
    """
    return raw_ops.ExtractGlimpseV2(
        input=input,
        size=size,
        offsets=offsets,
        centered=centered,
        normalized=normalized,
        noise=noise,
        uniform_noise=False,
    )
