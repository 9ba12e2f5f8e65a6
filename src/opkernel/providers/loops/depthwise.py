"""Loops that convolve each channel of images by itself, and the gradients of these convolutions.

The inner loop goes over the channels of one place, which are neighbours in memory. Nothing is copied: where a window
reaches beyond the image, its elements are multiplied by 0, as TensorFlow does. With a multiplier, each channel is first
repeated.
"""

import math
from collections.abc import Sequence

import numpy as np

from opkernel.kernel import allocate, check_allocation, cut, shard
from opkernel.ops.nn.conv.ops import register_depthwise_convolutions
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.ops.nn.windows import Geometry, spread, turned_geometry
from opkernel.ops.registration import WIDE_FLOATS
from opkernel.providers import LOOPS
from opkernel.providers.blas import depthwise as blas
from opkernel.providers.blas.convolutions import ALGORITHMS
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.products import threads_for
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.records import replace
from opkernel.types import Array, as_dtype

_FEW = 8
"""Channels below which the inner loop is too short."""
_MOST_REPEATED = 1 << 22
"""Channels are repeated for a multiplier in images of so many elements at most."""
_COST = 4
"""How much longer a multiplication takes here than in a matrix product."""
_BOUNDS = {"": (-np.inf, np.inf), "Relu": (0.0, np.inf), "Relu6": (0.0, 6.0)}
"""Between which bounds activations keep their input."""


@part_of_loops
def _convolve_nine(
    image: Array, filters: Array, y: int, x: int, rates: Array, pixel: Array
) -> None:
    """A window of 3 x 3 within the image: all its elements in one pass."""
    down, across = rates
    for d in range(image.shape[2]):
        total = image[y, x, d] * filters[0, 0, d]
        total += image[y, x + across, d] * filters[0, 1, d]
        total += image[y, x + 2 * across, d] * filters[0, 2, d]
        total += image[y + down, x, d] * filters[1, 0, d]
        total += image[y + down, x + across, d] * filters[1, 1, d]
        total += image[y + down, x + 2 * across, d] * filters[1, 2, d]
        total += image[y + 2 * down, x, d] * filters[2, 0, d]
        total += image[y + 2 * down, x + across, d] * filters[2, 1, d]
        total += image[y + 2 * down, x + 2 * across, d] * filters[2, 2, d]
        pixel[d] = total


@part_of_loops
def _convolve_any(image: Array, filters: Array, y: int, x: int, rates: Array, pixel: Array) -> None:
    """A window of any size, of which parts may be outside of the image."""
    height, width, depth = image.shape
    down, across = rates
    pixel[:] = 0
    for r in range(filters.shape[0]):
        row = y + r * down
        for c in range(filters.shape[1]):
            column = x + c * across
            if 0 <= row < height and 0 <= column < width:
                for d in range(depth):
                    pixel[d] += image[row, column, d] * filters[r, c, d]
            else:
                for d in range(depth):
                    pixel[d] += filters[r, c, d] * 0


@loop(otherwise=blas.depthwise_lines)
def convolve_lines(
    image: Array, filters: Array, places: Array, bias: Array, bounds: Array, out: Array
) -> None:
    """Window by window."""
    height, width, depth = image.shape
    high_reach, wide_reach = 2 * places[1, 0], 2 * places[1, 1]
    is_nine = filters.shape[0] == 3 and filters.shape[1] == 3
    low, high = bounds
    for i in range(out.shape[0]):
        y = places[2, 0] + i * places[0, 0]
        is_within = is_nine and y >= 0 and y + high_reach < height
        for j in range(out.shape[1]):
            x = places[2, 1] + j * places[0, 1]
            if is_within and x >= 0 and x + wide_reach < width:
                _convolve_nine(image, filters, y, x, places[1], out[i, j])
            else:
                _convolve_any(image, filters, y, x, places[1], out[i, j])
            for d in range(depth):
                value = out[i, j, d] + bias[d]
                out[i, j, d] = low if value < low else min(value, high)


def depthwise(
    x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None = None, /
) -> Array:
    """The convolution, as `blas` computes it where there are few channels."""
    if not _is_worth(x, filters.shape):
        return blas.depthwise(x, filters, geometry, epilogue)
    *window, channels, multiplier = filters.shape
    out = allocate((len(x), *geometry.output, channels * multiplier), as_dtype(x.dtype))
    flat = np.ascontiguousarray(filters).reshape(*window, -1)
    images = _repeated(x, multiplier)
    bounds = _BOUNDS.get(epilogue.activation if epilogue else "")
    is_fused = epilogue is None or (bounds is not None and epilogue.scale is epilogue.residual)
    bias = epilogue.bias if epilogue and is_fused else np.zeros(flat.shape[-1], x.dtype)
    limits = np.array(bounds if bounds and is_fused else _BOUNDS[""], x.dtype)

    def compute(place: tuple[int, slice]) -> None:
        image, lines = place
        places = _places(geometry, lines)
        convolve_lines(images[image], flat, places, bias, limits, out[place])
        if not is_fused:
            where = (slice(image, image + 1), lines, slice(None), slice(None))
            finish(out[where], where, epilogue)

    parts = threads_for(out.size * math.prod(window) * _COST)
    shard(compute, blas.tiles(geometry, flat.shape[-1], images, parts))
    return out


def _is_worth(x: Array, filter_shape: Sequence[int]) -> bool:
    """Whether the loops take a call: of long enough inner loops, and not rounded after each term.

    `blas` repeats channels in a few lines at a time, the loops in all images.
    """
    depth, multiplier = math.prod(filter_shape[2:]), filter_shape[3]
    is_small = multiplier == 1 or x.size * multiplier <= _MOST_REPEATED
    return x.dtype.char in "fd" and depth >= _FEW and is_small and 0 not in (x.size, *filter_shape)


def _repeated(x: Array, multiplier: int) -> Array:
    """The images with each channel as often as the multiplier says."""
    if multiplier == 1:
        return np.ascontiguousarray(x)
    check_allocation((x.size, multiplier), as_dtype(x.dtype))
    return np.repeat(x, multiplier, axis=-1)


def _places(geometry: Geometry, lines: slice) -> Array:
    """Strides, dilations, and where in the image the first window of some lines lies."""
    first = lines.start * geometry.strides[0] - geometry.padding[0][0]
    return np.array([geometry.strides, geometry.dilations, (first, -geometry.padding[1][0])])


def depthwise_by_input(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    """The gradient by the input, by the convolution of the gradient with the turned filter where strides are 1."""
    if not _is_worth(gradient, filters.shape) or 0 in input_shape:
        return blas.depthwise_by_input(input_shape, filters, gradient, geometry)
    if set(geometry.strides) == {1}:
        laid_out, places = gradient, turned_geometry(geometry, tuple(input_shape[1:-1]))
    elif np.isfinite(filters).all():
        return _add_input_shares(input_shape, filters, gradient, geometry)
    else:
        laid_out, places = spread(gradient, geometry, input_shape[1:-1])
    turned = filters[::-1, ::-1].reshape(*filters.shape[:2], -1, 1)
    shares = depthwise(laid_out, turned, places)
    return blas.sum_of_multiples(shares, filters.shape[3])


@loop(otherwise=blas.add_input_shares)
def add_input_shares(gradient: Array, filters: Array, places: Array, shares: Array) -> None:
    """Each gradient goes to the places that its window has."""
    height, width, depth = shares.shape
    for i in range(gradient.shape[0]):
        for r in range(filters.shape[0]):
            row = places[2, 0] + i * places[0, 0] + r * places[1, 0]
            if not 0 <= row < height:
                continue
            for j in range(gradient.shape[1]):
                for c in range(filters.shape[1]):
                    column = places[2, 1] + j * places[0, 1] + c * places[1, 1]
                    if 0 <= column < width:
                        for d in range(depth):
                            shares[row, column, d] += gradient[i, j, d] * filters[r, c, d]


def _add_input_shares(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    """The gradient by the input where all filters are finite: zeros between windows are left out."""
    multiplier = filters.shape[3]
    flat = np.ascontiguousarray(filters).reshape(*filters.shape[:2], -1)
    gradient = np.ascontiguousarray(gradient)
    shares = allocate((*input_shape[:-1], flat.shape[-1]), as_dtype(gradient.dtype))
    shares.fill(0)

    def compute(image: int) -> None:
        for _, lines in blas.tiles(geometry, flat.shape[-1], gradient[image : image + 1], 1):
            places = _places(geometry, lines)
            add_input_shares(gradient[image, lines], flat, places, shares[image])

    shard(compute, range(len(gradient)))
    return blas.sum_of_multiples(shares, multiplier)


@loop(otherwise=blas.add_filter_shares)
def add_filter_shares(image: Array, gradient: Array, places: Array, totals: Array) -> None:
    """Each gradient is multiplied by what its window has."""
    height, width, depth = image.shape
    for i in range(gradient.shape[0]):
        for r in range(totals.shape[0]):
            row = places[2, 0] + i * places[0, 0] + r * places[1, 0]
            for j in range(gradient.shape[1]):
                for c in range(totals.shape[1]):
                    column = places[2, 1] + j * places[0, 1] + c * places[1, 1]
                    if 0 <= row < height and 0 <= column < width:
                        for d in range(depth):
                            totals[r, c, d] += image[row, column, d] * gradient[i, j, d]
                    else:
                        for d in range(depth):
                            totals[r, c, d] += gradient[i, j, d] * 0


def depthwise_by_filters(
    x: Array, filter_shape: Sequence[int], gradient: Array, geometry: Geometry
) -> Array:
    """The gradient by the filters: the sums of parts of the images, added up."""
    if not _is_worth(x, filter_shape) or not gradient.size:
        return blas.depthwise_by_filters(x, filter_shape, gradient, geometry)
    depth = gradient.shape[-1]
    gradient = np.ascontiguousarray(gradient)
    images = _repeated(x, filter_shape[3])
    parts = cut(len(x), threads_for(gradient.size * math.prod(filter_shape[:2]) * _COST))
    totals = np.zeros((len(parts), *filter_shape[:2], depth), x.dtype)

    def compute(number: int) -> None:
        part = parts[number]
        for image, lines in blas.tiles(geometry, depth, images[part], 1):
            at = part.start + image
            places = _places(geometry, lines)
            add_filter_shares(images[at], gradient[at, lines], places, totals[number])

    shard(compute, range(len(parts)))
    total: Array = totals.sum(axis=0)
    return total.reshape(filter_shape)


register_depthwise_convolutions(
    replace(
        ALGORITHMS,
        depthwise=depthwise,
        depthwise_by_input=depthwise_by_input,
        depthwise_by_filters=depthwise_by_filters,
    ),
    types=WIDE_FLOATS,
    registry=LOOPS.kernels,
)
