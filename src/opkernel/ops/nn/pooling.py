"""The common part of poolings: their attrs, checked, and reductions over their windows.

Sums and maxima are taken along one axis after the other, so that a window of 3 x 3 costs 3 + 3
passes, each over whole lines of memory; the lines between two passes stay in the cache. Padding is
left out of the windows rather than stored.

Source: TensorFlow core/kernels/pooling_ops_common.cc, pooling_ops_3d.cc.
"""

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import allocate, cut, scratch
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.input_checks import require
from opkernel.ops.nn.windows import (
    Geometry,
    Windows,
    check_length,
    meetings,
    overlaps,
    windows_from_attrs,
)
from opkernel.types import Array, as_dtype


@dataclass(frozen=True, slots=True)
class Pool:
    """Windows of one size.

    Attributes:
        ksize: the size of the windows over space.
        windows: how they slide.
        depth: the size of the windows over channels.
        depth_stride: how they slide over channels.
    """

    ksize: tuple[int, ...]
    windows: Windows
    depth: int
    depth_stride: int

    @property
    def rank(self) -> int:
        """The number of dimensions of the input."""
        return len(self.ksize) + 2

    def geometry(self, shape: Sequence[int]) -> Geometry:
        """Where the windows lie in an input `[batch, *spatial, channels]`.

        Raises:
            InvalidArgumentError: the shape has not the rank that the windows have, or is too small
                for them; or the padding is as large as a window.
        """
        if len(shape) != self.rank:
            message = f"tensor_in must be {self.rank}-dimensional, got shape {list(shape)}"
            raise InvalidArgumentError(message)
        for size, paddings in zip(self.ksize, self.windows.paddings, strict=True):
            if max(paddings) >= size and any(paddings):
                raise InvalidArgumentError(
                    f"Padding {paddings} needs to be smaller than the window size {size}"
                )
        return self.windows.geometry(shape[1:-1], self.ksize)

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of what windows over space make of an input of this shape."""
        along = self.geometry(shape).output  # first, as it checks the rank
        return (shape[0], *along, shape[-1])

    def refuse_depth(self, op: str) -> None:
        """Refuse windows over the channels."""
        if self.depth != 1 or self.depth_stride != 1:
            raise UnimplementedError(f"{op} is not yet supported on the depth dimension.")


def check_channels_last(op: str, data_format: str) -> None:
    """Refuse, as TensorFlow does, the layouts that only GPUs compute in."""
    message = f"Default {op} only supports NHWC or NDHWC on device type CPU, not {data_format}"
    require(data_format in ("NHWC", "NDHWC"), message)


def sizes_in_tensor(tensor: Array) -> list[int]:
    """The values of `ksize` or `strides`, where they are inputs of any shape."""
    return tensor.reshape(-1).tolist()


def padded_pool_in_layout(
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    rank: int = 4,
    *,
    sizes_first: bool = False,
    any_depth: bool = False,
) -> Pool:
    """The windows of attrs for inputs of `rank` dimensions, images or volumes.

    `sizes_first` asks for the check of sizes before windows over the batch are refused, as most kernels do. With
    `any_depth` the kernel itself refuses a size over channels that is not positive.

    Raises:
        InvalidArgumentError: an attr has not one entry for each dimension, or a size is not
            positive.
        UnimplementedError: there are windows over the batch.
    """
    check_length("ksize", ksize, rank)
    check_length("stride", strides, rank)
    layout = TensorFormat.from_string(data_format)
    channel, places = layout.feature_index(rank), [layout.spatial_index(i) for i in range(rank - 2)]
    sizes = [ksize[i] for i in places] if any_depth else ksize
    message = f"Sliding window ksize must be positive, got {list(ksize)}"
    require(min(sizes) > 0 or not sizes_first, message)
    if ksize[0] != 1 or strides[0] != 1:
        raise UnimplementedError("Pooling is not yet supported on the batch dimension.")
    require(min(sizes) > 0, message)
    explicit = explicit_paddings if padding == "EXPLICIT" else ()
    steps = [strides[i] for i in places]
    windows = windows_from_attrs(data_format, steps, (1,) * len(steps), padding, explicit)
    return Pool(tuple(ksize[i] for i in places), windows, ksize[channel], strides[channel])


pool_in_layout = partial(padded_pool_in_layout, explicit_paddings=())
"""Of ops without the attr `explicit_paddings`."""
pool_from_attrs = partial(pool_in_layout, data_format="NHWC")
"""Of ops that have no layout either."""


def padded_channels_last_pool(
    op: str,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    rank: int = 4,
    *,
    sizes_first: bool = False,
    any_depth: bool = False,
) -> Pool:
    """As `padded_pool_in_layout`, for kernels of `op` on the CPU; raises as `check_channels_last`, too."""
    check_channels_last(op, data_format)
    checks = {"sizes_first": sizes_first, "any_depth": any_depth}
    return padded_pool_in_layout(ksize, strides, padding, explicit_paddings, "NHWC", rank, **checks)


channels_last_pool = partial(padded_channels_last_pool, explicit_paddings=())
"""Of ops without the attr `explicit_paddings`."""


_TILE_BYTES = 1 << 20
"""Measured best between 128 KiB and 1 MiB, with 1 MiB of L2."""


def lowest(dtype: np.dtype[Any]) -> Any:
    """The least finite value of a type."""
    return as_dtype(dtype).min


def reduce_windows(x: Array, geometry: Geometry, combine: np.ufunc, initial: Any) -> Array:
    """The result `[batch, *output, channels]` of a reduction over what each window sees.

    Args:
        x: the input.
        geometry: where the windows lie.
        combine: a ufunc of two arguments, whose order does not matter.
        initial: the start of the reduction; for `np.maximum` the least of all numbers.
    """
    out = allocate((x.shape[0], *geometry.output, x.shape[-1]), as_dtype(x.dtype))
    first, *others = (-before for before, _ in geometry.padding)
    for images, lines in in_time(_tiles(x, geometry.output[0]), SLOW):
        places = (first + lines.start * geometry.strides[0], *others)
        _reduce_tile(x[images], out[images, lines], places, geometry, combine, initial)
    return out


def _tiles(x: Array, lines: int) -> Iterator[tuple[slice, slice]]:
    """Which images, and which of the lines of results, are reduced at a time."""
    image_bytes = max(1, math.prod(x.shape[1:]) * x.itemsize)
    pieces = cut(lines, -(-image_bytes // _TILE_BYTES))
    images = max(1, _TILE_BYTES // image_bytes)
    for at in range(0, len(x), images):
        for piece in pieces:
            yield slice(at, at + images), piece


def _reduce_tile(
    values: Array,
    out: Array,
    places: Sequence[int],
    geometry: Geometry,
    combine: np.ufunc,
    initial: Any,
) -> None:
    """Reduce one axis after the other; `places` says where the first window begins on each."""
    for axis, first in enumerate(places, 1):
        reduced = out
        if axis < len(places):
            shape = (*out.shape[: axis + 1], *values.shape[axis + 1 :])
            reduced = scratch(f"reduced along {axis}", shape, out.dtype)
        along = (first, geometry.strides[axis - 1], out.shape[axis], values.shape[axis])
        whole = (slice(None),) * axis
        pairs = [
            (reduced[(*whole, windows)], values[(*whole, elements)])
            for _, windows, elements in meetings(
                *along, geometry.window[axis - 1], geometry.dilations[axis - 1]
            )
        ]
        # An axis after the first need not be combined with `initial` again.
        needs_initial = axis == 1 and combine is not np.maximum
        _reduce_axis(pairs, reduced, combine, initial, needs_initial)
        values = reduced


def _reduce_axis(
    pairs: Sequence[tuple[Array, Array]],
    reduced: Array,
    combine: np.ufunc,
    initial: Any,
    needs_initial: bool,
) -> None:
    """Combine the parts of `reduced` with the elements that are paired with them."""
    are_whole = all(target.shape == reduced.shape for target, _ in pairs[:2])
    if are_whole and len(pairs) > 1 and not needs_initial:
        (_, one), (_, other), *pairs = pairs
        combine(one, other, out=reduced)
    else:
        reduced.fill(initial)
    for target, elements in in_time(pairs, SLOW):
        combine(target, elements, out=target)


def window_sizes(geometry: Geometry, spatial: Sequence[int]) -> Array:
    """How many elements of an input of this size each window sees: `[*output, 1]`."""
    along = []
    for i, size in enumerate(spatial):
        first = np.arange(geometry.output[i]) * geometry.strides[i] - geometry.padding[i][0]
        along.append(np.minimum(first + geometry.window[i], size) - np.maximum(first, 0))
    return functools.reduce(np.multiply.outer, along)[..., np.newaxis]


def argmax_windows(x: Array, geometry: Geometry) -> tuple[Array, Array]:
    """The first largest element of each window: its value, and its number in the window or -1.

    A NaN is taken where it comes first, and else passed over, as by TensorFlow.
    """
    shape = (x.shape[0], *geometry.output, x.shape[-1])
    values = np.full(shape, lowest(x.dtype), x.dtype)
    chosen = np.full(shape, -1, np.intp)
    for offset, windows, elements in overlaps(geometry, x.shape[1:-1]):
        found, best, choice = x[elements], values[windows], chosen[windows]
        better = (best < found) | (choice < 0)
        np.copyto(best, found, where=better)
        np.copyto(choice, _number(offset, geometry), where=better)
    return values, chosen


def first_equal(
    x: Array, y: Array, geometry: Geometry
) -> Iterator[tuple[Array, tuple[slice, ...], tuple[slice, ...]]]:
    """Where the first element of each window is that has the window's value in `y`.

    Yields:
        For each element of the window: a mask of the windows that have their value there, an index of
        these windows, and an index of their elements in the input.
    """
    missing = np.ones(y.shape, np.bool_)
    for _, windows, elements in overlaps(geometry, x.shape[1:-1]):
        rest = missing[windows]
        found = x[elements] == y[windows]
        found &= rest
        rest ^= found
        yield found, windows, elements


def scatter_to_largest(x: Array, gradient: Array, geometry: Geometry) -> Array:
    """Add the gradient of each window to the element that `argmax_windows` chooses in it."""
    out = allocate(x.shape, as_dtype(gradient.dtype))
    out.fill(0)
    is_float = as_dtype(x.dtype).is_floating
    largest = reduce_windows(x, geometry, np.maximum, -np.inf if is_float else lowest(x.dtype))
    choices = first_equal(x, largest, geometry)
    if is_float and np.isnan(largest).any():
        choices = _chosen(x, geometry)
    # As integers the gradients are kept or become zero, whatever they are, by a product with 1 or 0;
    # a choice takes ten times as long.
    integer = np.dtype(f"i{gradient.itemsize}")
    values, sums = gradient.view(integer), out.view(integer)
    are_apart = all(map(operator.ge, geometry.strides, geometry.window))
    for here, windows, elements in choices:
        if are_apart:
            np.multiply(values[windows], here, out=sums[elements])
        else:
            out[elements] += np.multiply(values[windows], here).view(gradient.dtype)
    return out


def _chosen(
    x: Array, geometry: Geometry
) -> Iterator[tuple[Array, tuple[slice, ...], tuple[slice, ...]]]:
    """As `first_equal`, of the elements that `argmax_windows` chooses."""
    _, chosen = argmax_windows(x, geometry)
    for offset, windows, elements in overlaps(geometry, x.shape[1:-1]):
        yield chosen[windows] == _number(offset, geometry), windows, elements


def _number(offset: Sequence[int], geometry: Geometry) -> int:
    """The number of an element in the window, in the order of memory."""
    return functools.reduce(
        lambda number, axis: number * geometry.window[axis] + offset[axis], range(len(offset)), 0
    )
