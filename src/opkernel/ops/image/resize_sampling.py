"""Which pixels of an image each pixel of a resized image is made of, along one dimension.

Positions are computed in float, as TensorFlow's kernels do: where a position lies on the edge
between two pixels, its rounding decides. Arrays that are returned are shared and not to be written.

Source: TensorFlow core/util/image_resizer_state.h, core/kernels/image/resize_*_op.cc.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.kernel import check_allocation
from opkernel.types import as_dtype

__all__ = ["Area", "Cubic", "Linear", "area", "cubic", "in_parts", "linear", "nearest"]

Array = np.ndarray[Any, Any]

_Sampling = TypeVar("_Sampling")
_REMEMBERED, _LARGE = 64, 1 << 14
_AT_ONCE = 1 << 19
"""So many pixels are computed at once."""
_TABLE_SIZE = 1024


def _remembered(function: Callable[..., _Sampling]) -> Callable[..., _Sampling]:
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
    step = max(_AT_ONCE // max(x.size // max(x.shape[axis], 1), 1), 1)
    if step >= count:
        return part(slice(0, count))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    result = np.empty(check_allocation(shape, as_dtype(x.dtype)), x.dtype)
    before = (slice(None),) * axis
    for start in in_time(range(0, count, step), SLOW, "resizing images"):
        some = slice(start, min(start + step, count))
        result[(*before, some)] = part(some)
    return result


class Linear(NamedTuple):
    """The two neighbours of each position, and how far it is from the lower one."""

    lower: Array
    upper: Array
    fraction: Array


class Cubic(NamedTuple):
    """The four neighbours of each position, `[4, positions]`, and the weight of each."""

    indices: Array
    weights: Array


class Area(NamedTuple):
    """All pixels that each position covers, one list after the other, and where each list begins."""

    indices: Array
    weights: Array
    starts: Array


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


@_remembered
def linear(size: int, output: int, align_corners: bool, half_pixel_centers: bool) -> Linear:
    positions = _positions(size, output, align_corners, half_pixel_centers)
    floor = np.floor(positions)
    return Linear(
        np.maximum(floor, 0).astype(np.intp),
        np.minimum(np.ceil(positions), size - 1).astype(np.intp),
        positions - floor,
    )


@_remembered
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


@_remembered
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


@_remembered
def area(size: int, output: int, align_corners: bool) -> Area:
    """Weights are the part of each pixel that the position covers."""
    step = scale(size, output, align_corners)
    edges = np.arange(output + 1, dtype=np.float32) * step
    first = np.floor(edges[:-1]).astype(np.intp)
    counts = np.maximum(np.ceil(edges[1:]).astype(np.intp) - first, 1)
    starts = np.cumsum(counts) - counts
    indices = np.arange(counts.sum()) - np.repeat(starts - first, counts)
    low, high = np.repeat(edges[:-1], counts), np.repeat(edges[1:], counts)
    pixel = indices.astype(np.float32)
    ends = pixel + 1 > high
    weights = np.where(
        pixel < low,
        np.where(ends, step, pixel + 1 - low),
        np.where(ends, high - pixel, np.float32(1)),
    )
    return Area(np.clip(indices, 0, size - 1), weights, starts)
