"""Loops that draw boxes on images."""

from opkernel.ops.image import draw_bounding_boxes
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array, DataType


@part_of_loops
def _draw_rows(image: Array, first: int, last: int, left: int, right: int, color: Array) -> None:
    """Fill some rows between two columns, as far as they lie within the image."""
    for row in range(max(first, 0), min(last, image.shape[0] - 1) + 1):
        for column in range(max(left, 0), min(right, image.shape[1] - 1) + 1):
            for d in range(image.shape[2]):
                image[row, column, d] = color[d]


@loop(otherwise=draw_bounding_boxes.draw_outlines)
def draw_outlines(images: Array, edges: Array, table: Array) -> None:
    """Box by box."""
    for n in range(len(images)):
        image = images[n]
        height, width = image.shape[:2]
        for number in range(edges.shape[1]):
            top, left, bottom, right = edges[n, number]
            if top > bottom or left > right or top >= height or left >= width:
                continue
            if bottom < 0 or right < 0:
                continue
            color = table[number % len(table)]
            _draw_rows(image, top, top, left, right, color)
            _draw_rows(image, bottom, bottom, left, right, color)
            _draw_rows(image, top, bottom, left, left, color)
            _draw_rows(image, top, bottom, right, right, color)


draw_bounding_boxes.register_draw_bounding_boxes(
    draw_outlines, types=(DataType.DT_FLOAT,), registry=LOOPS.kernels
)
