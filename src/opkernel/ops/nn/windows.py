"""Convolution of channels-last arrays in any number of spatial dimensions, as matrix products.

A convolution gathers, for each output position, the window of the input that it sees, and
multiplies these rows by the filter as one matrix (im2col). The rows are gathered tile by tile into
one buffer that stays in the cache: fresh memory for all windows at once costs more than the
arithmetic. Arrays are `[batch, *spatial, channels]`, filters `[*window, in, out]`.

Source of the meaning: TensorFlow core/kernels/conv_2d.h, conv_3d.h (Eigen SpatialConvolution).
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opkernel.kernel import allocate
from opkernel.types import as_dtype

__all__ = [
    "Array",
    "Geometry",
    "clipped",
    "convolve",
    "convolve_backprop_filter",
    "convolve_backprop_input",
    "correlate_gradient",
    "meetings",
    "overlaps",
    "pad",
    "spread",
    "strided",
    "windows_of",
]

Array = np.ndarray[Any, Any]

Product = Callable[..., object]
"""`product(a, b, out=)`: a product of matrices."""

_TILE_BYTES = 4 << 20
"""Measured: 4 MiB are within 5 % of one matrix product of the same size, on one thread and on two;
1 MiB loses 10 to 30 % where the filter is large, as BLAS packs it anew for each tile."""


@dataclass(frozen=True, slots=True)
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

    @property
    def is_padded(self) -> bool:
        """Whether there is any padding."""
        return any(map(any, self.padding))

    @property
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


def pad(x: Array, geometry: Geometry, value: float = 0) -> Array:
    """The input with its padding; the input itself where there is none."""
    if not geometry.is_padded:
        return x
    padded = allocate(geometry.padded_shape(x.shape), as_dtype(x.dtype))
    padded.fill(value)
    padded[geometry.inner(x.shape)] = x
    return padded


def clipped(first: int, step: int, count: int, size: int) -> tuple[slice, slice]:
    """Of the places `first`, `first + step`, ...: which of the `count` lie in `range(size)`, where.

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


def overlaps(
    geometry: Geometry, spatial: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
    """Where windows and an input without padding meet, for each element of the window.

    Yields the element's offset in the window, an index of the windows `[batch, *output, ...]` that
    have this element in the input, and one of the elements `[batch, *spatial, ...]` that they have
    there. Elements that are in the padding for all windows are left out.
    """
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


def spread(gradient: Array, geometry: Geometry, spatial: Sequence[int]) -> tuple[Array, Geometry]:
    """The gradient by the output, laid out so that windows slide over it once per input element.

    The window of an input element holds the gradients of the windows that the element is in, last
    element of those windows first, and zeros where a stride steps over it.

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
    padded = np.ascontiguousarray(padded)
    steps = [math.prod(padded.shape[axis + 1 :]) for axis in range(padded.ndim)]
    outer = [s * step for s, step in zip(steps[1:-1], geometry.strides, strict=True)]
    inner = [s * step for s, step in zip(steps[1:-1], geometry.dilations, strict=True)]
    shape = (padded.shape[0], *geometry.output, *geometry.window, padded.shape[-1])
    return strided(padded, 0, shape, (steps[0], *outer, *inner, 1))


_Index = tuple[int | slice, ...]


def _tiles(positions: Sequence[int], row_bytes: int) -> Iterator[_Index]:
    """Indices that cut `[batch, *output]` into contiguous tiles of about `_TILE_BYTES`.

    An index ends in a slice; the dimensions after it are whole.
    """
    axis, size = 0, math.prod(positions[1:]) * row_bytes
    while axis < len(positions) - 1 and size > _TILE_BYTES:
        axis += 1
        size //= positions[axis]
    count = max(1, min(positions[axis], _TILE_BYTES // size))
    for outer in np.ndindex(*positions[:axis]):
        for start in range(0, positions[axis], count):
            yield (*outer, slice(start, min(start + count, positions[axis])))


def _rows(x: Array, geometry: Geometry) -> Iterator[tuple[_Index, Array]]:
    """The windows of an input tile by tile: where, and one row `[window * channels]` for each.

    All tiles are gathered into one buffer, which each overwrites.
    """
    if geometry.is_pointwise:
        for index in _tiles(x.shape[:-1], x.shape[-1] * x.itemsize):
            yield index, x[index].reshape(-1, x.shape[-1])
        return
    windows = windows_of(pad(x, geometry), geometry)
    rank = 1 + len(geometry.output)
    row_size = math.prod(windows.shape[rank:])
    buffer = np.empty(0, x.dtype)
    for index in _tiles(windows.shape[:rank], row_size * x.itemsize):
        source = windows[index]
        if buffer.size < source.size:
            buffer = np.empty(source.size, x.dtype)
        tile = buffer[: source.size]
        np.copyto(tile.reshape(source.shape), source)
        yield index, tile.reshape(-1, row_size)


def convolve(
    x: Array,
    filters: Array,
    geometry: Geometry,
    finish: Callable[[Array], object] | None = None,
    product: Product = np.matmul,
) -> Array:
    """The convolution `[batch, *output, out]` of `x` with `filters`.

    Args:
        x: the input.
        filters: the filters.
        geometry: where the windows lie.
        finish: changes results `[..., out]` in place, while they are in the cache.
        product: the product of matrices.
    """
    depth = filters.shape[-1]
    matrix = filters.reshape(-1, depth)
    out = allocate((x.shape[0], *geometry.output, depth), as_dtype(x.dtype))
    if out.size == 0 or matrix.size == 0 or x.size == 0:
        out.fill(0)
        if finish is not None:
            finish(out)
        return out
    for index, rows in _rows(x, geometry):
        tile = out[index].reshape(-1, depth)
        product(rows, matrix, out=tile)
        if finish is not None:
            finish(tile)
    return out


def convolve_backprop_input(
    input_shape: Sequence[int],
    filters: Array,
    gradient: Array,
    geometry: Geometry,
    product: Product = np.matmul,
) -> Array:
    """The gradient of `convolve` by its input, given that by its output.

    Each window's share is one row of a matrix product. Where windows overlap, the rows are added
    up in the order of the windows.
    """
    depth, channels = gradient.shape[-1], input_shape[-1]
    out = allocate(geometry.padded_shape(input_shape), as_dtype(gradient.dtype))
    out.fill(0)
    if out.size and gradient.size and filters.size:
        matrix = filters.reshape(-1, depth).T
        offsets = list(np.ndindex(*geometry.window))[::-1]
        for index in _tiles(gradient.shape[:-1], len(matrix.T) * out.itemsize):
            tile = gradient[index]
            shares = np.empty((*tile.shape[:-1], *geometry.window, channels), out.dtype)
            product(tile.reshape(-1, depth), matrix, out=shares.reshape(-1, len(matrix.T)))
            for offset in offsets:
                out[_places(index, offset, geometry)] += shares[(..., *offset, slice(None))]
    return np.ascontiguousarray(out[geometry.inner(input_shape)])


def convolve_backprop_filter(
    x: Array,
    filter_shape: Sequence[int],
    gradient: Array,
    geometry: Geometry,
    product: Product = np.matmul,
) -> Array:
    """The gradient of `convolve` by its filters, given that by its output."""
    depth = filter_shape[-1]
    out = allocate(filter_shape, as_dtype(x.dtype))
    out.fill(0)
    if out.size and gradient.size and x.size:
        total = out.reshape(-1, depth)
        share = np.empty(total.shape, out.dtype)
        for index, rows in _rows(x, geometry):
            product(rows.T, gradient[index].reshape(-1, depth), out=share)
            total += share
    return out


def correlate_gradient(
    x: Array, filter_shape: Sequence[int], gradient: Array, geometry: Geometry, product: Product
) -> Array:
    """`convolve_backprop_filter` as a sum over the elements of the input, not over the windows.

    The same, unless there are values that are not finite: here each input element is multiplied by
    each filter element, by zero where no window has the two.
    """
    *window, channels, depth = filter_shape
    laid_out, places = spread(gradient, geometry, x.shape[1:-1])
    out = np.zeros((channels, math.prod(window) * depth), x.dtype)
    share = np.empty_like(out)
    for index, rows in _rows(laid_out, places):
        product(x[index].reshape(-1, channels).T, rows, out=share)
        out += share
    turned = np.flip(out.reshape(channels, *window, depth), range(1, len(window) + 1))
    return np.ascontiguousarray(np.moveaxis(turned, 0, -2))


def _places(index: _Index, offset: Sequence[int], geometry: Geometry) -> _Index:
    """Where, in the padded input, the windows of a tile have their element at `offset`."""
    whole = [slice(0, count) for count in geometry.output[len(index) - 1 :]]
    places = [index[0]]
    for where, at, stride, dilation in zip(
        [*index[1:], *whole], offset, geometry.strides, geometry.dilations, strict=True
    ):
        first = at * dilation
        if isinstance(where, slice):
            last = (where.stop - 1) * stride + first
            places.append(slice(where.start * stride + first, last + 1, stride))
        else:
            places.append(where * stride + first)
    return tuple(places)
