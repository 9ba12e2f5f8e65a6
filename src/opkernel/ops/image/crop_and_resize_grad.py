"""CropAndResizeGradImage and CropAndResizeGradBoxes: gradients by the images and by the boxes.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/crop_and_resize_op.cc.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.image.crop_and_resize import (
    TYPES_SPEC,
    Samples,
    check_box_index,
    check_boxes,
    check_images,
    samples,
)
from opkernel.ops.kernel_types import REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

Array = np.ndarray[Any, Any]


def grad_image_shape(c: InferenceContext) -> None:
    """The shape that input 3 holds."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(3), 4))


def grad_boxes_shape(c: InferenceContext) -> None:
    """The shape of the boxes."""
    c.set_output(0, c.input(2))


CROP_AND_RESIZE_GRAD_IMAGE = register_op(
    "CropAndResizeGradImage",
    inputs=["grads: float", "boxes: float", "box_ind: int32", "image_size: int32"],
    outputs=["output: T"],
    attrs=["T: {float, half, double}", "method: {'bilinear', 'nearest'} = 'bilinear'"],
    shape_fn=grad_image_shape,
    doc="The gradient of CropAndResize by its images, whose shape is `image_size`.",
)

CROP_AND_RESIZE_GRAD_BOXES = register_op(
    "CropAndResizeGradBoxes",
    inputs=["grads: float", "image: T", "boxes: float", "box_ind: int32"],
    outputs=["output: float"],
    attrs=[f"T: {{{TYPES_SPEC}}}", "method: {'bilinear'} = 'bilinear'"],
    shape_fn=grad_boxes_shape,
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
    if image_size.ndim != 1:
        raise InvalidArgumentError(f"image_size must be 1-D{list(image_size.shape)}")
    if image_size.size != 4:
        raise InvalidArgumentError(f"image_size must have 4 elements{list(image_size.shape)}")
    size = tuple(int(v) for v in image_size)
    if size[1] <= 0 or size[2] <= 0:
        raise InvalidArgumentError(f"image dimensions must be positive, got {list(size)}")
    if size[3] != depth:
        raise InvalidArgumentError(
            f"image_size and grads are incompatible: {size[3]} and {depth} channels"
        )
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


@register_kernel(
    CROP_AND_RESIZE_GRAD_IMAGE,
    device="CPU",
    types={"T": (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)},
    host_memory=["image_size"],
)
def grad_image(
    grads: Any, boxes: Any, box_ind: Any, image_size: Any, *, method: str, T: DataType
) -> Any:
    """Shares are rounded to the type of the images before they are added up."""
    check_images("grads image", grads, "grads")
    count = _check_grads(grads, boxes, box_ind)
    size = _image_size(image_size, grads.shape[3])
    output = np.zeros(check_allocation(size, T), T.numpy_dtype)
    if count == 0:
        return output
    check_box_index(box_ind, size[0])
    rows = samples(boxes[:, 0], boxes[:, 2], size[1], grads.shape[1], np)
    columns = samples(boxes[:, 1], boxes[:, 3], size[2], grads.shape[2], np)
    shares = list(_shares(grads, rows, columns, method))
    # TensorFlow's loops round the sums in this order: one share of a pixel after the other, then the
    # next pixel.
    row = np.stack([share[0] for share in shares], axis=-1)[:, :, np.newaxis]
    column = np.stack([share[1] for share in shares], axis=-1)[:, np.newaxis]
    values = np.stack([share[2] for share in shares], axis=3)
    index = np.broadcast_arrays(box_ind.reshape(-1, 1, 1, 1), row, column)
    is_inside = rows.is_inside[:, :, np.newaxis] & columns.is_inside[:, np.newaxis]
    np.add.at(output, tuple(i[is_inside] for i in index), values[is_inside].astype(output.dtype))
    return output


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


@register_kernel(CROP_AND_RESIZE_GRAD_BOXES, device="CPU", types={"T": REAL_NUMBERS})
def grad_boxes(grads: Any, image: Any, boxes: Any, box_ind: Any) -> Any:
    check_images("grads image", grads, "grads")
    check_images("input image", image, "image")
    batch, height, width, depth = image.shape
    if grads.shape[3] != depth:
        raise InvalidArgumentError(
            f"image, grads depth differ: {depth} and {grads.shape[3]} channels"
        )
    if _check_grads(grads, boxes, box_ind) == 0:
        return np.zeros((0, 4), np.float32)
    check_box_index(box_ind, batch)
    rows = samples(boxes[:, 0], boxes[:, 2], height, grads.shape[1], np)
    columns = samples(boxes[:, 1], boxes[:, 3], width, grads.shape[2], np)

    down, across = _slopes(image, box_ind, rows, columns)
    is_inside = (rows.is_inside[:, :, None] & columns.is_inside[:, None, :])[..., None]
    of_rows = np.where(is_inside, down * grads, np.float32(0)).sum(axis=(2, 3))
    of_columns = np.where(is_inside, across * grads, np.float32(0)).sum(axis=(1, 3))
    y1, y2 = _end_gradients(of_rows, height, grads.shape[1])
    x1, x2 = _end_gradients(of_columns, width, grads.shape[2])
    return np.stack([y1, x1, y2, x2], axis=1)
