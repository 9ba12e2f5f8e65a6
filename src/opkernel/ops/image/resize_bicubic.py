"""ResizeBicubic: each new pixel is interpolated between sixteen old ones.

Source: TensorFlow core/kernels/image/resize_bicubic_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.kernel import KernelRegistry
from opkernel.ops.image.resize import (
    check_alignment,
    cubic,
    declare_resizing,
    in_parts,
    output_size,
    some_images,
    spread_along,
)
from opkernel.ops.registration import REAL_NUMBERS, WIDE_FLOATS, register_kernel
from opkernel.types import Array, DataType

RESIZE_BICUBIC = declare_resizing(
    "ResizeBicubic", "Resize images; each new pixel is interpolated between sixteen old ones."
)


Interpolate = Callable[[Any, Any, Any, Any], Any]
"""A function as `interpolate_bicubic`."""


def interpolate_bicubic(images: Array, neighbours: Array, weights: Array, out: Array) -> None:
    """Fill `out` with images of other pixels, each between sixteen old ones: first between rows.

    Args:
        images: [images, height, width, channels], float32.
        neighbours: [4, height + width], the rows around each new row, then the columns.
        weights: Of the same shape, float32.
        out: [images, height, width, channels], float32.
    """
    rows, columns = slice(0, out.shape[1]), slice(out.shape[1], None)
    lines = _interpolated(images, neighbours[:, rows], weights[:, rows], 1, np)
    out[...] = _interpolated(lines, neighbours[:, columns], weights[:, columns], 2, np)


def _interpolated(x: Any, neighbours: Any, weights: Any, axis: int, xp: Any) -> Any:
    def part(some: slice) -> Any:
        total: Any = 0
        for indices, own in zip(neighbours[:, some], weights[:, some], strict=True):
            pixels = xp.take(x, xp.asarray(indices), axis=axis)
            total = total + pixels * xp.asarray(spread_along(own, axis, x.shape[3]))
        return total

    return in_parts(x, axis, neighbours.shape[1], part) if xp is np else part(slice(None))


def register_resize_bicubic(
    interpolate: Interpolate, registry: KernelRegistry | None = None
) -> None:
    """Register the kernel of ResizeBicubic with a function that interpolates."""

    def resize_bicubic(
        *, align_corners: bool, half_pixel_centers: bool, xp: Any
    ) -> Callable[[Any, Any], Any]:
        check_alignment(align_corners, half_pixel_centers)

        def kernel(images: Any, size: Any) -> Any:
            new_size = output_size(images, size, DataType.DT_FLOAT)
            rows, columns = (
                cubic(old, new, align_corners, half_pixel_centers)
                for old, new in zip(images.shape[1:3], new_size, strict=True)
            )
            if xp is not np:
                lines = _interpolated(images.astype(np.float32, copy=False), *rows, 1, xp)
                return _interpolated(lines, *columns, 2, xp)
            result = np.require(images, np.float32, ["C", "A"])
            neighbours = np.concatenate([rows.indices, columns.indices], axis=1)
            weights = np.concatenate([rows.weights, columns.weights], axis=1)
            out = np.empty((len(images), *new_size, images.shape[3]), np.float32)
            for some in some_images(result, out):
                interpolate(result[some], neighbours, weights, out[some])
            return out

        return kernel

    register_kernel(
        RESIZE_BICUBIC,
        types={"T": REAL_NUMBERS},
        host_memory=["size"],
        factory=True,
        registry=registry,
    )(resize_bicubic)


register_resize_bicubic(interpolate_bicubic)


@g.register_gradient("ResizeBicubic")
def resize_bicubic_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    image = op.inputs[0]
    if image.dtype not in WIDE_FLOATS:
        return None, None
    return g.nodes.ResizeBicubicGrad(
        grad, image, **g.attrs_of(op, "align_corners", "half_pixel_centers")
    ), None
