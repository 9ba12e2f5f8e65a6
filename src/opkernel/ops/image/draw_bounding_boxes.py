"""DrawBoundingBoxes, DrawBoundingBoxesV2: the outlines of boxes on images.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/draw_bounding_box_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.device.work_clock import array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape, unchanged_shape_with_rank_at_least
from opkernel.ops.input_checks import require_equal, require_rank
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_TYPES = [DataType.DT_FLOAT, DataType.DT_HALF]
_COLORS = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)
"""Yellow, blue, red, lime, purple, olive, maroon, navy, aqua and fuchsia."""
_BEYOND = np.float32(2**63)


def _draw_bounding_boxes_shape(c: InferenceContext) -> None:
    """Images of 1, 3 or 4 channels, and boxes [batch, boxes, 4] -> input 0."""
    depth = c.dim(c.with_rank(c.input(0), 4), 3).value
    if depth not in (-1, 1, 3, 4):
        raise InvalidArgumentError(
            f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), but is {depth}"
        )
    c.with_value(c.dim(c.with_rank(c.input(1), 3), 2), 4)
    unchanged_shape(c)


DRAW_BOUNDING_BOXES = register_op(
    "DrawBoundingBoxes",
    inputs=["images: T", "boxes: float"],
    outputs=["output: T"],
    attrs=["T: {float, half} = DT_FLOAT"],
    shape_fn=_draw_bounding_boxes_shape,
    doc="The images with the outlines of their boxes (y_min, x_min, y_max, x_max, from 0 to 1).",
)
DRAW_BOUNDING_BOXES_V2 = register_op(
    "DrawBoundingBoxesV2",
    inputs=["images: T", "boxes: float", "colors: float"],
    outputs=["output: T"],
    attrs=["T: {float, half} = DT_FLOAT"],
    shape_fn=unchanged_shape_with_rank_at_least(3),
    doc="DrawBoundingBoxes with colors [colors, channels], which the boxes take in turn.",
)


@register_kernel(DRAW_BOUNDING_BOXES, types={"T": _TYPES})
def draw_bounding_boxes(images: Any, boxes: Any) -> Any:
    return _drawn(images, boxes, None)


@register_kernel(DRAW_BOUNDING_BOXES_V2, types={"T": _TYPES})
def draw_bounding_boxes_v2(images: Any, boxes: Any, colors: Any) -> Any:
    return _drawn(images, boxes, colors)


def _check(images: Any, boxes: Any) -> None:
    for name, tensor, rank in (("images", images, 4), ("boxes tensor", boxes, 3)):
        require_rank(tensor, rank, f"The rank of the {name} should be {rank}")
    require_equal(len(images), len(boxes), "The batch sizes should be the same")
    if images.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError(
            "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), "
            f"but is {images.shape[3]}"
        )
    require_equal(
        boxes.shape[2], 4, "The size of the third dimension of the box must be 4. Received: {}"
    )


def _color_table(colors: Any, depth: int) -> Any:
    """The colors [colors, depth]; without any, boxes on gray images are white."""
    if colors is not None and colors.ndim != 2:
        raise InvalidArgumentError(f"colors must be a 2-D matrix, got {list(colors.shape)}")
    if colors is not None and colors.shape[1] < depth:
        raise InvalidArgumentError(
            f"colors must have equal or more channels than the image provided: {list(colors.shape)}"
        )
    if colors is None or not len(colors):
        return _COLORS[:, :depth] if depth > 1 else np.ones((1, 1), np.float32)
    return colors[:, :depth]


def _drawn(images: Any, boxes: Any, colors: Any) -> Any:
    _check(images, boxes)
    table = _color_table(colors, images.shape[3]).astype(images.dtype)
    output = images.copy()
    edges = _edges(boxes, images.shape[1], images.shape[2])
    work = array_work(sum(images.shape[1:3]), 4)
    for image, of_image in zip(output, edges, strict=True):
        for number, (top, left, bottom, right) in enumerate(in_time(of_image.tolist(), work)):
            _outline(image, top, left, bottom, right, table[number % len(table)])
    return output


def _edges(boxes: Any, height: int, width: int) -> Any:
    """Rows and columns of the boxes; what no integer holds becomes the least one, as in C."""
    size = np.array([height - 1, width - 1] * 2, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = boxes * size
    held = np.abs(scaled) < _BEYOND
    return np.where(held, np.where(held, scaled, 0).astype(np.int64), np.iinfo(np.int64).min)


def _outline(image: Any, top: int, left: int, bottom: int, right: int, color: Any) -> None:
    """Draw the sides of a box that lie within the image."""
    height, width = image.shape[:2]
    if top > bottom or left > right or top >= height or left >= width or bottom < 0 or right < 0:
        return
    for name, size in (("row", height), ("col", width)):
        if not size:
            raise InvalidArgumentError(f"Max box {name} clamp is less than 0.")
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    for row in (top, bottom):
        if 0 <= row < height:
            image[row, columns] = color
    for column in (left, right):
        if 0 <= column < width:
            image[rows, column] = color
