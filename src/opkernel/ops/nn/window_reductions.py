"""Reductions over windows of channels-last arrays `[batch, *spatial, channels]`: what pools compute.

Sums and maxima are taken along one axis after the other, so that a window of 3 x 3 costs 3 + 3
passes, each over whole lines of memory; the lines between two passes stay in the cache. Padding is
left out of the windows rather than stored.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.kernel import allocate
from opkernel.ops.nn.windows import Array, Geometry, meetings, overlaps
from opkernel.types import as_dtype

__all__ = ["argmax_windows", "lowest", "reduce_windows", "scatter_to_chosen", "window_sizes"]

_TILE_BYTES = 1 << 20
"""Measured best between 128 KiB and 1 MiB, with 1 MiB of L2."""


def lowest(dtype: np.dtype[Any]) -> Any:
    """The least finite value of a type."""
    return as_dtype(dtype).min


def reduce_windows(x: Array, geometry: Geometry, combine: np.ufunc, initial: Any) -> Array:
    """The result `[batch, *output, channels]` of a reduction over what each window sees.

    Args:
        x: the input.
        geometry: where the windows lie.
        combine: a ufunc of two arguments, whose order does not matter.
        initial: what the reduction starts from.
    """
    out = allocate((x.shape[0], *geometry.output, x.shape[-1]), as_dtype(x.dtype))
    line_bytes = max(1, math.prod(x.shape[2:]) * x.itemsize)
    count = max(1, _TILE_BYTES // line_bytes)
    first, *others = (-before for before, _ in geometry.padding)
    for image, result in zip(x, out, strict=True):
        for start in range(0, geometry.output[0], count):
            places = (first + start * geometry.strides[0], *others)
            _reduce_tile(image, result[start : start + count], places, geometry, combine, initial)
    return out


def _reduce_tile(
    values: Array,
    out: Array,
    places: Sequence[int],
    geometry: Geometry,
    combine: np.ufunc,
    initial: Any,
) -> None:
    """Reduce one axis after the other; `places` says where the first window begins on each."""
    for axis, first in enumerate(places):
        reduced = out
        if axis + 1 < len(places):
            reduced = np.empty((*out.shape[: axis + 1], *values.shape[axis + 1 :]), out.dtype)
        reduced.fill(initial)
        along = (first, geometry.strides[axis], out.shape[axis], values.shape[axis])
        whole = (slice(None),) * axis
        for _, windows, elements in meetings(
            *along, geometry.window[axis], geometry.dilations[axis]
        ):
            target = reduced[(*whole, windows)]
            combine(target, values[(*whole, elements)], out=target)
        values = reduced


def window_sizes(geometry: Geometry, spatial: Sequence[int]) -> Array:
    """How many elements of an input of this size each window sees: `[*output, 1]`."""
    along = []
    for i, size in enumerate(spatial):
        first = np.arange(geometry.output[i]) * geometry.strides[i] - geometry.padding[i][0]
        along.append(np.minimum(first + geometry.window[i], size) - np.maximum(first, 0))
    return functools.reduce(np.multiply.outer, along)[..., np.newaxis]


def argmax_windows(x: Array, geometry: Geometry) -> tuple[Array, Array]:
    """The first largest element of each window: its value, and its number in the window or -1.

    A NaN is taken where it comes first, and else passed over, as by TensorFlow.
    """
    shape = (x.shape[0], *geometry.output, x.shape[-1])
    values = np.full(shape, lowest(x.dtype), x.dtype)
    chosen = np.full(shape, -1, np.intp)
    for offset, windows, elements in overlaps(geometry, x.shape[1:-1]):
        found, best, choice = x[elements], values[windows], chosen[windows]
        better = (best < found) | (choice < 0)
        np.copyto(best, found, where=better)
        np.copyto(choice, _number(offset, geometry), where=better)
    return values, chosen


def scatter_to_chosen(
    chosen: Array, gradient: Array, input_shape: Sequence[int], geometry: Geometry
) -> Array:
    """Add the gradient of each window to the element that `argmax_windows` chose in it."""
    out = np.zeros(input_shape, gradient.dtype)
    for offset, windows, elements in overlaps(geometry, input_shape[1:-1]):
        here = chosen[windows] == _number(offset, geometry)
        out[elements] += np.where(here, gradient[windows], gradient.dtype.type(0))
    return out


def _number(offset: Sequence[int], geometry: Geometry) -> int:
    """The number of an element in the window, in the order of memory."""
    return functools.reduce(
        lambda number, axis: number * geometry.window[axis] + offset[axis], range(len(offset)), 0
    )
