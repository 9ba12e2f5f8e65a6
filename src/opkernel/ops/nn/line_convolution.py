"""Convolution of images as a sum of products, one for each line of the filter.

Neighbouring windows overlap: gathered whole, as in `im2col`, an element of the input is copied as often
as the filter has elements. Here it is gathered as often as a line of the filter has: for each line of
the input, what each window sees of it. Windows one line further down see the same lines but the first, so
the products with the lines of the filter are of views, and are added up. That pays where the filter
has not many output channels, and where the products are so small that BLAS does not copy either.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from opkernel.kernel import scratch, shard
from opkernel.ops.math.products import Finish, cut, threads_for
from opkernel.ops.math.small_kernels import LARGEST, has_small_kernels
from opkernel.ops.nn.windows import Array, Geometry, pad, windows_of

__all__ = ["convolve_by_lines"]

_TILE_BYTES = 4 << 20
_MOST_CHANNELS = 64
_LEAST_ROWS = 16
"""Rows of a product from which on it takes longer than to call it."""


def convolve_by_lines(
    x: Array, filters: Array, out: Array, geometry: Geometry, finish: Finish | None
) -> bool:
    """Compute the convolution of `x` with `filters`, unless `im2col` is faster; say whether.

    Args:
        x: the input, of a type that has matrix products.
        filters: the filters.
        out: the result `[batch, *output, out]`, not empty.
        geometry: where the windows lie.
        finish: changes parts of the result in place, while they are in the cache.
    """
    multiplications = math.prod(out.shape[:-1]) * filters.size
    if multiplications <= LARGEST or x.dtype.char not in "fd" or not has_small_kernels():
        return False
    together = _lines_together(geometry, filters.shape)
    if not together:
        return False
    image_bytes = math.prod(geometry.padded_shape(x.shape)[1:]) * x.itemsize
    tiles = -(-len(x) * image_bytes * math.prod(geometry.window[1:]) // _TILE_BYTES)
    parts = max(threads_for(multiplications), tiles)
    if parts > len(x):
        return False

    def compute(images: slice) -> None:
        part = out[images]
        _add_up(_gathered(x[images], geometry), filters, part, geometry, together)
        if finish is not None:
            finish(part, (images, *(slice(None),) * (out.ndim - 1)))

    shard(compute, cut(len(x), parts))
    return True


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
    """What windows see of each line of the padded input: `[batch, lines, *output[1:], seen]`."""
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
