"""Loops that sample images: crops, and their gradients."""

import numpy as np

from opkernel.ops.image import crop_and_resize, crop_and_resize_grad
from opkernel.ops.registration import REAL_NUMBERS
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array, DataType


@loop(otherwise=crop_and_resize.crop_bilinear)
def crop_bilinear(
    image: Array, box_index: Array, rows: Array, columns: Array, outside: np.float32, crops: Array
) -> None:
    """Each place is mixed of the four pixels around it."""
    count, height, width, depth = crops.shape
    for box in range(count):
        pixels = image[box_index[box]]
        for y in range(height):
            if rows[box, y] < 0:
                crops[box, y] = outside
                continue
            top, bottom = int(np.floor(rows[box, y])), int(np.ceil(rows[box, y]))
            down = rows[box, y] - np.float32(top)
            for x in range(width):
                if columns[box, x] < 0:
                    crops[box, y, x] = outside
                    continue
                left, right = int(np.floor(columns[box, x])), int(np.ceil(columns[box, x]))
                across = columns[box, x] - np.float32(left)
                for d in range(depth):
                    first = np.float32(pixels[top, left, d])
                    second = np.float32(pixels[bottom, left, d])
                    first += (np.float32(pixels[top, right, d]) - first) * across
                    second += (np.float32(pixels[bottom, right, d]) - second) * across
                    crops[box, y, x, d] = first + (second - first) * down


@loop(otherwise=crop_and_resize_grad.add_bilinear_shares)
def add_bilinear_shares(
    output: Array, grads: Array, box_index: Array, rows: Array, columns: Array
) -> None:
    """Each gradient is divided among the four pixels around its place."""
    one = np.float32(1)
    count, height, width, depth = grads.shape
    for box in range(count):
        pixels = output[box_index[box]]
        for y in range(height):
            if rows[box, y] < 0:
                continue
            top, bottom = int(np.floor(rows[box, y])), int(np.ceil(rows[box, y]))
            down = rows[box, y] - np.float32(top)
            for x in range(width):
                if columns[box, x] < 0:
                    continue
                left, right = int(np.floor(columns[box, x])), int(np.ceil(columns[box, x]))
                across = columns[box, x] - np.float32(left)
                for d in range(depth):
                    upper = (one - down) * grads[box, y, x, d]
                    pixels[top, left, d] += (one - across) * upper
                    pixels[top, right, d] += across * upper
                    lower = down * grads[box, y, x, d]
                    pixels[bottom, left, d] += (one - across) * lower
                    pixels[bottom, right, d] += across * lower


@loop(otherwise=crop_and_resize_grad.add_nearest_shares)
def add_nearest_shares(
    output: Array, grads: Array, box_index: Array, rows: Array, columns: Array
) -> None:
    """Each gradient goes to the pixel nearest to its place."""
    half = np.float32(0.5)
    count, height, width, depth = grads.shape
    for box in range(count):
        pixels = output[box_index[box]]
        for y in range(height):
            if rows[box, y] < 0:
                continue
            top = np.floor(rows[box, y])
            row = int(top) + int(rows[box, y] - top >= half)
            for x in range(width):
                if columns[box, x] < 0:
                    continue
                left = np.floor(columns[box, x])
                column = int(left) + int(columns[box, x] - left >= half)
                for d in range(depth):
                    pixels[row, column, d] += grads[box, y, x, d]


@loop(otherwise=crop_and_resize_grad.add_slopes)
def add_slopes(
    grads: Array, image: Array, box_index: Array, rows: Array, columns: Array, out: Array
) -> None:
    """How much a crop changes where its places move down, and to the right, by a pixel."""
    one = np.float32(1)
    count, height, width, depth = grads.shape
    for box in range(count):
        pixels = image[box_index[box]]
        out[box] = 0
        for y in range(height):
            if rows[box, y] < 0:
                continue
            top, bottom = int(np.floor(rows[box, y])), int(np.ceil(rows[box, y]))
            down = rows[box, y] - np.float32(top)
            for x in range(width):
                if columns[box, x] < 0:
                    continue
                left, right = int(np.floor(columns[box, x])), int(np.ceil(columns[box, x]))
                across = columns[box, x] - np.float32(left)
                to_bottom, to_right = np.float32(0), np.float32(0)
                for d in range(depth):
                    first = np.float32(pixels[top, left, d])
                    second = np.float32(pixels[top, right, d])
                    third = np.float32(pixels[bottom, left, d])
                    fourth = np.float32(pixels[bottom, right, d])
                    slope = (one - across) * (third - first) + across * (fourth - second)
                    to_bottom += slope * grads[box, y, x, d]
                    slope = (one - down) * (second - first) + down * (fourth - third)
                    to_right += slope * grads[box, y, x, d]
                out[box, y] += to_bottom
                out[box, height + x] += to_right


_TYPES = [one for one in REAL_NUMBERS if one not in (DataType.DT_HALF, DataType.DT_BFLOAT16)]
crop_and_resize_grad.register_crop_and_resize_grad_boxes(
    add_slopes, types=_TYPES, registry=LOOPS.kernels
)
crop_and_resize.register_crop_and_resize(
    crop_bilinear,
    types=_TYPES,
    registry=LOOPS.kernels,
)
crop_and_resize_grad.register_crop_and_resize_grad_image(
    add_bilinear_shares,
    add_nearest_shares,
    types=(DataType.DT_FLOAT, DataType.DT_DOUBLE),
    registry=LOOPS.kernels,
)
