"""Images in other sizes. Which pixels meet is computed as the kernels of the CPU do it, so that results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.tensors import Shapes, ints, shape_of
from opkernel.ops.image.resize import check_alignment, linear, nearest


def _taken(x: Any, indices: Any, axis: int) -> Any:
    return opset().gather(x, ints(indices.tolist()), ints([axis])).output(0)


@openvino_op("ResizeNearestNeighbor", constants=["size"])
def resize_nearest_neighbor(
    images: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool, output_shapes: Shapes
) -> Any:
    check_alignment(align_corners, half_pixel_centers)
    for axis in (1, 2):
        before, after = shape_of(images)[axis], output_shapes[0][axis]
        images = _taken(images, nearest(before, after, align_corners, half_pixel_centers), axis)
    return images


@openvino_op("ResizeBilinear", constants=["size"])
def resize_bilinear(
    images: Any, size: Any, *, align_corners: bool, half_pixel_centers: bool, output_shapes: Shapes
) -> Any:
    check_alignment(align_corners, half_pixel_centers)
    if shape_of(images) == output_shapes[0]:
        return images
    ops = opset()
    for axis in (2, 1):
        before, after = shape_of(images)[axis], output_shapes[0][axis]
        at = linear(before, after, align_corners, half_pixel_centers)
        lower, upper = (_taken(images, indices, axis) for indices in (at.lower, at.upper))
        shape = [-1 if one == axis else 1 for one in range(4)]
        fraction = np.asarray(at.fraction, np.float32).reshape(shape)
        images = ops.add(lower, ops.multiply(ops.subtract(upper, lower), fraction)).output(0)
    return images
