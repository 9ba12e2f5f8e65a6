"""Images seen from elsewhere: ImageProjectiveTransformV2, ImageProjectiveTransformV3, ScaleAndTranslate.

ScaleAndTranslate resamples with a kernel of one's choice, which tells how much a pixel at some distance
contributes to a new one.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/image_ops.cc, image_ops.h,
scale_and_translate_op.cc, sampling_kernels.h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.image.resize import (
    AT_ONCE,
    output_size,
    remembered,
    resize_shape,
    sized_image_shape,
    two_of,
)
from opkernel.ops.image.resize_grad import original_image_shape
from opkernel.ops.input_checks import require_equal, require_rank, require_scalar, require_vector
from opkernel.ops.registration import FLOATS, INDEX, REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType

_TYPES = (DataType.DT_UINT8, *INDEX, *FLOATS)
_PROJECTION_ATTRS = [
    "dtype: {uint8, int32, int64, half, bfloat16, float, double}",
    "interpolation: string",
    "fill_mode: string = 'CONSTANT'",
]


def _projective_transform_shape(c: InferenceContext) -> None:
    """Images -> images of the height and width that input 2 holds."""
    images = c.with_rank(c.input(0), 4)
    sized_image_shape(c, c.dim(images, 0), 2, c.dim(images, 3))


_INPUTS = "images: dtype, transforms: float, output_shape: int32"

IMAGE_PROJECTIVE_TRANSFORM_V2 = register_op(
    f"ImageProjectiveTransformV2({_INPUTS}) -> transformed_images: dtype",
    attrs=_PROJECTION_ATTRS,
    shape_fn=_projective_transform_shape,
    doc=(
        "Each pixel (x, y) is that of the image at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where "
        "k = c0 x + c1 y + 1. `fill_mode` says what lies beyond the image."
    ),
)
IMAGE_PROJECTIVE_TRANSFORM_V3 = register_op(
    f"ImageProjectiveTransformV3({_INPUTS}, fill_value: float) -> transformed_images: dtype",
    attrs=_PROJECTION_ATTRS,
    shape_fn=_projective_transform_shape,
    doc="ImageProjectiveTransformV2 with the value beyond the image where `fill_mode` is CONSTANT.",
)

_F = np.float32
_TILE = 1 << 17
"""The pixels of a tile."""


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
    "": lambda at, size: at,
    "CONSTANT": lambda at, size: at,
    "NEAREST": _nearest,
    "REFLECT": _reflect,
    "WRAP": _wrap,
}


@register_kernel(
    IMAGE_PROJECTIVE_TRANSFORM_V2,
    IMAGE_PROJECTIVE_TRANSFORM_V3,
    types={"dtype": _TYPES},
    factory=True,
)
def image_projective_transform(*, interpolation: str, fill_mode: str) -> Callable[..., Any]:
    interpolation = interpolation.upper()
    methods = {"NEAREST": _take_nearest, "BILINEAR": _take_bilinear}
    if interpolation not in methods:
        raise InvalidArgumentError(f"Interpolation {interpolation} is not supported")
    if fill_mode not in _FILLS:
        raise InvalidArgumentError(f"fill_mode {fill_mode} is not supported")
    take, inside = methods[interpolation], _FILLS[fill_mode]

    def transform(images: Any, transforms: Any, output_shape: Any, fill_value: Any = None) -> Any:
        shape = _output_shape(images, transforms, output_shape)
        if fill_value is not None:
            require_scalar(fill_value, "fill_value must be a scalar, got {}")
        fill = np.asarray(_F(0) if fill_value is None else fill_value).astype(images.dtype)
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


@g.register_gradient(
    "ImageProjectiveTransformV2",
    "ImageProjectiveTransformV3",
    not_derivative="it is the transform back, which only comes near",
)
def image_projective_transform_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradient seen from there, as TensorFlow has it: the inverse transform of it."""
    images, transforms, _, *fill_value = op.inputs
    size = g.nodes.Slice(g.nodes.Shape(images), [1], [2])
    attrs = g.attrs_of(op, "interpolation", "fill_mode")
    version = "V3" if fill_value else "V2"
    transform = getattr(g.nodes, f"ImageProjectiveTransform{version}")
    back = transform(grad, _inverse(transforms), size, *fill_value, **attrs)
    return [back, *[None] * (len(op.inputs) - 1)]


@dataclass(frozen=True, slots=True)
class SamplingKernel:
    """A function of the distance, which is never negative; it is 0 beyond the radius."""

    radius: float
    weights: Callable[[Array], Array]


def _lanczos(x: Array, radius: float) -> Array:
    angle = np.pi * np.maximum(x, 1e-3)
    weights = radius * np.sin(angle) * np.sin(angle / radius) / angle**2
    return np.where(x > radius, 0, np.where(x <= 1e-3, 1, weights))


def _gaussian(x: Array, radius: float) -> Array:
    """Its standard deviation is a third of the radius."""
    return np.where(x >= radius, 0, np.exp(-4.5 * (x / radius) ** 2))


def _keys_cubic(x: Array) -> Array:
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _mitchell_cubic(x: Array) -> Array:
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


SAMPLING_KERNELS = {
    **{f"lanczos{r}": SamplingKernel(r, partial(_lanczos, radius=r)) for r in (1, 3, 5)},
    "gaussian": SamplingKernel(1.5, partial(_gaussian, radius=1.5)),
    "box": SamplingKernel(1, lambda x: np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0))),
    "triangle": SamplingKernel(1, lambda x: np.where(x < 1, 1 - x, 0)),
    "keyscubic": SamplingKernel(2, _keys_cubic),
    "mitchellcubic": SamplingKernel(2, _mitchell_cubic),
}
"""By the name that the attr `kernel_type` gives."""


_OF_TAP = 48
"""The bytes that a pixel of a span takes while its weight is found."""
_SMALLEST_TOTAL = 1000 * np.finfo(np.float32).tiny
_ATTRS = ("kernel_type: string = 'lanczos3'", "antialias: bool = true")
_DOC = """
    scale: By how much height and width grow.
    translation: Where the first row and column go, in pixels of the new image.
    kernel_type: lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic, mitchellcubic.
    antialias: Widen the kernel where the image shrinks.
    """

SCALE_AND_TRANSLATE = register_op(
    "ScaleAndTranslate(images: T, size: int32, scale: float, translation: float) -> resized_images: float",
    attrs=["T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}", *_ATTRS],
    shape_fn=resize_shape,
    doc=f"""Resample images; pixels from outside the image are 0.

    images: [batch, height, width, channels].
    size: The new height and width.{_DOC}""",
)
SCALE_AND_TRANSLATE_GRAD = register_op(
    "ScaleAndTranslateGrad(grads: T, original_image: T, scale: float, translation: float) -> output: T",
    attrs=["T: {float}", *_ATTRS],
    shape_fn=original_image_shape,
    doc=f"""The gradient of ScaleAndTranslate by its images, of `original_image`'s size.
    {_DOC}""",
)


class _Taps(NamedTuple):
    """Which old pixels each new pixel is made of, along one dimension; ordered by new pixel."""

    old: Array
    new: Array
    weights: Array

    def by_old(self) -> _Taps:
        """Without those of weight 0, ordered by old pixel, which is now the new one."""
        order = np.argsort(self.old, kind="stable")
        order = order[self.weights[order] != 0]
        return _Taps(self.new[order], self.old[order], self.weights[order])


@remembered
def _taps(
    size: int, output: int, scale: float, translation: float, kernel: SamplingKernel, widen: bool
) -> _Taps:
    """All spans of old pixels are of one length, up to the edge; weights fill their beginning.

    Positions are computed in float, as in the original: their rounding decides on the edge.
    """
    step = np.float32(1) / np.float32(scale)
    stretch = np.maximum(step, np.float32(1)) if widen else np.float32(1)
    reach = np.float32(kernel.radius) * stretch
    pixels = np.arange(output, dtype=np.float32) + np.float32(0.5)
    position = pixels * step + -step * np.float32(translation)
    is_inside = (position >= 0) & (position <= size)
    half = np.float32(0.5)
    first, last = (
        np.clip(np.where(is_inside, edge, 0), 0, size - 1).astype(np.intp)
        for edge in (np.ceil(position - reach - half), np.floor(position + reach - half))
    )
    last[~is_inside] = -1  # no pixel is as far to the front: all weights are 0
    span = int(min(2 * np.ceil(reach) + 1, size))
    with making_bytes("the weights of pixels", output * span * _OF_TAP):
        old = first[:, np.newaxis] + np.arange(span)
        return _weighted(kernel, old, last, position, stretch, size)


def _weighted(
    kernel: SamplingKernel, old: Array, last: Array, position: Array, stretch: Any, size: int
) -> _Taps:
    """The taps of pixels at these positions, each from a row of old pixels up to its last one."""
    output, half = len(position), np.float32(0.5)
    distance = old.astype(np.float32) + half - position[:, np.newaxis]
    weights = kernel.weights(np.abs(distance * (np.float32(1) / stretch))).astype(np.float32)
    weights[old > last[:, np.newaxis]] = 0
    total = weights.sum(axis=1, keepdims=True)
    is_safe = np.abs(total) >= _SMALLEST_TOTAL
    weights = np.where(is_safe, weights * (1 / np.where(is_safe, total, 1)), np.float32(0))
    new = np.broadcast_to(np.arange(output)[:, np.newaxis], old.shape)
    exists = old < size
    return _Taps(old[exists], new[exists], weights[exists])


def _resample(images: Array, taps: _Taps, size: int, axis: int) -> Array:
    """Images of another size along an axis; 0 where no pixel contributes."""
    shape = (*images.shape[:axis], size, *images.shape[axis + 1 :])
    result = np.zeros(check_allocation(shape, DataType.DT_FLOAT), np.float32)
    starts = np.flatnonzero(np.diff(taps.new, prepend=-1))
    ends = np.append(starts, taps.new.size)
    of_pixel = (images.size // images.shape[axis]) * -(-taps.new.size // max(len(starts), 1))
    step = max(AT_ONCE // max(of_pixel, 1), 1)
    for at in in_time(range(0, len(starts), step), SLOW, "resizing images"):
        some = starts[at : at + step]
        whole = slice(some[0], ends[min(at + step, len(starts))])
        parts = np.take(images, taps.old[whole], axis=axis)
        parts *= taps.weights[whole].reshape(-1, *(1,) * (3 - axis))
        place: tuple[Any, ...] = (*[slice(None)] * axis, taps.new[some])
        result[place] = np.add.reduceat(parts, some - whole.start, axis)
    return result


def _factors(scale: Any, translation: Any) -> list[tuple[float, float]]:
    """Scale and translation of the height, and of the width."""
    scales = [float(factor) for factor in two_of("t", scale)]
    if not all(factor > 0 for factor in scales):
        raise InvalidArgumentError("Scale must be greater than zero.")
    return list(zip(scales, map(float, two_of("t", translation)), strict=True))


def _sampling_kernel(kernel_type: str) -> SamplingKernel:
    if kernel_type not in SAMPLING_KERNELS:
        raise InvalidArgumentError(f"Unrecognized kernel type: {kernel_type}")
    return SAMPLING_KERNELS[kernel_type]


@register_kernel(
    SCALE_AND_TRANSLATE,
    types={"T": REAL_NUMBERS},
    host_memory=["size", "scale", "translation"],
    factory=True,
)
def scale_and_translate(*, kernel_type: str, antialias: bool) -> Callable[..., Any]:
    sampling = _sampling_kernel(kernel_type)

    def kernel(images: Any, size: Any, scale: Any, translation: Any) -> Any:
        sizes = output_size(images, size, DataType.DT_FLOAT)
        result = images.astype(np.float32)
        for axis, output, factors in zip((1, 2), sizes, _factors(scale, translation), strict=True):
            taps = _taps(images.shape[axis], output, *factors, sampling, antialias)
            result = _resample(result, taps, output, axis)
        return result

    return kernel


@register_kernel(
    SCALE_AND_TRANSLATE_GRAD,
    types={"T": DataType.DT_FLOAT},
    host_memory=["scale", "translation"],
    factory=True,
)
def scale_and_translate_grad(*, kernel_type: str, antialias: bool) -> Callable[..., Any]:
    sampling = _sampling_kernel(kernel_type)

    def kernel(grads: Any, original_image: Any, scale: Any, translation: Any) -> Any:
        require_rank(grads, 4, "input_grad must be 4-dimensional{}")
        require_rank(original_image, 4, "original_image must be 4-dimensional{}")
        if 0 in (*grads.shape[1:3], *original_image.shape[1:3]):
            raise InvalidArgumentError("image dimensions must be positive")
        result = grads
        for axis, factors in zip((1, 2), _factors(scale, translation), strict=True):
            size = original_image.shape[axis]
            taps = _taps(size, grads.shape[axis], *factors, sampling, antialias)
            result = _resample(result, taps.by_old(), size, axis)
        return result

    return kernel


@g.register_gradient("ScaleAndTranslate")
def scale_and_translate_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    images, _, scale, translation = op.inputs
    attrs = g.attrs_of(op, "kernel_type", "antialias")
    for_images = g.nodes.ScaleAndTranslateGrad(grad, images, scale, translation, **attrs)
    return for_images, None, None, None
