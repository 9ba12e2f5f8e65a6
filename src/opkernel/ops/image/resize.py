"""Resizing of images: bilinear, and to the nearest pixel.

Images are [batch, height, width, channels]; `size` is the new height and width.

Along one dimension, `linear`, `cubic` and `nearest` tell which pixels of an image each pixel of a
resized image is made of. Positions are computed in float, as TensorFlow's kernels do: where a position lies on
the edge between two pixels, its rounding decides. Arrays that are returned are shared and not to be written.

Source: TensorFlow core/ops/image_ops.cc, core/util/image_resizer_state.h, core/kernels/image/resize_*_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import DimensionHandle, InferenceContext, OpHandle, register_op
from opkernel.ops.input_checks import require, require_equal, require_rank, require_vector
from opkernel.ops.registration import REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType, as_dtype

__all__ = [
    "ALIGNMENT_ATTRS",
    "AT_ONCE",
    "Linear",
    "check_alignment",
    "check_size",
    "cubic",
    "declare_resizing",
    "in_parts",
    "interpolated_at",
    "linear",
    "nearest",
    "output_size",
    "remembered",
    "resize_shape",
    "scale",
    "size_dims",
    "sized_image_shape",
    "some_images",
    "spread_along",
    "two_of",
]


_Sampling = TypeVar("_Sampling")
_REMEMBERED, _LARGE = 64, 1 << 14
AT_ONCE = 1 << 19
"""So many pixels are computed at once."""
_TABLE_SIZE = 1024


def remembered(function: Callable[..., _Sampling]) -> Callable[..., _Sampling]:
    """The function, whose results for dimensions that are not large are kept."""
    kept = lru_cache(_REMEMBERED)(function)

    def sampling(size: int, output: int, *rest: Any, **more: Any) -> _Sampling:
        return (kept if max(size, output) <= _LARGE else function)(size, output, *rest, **more)

    return sampling


def in_parts(x: Array, axis: int, count: int, part: Callable[[slice], Array]) -> Array:
    """Images with `count` pixels along an axis: some of these at a time, if there are many.

    So the memory that they are computed in stays small, and the clock is looked at.

    Args:
        x: The images that they are made of.
        axis: The axis.
        count: How many pixels they have along it.
        part: Makes those of a slice.
    """
    step = max(AT_ONCE // max(x.size // max(x.shape[axis], 1), 1), 1)
    if step >= count:
        return part(slice(0, count))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    result = np.empty(check_allocation(shape, as_dtype(x.dtype)), x.dtype)
    before = (slice(None),) * axis
    for start in in_time(range(0, count, step), SLOW, "resizing images"):
        some = slice(start, min(start + step, count))
        result[(*before, some)] = part(some)
    return result


def some_images(before: Array, after: Array) -> Iterable[slice]:
    """Parts of a batch whose images are changed in size, with looks at the clock between them."""
    of_one = max(before[:1].size, after[:1].size, 1)
    step = max(AT_ONCE // of_one, 1)
    starts = in_time(range(0, len(after), step), SLOW, "resizing images")
    return (slice(start, start + step) for start in starts)


class Linear(NamedTuple):
    """The two neighbours of each position, and how far it is from the lower one."""

    lower: Array
    upper: Array
    fraction: Array


class Cubic(NamedTuple):
    """The four neighbours of each position, `[4, positions]`, and the weight of each."""

    indices: Array
    weights: Array


def scale(size: int, output: int, align_corners: bool) -> np.float32:
    """The distance of two pixels of the output, in pixels of the input."""
    if align_corners and output > 1 and size > 1:
        return np.float32(size - 1) / np.float32(output - 1)
    return np.float32(size) / np.float32(output)


def _positions(size: int, output: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    step = scale(size, output, align_corners)
    pixels = np.arange(output, dtype=np.float32)
    half = np.float32(0.5)
    return (pixels + half) * step - half if half_pixel_centers else pixels * step


@remembered
def linear(size: int, output: int, align_corners: bool, half_pixel_centers: bool) -> Linear:
    positions = _positions(size, output, align_corners, half_pixel_centers)
    floor = np.floor(positions)
    return Linear(
        np.maximum(floor, 0).astype(np.intp),
        np.minimum(np.ceil(positions), size - 1).astype(np.intp),
        positions - floor,
    )


@remembered
def nearest(size: int, output: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """The pixel of each position, which never decreases."""
    pixels = np.arange(output, dtype=np.float32)
    if half_pixel_centers:
        pixels = pixels + np.float32(0.5)
    positions = (pixels * scale(size, output, align_corners)).astype(np.float64)
    if align_corners:
        positions = positions + 0.5
    return np.minimum(np.floor(positions), size - 1).astype(np.intp)


@lru_cache(2)
def _cubic_table(a: float) -> tuple[Array, Array]:
    """The cubic convolution kernel between 0 and 1, and between 1 and 2."""
    near = np.arange(_TABLE_SIZE + 1) / _TABLE_SIZE
    far = near + 1
    return (
        (((a + 2) * near - (a + 3)) * near * near + 1).astype(np.float32),
        (((a * far - 5 * a) * far + 8 * a) * far - 4 * a).astype(np.float32),
    )


@remembered
def cubic(size: int, output: int, align_corners: bool, half_pixel_centers: bool) -> Cubic:
    """With half pixel centers Keys' kernel, and beyond the edge nothing instead of the edge."""
    positions = _positions(size, output, align_corners, half_pixel_centers)
    floor = np.floor(positions)
    offset = np.rint((positions - floor) * np.float32(_TABLE_SIZE)).astype(np.intp)
    near, far = _cubic_table(-0.5 if half_pixel_centers else -0.75)
    weights = np.stack(
        [far[offset], near[offset], near[_TABLE_SIZE - offset], far[_TABLE_SIZE - offset]]
    )
    wanted = floor.astype(np.intp) + np.array([[-1], [0], [1], [2]])
    indices = np.clip(wanted, 0, size - 1)
    if half_pixel_centers:
        weights = np.where(indices == wanted, weights, np.float32(0))
        total = weights.sum(axis=0)
        is_safe = np.abs(total) >= 1000 * np.finfo(np.float32).tiny
        weights = np.where(is_safe, weights * (1 / np.where(is_safe, total, 1)), weights)
    return Cubic(indices, weights.astype(np.float32))


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


def declare_resizing(
    name: str,
    doc: str,
    types: str = _TYPES,
    output: str = "float",
    attrs: Sequence[str] = ALIGNMENT_ATTRS,
) -> OpHandle:
    """Register an op that gives images another size."""
    return register_op(
        f"{name}(images: T, size: int32) -> resized_images: {output}",
        attrs=[types, *attrs],
        shape_fn=resize_shape,
        doc=f"""{doc}

        images: [batch, height, width, channels].
        size: The new height and width.
        align_corners: The corners of both images are the centers of their corner pixels.
        """,
    )


RESIZE_BILINEAR = declare_resizing(
    "ResizeBilinear",
    "Resize images; each new pixel is interpolated between four old ones.",
    f"T: {{{_INTEGER_SPEC}, bfloat16, half, float, double, bfloat16}}",
)
RESIZE_NEAREST_NEIGHBOR = declare_resizing(
    "ResizeNearestNeighbor", "Resize images; each new pixel is the nearest old one.", output="T"
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
    require(channels != 0, "image must have at least one channel")
    require(old_height != 0 and old_width != 0, "input image must be of non-zero size")
    check_allocation((batch, height, width, channels), dtype)
    return height, width


def spread_along(values: Any, axis: int, channels: int) -> Any:
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


def interpolated_at(x: Any, rows: Linear, columns: Linear, *, xp: Any = np) -> Any:
    """Images of floats with other pixels, each between four old ones; computed in their type."""
    if xp is np and 2 * len(rows.lower) < x.shape[1]:  # the rest of the rows is not read
        read, places = np.unique([rows.lower, rows.upper], return_inverse=True)
        x = x.take(read, axis=1)
        lower, upper = places.reshape(2, -1)
        rows = Linear(lower, upper, rows.fraction)
    return _interpolated(_interpolated(x, columns, 2, xp), rows, 1, xp)


def _interpolated(x: Any, at: Linear, axis: int, xp: Any) -> Any:
    """Images of floats with other pixels along an axis, each between two old ones; computed in their type."""

    def part(some: slice) -> Any:
        places = (at.lower[some], at.upper[some])
        lower, upper = (xp.take(x, xp.asarray(i), axis=axis) for i in places)
        fraction = spread_along(at.fraction[some].astype(x.dtype), axis, x.shape[3])
        return _between(lower, upper, xp.asarray(fraction), xp)

    return in_parts(x, axis, len(at.lower), part) if xp is np else part(slice(None))


Interpolate = Callable[[Any, Any, Any, Any], Any]
"""A function as `interpolate_bilinear`."""


def interpolate_bilinear(images: Array, neighbours: Array, fractions: Array, out: Array) -> None:
    """Fill `out` with images of other pixels, each between four old ones.

    Args:
        images: [images, height, width, channels], float32.
        neighbours: [2, height + width], the lower and the upper rows of the new rows, then columns.
        fractions: [height + width], float32: how far each is from the lower one.
        out: [images, height, width, channels], float32.
    """
    rows, columns = (
        Linear(neighbours[0, own], neighbours[1, own], fractions[own])
        for own in (slice(0, out.shape[1]), slice(out.shape[1], None))
    )
    out[...] = interpolated_at(images, rows, columns)


def register_resize_bilinear(
    interpolate: Interpolate, registry: KernelRegistry | None = None
) -> None:
    """Register the kernel of ResizeBilinear with a function that interpolates."""

    def resize_bilinear(
        *, align_corners: bool, half_pixel_centers: bool, xp: Any
    ) -> Callable[[Any, Any], Any]:
        check_alignment(align_corners, half_pixel_centers)

        def kernel(images: Any, size: Any) -> Any:
            new_size = output_size(images, size, DataType.DT_FLOAT)
            if images.shape[1:3] == new_size:
                return images.astype(np.float32)
            result = images.astype(np.float32, copy=False)
            rows, columns = (
                linear(old, new, align_corners, half_pixel_centers)
                for old, new in zip(images.shape[1:3], new_size, strict=True)
            )
            if xp is not np:
                return interpolated_at(result, rows, columns, xp=xp)
            neighbours = np.concatenate([rows[:2], columns[:2]], axis=1)
            fractions = np.concatenate([rows.fraction, columns.fraction])
            out = np.empty((len(images), *new_size, images.shape[3]), np.float32)
            for some in some_images(result, out):
                interpolate(result[some], neighbours, fractions, out[some])
            return out

        return kernel

    register_kernel(
        RESIZE_BILINEAR, types=_REGISTERED, host_memory=["size"], factory=True, registry=registry
    )(resize_bilinear)


register_resize_bilinear(interpolate_bilinear)


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


_ATTRS = ("align_corners", "half_pixel_centers")


@g.register_gradient("ResizeNearestNeighbor")
def resize_nearest_neighbor_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    size = g.nodes.StridedSlice(g.nodes.Shape(op.inputs[0]), [1], [3], [1])
    return g.nodes.ResizeNearestNeighborGrad(grad, size, **g.attrs_of(op, *_ATTRS)), None


@g.register_gradient("ResizeBilinear")
def resize_bilinear_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.ResizeBilinearGrad(grad, op.inputs[0], **g.attrs_of(op, *_ATTRS)), None
