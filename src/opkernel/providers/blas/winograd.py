"""Convolution with filters of 3 x 3 elements by Winograd's minimal algorithm F(2 x 2, 3 x 3).

Four outputs, a tile of 2 x 2, depend on 4 x 4 elements of the input. In the algorithm's basis, to which sums and
differences lead, they take 16 multiplications instead of 36, so that a convolution is 16 matrix products of less than half
the work. All numbers that it multiplies with are 1 or 1/2.

An algorithm that computes the outputs of a tile together rounds each of them by what is largest in the tile, though that
may lie outside of the output's own window. How many digits this takes is bounded by how much larger it is: windows of a
tile are compared by their largest pixels, and pixels by their norm over all channels. Where no window of a tile is much
larger than another, results are as exact as those of a sum of products. Elsewhere the algorithm is not taken.

The columns of an input line are stored even ones first, so that each sum is one of long contiguous pieces, and tiles are
computed block by block, in memory that stays in the cache.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from opkernel.kernel import allocate, cut, one_blas_thread, scratch, shard
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.ops.nn.windows import Geometry, clipped
from opkernel.providers.blas import BLAS
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.products import (
    layout_of_panels,
    multiply_by_panels,
    parts_of_panels,
    threads_for,
    to_panels,
)
from opkernel.types import Array, as_dtype

MOST = 64.0
"""The largest ratio of two numbers that are mixed: six bits may be lost."""

_SQUARE = np.float32(MOST * MOST)
_TINY, _HUGE = np.float32(1e-30), np.float32(1e30)  # between, squares lose nothing


class Inside(NamedTuple):
    """Which lines, and even and odd columns, are of the image; the others pad it."""

    lines: slice
    even: slice
    odd: slice


def are_even_tiles(padded: Array, inside: Inside, *, is_narrow: bool) -> bool:
    """Whether in no tile of 2 x 2 windows of 3 x 3 pixels one window is much larger than another.

    Not where pixels have no norm in float: infinite and NaN, over 1e15 and, unless all of a window is 0, under
    1e-15.

    Args:
        padded: `[images, lines, 2, columns, channels]`, even columns before odd ones.
        inside: the part of it that is not padding.
        is_narrow: whether the padding is so narrow that each window has pixels of the image.
    """
    pixels = padded.reshape(-1, padded.shape[-1])
    squares = np.einsum("ij,ij->i", pixels, pixels).reshape(padded.shape[:-1])
    most = squares.max(initial=0)
    if not most < _HUGE:
        return False
    if is_narrow:
        of_image = squares[:, inside.lines]
        even, odd = of_image[:, :, 0, inside.even], of_image[:, :, 1, inside.odd]
        if _are_close(min(even.min(initial=most), odd.min(initial=most)), most):
            return True  # of all windows
    images, lines, _, columns = squares.shape
    largest = _largest_in_windows(squares.swapaxes(2, 3).reshape(images, lines, 2 * columns))
    tiles = largest.reshape(images, lines // 2 - 1, 2, columns - 1, 2)
    lowest, highest = tiles.min((2, 4)), tiles.max((2, 4))
    return bool(np.all(_are_close(lowest, highest) | (highest == 0)))


def are_even_filters(filters: Array) -> bool:
    """Whether of the elements of a window `[3, 3, in, out]` none weighs much more than another in an output."""
    squares = np.einsum("hwio,hwio->hwo", filters, filters)
    lowest, highest = squares.min((0, 1)), squares.max((0, 1))
    return bool(np.all((_are_close(lowest, highest) & (highest < _HUGE)) | (highest == 0)))


def _are_close(lowest: Array, highest: Array) -> Array:
    return (lowest >= _TINY) & (highest <= lowest * _SQUARE)


def _largest_in_windows(pixels: Array) -> Array:
    of_lines = np.maximum(np.maximum(pixels[:, :-2], pixels[:, 1:-1]), pixels[:, 2:])
    return np.maximum(np.maximum(of_lines[..., :-2], of_lines[..., 1:-1]), of_lines[..., 2:])


_BLOCK_BYTES = 4 << 20
"""The size of a block in the basis, before and after the products; 1 MiB is a fifth slower."""
_FEW_TILES = 48
"""Tiles below which a filter of 16 / 9 the size takes longer to read than it saves."""
_MANY_TILES = 384
"""Tiles from which on two threads do not wait for each other between the steps."""
_FILTER_BYTES = 8 << 20
"""The most bytes of a filter in the basis; a larger one does not stay in the cache."""
_PASSES = 40
"""The cost of the sums for a channel of a tile, in multiplications of matrix products."""

_FILTER_BASIS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)


def _transformed(filters: Array, width: int) -> Array | None:
    """Filters `[3, 3, in, out]` in the basis, as panels: `[16, 1, out / width, in, width]`.

    None where some elements are so large that others would be lost.
    """
    if not are_even_filters(filters):
        return None
    with one_blas_thread():
        rows = (_FILTER_BASIS @ filters.reshape(3, -1)).reshape(4, 3, -1)
        in_basis = np.matmul(_FILTER_BASIS, rows).reshape(16, *filters.shape[2:])
    return to_panels(in_basis, 1, width)


def weights_for(x: Array, filters: Array, geometry: Geometry) -> Array | None:
    """Filters `[3, 3, in, out]` of float images in the basis.

    Returns:
        None if that is not faster, or the filters may be others in each step.
    """
    width = _width_of_panels(x, filters, geometry)
    weights: Array | None = None if width is None else BLAS.prepared((_transformed, width), filters)
    return weights


def convolve(
    x: Array, weights: Array, geometry: Geometry, epilogue: Epilogue | None
) -> Array | None:
    """The convolution with filters in the basis.

    Returns:
        None where the input is uneven, or a result not finite: one element of the input would spoil
        outputs that it is no part of.
    """
    tiles = _Tiles(x, weights, geometry, epilogue)
    tiles.compute()
    return tiles.out if tiles.is_exact else None


def _width_of_panels(x: Array, filters: Array, geometry: Geometry) -> int | None:
    """How many channels of the output a panel of filters has; None where no panels pay."""
    if geometry.window != (3, 3) or x.dtype.char != "f":
        return None
    inner, outer = map(int, filters.shape[2:])
    is_dense = max(*geometry.strides, *geometry.dilations) == 1
    tiles = x.shape[0] * math.prod(-(-size // 2) for size in geometry.output)
    saves = inner * outer > _PASSES * (inner + outer) and 64 * inner * outer <= _FILTER_BYTES
    if not is_dense or not saves or tiles < _FEW_TILES:
        return None
    if tiles >= _MANY_TILES:
        return outer
    layout = layout_of_panels(tiles, inner, outer)
    return layout[1] if layout is not None and layout[0] == 1 else None


class _Tiles:
    """The tiles of one convolution.

    Attributes:
        out: the result.
        is_exact: whether the input is even, and the result finite before the epilogue.
    """

    def __init__(
        self, x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None
    ) -> None:
        self._x, self._filters, self._epilogue = x, filters, epilogue
        self._geometry = geometry
        self._lines, self._columns = (-(-size // 2) for size in geometry.output)
        shape = (len(x), *geometry.output, filters.shape[2] * filters.shape[4])
        self.out = allocate(shape, as_dtype(x.dtype))
        self.is_exact = True
        self._is_narrow = all(
            before <= 2 and 2 * tiles + 2 - before - size <= 2
            for (before, _), tiles, size in zip(
                geometry.padding, (self._lines, self._columns), x.shape[1:3], strict=True
            )
        )

    def compute(self) -> None:
        """Compute the result, on several threads."""
        count = len(self._x) * self._lines * self._columns
        inner, outer = self._x.shape[3], self.out.shape[3]
        parts = threads_for(count * 16 * (inner * outer + _PASSES * (inner + outer)))
        if self._filters.shape[2] == 1:
            shard(self._block, self._blocks(count, parts))
        else:
            self._block((slice(0, len(self._x)), slice(0, self._lines)), parts)

    def _blocks(self, count: int, parts: int) -> list[tuple[slice, slice]]:
        """Images and lines of tiles, so many that they stay in the cache and BLAS is fast."""
        inner, outer = self._x.shape[3], self.out.shape[3]
        size = max(2 * _FEW_TILES, _BLOCK_BYTES // (64 * (inner + outer)))
        pieces = max(parts, -(-count // size))
        images = len(self._x)
        if pieces <= images:
            return [(some, slice(0, self._lines)) for some in cut(images, pieces)]
        lines = cut(self._lines, -(-pieces // images))
        return [(slice(i, i + 1), some) for i in range(images) for some in lines]

    def _block(self, place: tuple[slice, slice], parts: int = 1) -> None:
        """Compute some lines of tiles of some images; threads share out the products."""
        images, lines = place
        padded, inside = self._padded(images, lines)
        if not (self.is_exact and are_even_tiles(padded, inside, is_narrow=self._is_narrow)):
            self.is_exact = False  # the results of other blocks are not wanted either
            return
        tiles, depth = self._transformed(padded), self.out.shape[3]
        shape = (4, 4, images.stop - images.start, lines.stop - lines.start, self._columns, depth)
        found = scratch("products of tiles", shape, tiles.dtype)
        matrices = found.reshape(16, -1, depth)
        shard(
            lambda part: multiply_by_panels(tiles, part[0], matrices[..., part[1]]),
            parts_of_panels(self._filters, parts),
        )
        where = images, slice(2 * lines.start, 2 * lines.stop), slice(None), slice(None)
        part = self.out[where]
        _from_basis(found)
        _from_basis(found[:2].swapaxes(0, 1))
        for i, j in np.ndindex(2, 2):
            to = part[:, i::2, j::2]
            np.copyto(to, found[i, j, :, : to.shape[1], : to.shape[2]])
        if not np.isfinite(np.add.reduce(part, None)):
            self.is_exact = False
        finish(part, where, self._epilogue)

    def _padded(self, images: slice, lines: slice) -> tuple[Array, Inside]:
        """The input of tiles `[images, lines, 2, columns, channels]`; even columns are before odd ones."""
        (top, _), (left, _) = self._geometry.padding
        taken = self._x[images]
        count = 2 * (lines.stop - lines.start) + 2
        shape = (len(taken), count, 2, self._columns + 1, taken.shape[3])
        padded = scratch("padded lines", shape, taken.dtype)
        stored, seen = clipped(2 * lines.start - top, 1, count, taken.shape[1])
        padded[:, : stored.start] = 0
        padded[:, stored.stop :] = 0
        columns = []
        for phase in range(2):
            to, at = clipped(phase - left, 2, self._columns + 1, taken.shape[2])
            padded[:, stored, phase, : to.start] = 0
            padded[:, stored, phase, to] = taken[:, seen, at]
            padded[:, stored, phase, to.stop :] = 0
            columns.append(to)
        return padded, Inside(stored, *columns)

    def _transformed(self, padded: Array) -> Array:
        """The input of tiles in the basis: `[16, tiles, channels]`."""
        count, columns, depth = padded.shape[1] // 2 - 1, self._columns, padded.shape[-1]
        shape = (4, 4, len(padded), count, columns, depth)
        result = scratch("tiles", shape, padded.dtype)
        rows = scratch("rows of tiles", (4, len(padded), count, *padded.shape[2:]), padded.dtype)
        _to_basis([padded[:, i : i + 2 * count : 2] for i in range(4)], rows)
        even, odd = rows[:, :, :, 0], rows[:, :, :, 1]
        sides = [even[:, :, :, :-1], odd[:, :, :, :-1], even[:, :, :, 1:], odd[:, :, :, 1:]]
        _to_basis(sides, result.swapaxes(0, 1))
        return result.reshape(16, -1, depth)


def _to_basis(neighbours: Sequence[Array], out: Array) -> None:
    """Combine four neighbours: a - c, b + c, c - b and b - d."""
    a, b, c, d = neighbours
    np.subtract(a, c, out=out[0])
    np.add(b, c, out=out[1])
    np.subtract(c, b, out=out[2])
    np.subtract(b, d, out=out[3])


def _from_basis(products: Array) -> None:
    """Turn the first two of four products into the outputs: a + b + c and b - c - d."""
    a, b, c, d = products
    np.add(a, b, out=a)
    np.add(a, c, out=a)
    np.subtract(b, c, out=b)
    np.subtract(b, d, out=b)
