"""The gradients of convolutions in any number of spatial dimensions, as matrix products.

The gradient by the input is itself a convolution where windows are neighbours: of the gradient by the
output, with the filter turned round. That by the filter is a product of the windows of the input with the
gradient.
Arrays are `[batch, *spatial, channels]`, filters `[*window, in, out]`.

Source of the meaning: TensorFlow core/kernels/conv_grad_input_ops.h, conv_grad_filter_ops.h.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from opkernel.kernel import allocate, cut, scratch, shard
from opkernel.ops.kernel_types import NARROW_FLOATS
from opkernel.ops.nn.conv.reference import correlate, product_for
from opkernel.ops.nn.windows import Array, Geometry, turned_geometry
from opkernel.providers.blas.conv.forward import convolve
from opkernel.providers.blas.conv.im2col import Index, rows_of_windows, tiles
from opkernel.providers.blas.products import threads_for
from opkernel.providers.blas.small_kernels import multiply, multiply_transposed
from opkernel.types import as_dtype

_MANY = 8
"""Output channels for one of the input, from which on the windows of the gradient are too large."""


def by_input(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    """The gradient of a convolution by its input of a shape, given that by its output."""
    if _is_best_turned(filters, gradient, geometry):
        return _convolve_turned(input_shape, filters, gradient, geometry)
    padded = allocate(geometry.padded_shape(input_shape), as_dtype(gradient.dtype))
    padded.fill(0)
    _add_shares(padded, filters, gradient, geometry)
    return np.ascontiguousarray(padded[geometry.inner(input_shape)])


def _is_best_turned(filters: Array, gradient: Array, geometry: Geometry) -> bool:
    """Whether the convolution with the turned filter gives the same, and sooner.

    The filter is copied, and multiplied by the zeros of the padding, too.
    """
    *_, channels, depth = filters.shape
    return (
        set(geometry.strides) == {1}
        and as_dtype(gradient.dtype) not in NARROW_FLOATS
        and depth <= min(_MANY * channels, math.prod(gradient.shape[:-1]))
        and bool(np.isfinite(filters).all())
    )


def _convolve_turned(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    around = (slice(None, None, -1),) * len(geometry.window)
    turned = filters[around].swapaxes(-1, -2)
    return convolve(gradient, turned, turned_geometry(geometry, tuple(input_shape[1:-1])))


def _add_shares(padded: Array, filters: Array, gradient: Array, geometry: Geometry) -> None:
    """Add the share of each window, a row of a matrix product, in the order of the windows."""
    product = product_for(gradient.dtype, multiply)
    channels, depth = filters.shape[-2:]
    matrix = filters.reshape(-1, depth).T
    width = matrix.shape[1]
    offsets = list(np.ndindex(*geometry.window))[::-1]

    def compute(images: slice) -> None:
        part, of_part = padded[images], gradient[images]
        for index in tiles(of_part.shape[:-1], width * padded.itemsize):
            tile = of_part[index]
            rows = scratch("shares of windows", (tile.size // depth, width), padded.dtype)
            product(tile.reshape(-1, depth), matrix, out=rows)
            shares = rows.reshape(*tile.shape[:-1], *geometry.window, channels)
            for offset in offsets:
                part[_places(index, offset, geometry)] += shares[(..., *offset, slice(None))]

    shard(compute, cut(len(gradient), threads_for(gradient.size * width)))


def _places(index: Index, offset: Sequence[int], geometry: Geometry) -> Index:
    """Where, in the padded input, the windows of a tile have their element at `offset`."""
    spatial = [*index[1:], *(slice(0, count) for count in geometry.output[len(index) - 1 :])]
    places = [index[0]]
    for where, at, stride, dilation in zip(
        spatial, offset, geometry.strides, geometry.dilations, strict=True
    ):
        first, last = (i * stride + at * dilation for i in (where.start, where.stop - 1))
        places.append(slice(first, last + 1, stride))
    return tuple(places)


def by_filters(x: Array, filter_shape: Sequence[int], gradient: Array, geometry: Geometry) -> Array:
    """The gradient of a convolution by its filters of a shape, given that by its output."""
    if len(geometry.window) == 3 and not (np.isfinite(x).all() and np.isfinite(gradient).all()):
        return correlate(x, filter_shape, gradient, geometry)  # TensorFlow's order shows
    product = product_for(x.dtype, multiply)
    depth = filter_shape[-1]
    out = allocate(filter_shape, as_dtype(x.dtype))
    parts = cut(len(x), threads_for(gradient.size * (out.size // depth)))
    totals = [out, *(np.empty_like(out) for _ in parts[1:])]

    def compute(part: tuple[slice, Array]) -> None:
        images, total = part[0], part[1].reshape(-1, depth)
        share = total
        for index, rows in _all_rows(x[images], geometry):
            of_rows = gradient[images][index].reshape(-1, depth)
            if product is multiply:
                multiply_transposed(rows, of_rows, share)
            else:
                product(rows.T, of_rows, out=share)
            if share is total:
                share = np.empty_like(total)
            else:
                np.add(total, share, out=total)

    shard(compute, list(zip(parts, totals, strict=True)))
    for total in totals[1:]:
        out += total
    return out


def _all_rows(x: Array, geometry: Geometry) -> Iterator[tuple[Index, Array]]:
    """The windows of an input tile by tile: where, and one row for each."""
    row_bytes = math.prod(geometry.window) * x.shape[-1] * x.itemsize
    for index in tiles((x.shape[0], *geometry.output), row_bytes):
        yield index, rows_of_windows(x, geometry, index)
