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

from opkernel.kernel import allocate, scratch, shard
from opkernel.ops.math.products import cut, threads_for
from opkernel.ops.math.small_kernels import multiply, multiply_transposed
from opkernel.ops.nn.im2col import Index, Product, convolve, rows_of_windows, tiles
from opkernel.ops.nn.windows import Array, Geometry, spread, turned_geometry
from opkernel.types import as_dtype

__all__ = ["convolve_backprop_filter", "convolve_backprop_input", "correlate_gradient"]

_MANY = 8
"""Output channels for one of the input, from which on the windows of the gradient are too large."""


def convolve_backprop_input(
    input_shape: Sequence[int],
    filters: Array,
    gradient: Array,
    geometry: Geometry,
    product: Product = multiply,
) -> Array:
    """The gradient of `convolve` by its input, given that by its output."""
    if product is multiply and _is_best_turned(filters, gradient, geometry):
        return _convolve_turned(input_shape, filters, gradient, geometry)
    padded = allocate(geometry.padded_shape(input_shape), as_dtype(gradient.dtype))
    padded.fill(0)
    if padded.size and gradient.size and filters.size:
        _add_shares(padded, filters, gradient, geometry, product)
    return np.ascontiguousarray(padded[geometry.inner(input_shape)])


def _is_best_turned(filters: Array, gradient: Array, geometry: Geometry) -> bool:
    """Whether the convolution with the turned filter gives the same, and sooner.

    The filter is copied, and multiplied by the zeros of the padding, too.
    """
    *_, channels, depth = filters.shape
    return (
        set(geometry.strides) == {1}
        and depth <= min(_MANY * channels, math.prod(gradient.shape[:-1]))
        and bool(np.isfinite(filters).all())
    )


def _convolve_turned(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    around = (slice(None, None, -1),) * len(geometry.window)
    turned = filters[around].swapaxes(-1, -2)
    return convolve(gradient, turned, turned_geometry(geometry, tuple(input_shape[1:-1])))


def _add_shares(
    padded: Array, filters: Array, gradient: Array, geometry: Geometry, product: Product
) -> None:
    """Add the share of each window, a row of a matrix product, in the order of the windows."""
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


def convolve_backprop_filter(
    x: Array,
    filter_shape: Sequence[int],
    gradient: Array,
    geometry: Geometry,
    product: Product = multiply,
) -> Array:
    """The gradient of `convolve` by its filters, given that by its output."""
    depth = filter_shape[-1]
    out = allocate(filter_shape, as_dtype(x.dtype))
    if not (out.size and gradient.size and x.size):
        out.fill(0)
        return out
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


def correlate_gradient(
    x: Array,
    filter_shape: Sequence[int],
    gradient: Array,
    geometry: Geometry,
    product: Product = multiply,
) -> Array:
    """`convolve_backprop_filter` as a sum over the elements of the input, not over the windows.

    The same, unless there are values that are not finite: here each input element is multiplied by
    each filter element, by zero where no window has the two.
    """
    *window, channels, depth = filter_shape
    laid_out, places = spread(gradient, geometry, x.shape[1:-1])
    out = np.zeros((channels, math.prod(window) * depth), x.dtype)
    share = np.empty_like(out)
    for index, rows in _all_rows(laid_out, places):
        product(x[index].reshape(-1, channels).T, rows, out=share)
        out += share
    turned = np.flip(out.reshape(channels, *window, depth), tuple(range(1, len(window) + 1)))
    return np.ascontiguousarray(np.moveaxis(turned, 0, -2))


def _all_rows(x: Array, geometry: Geometry) -> Iterator[tuple[Index, Array]]:
    """The windows of an input tile by tile: where, and one row for each."""
    row_bytes = math.prod(geometry.window) * x.shape[-1] * x.itemsize
    for index in tiles((x.shape[0], *geometry.output), row_bytes):
        yield index, rows_of_windows(x, geometry, index)
