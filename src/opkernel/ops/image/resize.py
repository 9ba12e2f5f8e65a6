"""Resizing of images: bilinear, bicubic, by area, and to the nearest pixel.

Images are [batch, height, width, channels]; `size` is the new height and width.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/resize_*_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import DimensionHandle, InferenceContext, OpHandle, register_op
from opkernel.ops.image.resize_sampling import (
    Area,
    Cubic,
    Linear,
    area,
    cubic,
    in_parts,
    linear,
    nearest,
    scale,
)
from opkernel.ops.input_checks import require_equal, require_rank, require_vector
from opkernel.ops.kernel_types import REAL_NUMBERS, WIDE_FLOATS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

__all__ = [
    "ALIGNMENT_ATTRS",
    "check_alignment",
    "check_size",
    "output_size",
    "size_dims",
    "sized_image_shape",
    "two_of",
]

ALIGNMENT_ATTRS = ("align_corners: bool = false", "half_pixel_centers: bool = false")

_INTEGER_SPEC = "int8, uint8, int16, uint16, int32, int64"
_TYPES = f"T: {{{_INTEGER_SPEC}, half, float, double, bfloat16}}"
_REGISTERED = {"T": REAL_NUMBERS}


def size_dims(c: InferenceContext, size_input: int) -> list[DimensionHandle]:
    """The height and width that an input holds, unknown where its value is."""
    size = c.with_rank(c.input(size_input), 1)
    c.with_value(c.dim(size, 0), 2)
    value = c.input_tensor(size_input)
    if value is None:
        return [c.unknown_dim(), c.unknown_dim()]
    return [c.make_dim(int(v)) for v in np.asarray(value)]


def sized_image_shape(
    c: InferenceContext, batch: DimensionHandle, size_input: int, channels: DimensionHandle
) -> None:
    """Output 0 is images of the height and width that an input holds."""
    c.set_output(0, c.make_shape([batch, *size_dims(c, size_input), channels]))


def resize_shape(c: InferenceContext) -> None:
    """Input 0 with another height and width."""
    images = c.with_rank(c.input(0), 4)
    sized_image_shape(c, c.dim(images, 0), 1, c.dim(images, 3))


def _declare(
    name: str,
    doc: str,
    types: str = _TYPES,
    output: str = "float",
    attrs: Sequence[str] = ALIGNMENT_ATTRS,
) -> OpHandle:
    return register_op(
        name,
        inputs=["images: T", "size: int32"],
        outputs=[f"resized_images: {output}"],
        attrs=[types, *attrs],
        shape_fn=resize_shape,
        doc=f"""{doc}

        images: [batch, height, width, channels].
        size: The new height and width.
        align_corners: The corners of both images are the centers of their corner pixels.
        """,
    )


RESIZE_BILINEAR = _declare(
    "ResizeBilinear",
    "Resize images; each new pixel is interpolated between four old ones.",
    f"T: {{{_INTEGER_SPEC}, bfloat16, half, float, double, bfloat16}}",
)
RESIZE_BICUBIC = _declare(
    "ResizeBicubic", "Resize images; each new pixel is interpolated between sixteen old ones."
)
RESIZE_NEAREST_NEIGHBOR = _declare(
    "ResizeNearestNeighbor", "Resize images; each new pixel is the nearest old one.", output="T"
)
RESIZE_AREA = _declare(
    "ResizeArea",
    "Resize images; each new pixel is the mean of the old ones that it covers.",
    attrs=ALIGNMENT_ATTRS[:1],
)


def check_alignment(align_corners: bool, half_pixel_centers: bool) -> None:
    if align_corners and half_pixel_centers:
        raise InvalidArgumentError("If half_pixel_centers is True, align_corners must be False.")


def check_size(size: Any) -> tuple[int, int]:
    """The height and width that the tensor `size` holds."""
    height, width = two_of("shape_t", size)
    return int(height), int(width)


def two_of(name: str, values: Any) -> tuple[Any, Any]:
    """The two elements of a vector, for the height and for the width."""
    require_vector(values, f"{name} must be 1-dimensional{{}}")
    require_equal(values.shape, (2,), f"{name} must have two elements{{}}")
    return values[0], values[1]


def output_size(images: Any, size: Any, dtype: DataType) -> tuple[int, int]:
    """The new height and width, checked."""
    require_rank(images, 4, "input must be 4-dimensional{}")
    height, width = check_size(size)
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(f"output dimensions must be positive, got {height} and {width}")
    batch, old_height, old_width, channels = images.shape
    if channels == 0:
        raise InvalidArgumentError("image must have at least one channel")
    if old_height == 0 or old_width == 0:
        raise InvalidArgumentError("input image must be of non-zero size")
    check_allocation((batch, height, width, channels), dtype)
    return height, width


def _spread(values: Any, axis: int, channels: int) -> Any:
    """A vector in a shape that is broadcast along `axis` of images.

    Along the width it is repeated for each channel, lest the innermost loop be over a few channels.
    """
    column = values.reshape(-1, *(1,) * (3 - axis))
    return np.repeat(column, channels, axis=1) if axis == 2 else column


def _between(lower: Any, upper: Any, fraction: Any, xp: Any) -> Any:
    """The mean of both, `fraction` of the way to `upper`; may overwrite `upper`."""
    if xp is not np:
        return lower + (upper - lower) * fraction
    upper -= lower
    upper *= fraction
    upper += lower
    return upper


@register_kernel(RESIZE_BILINEAR, types=_REGISTERED, host_memory=["size"], factory=True)
def resize_bilinear(
    *, align_corners: bool, half_pixel_centers: bool, xp: Any
) -> Callable[[Any, Any], Any]:
    check_alignment(align_corners, half_pixel_centers)

    def interpolate(x: Any, at: Linear, axis: int) -> Any:
        def part(some: slice) -> Any:
            places = (at.lower[some], at.upper[some])
            lower, upper = (xp.take(x, xp.asarray(i), axis=axis) for i in places)
            fraction = xp.asarray(_spread(at.fraction[some], axis, x.shape[3]))
            return _between(lower, upper, fraction, xp)

        return in_parts(x, axis, len(at.lower), part) if xp is np else part(slice(None))

    def kernel(images: Any, size: Any) -> Any:
        height, width = output_size(images, size, DataType.DT_FLOAT)
        result = images.astype(np.float32)
        if images.shape[1:3] == (height, width):
            return result
        for axis, output in ((2, width), (1, height)):
            at = linear(images.shape[axis], output, align_corners, half_pixel_centers)
            result = interpolate(result, at, axis)
        return result

    return kernel


@register_kernel(RESIZE_BICUBIC, types=_REGISTERED, host_memory=["size"], factory=True)
def resize_bicubic(
    *, align_corners: bool, half_pixel_centers: bool, xp: Any
) -> Callable[[Any, Any], Any]:
    check_alignment(align_corners, half_pixel_centers)

    def interpolate(x: Any, at: Cubic, axis: int) -> Any:
        def part(some: slice) -> Any:
            total: Any = 0
            for indices, weights in zip(at.indices[:, some], at.weights[:, some], strict=True):
                pixels = xp.take(x, xp.asarray(indices), axis=axis)
                total = total + pixels * xp.asarray(_spread(weights, axis, x.shape[3]))
            return total

        return in_parts(x, axis, at.indices.shape[1], part) if xp is np else part(slice(None))

    def kernel(images: Any, size: Any) -> Any:
        height, width = output_size(images, size, DataType.DT_FLOAT)
        result = images.astype(np.float32)
        for axis, output in ((1, height), (2, width)):
            at = cubic(images.shape[axis], output, align_corners, half_pixel_centers)
            result = interpolate(result, at, axis)
        return result

    return kernel


@register_kernel(RESIZE_NEAREST_NEIGHBOR, types=_REGISTERED, host_memory=["size"], factory=True)
def resize_nearest_neighbor(
    *, align_corners: bool, half_pixel_centers: bool, T: DataType, xp: Any
) -> Callable[[Any, Any], Any]:
    check_alignment(align_corners, half_pixel_centers)

    def kernel(images: Any, size: Any) -> Any:
        height, width = output_size(images, size, T)
        for axis, output in ((1, height), (2, width)):
            at = nearest(images.shape[axis], output, align_corners, half_pixel_centers)
            images = xp.take(images, xp.asarray(at), axis=axis)
        return images

    return kernel


def _covered(x: Any, at: Area, axis: int, some: slice) -> Any:
    """The sums of what some pixels cover along an axis."""
    ends = np.append(at.starts, len(at.indices))
    whole = slice(ends[some.start], ends[some.stop])
    parts = np.take(x, at.indices[whole], axis=axis)
    parts *= _spread(at.weights[whole], axis, x.shape[3])
    return np.add.reduceat(parts, at.starts[some] - whole.start, axis=axis)


@register_kernel(RESIZE_AREA, types=_REGISTERED, host_memory=["size"], factory=True)
def resize_area(*, align_corners: bool) -> Callable[[Any, Any], Any]:
    def kernel(images: Any, size: Any) -> Any:
        height, width = output_size(images, size, DataType.DT_FLOAT)
        result = images.astype(np.float32)
        covered = np.float32(1)
        for axis, output in ((2, width), (1, height)):
            at = area(images.shape[axis], output, align_corners)
            covered = covered * scale(images.shape[axis], output, align_corners)
            result = in_parts(result, axis, output, partial(_covered, result, at, axis))
        result *= 1 / covered
        return result

    return kernel


_ATTRS = ("align_corners", "half_pixel_centers")


@g.register_gradient("ResizeNearestNeighbor")
def resize_nearest_neighbor_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    size = g.nodes.StridedSlice(g.nodes.Shape(op.inputs[0]), [1], [3], [1])
    return g.nodes.ResizeNearestNeighborGrad(grad, size, **g.attrs_of(op, *_ATTRS)), None


@g.register_gradient("ResizeBilinear")
def resize_bilinear_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.ResizeBilinearGrad(grad, op.inputs[0], **g.attrs_of(op, *_ATTRS)), None


@g.register_gradient("ResizeBicubic")
def resize_bicubic_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    image = op.inputs[0]
    if image.dtype not in WIDE_FLOATS:
        return None, None
    return g.nodes.ResizeBicubicGrad(grad, image, **g.attrs_of(op, *_ATTRS)), None
