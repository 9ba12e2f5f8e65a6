"""Convolution of images as a sum of products, one for each line of the filter.

Neighbouring windows overlap: gathered whole, as in `im2col`, an element of the input is copied as often
as the filter has elements. Here it is gathered as often as a line of the filter has: for each line of
the input, what each window sees of it. Windows one line further down see the same lines but the first, so
the products with the lines of the filter are of views, and are added up. That pays where the filter
has not many output channels, and where the products are so small that BLAS does not copy either.
"""

import math
from functools import lru_cache

import numpy as np

from opkernel.kernel import allocate, cut, scratch, shard
from opkernel.ops.nn.epilogue import Epilogue
from opkernel.ops.nn.windows import Array, Geometry, pad, windows_of
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.products import threads_for
from opkernel.providers.blas.small_kernels import LARGEST, has_small_kernels
from opkernel.records import replace
from opkernel.types import as_dtype

_TILE_BYTES = 4 << 20
_MOST_CHANNELS = 64
_LEAST_ROWS = 16
"""Rows of a product from which on it takes longer than to call it."""


def weights_for(x: Array, filters: Array, geometry: Geometry) -> Array | None:
    """The filters, where this is faster than to gather whole windows."""
    if x.dtype.char not in "fd" or filters.shape[0] == 1 or not has_small_kernels():
        return None
    if _multiplications(x, filters, geometry) <= LARGEST:
        return None
    pays = _lines_together(geometry, filters.shape) and _parts(x, filters, geometry) <= len(x)
    return filters if pays else None


def convolve(x: Array, weights: Array, geometry: Geometry, epilogue: Epilogue | None) -> Array:
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
