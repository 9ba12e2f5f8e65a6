"""ResizeArea: each new pixel is the mean of the old ones that it covers.

Source: TensorFlow core/kernels/image/resize_area_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from opkernel.kernel import KernelRegistry
from opkernel.ops.image.resize import (
    ALIGNMENT_ATTRS,
    declare_resizing,
    in_parts,
    output_size,
    remembered,
    scale,
    some_images,
    spread_along,
)
from opkernel.ops.registration import REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType

RESIZE_AREA = declare_resizing(
    "ResizeArea",
    "Resize images; each new pixel is the mean of the old ones that it covers.",
    attrs=ALIGNMENT_ATTRS[:1],
)


class Area(NamedTuple):
    """All pixels that each position covers, one list after the other, and where each list begins."""

    indices: Array
    weights: Array
    starts: Array


@remembered
def area(size: int, output: int, align_corners: bool) -> Area:
    """Weights are the part of each pixel that the position covers."""
    step = scale(size, output, align_corners)
    edges = np.arange(output + 1, dtype=np.float32) * step
    first = np.floor(edges[:-1]).astype(np.intp)
    counts = np.maximum(np.ceil(edges[1:]).astype(np.intp) - first, 1)
    starts = np.cumsum(counts) - counts
    indices = np.arange(counts.sum()) - np.repeat(starts - first, counts)
    low, high = np.repeat(edges[:-1], counts), np.repeat(edges[1:], counts)
    pixel = indices.astype(np.float32)
    ends = pixel + 1 > high
    weights = np.where(
        pixel < low,
        np.where(ends, step, pixel + 1 - low),
        np.where(ends, high - pixel, np.float32(1)),
    )
    return Area(np.clip(indices, 0, size - 1), weights, starts)


ResizeByArea = Callable[[Any, Any, Any, Any, Any, Any], Any]
"""A function as `resize_by_area`."""


def resize_by_area(
    images: Array, indices: Array, weights: Array, starts: Array, factor: Any, out: Array
) -> None:
    """Fill `out` with the means of what its pixels cover.

    Args:
        images: [images, height, width, channels], float32.
        indices: The rows that each new row covers, then the columns that each new column covers.
        weights: float32: the part of each that is covered.
        starts: Where the list of each new row, and then of each new column, begins; and the end of the last one.
        factor: float32: by which sums are multiplied.
        out: [images, height, width, channels], float32.
    """
    result, height = images, out.shape[1]
    for axis, own in ((2, slice(height, len(starts))), (1, slice(0, height + 1))):
        whole = slice(starts[own][0], starts[own][-1])
        at = Area(indices[whole], weights[whole], starts[own][:-1] - whole.start)
        part = partial(_covered, result, at, axis)
        result = in_parts(result, axis, len(at.starts), part)
    np.multiply(result, factor, out=out)


def _covered(x: Any, at: Area, axis: int, some: slice) -> Any:
    """The sums of what some pixels cover along an axis."""
    ends = np.append(at.starts, len(at.indices))
    whole = slice(ends[some.start], ends[some.stop])
    parts = np.take(x, at.indices[whole], axis=axis)
    parts *= spread_along(at.weights[whole], axis, x.shape[3])
    return np.add.reduceat(parts, at.starts[some] - whole.start, axis=axis)


def register_resize_area(resize: ResizeByArea, registry: KernelRegistry | None = None) -> None:
    """Register the kernel of ResizeArea with a function that resizes images."""

    def resize_area(images: Any, size: Any, *, align_corners: bool) -> Any:
        height, width = output_size(images, size, DataType.DT_FLOAT)
        batch, *old, channels = images.shape
        sizes = list(zip(old, (height, width), strict=True))
        rows, columns = (area(before, after, align_corners) for before, after in sizes)
        factor = 1 / np.prod([scale(*pair, align_corners) for pair in sizes], dtype=np.float32)
        indices = np.concatenate([rows.indices, columns.indices])
        weights = np.concatenate([rows.weights, columns.weights])
        offset = len(rows.indices)
        starts = np.concatenate([rows.starts, columns.starts + offset, [len(indices)]])
        x = np.ascontiguousarray(images, np.float32)
        out = np.empty((batch, height, width, channels), np.float32)
        for some in some_images(x, out):
            resize(x[some], indices, weights, starts, factor, out[some])
        return out

    register_kernel(
        RESIZE_AREA, types={"T": REAL_NUMBERS}, host_memory=["size"], registry=registry
    )(resize_area)


register_resize_area(resize_by_area)
