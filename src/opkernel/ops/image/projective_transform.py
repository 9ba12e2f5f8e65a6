"""ImageProjectiveTransformV2, ImageProjectiveTransformV3: images seen from elsewhere.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/image_ops.cc, core/kernels/image/image_ops.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.image.resize import sized_image_shape
from opkernel.ops.input_checks import require_equal, require_rank, require_scalar, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_TYPES = [
    DataType.DT_UINT8,
    DataType.DT_INT32,
    DataType.DT_INT64,
    DataType.DT_HALF,
    DataType.DT_BFLOAT16,
    DataType.DT_FLOAT,
    DataType.DT_DOUBLE,
]
_ATTRS = [
    "dtype: {uint8, int32, int64, half, bfloat16, float, double}",
    "interpolation: string",
    "fill_mode: string = 'CONSTANT'",
]
_INPUTS = ["images: dtype", "transforms: float", "output_shape: int32"]


def _projective_transform_shape(c: InferenceContext) -> None:
    """Images -> images of the height and width that input 2 holds."""
    images = c.with_rank(c.input(0), 4)
    sized_image_shape(c, c.dim(images, 0), 2, c.dim(images, 3))


IMAGE_PROJECTIVE_TRANSFORM_V2 = register_op(
    "ImageProjectiveTransformV2",
    inputs=_INPUTS,
    outputs=["transformed_images: dtype"],
    attrs=_ATTRS,
    shape_fn=_projective_transform_shape,
    doc=(
        "Each pixel (x, y) is that of the image at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where "
        "k = c0 x + c1 y + 1. `fill_mode` says what lies beyond the image."
    ),
)
IMAGE_PROJECTIVE_TRANSFORM_V3 = register_op(
    "ImageProjectiveTransformV3",
    inputs=[*_INPUTS, "fill_value: float"],
    outputs=["transformed_images: dtype"],
    attrs=_ATTRS,
    shape_fn=_projective_transform_shape,
    doc="ImageProjectiveTransformV2 with the value beyond the image where `fill_mode` is CONSTANT.",
)

_F = np.float32
_TILE = 1 << 17
"""The pixels of a tile."""


def _constant(at: Any, size: int) -> Any:
    return at


def _nearest(at: Any, size: int) -> Any:
    return np.clip(at, _F(0), _F(size - 1))


def _reflect(at: Any, size: int) -> Any:
    """Abcd continues as dcba on both sides."""
    if size <= 1:
        return np.where((at < 0) | (at > size - 1), _F(0), at)
    twice = _F(2 * size)
    before = twice * np.trunc(-at / twice) + at
    before = np.where(before < -size, before + twice, -before - 1)
    after = at - twice * np.trunc(at / twice)
    after = np.where(after >= size, twice - after - 1, after)
    inside = np.where(at < 0, before, np.where(at > size - 1, after, at))
    return np.clip(inside, _F(0), _F(size - 1))


def _wrap(at: Any, size: int) -> Any:
    """Abcd continues as abcd on both sides."""
    if size <= 1:
        return np.where((at < 0) | (at > size - 1), _F(0), at)
    last = _F(size - 1)
    before = at + _F(size) * (np.trunc(-at / last) + 1)
    after = at - _F(size) * np.trunc(at / last)
    inside = np.where(at < 0, before, np.where(at > last, after, at))
    return np.clip(inside, _F(0), last)


_FILLS: dict[str, Callable[[Any, int], Any]] = {
    "": _constant,
    "CONSTANT": _constant,
    "NEAREST": _nearest,
    "REFLECT": _reflect,
    "WRAP": _wrap,
}


def _kernel(interpolation: str, fill_mode: str) -> Callable[..., Any]:
    interpolation = interpolation.upper()
    methods = {"NEAREST": _take_nearest, "BILINEAR": _take_bilinear}
    if interpolation not in methods:
        raise InvalidArgumentError(f"Interpolation {interpolation} is not supported")
    if fill_mode not in _FILLS:
        raise InvalidArgumentError(f"fill_mode {fill_mode} is not supported")
    take, inside = methods[interpolation], _FILLS[fill_mode]

    def transform(images: Any, transforms: Any, output_shape: Any, fill_value: Any = None) -> Any:
        shape = _output_shape(images, transforms, output_shape)
        filler = _F(0) if fill_value is None else _fill_value(fill_value)
        fill = np.asarray(filler).astype(images.dtype)
        output = np.empty(shape, images.dtype)
        with np.errstate(all="ignore"):
            for number, image in enumerate(images if output.size else ()):
                own = transforms[number % len(transforms)]
                for tile in in_time(_tiles(shape[1], shape[2]), SLOW, "transforming images"):
                    x, y, valid = _positions(own, *tile)
                    rows, columns = inside(y, image.shape[0]), inside(x, image.shape[1])
                    part = output[number][tile]
                    part[...] = take(image, rows, columns, fill)
                    part[~valid] = fill
        return output

    return transform


@register_kernel(IMAGE_PROJECTIVE_TRANSFORM_V2, types={"dtype": _TYPES}, factory=True)
def image_projective_transform_v2(
    *, interpolation: str, fill_mode: str
) -> Callable[[Any, Any, Any], Any]:
    transform = _kernel(interpolation, fill_mode)
    return lambda images, transforms, output_shape: transform(images, transforms, output_shape)


@register_kernel(IMAGE_PROJECTIVE_TRANSFORM_V3, types={"dtype": _TYPES}, factory=True)
def image_projective_transform_v3(
    *, interpolation: str, fill_mode: str
) -> Callable[[Any, Any, Any, Any], Any]:
    transform = _kernel(interpolation, fill_mode)
    return lambda images, transforms, output_shape, fill_value: transform(
        images, transforms, output_shape, fill_value
    )


def _output_shape(images: Any, transforms: Any, output_shape: Any) -> tuple[int, ...]:
    require_rank(images, 4, "Input images must have rank 4")
    if transforms.ndim != 2 or transforms.shape[1] != 8 or len(transforms) not in (1, len(images)):
        raise InvalidArgumentError("Input transform should be num_images x 8 or 1 x 8")
    require_vector(output_shape, "output shape must be 1-dimensional{}")
    require_equal(output_shape.shape, (2,), "output shape must have two elements{}")
    height, width = output_shape.tolist()
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(f"output dimensions must be positive, got {height} x {width}")
    dtype = DataType.DT_DOUBLE if images.dtype.itemsize == 8 else DataType.DT_FLOAT
    return check_allocation((len(images), height, width, images.shape[3]), dtype)


def _fill_value(fill_value: Any) -> Any:
    require_scalar(fill_value, "fill_value must be a scalar, got {}")
    return fill_value[()]


def _tiles(height: int, width: int) -> Iterator[tuple[slice, slice]]:
    """The parts of an image that are computed at a time: their rows and columns."""
    columns = min(width, _TILE)
    rows = max(_TILE // columns, 1)
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            yield slice(top, min(top + rows, height)), slice(left, min(left + columns, width))


def _positions(transform: Any, rows: slice, columns: slice) -> tuple[Any, Any, Any]:
    """The column and row of the image for each pixel of a tile, and whether there is any."""
    a0, a1, a2, b0, b1, b2, c0, c1 = transform
    y = np.arange(rows.start, rows.stop, dtype=_F)[:, None]
    x = np.arange(columns.start, columns.stop, dtype=_F)
    projection = c0 * x + c1 * y + _F(1)
    across = (a0 * x + a1 * y + a2) / projection
    down = (b0 * x + b1 * y + b2) / projection
    return across, down, projection != 0


def _read(image: Any, rows: Any, columns: Any, fill: Any) -> Any:
    """The pixels at rows and columns; the fill value beyond the image."""
    height, width = image.shape[:2]
    valid = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    if not image.size:
        return np.full((*rows.shape, image.shape[2]), fill, image.dtype)
    at = (np.where(valid, part, 0).astype(np.intp) for part in (rows, columns))
    return np.where(valid[..., None], image[tuple(at)], fill)


def _take_nearest(image: Any, rows: Any, columns: Any, fill: Any) -> Any:
    return _read(image, _rounded(rows), _rounded(columns), fill)


def _rounded(at: Any) -> Any:
    """Half away from zero."""
    return np.trunc(at + np.copysign(_F(0.49999997), at))


def _take_bilinear(image: Any, rows: Any, columns: Any, fill: Any) -> Any:
    top, left = np.floor(rows), np.floor(columns)
    down, across = (rows - top)[..., None], (columns - left)[..., None]
    up, back = (top + 1 - rows)[..., None], (left + 1 - columns)[..., None]

    def mixed(at: Any) -> Any:
        first, second = (_read(image, at, part, fill).astype(_F) for part in (left, left + 1))
        return back * first + across * second

    return up * mixed(top) + down * mixed(top + 1)


def _inverse(transforms: g.Tensor) -> Any:
    """The transforms back."""
    nodes = g.nodes
    count = nodes.Slice(nodes.Shape(transforms), [0], [1])
    ones = nodes.Fill(nodes.ConcatV2([count, [1]], 0), nodes.Cast(1.0, DstT="float32"))
    whole = nodes.ConcatV2([transforms, ones], 1)
    inverse = nodes.Reshape(nodes.MatrixInverse(nodes.Reshape(whole, [-1, 3, 3])), [-1, 9])
    last = nodes.Slice(inverse, [0, 8], [-1, 1])
    return nodes.Slice(nodes.RealDiv(inverse, last), [0, 0], [-1, 8])


def _image_size(images: g.Tensor) -> Any:
    return g.nodes.Slice(g.nodes.Shape(images), [1], [2])


_WHY = "it is the transform back, which only comes near"


@g.register_gradient("ImageProjectiveTransformV2", not_derivative=_WHY)
def image_projective_transform_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradient seen from there, as TensorFlow has it: the inverse transform of it."""
    images, transforms, _ = op.inputs
    attrs = g.attrs_of(op, "interpolation", "fill_mode")
    back = g.nodes.ImageProjectiveTransformV2(
        grad, _inverse(transforms), _image_size(images), **attrs
    )
    return [back, None, None]


@g.register_gradient("ImageProjectiveTransformV3", not_derivative=_WHY)
def image_projective_transform_v3_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """As that of ImageProjectiveTransformV2."""
    images, transforms, _, fill_value = op.inputs
    attrs = g.attrs_of(op, "interpolation", "fill_mode")
    back = g.nodes.ImageProjectiveTransformV3(
        grad, _inverse(transforms), _image_size(images), fill_value, **attrs
    )
    return [back, None, None, None]
