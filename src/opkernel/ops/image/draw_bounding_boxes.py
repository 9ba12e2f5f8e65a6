"""Boxes drawn into images: DrawBoundingBoxes, DrawBoundingBoxesV2.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/draw_bounding_box_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape, unchanged_shape_with_rank_at_least
from opkernel.ops.input_checks import require, require_equal, require_rank
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType

_TYPES = [DataType.DT_FLOAT, DataType.DT_HALF]
_COLORS = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
    ], np.float32
)  # fmt: skip
_BEYOND = np.float32(2**63)


def _check_depth(depth: int) -> None:
    message = f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), but is {depth}"
    require(depth in (1, 3, 4), message)


def _draw_bounding_boxes_shape(c: InferenceContext) -> None:
    """Images of 1, 3 or 4 channels, and boxes [batch, boxes, 4] -> input 0."""
    depth = c.dim(c.with_rank(c.input(0), 4), 3).value
    _check_depth(3 if depth == -1 else depth)
    c.with_value(c.dim(c.with_rank(c.input(1), 3), 2), 4)
    unchanged_shape(c)


DRAW_BOUNDING_BOXES = register_op(
    "DrawBoundingBoxes(images: T, boxes: float) -> output: T",
    attrs=["T: {float, half} = DT_FLOAT"],
    shape_fn=_draw_bounding_boxes_shape,
    doc="The images with the outlines of their boxes (y_min, x_min, y_max, x_max, from 0 to 1).",
)
DRAW_BOUNDING_BOXES_V2 = register_op(
    "DrawBoundingBoxesV2(images: T, boxes: float, colors: float) -> output: T",
    attrs=["T: {float, half} = DT_FLOAT"],
    shape_fn=unchanged_shape_with_rank_at_least(3),
    doc="DrawBoundingBoxes with colors [colors, channels], which the boxes take in turn.",
)


Draw = Callable[[Any, Any, Any], Any]
"""A function as `draw_outlines`."""


def draw_outlines(images: Array, edges: Array, table: Array) -> None:
    """Draw the sides of boxes that lie within images.

    Args:
        images: [images, height, width, channels], which are changed.
        edges: int64 [images, boxes, 4]: the top, left, bottom and right of the boxes.
        table: [colors, channels], of the type of the images: the colors, which boxes take in turn.

    Raises:
        InvalidArgumentError: a box is around an image without pixels.
    """
    work = array_work(sum(images.shape[1:3]), 4)
    for image, of_image in zip(images, edges, strict=True):
        for number, (top, left, bottom, right) in enumerate(in_time(of_image.tolist(), work)):
            _outline(image, top, left, bottom, right, table[number % len(table)])


def register_draw_bounding_boxes(
    draw: Draw, types: Sequence[DataType] = _TYPES, registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of both ops with a function that draws outlines."""

    def draw_bounding_boxes_v2(images: Any, boxes: Any, colors: Any) -> Any:
        _check(images, boxes)
        table = _color_table(colors, images.shape[3]).astype(images.dtype)
        output = images.copy()
        edges = _edges(boxes, images.shape[1], images.shape[2])
        at_once = max(_SIDES // max(edges[:1].size * sum(images.shape[1:3]), 1), 1)
        for start in in_time(range(0, len(output), at_once), SLOW, "drawing boxes"):
            some = slice(start, start + at_once)
            (draw if images.size else draw_outlines)(output[some], edges[some], table)
        return output

    def draw_bounding_boxes(images: Any, boxes: Any) -> Any:
        return draw_bounding_boxes_v2(images, boxes, None)

    for op, kernel in (
        (DRAW_BOUNDING_BOXES, draw_bounding_boxes),
        (DRAW_BOUNDING_BOXES_V2, draw_bounding_boxes_v2),
    ):
        register_kernel(op, types={"T": types}, registry=registry)(kernel)


_SIDES = 1 << 22
"""About so many pixels of boxes' sides are drawn in one call."""
register_draw_bounding_boxes(draw_outlines)


def _check(images: Any, boxes: Any) -> None:
    for name, tensor, rank in (("images", images, 4), ("boxes tensor", boxes, 3)):
        require_rank(tensor, rank, f"The rank of the {name} should be {rank}")
    require_equal(len(images), len(boxes), "The batch sizes should be the same")
    _check_depth(images.shape[3])
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
