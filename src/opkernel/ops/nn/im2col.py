"""Convolution in any number of spatial dimensions as matrix products (im2col).

A convolution gathers, for each output position, the window of the input that it sees, and
multiplies these rows by the filter as one matrix. The rows are gathered tile by tile into one
buffer that stays in the cache: fresh memory for all windows at once costs more than the arithmetic.
Arrays are `[batch, *spatial, channels]`, filters `[*window, in, out]`.

Source of the meaning: TensorFlow core/kernels/conv_2d.h, conv_3d.h (Eigen SpatialConvolution).
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from opkernel.kernel import allocate
from opkernel.ops.nn.windows import Array, Geometry, pad, spread, windows_of
from opkernel.types import as_dtype

__all__ = [
    "convolve",
    "convolve_backprop_filter",
    "convolve_backprop_input",
    "correlate_gradient",
]

Product = Callable[..., object]
"""`product(a, b, out=)`: a product of matrices."""

_TILE_BYTES = 4 << 20
"""Measured: 4 MiB are within 5 % of one matrix product of the same size, on one thread and on two;
1 MiB loses 10 to 30 % where the filter is large, as BLAS packs it anew for each tile."""

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
    x: Array,
    filter_shape: Sequence[int],
    gradient: Array,
    geometry: Geometry,
    product: Product = np.matmul,
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
    turned = np.flip(out.reshape(channels, *window, depth), tuple(range(1, len(window) + 1)))
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
