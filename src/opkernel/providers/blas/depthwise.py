"""Convolution of each channel of images `[batch, rows, columns, channels]` by itself (depthwise).

There is no matrix product in it, so it is bound by the memory that each pass touches. A tile of
input lines is copied, with its padding, into a buffer that stays in the cache, and `einsum`
multiplies and adds it in one pass. Its inner loop is as long as a line of the output, columns times
channels, because the columns that one filter element sees are neighbours in the buffer: with a
stride of 2 the even columns of a line are stored before its odd ones.

Half and bfloat16 are rounded after each term of a sum, as TensorFlow rounds them.

Source of the meaning: TensorFlow core/kernels/depthwise_conv_op.cc, depthwise_conv_grad_op.cc.
"""

import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from opkernel.kernel import allocate, cut, scratch, shard
from opkernel.ops.nn.conv import reference
from opkernel.ops.nn.conv.reference import STEPWISE_LIMIT
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.ops.nn.windows import (
    Geometry,
    clipped,
    overlaps,
    pad,
    spread,
    strided,
    turned_geometry,
)
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.products import threads_for
from opkernel.records import dataclass, replace
from opkernel.types import Array, as_dtype

_TILE_BYTES = 4 << 20
"""Measured on one thread and on two; of 1 MiB, threads wait for each other between the steps."""
_COST = 16
"""How much longer a multiplication takes here than in a matrix product."""
_INNER_LOOP = 2048
"""Elements from which on a longer inner loop gains less than 5 %."""


def depthwise(
    x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None = None, /
) -> Array:
    """The convolution `[batch, rows, columns, channels * multiplier]`.

    Args:
        x: the images.
        filters: `[rows, columns, channels, multiplier]`.
        geometry: where the windows lie.
        epilogue: the steps applied to the result, tile by tile.
    """
    if as_dtype(x.dtype) in NARROW_FLOATS:
        return reference.depthwise(x, filters, geometry, epilogue)
    depth = math.prod(filters.shape[2:])
    out = allocate((x.shape[0], *geometry.output, depth), as_dtype(x.dtype))
    if out.size == 0 or x.size == 0 or filters.size == 0:
        out.fill(0)
        finish(out, (slice(None),) * 4, epilogue)
        return out
    layout = _Layout(geometry, filters.shape[2], filters.shape[3])
    weights = layout.weights(filters)

    def compute(place: tuple[int, slice]) -> None:
        image, lines = place
        layout.convolve(x[image], lines, weights, out[place])
        where = (slice(image, image + 1), lines, slice(None), slice(None))
        finish(out[where], where, epilogue)

    parts = threads_for(out.size * math.prod(geometry.window) * _COST)
    shard(compute, layout.tiles(len(x), x.dtype.itemsize, parts))
    return out


def tiles(geometry: Geometry, depth: int, images: Array, parts: int) -> list[tuple[int, slice]]:
    """Which image and which lines of the output each tile has, whose input lines stay in the cache.

    Args:
        geometry: Where the windows lie.
        depth: The channels of the output.
        images: The images.
        parts: How many tiles there should be, or more.
    """
    return _Layout(geometry, depth, 1).tiles(len(images), images.itemsize, parts)


def depthwise_lines(
    image: Array, filters: Array, places: Array, bias: Array, bounds: Array, out: Array
) -> None:
    """Convolve an image for some lines of the output, add a bias, and keep the result between two bounds.

    Args:
        image: `[rows, columns, channels]`.
        filters: `[rows, columns, channels]`.
        places: The strides, the dilations, and where in the image the first window lies, of rows and of columns.
        bias: A number for each channel.
        bounds: The lowest and the highest result; NaN stays.
        out: `[lines, columns, channels]`, which is filled.
    """
    layout = _Layout(_geometry(places, filters, out), filters.shape[2], 1)
    layout.convolve(image, slice(0, len(out)), layout.weights(filters), out)
    np.add(out, bias, out=out)
    if np.isfinite(bounds).any():
        np.clip(out, *bounds, out=out)


def _geometry(places: Array, filters: Array, output: Array) -> Geometry:
    strides, dilations, (top, left) = map(tuple, places.tolist())
    rows, columns = filters.shape[:2], output.shape[:2]
    return Geometry(rows, strides, dilations, ((-top, 0), (-left, 0)), columns)


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a tile of input lines is stored: `[lines, phase, columns, channels, multiplier]`.

    Column `c` of the padded input is in phase `c % stride`, at `c // stride`.
    """

    geometry: Geometry
    channels: int
    multiplier: int

    @property
    def depth(self) -> int:
        return self.channels * self.multiplier

    @property
    def columns(self) -> int:
        """How many columns of a phase the windows reach."""
        g = self.geometry
        return g.output[1] + (g.window[1] - 1) * g.dilations[1] // g.strides[1]

    @property
    def block(self) -> int:
        """The columns that the inner loop takes: a divisor of all, and no more than it needs."""
        columns = self.geometry.output[1]
        divisors = (d for d in range(1, columns) if columns % d == 0)
        return next((d for d in divisors if d * self.depth >= _INNER_LOOP), columns)

    def weights(self, filters: Array) -> Array:
        """The filters, repeated for the columns of a block."""
        weights = np.empty((*self.geometry.window, self.block, self.depth), filters.dtype)
        weights[...] = filters.reshape(*self.geometry.window, 1, self.depth)
        return weights.reshape(*self.geometry.window, self.block * self.depth)

    def convolve(self, image: Array, lines: slice, weights: Array, out: Array) -> None:
        """Compute some lines of the output."""
        tile = out.reshape(len(out), -1, self.block * self.depth)
        buffer = self.input_lines(image, lines)
        for offsets, windows in self.windows(buffer, len(tile)):
            if offsets.start == 0:
                np.einsum("tbijx,ijx->tbx", windows, weights[:, offsets], out=tile)
            else:
                more = scratch("terms of a tile", tile.shape, tile.dtype)
                tile += np.einsum("tbijx,ijx->tbx", windows, weights[:, offsets], out=more)

    @property
    def _reach(self) -> int:
        """How many lines a window sees."""
        return (self.geometry.window[0] - 1) * self.geometry.dilations[0] + 1

    def tiles(self, images: int, itemsize: int, parts: int) -> list[tuple[int, slice]]:
        """Which image and which lines of the output each tile has; about so many, or more."""
        g = self.geometry
        line_bytes = g.strides[1] * self.columns * self.depth * itemsize
        count = (_TILE_BYTES // line_bytes - self._reach) // g.strides[0] + 1
        pieces = max(-(-g.output[0] // max(1, count)), -(-parts // images))
        return [(image, lines) for image in range(images) for lines in cut(g.output[0], pieces)]

    def input_lines(self, image: Array, lines: slice) -> Array:
        """The input lines that the windows of a tile reach, in the scratch memory of this thread."""
        g = self.geometry
        used = (lines.stop - lines.start - 1) * g.strides[0] + self._reach
        shape = (used, g.strides[1], self.columns, self.channels, self.multiplier)
        buffer = scratch("lines of images", shape, image.dtype)
        self._fill(buffer, image, lines.start * g.strides[0] - g.padding[0][0])
        return buffer

    def _fill(self, buffer: Array, image: Array, first: int) -> None:
        """Copy the lines of an image from `first` on, zeros where it has none."""
        stored, taken = clipped(first, 1, len(buffer), len(image))
        buffer[: stored.start] = 0
        buffer[stored.stop :] = 0
        stride, left = self.geometry.strides[1], self.geometry.padding[1][0]
        for phase in range(stride):
            to, columns = clipped(phase - left, stride, self.columns, image.shape[1])
            buffer[stored, phase, : to.start] = 0
            buffer[stored, phase, to] = image[taken, columns, :, None]
            buffer[stored, phase, to.stop :] = 0

    def windows(self, buffer: Array, lines: int) -> Iterator[tuple[slice, Array]]:
        """The windows of a tile: the filter columns of one phase, and the inputs that they see.

        The views are `[lines, blocks, filter rows, filter columns, block * depth]`.
        """
        g, depth, inner = self.geometry, self.depth, self.block * self.depth
        stride, dilation = g.strides[1], g.dilations[1]
        line = stride * self.columns * depth
        common = math.gcd(stride, dilation)
        steps = (g.strides[0] * line, inner, g.dilations[0] * line, dilation // common * depth, 1)
        for start in range(min(stride // common, g.window[1])):
            offsets = slice(start, g.window[1], stride // common)
            at, phase = divmod(start * dilation, stride)
            count = len(range(g.window[1])[offsets])
            shape = (lines, g.output[1] // self.block, g.window[0], count, inner)
            yield offsets, strided(buffer, (phase * self.columns + at) * depth, shape, steps)


def depthwise_by_input(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    """The gradient of `depthwise` by its input, given that by its output.

    It is the convolution of that gradient, spread out, with the filter turned around.
    """
    if as_dtype(gradient.dtype) in NARROW_FLOATS:
        return reference.depthwise_by_input(input_shape, filters, gradient, geometry)
    rows, columns, channels, multiplier = filters.shape
    spatial = tuple(input_shape[1:-1])
    if set(geometry.strides) == {1}:
        laid_out, places = gradient, turned_geometry(geometry, spatial)
    else:
        laid_out, places = spread(gradient, geometry, spatial)
    turned = filters[::-1, ::-1].reshape(rows, columns, channels * multiplier, 1)
    return sum_of_multiples(depthwise(laid_out, turned, places), multiplier)


def sum_of_multiples(shares: Array, multiplier: int) -> Array:
    """What the output channels of each input channel add up to; `shares` is `[..., channels * multiplier]`."""
    if multiplier == 1:
        return shares
    shares = shares.reshape(*shares.shape[:-1], -1, multiplier)
    return functools.reduce(np.add, [shares[..., i] for i in range(multiplier)])


def add_input_shares(gradient: Array, filters: Array, places: Array, shares: Array) -> None:
    """Add the gradient by the input of one image, given that by some lines of the output.

    Args:
        gradient: `[lines, columns, channels]`.
        filters: `[rows, columns, channels]`.
        places: As of `depthwise_lines`.
        shares: `[rows, columns, channels]`, to which is added.
    """
    geometry = _geometry(places, filters, gradient)
    for offset, windows, elements in overlaps(geometry, shares.shape[:2]):
        shares[elements[1:3]] += gradient[windows[1:3]] * filters[offset]


def add_filter_shares(image: Array, gradient: Array, places: Array, totals: Array) -> None:
    """Add the gradient by the filters, given some lines of the gradient by the output; as `add_input_shares`."""
    layout = _Layout(_geometry(places, totals, gradient), totals.shape[2], 1)
    buffer = layout.input_lines(image, slice(0, len(gradient)))
    blocks = gradient.reshape(len(gradient), -1, layout.block * layout.depth)
    for offsets, windows in layout.windows(buffer, len(gradient)):
        sums = np.einsum("tbijx,tbx->ijx", windows, blocks)
        totals[:, offsets] += sums.reshape(*sums.shape[:2], -1, layout.depth).sum(axis=2)


def depthwise_by_filters(
    x: Array, filter_shape: Sequence[int], gradient: Array, geometry: Geometry
) -> Array:
    """The gradient of `depthwise` by its filters, given that by its output."""
    is_narrow = as_dtype(x.dtype) in NARROW_FLOATS
    if is_narrow and math.prod(filter_shape) * math.prod(gradient.shape[:3]) <= STEPWISE_LIMIT:
        return reference.depthwise_by_filters(x, filter_shape, gradient, geometry)
    out = allocate(filter_shape, as_dtype(x.dtype))
    out.fill(0)
    gradient = gradient.reshape(*gradient.shape[:-1], *filter_shape[2:])
    if is_narrow:
        x, gradient = x.astype(np.float32), gradient.astype(np.float32)
    _add_over_windows(x, out, gradient, geometry)
    return out


def _add_over_windows(x: Array, out: Array, gradient: Array, geometry: Geometry) -> None:
    """Each filter element's sum over all windows: first over the lines, then along them."""
    multiplier = out.shape[-1]
    padded = pad(x, geometry)
    if multiplier > 1:
        padded = np.repeat(padded, multiplier, axis=-1)
    lines = gradient.reshape(*gradient.shape[:2], -1)
    inside = replace(geometry, padding=((0, 0),) * len(geometry.window))
    found = [(offset, elements) for offset, _, elements in overlaps(inside, padded.shape[1:-1])]

    def compute(piece: slice) -> None:
        for offset, elements in found[piece]:
            seen = padded[elements].reshape(lines.shape)
            sums = np.einsum("nhk,nhk->k", seen, lines)
            out[offset] = sums.reshape(-1, *out.shape[2:]).sum(axis=0)

    shard(compute, cut(len(found), threads_for(_COST * lines.size * len(found))))
