"""Convolution as matrix products: im2col, by panels of the filters, and by lines of the filters.

A convolution gathers, for each output position, the window of the input that it sees, and multiplies these rows by the
filter as one matrix. The rows are gathered tile by tile, each thread into a buffer of its own that stays in the cache:
fresh memory for all windows at once costs more than the arithmetic. Where there are few positions, threads share out the
output channels instead. Of few windows, all at once are multiplied by panels of filters that stay.

Neighbouring windows overlap: gathered whole, an element of the input is copied as often as the filter has elements. By
lines it is gathered as often as a line of the filter has: for each line of the input, what each window sees of it. Windows
one line further down see the same lines but the first, so the products with the lines of the filter are of views, and are
added up. That pays where the filter has not many output channels, and where the products are so small that BLAS does not
copy either.

Arrays are `[batch, *spatial, channels]`, filters `[*window, in, out]`.

Source of the meaning: TensorFlow core/kernels/conv_2d.h, conv_3d.h (Eigen SpatialConvolution).
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from opkernel.kernel import allocate, cut, scratch, shard
from opkernel.ops.nn.conv.reference import product_for
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.ops.nn.windows import Geometry, clipped, pad, put_inside, windows_of
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.products import (
    LARGEST,
    has_small_kernels,
    multiply,
    multiply_by_panels,
    panels_of,
    parts_of_panels,
    threads_for,
)
from opkernel.records import replace
from opkernel.types import Array, as_dtype

_TILE_BYTES = 4 << 20
"""Measured: 4 MiB are within 5 % of one matrix product of the same size, on one thread and on two;
1 MiB loses 10 to 30 % where the filter is large, as BLAS packs it anew for each tile."""

_FEW_ROWS = 64
"""Rows for each thread below which cutting the channels is faster: BLAS packs half of the filter."""

_FEW_ELEMENTS = 512
"""Elements of the input below which it takes longer to begin than to copy."""

COST = 16
"""The cost of copying, or finishing, an element, in multiplications of matrix products."""

Index = tuple[slice, ...]


def tiles(positions: Sequence[int], row_bytes: int, tile_bytes: int = _TILE_BYTES) -> list[Index]:
    """Indices that cut `[batch, *output]` into contiguous tiles of about `tile_bytes`.

    An index has a slice for each of the first dimensions; the dimensions after it are whole.
    """
    axis, size = 0, math.prod(positions[1:]) * row_bytes
    while axis < len(positions) - 1 and size > tile_bytes:
        axis += 1
        size //= positions[axis]
    pieces = -(-positions[axis] * size // tile_bytes)  # of about one size
    return [
        (*(slice(at, at + 1) for at in outer), piece)
        for outer in np.ndindex(*positions[:axis])
        for piece in cut(positions[axis], pieces)
    ]


def rows_of_windows(x: Array, geometry: Geometry, index: Index) -> Array:
    """The windows of a tile, one row `[window * channels]` for each, in some order in memory.

    They are in the scratch memory of this thread, until it gathers the next tile.
    """
    if geometry.is_pointwise:
        return x[index].reshape(-1, x.shape[-1])
    planar = _is_planar(x, geometry)
    windows = _windows_of_tile(x, geometry, index, planar)
    if planar:
        first = x.ndim - 1  # axis of the elements of a window
        windows = windows.transpose(*range(first, windows.ndim), *range(first))
    rows = scratch("rows of windows", windows.shape, x.dtype)
    np.copyto(rows, windows)
    width = math.prod(geometry.window) * x.shape[-1]
    return rows.reshape(width, -1).T if planar else rows.reshape(-1, width)


def _is_planar(x: Array, geometry: Geometry) -> bool:
    """Whether windows are gathered as columns, channel by channel.

    What takes time is to begin on a piece that lies together. Those are then parts of an image's line,
    and otherwise lines of a window.
    """
    if geometry.strides[-1] > 1 or x.size < _FEW_ELEMENTS:
        return False
    channels: int = x.shape[-1]
    return channels * geometry.window[-1] < geometry.output[-1]


def _windows_of_tile(x: Array, geometry: Geometry, index: Index, planar: bool) -> Array:
    """A view `[batch, *output, *window, channels]` of the windows of a tile.

    In `planar` ones neighbours in a line are neighbours in memory, else the channels of a pixel.
    """
    images, *spatial = index
    pieces = tuple([(piece.start, piece.stop) for piece in spatial])
    tile, stored, taken, sizes = _places_of_tile(geometry, x.shape[1:-1], pieces)
    seen = x[(images, *taken)]
    channels = x.shape[-1]
    if seen.shape[1:-1] == sizes and (channels == 1 or not planar):
        return windows_of(seen, tile)
    if planar:
        planes = scratch("padded tile", (channels, len(seen), *sizes), x.dtype)
        padded = planes.transpose(*range(1, planes.ndim), 0)
    else:
        padded = scratch("padded tile", (len(seen), *sizes, channels), x.dtype)
    put_inside(padded, (slice(None), *stored), seen)
    return windows_of(padded, tile)


@lru_cache(maxsize=1024)
def _places_of_tile(
    geometry: Geometry, sizes: tuple[int, ...], pieces: tuple[tuple[int, int], ...]
) -> tuple[Geometry, Index, Index, tuple[int, ...]]:
    """The geometry of a tile, the places of its input in the tile and in the image, its sizes."""
    whole = [(0, count) for count in geometry.output[len(pieces) :]]
    ranges = [range(*piece) for piece in (*pieces, *whole)]
    stored, taken, reached = [], [], []
    for axis, windows in enumerate(ranges):
        first = windows.start * geometry.strides[axis] - geometry.padding[axis][0]
        reach = (geometry.window[axis] - 1) * geometry.dilations[axis] + 1
        reached.append((len(windows) - 1) * geometry.strides[axis] + reach)
        to, at = clipped(first, 1, reached[axis], sizes[axis])
        stored.append(to)
        taken.append(at)
    tile = replace(geometry, padding=((0, 0),) * len(ranges), output=tuple(map(len, ranges)))
    return tile, tuple(stored), tuple(taken), tuple(reached)


def convolve(x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None) -> Array:
    """The convolution as products of the windows with the filters."""
    depth = filters.shape[-1]
    matrix = filters.reshape(-1, depth)
    out = allocate((len(x), *geometry.output, depth), as_dtype(x.dtype))
    product = product_for(x.dtype, multiply)

    def compute(rows: Array, index: Index, channels: slice) -> None:
        product(rows, matrix[:, channels], out=out[index].reshape(-1, depth)[:, channels])
        where = (*index, *(slice(None),) * (out.ndim - 1 - len(index)), channels)
        finish(out[where], where, epilogue)

    count, row_bytes = math.prod(out.shape[:-1]), len(matrix) * x.itemsize
    copied = 0 if geometry.is_pointwise else count * len(matrix)
    parts = threads_for(out.size * (len(matrix) + COST) + copied * COST)
    if parts > 1 and count < parts * _FEW_ROWS and count * row_bytes <= _TILE_BYTES:
        rows = rows_of_windows(x, geometry, (slice(None),))
        shard(lambda some: compute(rows, (slice(None),), some), cut(depth, parts, 16))
        return out
    tile_bytes = min(_TILE_BYTES, -(-count * row_bytes // parts))
    shard(
        lambda index: compute(rows_of_windows(x, geometry, index), index, slice(0, depth)),
        tiles(out.shape[:-1], row_bytes, tile_bytes),
    )
    return out


def panels_for(x: Array, filters: Array, geometry: Geometry) -> Array | None:
    """The filters as panels; None where these do not pay, or the filters may be others in each step."""
    return panels_of(filters, len(x) * math.prod(geometry.output))


def convolve_by_panels(
    x: Array, weights: Array, geometry: Geometry, epilogue: Epilogue | None
) -> Array:
    """The convolution with filters as panels; threads share out the panels."""
    depth = weights.shape[-3] * weights.shape[-1]
    out = allocate((len(x), *geometry.output, depth), as_dtype(x.dtype))
    matrix, everywhere = out.reshape(-1, depth), (slice(None),) * (out.ndim - 1)
    rows = rows_of_windows(x, geometry, (slice(None),))

    def compute(part: tuple[Array, slice]) -> None:
        panels, channels = part
        multiply_by_panels(rows, panels, matrix[:, channels])
        finish(out[..., channels], (*everywhere, channels), epilogue)

    copied = 0 if geometry.is_pointwise else rows.size
    multiplications = out.size * (rows.shape[1] + COST) + copied * COST
    shard(compute, parts_of_panels(weights, threads_for(multiplications)))
    return out


_MOST_CHANNELS = 64
_LEAST_ROWS = 16
"""Rows of a product from which on it takes longer than to call it."""


def lines_for(x: Array, filters: Array, geometry: Geometry) -> Array | None:
    """The filters, where this is faster than to gather whole windows."""
    if x.dtype.char not in "fd" or filters.shape[0] == 1 or not has_small_kernels():
        return None
    if _multiplications(x, filters, geometry) <= LARGEST:
        return None
    pays = _lines_together(geometry, filters.shape) and _parts(x, filters, geometry) <= len(x)
    return filters if pays else None


def convolve_by_lines(
    x: Array, weights: Array, geometry: Geometry, epilogue: Epilogue | None
) -> Array:
    """The convolution as a sum of products with the lines of the filters."""
    out = allocate((len(x), *geometry.output, weights.shape[-1]), as_dtype(x.dtype))
    together = _lines_together(geometry, weights.shape)
    whole = (slice(None),) * (out.ndim - 1)

    def compute(images: slice) -> None:
        part = out[images]
        _add_up(_gathered(x[images], geometry), weights, part, geometry, together)
        finish(part, (images, *whole), epilogue)

    shard(compute, cut(len(x), _parts(x, weights, geometry)))
    return out


def _multiplications(x: Array, filters: Array, geometry: Geometry) -> int:
    return len(x) * math.prod(geometry.output) * filters.size


def _parts(x: Array, filters: Array, geometry: Geometry) -> int:
    """In how many parts the images are computed: for the threads, and so that a part stays in the cache."""
    image_bytes = math.prod(geometry.padded_shape(x.shape)[1:]) * x.itemsize
    tiles = -(-len(x) * image_bytes * math.prod(geometry.window[1:]) // _TILE_BYTES)
    return max(threads_for(_multiplications(x, filters, geometry)), tiles)


@lru_cache(maxsize=256)
def _lines_together(geometry: Geometry, filter_shape: tuple[int, ...]) -> int:
    """How many lines of results one product is for; 0 where they should not be computed so."""
    lines, *others = geometry.output
    terms, columns = math.prod(filter_shape[1:-1]), filter_shape[-1]
    saves = filter_shape[0] > 1 and 3 * columns <= 2 * terms and columns <= _MOST_CHANNELS
    is_dense = geometry.strides[0] == 1 and min(map(min, geometry.padding)) >= 0
    if not saves or not is_dense:
        return 0
    rows = math.prod(others)
    most = LARGEST // (rows * terms * columns)
    together = next((n for n in range(min(most, lines), 0, -1) if lines % n == 0), 0)
    return together if together * rows >= _LEAST_ROWS else 0


def _gathered(x: Array, geometry: Geometry) -> Array:
    """The elements that windows see of each padded line: `[batch, lines, *output[1:], seen]`."""
    padded = pad(x, geometry, in_scratch=True)
    windows = windows_of(padded, _of_lines(geometry, padded.shape[1]))
    lines = scratch("rows of windows", windows.shape, x.dtype)
    np.copyto(lines, windows)
    return lines.reshape(*lines.shape[: x.ndim - 1], -1)


@lru_cache(maxsize=256)
def _of_lines(geometry: Geometry, lines: int) -> Geometry:
    """The geometry of windows of one line."""
    window, output = (1, *geometry.window[1:]), (lines, *geometry.output[1:])
    return replace(geometry, window=window, output=output)


def _add_up(lines: Array, filters: Array, out: Array, geometry: Geometry, together: int) -> None:
    """Add up the products of gathered lines with the lines of the filter."""
    count, terms = geometry.output[0], lines.shape[-1]
    columns = filters.shape[-1]
    groups = (len(lines), count // together, -1)
    total = out.reshape(*groups, columns)
    product = total
    for at, line in enumerate(filters.reshape(-1, terms, columns)):
        first = at * geometry.dilations[0]
        np.matmul(lines[:, first : first + count].reshape(*groups, terms), line, out=product)
        if product is total:
            product = scratch("product with a line", total.shape, out.dtype)
        else:
            np.add(total, product, out=total)
