"""Windows that slide over channels-last arrays `[batch, *spatial, channels]`: where they lie.

Any number of spatial dimensions. Convolutions and poolings, and their gradients, are all told here
which elements of the input each window has.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from opkernel.device.work_clock import SLOW, in_time
from opkernel.kernel import allocate, scratch
from opkernel.records import dataclass, replace
from opkernel.types import as_dtype

Array = np.ndarray[Any, Any]
_Overlap = tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]

_SMALL_WINDOW = 64
"""Elements of a window up to which it is kept where they meet the input."""


@dataclass(frozen=True)
class Geometry:
    """Where the windows of a convolution lie: one entry a spatial dimension.

    Attributes:
        window: the filter's size.
        strides: the distance of neighbouring windows.
        dilations: the distance of neighbouring elements of a window.
        padding: the zeros before and after the input.
        output: the number of windows.
    """

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    output: tuple[int, ...]

    @cached_property
    def is_padded(self) -> bool:
        """Whether there is any padding."""
        return any(map(any, self.padding))

    @cached_property
    def is_pointwise(self) -> bool:
        """Whether each window is one element, taken in order."""
        ones = (1,) * len(self.window)
        return self.window == ones and self.strides == ones and not self.is_padded

    def padded_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape `[batch, *spatial, channels]` with its padding."""
        spatial = (s + sum(p) for s, p in zip(shape[1:-1], self.padding, strict=True))
        return (shape[0], *spatial, shape[-1])

    def inner(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """Where in the padded array that of this shape lies."""
        spatial = zip(shape[1:-1], self.padding, strict=True)
        return (slice(None), *(slice(before, before + size) for size, (before, _) in spatial))


def pad(x: Array, geometry: Geometry, value: float = 0, *, in_scratch: bool = False) -> Array:
    """The input with its padding; the input itself if it has none."""
    if not geometry.is_padded:
        return x
    shape = geometry.padded_shape(x.shape)
    if in_scratch:
        padded = scratch("padded tile", shape, x.dtype)
    else:
        padded = allocate(shape, as_dtype(x.dtype))
    padded.fill(value)
    padded[geometry.inner(x.shape)] = x
    return padded


def clipped(first: int, step: int, count: int, size: int) -> tuple[slice, slice]:
    """Which of `count` places `first`, `first + step`, ... lie in `range(size)`, and where.

    Both slices are `slice(0, 0)` where none does.
    """
    start = max(0, -(first // step))
    stop = min(count, (size - 1 - first) // step + 1)
    if start >= stop:
        return slice(0, 0), slice(0, 0)
    last = first + (stop - 1) * step
    return slice(start, stop), slice(first + start * step, last + 1, step)


def meetings(
    first: int, stride: int, count: int, size: int, window: int, dilation: int
) -> Iterator[tuple[int, slice, slice]]:
    """Where windows and an input meet along one axis, for each element of the window.

    Args:
        first: where the first window begins; negative in the padding.
        stride: the distance of neighbouring windows.
        count: the number of windows.
        size: the size of the input.
        window: the size of a window, which may be much larger than the input.
        dilation: the distance of neighbouring elements of a window.

    Yields:
        The offset of an element in the window, which windows have it in the input, and where.
    """
    offsets = range(window)
    if dilation > 0:
        low = -((first + (count - 1) * stride) // dilation)
        offsets = range(max(0, low), min(window, (size - 1 - first) // dilation + 1))
    for at in offsets:
        windows, elements = clipped(first + at * dilation, stride, count, size)
        if windows.stop:
            yield at, windows, elements


def overlaps(geometry: Geometry, spatial: Sequence[int]) -> Iterable[_Overlap]:
    """Where windows and an input without padding meet, for each element of the window.

    Gives three things: the element's offset in the window; an index of the windows `[batch, *output, ...]`
    that have this element in the input; and an index of these elements `[batch, *spatial, ...]`. Elements
    that lie in the padding for all windows are left out.
    """
    if math.prod(geometry.window) > _SMALL_WINDOW:
        return in_time(_overlaps(geometry, spatial), SLOW)
    return in_time(_small_overlaps(geometry, tuple(spatial)), SLOW)


@lru_cache(maxsize=256)
def _small_overlaps(geometry: Geometry, spatial: tuple[int, ...]) -> Iterable[_Overlap]:
    return tuple(_overlaps(geometry, spatial))


def _overlaps(geometry: Geometry, spatial: Sequence[int]) -> Iterator[_Overlap]:
    axes = [
        list(
            meetings(
                -geometry.padding[i][0],
                geometry.strides[i],
                geometry.output[i],
                size,
                geometry.window[i],
                geometry.dilations[i],
            )
        )
        for i, size in enumerate(spatial)
    ]
    everything = slice(None)
    for found in itertools.product(*axes):
        offset = tuple(at for at, _, _ in found)
        yield offset, (everything, *(w for _, w, _ in found)), (everything, *(e for *_, e in found))


@lru_cache(maxsize=256)
def turned_geometry(geometry: Geometry, spatial: tuple[int, ...]) -> Geometry:
    """Where the windows of the turned filter lie in the gradient by the output.

    There is one for each input element, with the gradients of the windows that the element is in, where
    strides are 1. `spread` is for all strides, and copies.
    """
    padding = []
    for axis, size in enumerate(spatial):
        reach = (geometry.window[axis] - 1) * geometry.dilations[axis]
        first = geometry.padding[axis][0]
        padding.append((reach - first, size - geometry.output[axis] + first))
    return replace(geometry, padding=tuple(padding), output=spatial)


def spread(gradient: Array, geometry: Geometry, spatial: Sequence[int]) -> tuple[Array, Geometry]:
    """The gradient by the output, laid out so that windows slide over it once per input element.

    An input element lies in some windows of the convolution. Its window here holds the gradients of these,
    beginning with the window that has it last. There are zeros where a stride steps over the element.

    Returns:
        The array `[batch, *(spatial + reach), channels]`, and where its windows lie.
    """
    reach = [(w - 1) * d for w, d in zip(geometry.window, geometry.dilations, strict=True)]
    sizes = [size + more for size, more in zip(spatial, reach, strict=True)]
    dtype = as_dtype(gradient.dtype)
    out = allocate((gradient.shape[0], *sizes, gradient.shape[-1]), dtype)
    out.fill(0)
    axes = [
        clipped(reach[i] - before, geometry.strides[i], geometry.output[i], sizes[i])
        for i, (before, _) in enumerate(geometry.padding)
    ]
    everything = slice(None)
    out[(everything, *(to for _, to in axes))] = gradient[(everything, *(at for at, _ in axes))]
    places = replace(
        geometry,
        strides=(1,) * len(sizes),
        padding=((0, 0),) * len(sizes),
        output=tuple(spatial),
    )
    return out, places


def strided(array: Array, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view of a contiguous array; `offset` and `strides` count elements, not bytes."""
    size = array.itemsize
    return np.ndarray(shape, array.dtype, array, offset * size, [s * size for s in strides])


def windows_of(padded: Array, geometry: Geometry) -> Array:
    """A view `[batch, *output, *window, channels]` of a padded input."""
    batch, *along, channel = padded.strides
    outer = [s * step for s, step in zip(along, geometry.strides, strict=True)]
    inner = [s * step for s, step in zip(along, geometry.dilations, strict=True)]
    shape = (padded.shape[0], *geometry.output, *geometry.window, padded.shape[-1])
    strides = (batch, *outer, *inner, channel)
    if padded.flags.c_contiguous:
        return np.ndarray(shape, padded.dtype, padded, 0, strides)  # begins in a fifth of the time
    return as_strided(padded, shape, strides)
