"""CropAndResizeGradImage and CropAndResizeGradBoxes: the gradients of crops by the images and by the boxes.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/crop_and_resize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import outputs_as_inputs, shape_held_by
from opkernel.ops.image.crop_and_resize import (
    TYPES_SPEC,
    Samples,
    check_box_index,
    check_boxes,
    check_images,
    sampled_places,
    samples,
    some_boxes,
)
from opkernel.ops.input_checks import require_equal, require_vector
from opkernel.ops.registration import REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType

CROP_AND_RESIZE_GRAD_IMAGE = register_op(
    "CropAndResizeGradImage(grads: float, boxes: float, box_ind: int32, image_size: int32) -> output: T",
    attrs=["T: {float, half, double}", "method: {'bilinear', 'nearest'} = 'bilinear'"],
    shape_fn=shape_held_by(3, rank=4),
    doc="The gradient of CropAndResize by its images, whose shape is `image_size`.",
)

CROP_AND_RESIZE_GRAD_BOXES = register_op(
    "CropAndResizeGradBoxes(grads: float, image: T, boxes: float, box_ind: int32) -> output: float",
    attrs=[f"T: {{{TYPES_SPEC}}}", "method: {'bilinear'} = 'bilinear'"],
    shape_fn=outputs_as_inputs(2),
    doc="The gradient of CropAndResize by its boxes.",
)


def _check_grads(grads: Any, boxes: Any, box_index: Any) -> int:
    """The number of boxes."""
    count = check_boxes(boxes, box_index)
    if grads.shape[0] != count:
        raise InvalidArgumentError(
            f"boxes and grads have incompatible shape: {count} boxes, grads of {list(grads.shape)}"
        )
    return count


def _image_size(image_size: Any, depth: int) -> tuple[int, ...]:
    require_vector(image_size, "image_size must be 1-D{}")
    require_equal(image_size.shape, (4,), "image_size must have 4 elements{}")
    size = tuple(int(v) for v in image_size)
    if size[1] <= 0 or size[2] <= 0:
        raise InvalidArgumentError(f"image dimensions must be positive, got {list(size)}")
    require_equal(size[3], depth, "image_size and grads are incompatible: {} and {} channels")
    return size


def _shares(
    grads: Array, rows: Samples, columns: Samples, method: str
) -> Iterator[tuple[Array, Array, Array]]:
    """To which rows and columns a share of the gradient goes, and the share."""
    if method == "nearest":
        yield rows.nearest, columns.nearest, grads
        return
    row_fraction = rows.fraction[:, :, None, None]
    column_fraction = columns.fraction[:, None, :, None]
    for row, of_row in (
        (rows.lower, (1 - row_fraction) * grads),
        (rows.upper, row_fraction * grads),
    ):
        yield row, columns.lower, (1 - column_fraction) * of_row
        yield row, columns.upper, column_fraction * of_row


AddShares = Callable[[Any, Any, Any, Any, Any], Any]
"""A function as `add_bilinear_shares`."""


def add_bilinear_shares(
    output: Array, grads: Array, box_index: Array, rows: Array, columns: Array
) -> None:
    """Add the gradients of the crops of some boxes to the pixels around the places sampled.

    Args:
        output: [batch, height, width, channels]: the gradient of the images, whose type shares are rounded to.
        grads: [boxes, crop height, crop width, channels], float32.
        box_index: [boxes].
        rows: [boxes, crop height]: as `sampled_places` gives them.
        columns: [boxes, crop width].
    """
    _add_shares("bilinear", output, grads, box_index, rows, columns)


def add_nearest_shares(
    output: Array, grads: Array, box_index: Array, rows: Array, columns: Array
) -> None:
    """As `add_bilinear_shares`, to the nearest pixels."""
    _add_shares("nearest", output, grads, box_index, rows, columns)


def _add_shares(method: str, output: Array, grads: Array, box_index: Array, *places: Any) -> None:
    rows, columns = (samples(some, np) for some in places)
    shares = list(_shares(grads, rows, columns, method))
    # TensorFlow's loops round the sums in this order: one share of a pixel after the other, then the
    # next pixel.
    row = np.stack([share[0] for share in shares], axis=-1)[:, :, np.newaxis].astype(np.int64)
    column = np.stack([share[1] for share in shares], axis=-1)[:, np.newaxis]
    values = np.stack([share[2] for share in shares], axis=3)
    _, height, width, depth = output.shape
    pixels = (box_index.reshape(-1, 1, 1, 1).astype(np.int64) * height + row) * width + column
    is_inside = rows.is_inside[:, :, np.newaxis] & columns.is_inside[:, np.newaxis]
    elements = pixels[is_inside].reshape(-1, 1) * depth + np.arange(depth)
    values = values[is_inside].astype(output.dtype, copy=False)
    np.add.at(output.reshape(-1), elements.ravel(), values.ravel())


def register_crop_and_resize_grad_image(
    bilinear: AddShares,
    nearest: AddShares,
    types: Sequence[DataType] = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE),
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernel of CropAndResizeGradImage with functions that add gradients to pixels."""

    def grad_image(
        grads: Any, boxes: Any, box_ind: Any, image_size: Any, *, method: str, T: DataType
    ) -> Any:
        check_images("grads image", grads, "grads")
        count = _check_grads(grads, boxes, box_ind)
        size = _image_size(image_size, grads.shape[3])
        output = np.zeros(check_allocation(size, T), T.numpy_dtype)
        if count == 0:
            return output
        check_box_index(box_ind, size[0])
        rows = sampled_places(boxes[:, 0], boxes[:, 2], size[1], grads.shape[1], np)
        columns = sampled_places(boxes[:, 1], boxes[:, 3], size[2], grads.shape[2], np)
        add = bilinear if method == "bilinear" else nearest
        for some in some_boxes(count, grads[0].size):
            add(output, grads[some], box_ind[some], rows[some], columns[some])
        return output

    register_kernel(
        CROP_AND_RESIZE_GRAD_IMAGE,
        types={"T": types},
        host_memory=["image_size"],
        registry=registry,
    )(grad_image)


register_crop_and_resize_grad_image(add_bilinear_shares, add_nearest_shares)


def _end_gradients(of_places: Array, size: int, crop: int) -> tuple[Array, Array]:
    """From the gradients by the places `[boxes, crop]`, those by the start and the end of boxes."""
    if crop == 1:
        half = of_places[:, 0] * np.float32(0.5 * (size - 1))
        return half, half
    ratio = np.float32(size - 1) / np.float32(crop - 1)
    to_end = np.arange(crop, dtype=np.float32) * ratio
    return (of_places * (size - 1 - to_end)).sum(axis=1), (of_places * to_end).sum(axis=1)


def _slopes(image: Any, box_ind: Any, rows: Samples, columns: Samples) -> tuple[Array, Array]:
    """How much the crops change where their places move down, and to the right, by a pixel."""

    def pixels(row: Array, column: Array) -> Array:
        index = box_ind[:, None, None], row[:, :, None], column[:, None, :]
        return np.asarray(image[index], np.float32)

    def mixed(first: Array, second: Array, fraction: Array) -> Any:
        return (1 - fraction) * first + fraction * second

    top_left, top_right = (pixels(rows.lower, c) for c in (columns.lower, columns.upper))
    bottom_left, bottom_right = (pixels(rows.upper, c) for c in (columns.lower, columns.upper))
    row_fraction = rows.fraction[:, :, None, None]
    column_fraction = columns.fraction[:, None, :, None]
    return (
        mixed(bottom_left - top_left, bottom_right - top_right, column_fraction),
        mixed(top_right - top_left, bottom_right - bottom_left, row_fraction),
    )


AddSlopes = Callable[[Any, Any, Any, Any, Any, Any], Any]
"""A function as `add_slopes`."""


def add_slopes(
    grads: Array, image: Array, box_index: Array, rows: Array, columns: Array, out: Array
) -> None:
    """Fill in the gradients by the places of the rows and of the columns of some crops.

    Args:
        grads: [boxes, crop height, crop width, channels], float32.
        image: [batch, height, width, channels].
        box_index: [boxes].
        rows: [boxes, crop height]: as `sampled_places` gives them.
        columns: [boxes, crop width].
        out: [boxes, crop height + crop width], float32.
    """
    some = np.flatnonzero((rows >= 0).any(axis=1) & (columns >= 0).any(axis=1))
    if len(some) < len(rows):  # the others are outside of the image
        of_some = np.zeros((len(some), out.shape[1]), np.float32)
        add_slopes(grads[some], image, box_index[some], rows[some], columns[some], of_some)
        out[...] = 0
        out[some] = of_some
        return
    of_rows, of_columns = samples(rows, np), samples(columns, np)
    down, across = _slopes(image, box_index, of_rows, of_columns)
    down *= grads
    across *= grads
    is_inside = (of_rows.is_inside[:, :, None] & of_columns.is_inside[:, None, :])[..., None]
    if not is_inside.all():
        down, across = (np.where(is_inside, part, np.float32(0)) for part in (down, across))
    out[:, : rows.shape[1]] = down.sum(axis=(2, 3))
    out[:, rows.shape[1] :] = across.sum(axis=(1, 3))


def register_crop_and_resize_grad_boxes(
    add: AddSlopes,
    types: Sequence[DataType] = REAL_NUMBERS,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernel of CropAndResizeGradBoxes with a function that adds up slopes."""

    def grad_boxes(grads: Any, image: Any, boxes: Any, box_ind: Any) -> Any:
        check_images("grads image", grads, "grads")
        check_images("input image", image, "image")
        batch, height, width, depth = image.shape
        require_equal(depth, grads.shape[3], "image, grads depth differ: {} and {} channels")
        if _check_grads(grads, boxes, box_ind) == 0:
            return np.zeros((0, 4), np.float32)
        check_box_index(box_ind, batch)
        crop_height, crop_width = grads.shape[1:3]
        rows = sampled_places(boxes[:, 0], boxes[:, 2], height, crop_height, np)
        columns = sampled_places(boxes[:, 1], boxes[:, 3], width, crop_width, np)
        of_places = np.empty((len(boxes), crop_height + crop_width), np.float32)
        image = np.ascontiguousarray(image)
        for some in some_boxes(len(boxes), grads[0].size):
            add(grads[some], image, box_ind[some], rows[some], columns[some], of_places[some])
        y1, y2 = _end_gradients(of_places[:, :crop_height], height, crop_height)
        x1, x2 = _end_gradients(of_places[:, crop_height:], width, crop_width)
        return np.stack([y1, x1, y2, x2], axis=1)

    register_kernel(CROP_AND_RESIZE_GRAD_BOXES, types={"T": types}, registry=registry)(grad_boxes)


register_crop_and_resize_grad_boxes(add_slopes)
