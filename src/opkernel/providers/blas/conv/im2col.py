"""Convolution in any number of spatial dimensions as matrix products (im2col).

A convolution gathers, for each output position, the window of the input that it sees, and
multiplies these rows by the filter as one matrix. The rows are gathered tile by tile, each thread
into a buffer of its own that stays in the cache: fresh memory for all windows at once costs more than
the arithmetic. Where there are few positions, threads share out the output channels instead.
Arrays are `[batch, *spatial, channels]`, filters `[*window, in, out]`.

Source of the meaning: TensorFlow core/kernels/conv_2d.h, conv_3d.h (Eigen SpatialConvolution).
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from opkernel.kernel import allocate, cut, scratch, shard
from opkernel.ops.nn.conv.reference import product_for
from opkernel.ops.nn.epilogue import Epilogue
from opkernel.ops.nn.windows import Array, Geometry, clipped, windows_of
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.products import threads_for
from opkernel.providers.blas.small_kernels import multiply
from opkernel.records import replace
from opkernel.types import as_dtype

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
    padded.fill(0)
    padded[(slice(None), *stored)] = seen
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
