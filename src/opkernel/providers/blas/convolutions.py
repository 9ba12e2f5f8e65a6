"""The kernels of the convolution family: by the first algorithm that pays for the sizes of the call; and their gradients.

The gradient by the input is itself a convolution where windows are neighbours: of the gradient by the output, with the
filter turned round. That by the filter is a product of the windows of the input with the gradient. Gradients are matrix
products in any number of spatial dimensions.

Arrays are `[batch, *spatial, channels]`, filters `[*window, in, out]`.

Source of the meaning: TensorFlow core/kernels/conv_grad_input_ops.h, conv_grad_filter_ops.h.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.kernel import allocate, cut, scratch, shard
from opkernel.ops.nn.conv.ops import register_convolutions
from opkernel.ops.nn.conv.reference import Algorithms, Product, correlate, product_for
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.ops.nn.windows import Geometry, turned_geometry
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.providers.blas import BLAS, im2col, winograd
from opkernel.providers.blas.depthwise import depthwise, depthwise_by_filters, depthwise_by_input
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.im2col import Index, rows_of_windows, tiles
from opkernel.providers.blas.products import multiply, multiply_transposed, threads_for
from opkernel.types import Array, as_dtype

_Choice = Callable[[Array, Array, Geometry], Array | None]
"""The filters of a call in the form that an algorithm wants; None where it does not pay."""

_Compute = Callable[[Array, Array, Geometry, Epilogue | None], Array | None]
"""The convolution, then the epilogue; None where the result would be wrong."""

_ALGORITHMS: tuple[tuple[_Choice, _Compute], ...] = (
    (winograd.weights_for, winograd.convolve),
    (im2col.panels_for, im2col.convolve_by_panels),
    (im2col.lines_for, im2col.convolve_by_lines),
)


def convolve(
    x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None = None, /
) -> Array:
    """The convolution `[batch, *output, out]`, in groups where the filters have fewer channels."""
    if x.shape[-1] != filters.shape[-2]:
        return _convolve_groups(x, filters, geometry, epilogue)
    for weights_for, compute in _ALGORITHMS:
        weights = weights_for(x, filters, geometry)
        if weights is not None:
            result = compute(x, weights, geometry, epilogue)
            if result is not None:
                return result
    return im2col.convolve(x, filters, geometry, epilogue)


def _convolve_groups(
    x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None
) -> Array:
    """As many convolutions as the filters' channels fit into the input; of one channel as `depthwise`."""
    *window, depth, out_depth = filters.shape
    groups = x.shape[-1] // depth
    if depth == 1 and len(window) == 2:
        by_channel = filters.reshape(*window, groups, out_depth // groups)
        return depthwise(x, by_channel, geometry, epilogue)
    pairs = zip(np.split(x, groups, axis=-1), np.split(filters, groups, axis=-1), strict=True)
    result = np.concatenate([convolve(i, f, geometry) for i, f in pairs], axis=-1)
    finish(result, (slice(None),) * result.ndim, epilogue)
    return result


_LANES = 64
"""Parts of a window, which threads share out, begin at multiples of this."""

_MANY = 8
"""Output channels for one of the input, from which on the windows of the gradient are too large."""


def by_input(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    """The gradient of a convolution by its input of a shape, given that by its output."""
    if _is_best_turned(filters, gradient, geometry):
        turned = filters[(slice(None, None, -1),) * len(geometry.window)].swapaxes(-1, -2)
        return convolve(gradient, turned, turned_geometry(geometry, tuple(input_shape[1:-1])))
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


def _add_shares(padded: Array, filters: Array, gradient: Array, geometry: Geometry) -> None:
    """Add the share of each window, a row of a matrix product, in the order of the windows."""
    product = product_for(gradient.dtype, multiply)
    channels, depth = filters.shape[-2:]
    matrix = filters.reshape(-1, depth).T
    width = matrix.shape[1]
    offsets = list(np.ndindex(*geometry.window))[::-1]
    threads = threads_for(gradient.size * width)
    is_few = threads > len(gradient)
    columns = cut(width, threads if is_few else 1, _LANES)

    def compute(images: slice) -> None:
        part, of_part = padded[images], gradient[images]
        for index in tiles(of_part.shape[:-1], width * padded.itemsize):
            tile = of_part[index]
            flat = tile.reshape(-1, depth)
            rows = scratch("shares of windows", (len(flat), width), padded.dtype)
            shard(partial(_multiply_columns, product, flat, matrix, rows), columns)
            shares = rows.reshape(*tile.shape[:-1], *geometry.window, channels)
            for offset in offsets:
                part[_places(index, offset, geometry)] += shares[(..., *offset, slice(None))]

    shard(compute, cut(len(gradient), 1 if is_few else threads))


def _multiply_columns(product: Product, a: Array, b: Array, out: Array, columns: slice) -> None:
    """Some columns of the product of two matrices."""
    product(a, b[:, columns], out=out[:, columns])


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
    depth = filter_shape[-1]
    out = allocate(filter_shape, as_dtype(x.dtype))
    width = out.size // depth
    threads = threads_for(gradient.size * width)
    if threads > len(x) or gradient.size <= depth * depth:  # few windows
        _sum_products(x, gradient, geometry, out.reshape(width, depth), cut(width, threads, _LANES))
        return out
    parts = cut(len(x), threads)
    totals = [out, *(np.empty_like(out) for _ in parts[1:])]

    def compute(part: tuple[slice, Array]) -> None:
        images, total = part[0], part[1].reshape(width, depth)
        _sum_products(x[images], gradient[images], geometry, total, [slice(0, width)])

    shard(compute, list(zip(parts, totals, strict=True)))
    for total in totals[1:]:
        out += total
    return out


def _sum_products(
    x: Array, gradient: Array, geometry: Geometry, total: Array, parts: Sequence[slice]
) -> None:
    """Write the products of the windows of images with the gradients of their places, summed up, to `total`.

    Its rows are for the elements of a window; threads share out `parts` of them.
    """
    product = _transposed_product(x.dtype)
    share = total
    for index, rows in _all_rows(x, geometry):
        of_rows = gradient[index].reshape(-1, total.shape[1])

        def compute(
            part: slice, rows: Array = rows, of_rows: Array = of_rows, share: Array = share
        ) -> None:
            product(rows[:, part], of_rows, share[part])
            if share is not total:
                np.add(total[part], share[part], out=total[part])

        shard(compute, parts)
        if share is total:
            share = np.empty_like(total)


def _transposed_product(dtype: np.dtype[Any]) -> Callable[[Array, Array, Array], object]:
    """What computes `a.T @ b` of arrays of a type."""
    product = product_for(dtype, multiply)
    if product is multiply:
        return multiply_transposed
    return lambda a, b, out: product(a.T, b, out=out)


def _all_rows(x: Array, geometry: Geometry) -> Iterator[tuple[Index, Array]]:
    """The windows of an input tile by tile: where, and one row for each."""
    row_bytes = math.prod(geometry.window) * x.shape[-1] * x.itemsize
    for index in tiles((x.shape[0], *geometry.output), row_bytes):
        yield index, rows_of_windows(x, geometry, index)


_DEPTHWISE = depthwise, depthwise_by_input, depthwise_by_filters
ALGORITHMS = Algorithms(convolve, by_input, by_filters, *_DEPTHWISE, prepares=True)

register_convolutions(ALGORITHMS, BLAS.kernels)
