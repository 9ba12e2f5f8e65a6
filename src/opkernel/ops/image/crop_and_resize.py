"""Crops of images, each resized to one size.

A box is [y1, x1, y2, x2], where 0 and 1 are the centers of the first and the last pixel; it may lie
outside of the image, and y2 may be less than y1, which flips the crop.

CropAndResizeGradImage and CropAndResizeGradBoxes: gradients by the images and by the boxes.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/crop_and_resize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import outputs_as_inputs, shape_held_by
from opkernel.ops.image.resize import sized_image_shape
from opkernel.ops.input_checks import require, require_equal, require_rank, require_vector
from opkernel.ops.registration import REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType

__all__ = ["check_one_for_each_box"]


TYPES_SPEC = "uint8, uint16, int8, int16, int32, int64, half, float, double"


def crop_and_resize_shape(c: InferenceContext) -> None:
    """One image for each box, of the size that input 3 holds."""
    images = c.with_rank(c.input(0), 4)
    boxes, box_index = c.with_rank(c.input(1), 2), c.with_rank(c.input(2), 1)
    count = c.merge(c.dim(boxes, 0), c.dim(box_index, 0))
    c.with_value(c.dim(boxes, 1), 4)
    sized_image_shape(c, count, 3, c.dim(images, 3))


CROP_AND_RESIZE = register_op(
    "CropAndResize(image: T, boxes: float, box_ind: int32, crop_size: int32) -> crops: float",
    attrs=[
        f"T: {{{TYPES_SPEC}}}",
        "method: {'bilinear', 'nearest'} = 'bilinear'",
        "extrapolation_value: float = 0.0",
    ],
    shape_fn=crop_and_resize_shape,
    doc="""Cut boxes out of images and resize each to `crop_size`.

    image: [batch, height, width, channels].
    boxes: [boxes, 4], each y1, x1, y2, x2 as parts of the height and width.
    box_ind: The image that each box is cut out of.
    crop_size: The height and width of the crops.
    extrapolation_value: What there is outside of the image.
    """,
)


class Samples(NamedTuple):
    """The places that a box is sampled at, along one dimension; `[boxes, crop size]`.

    Attributes:
        lower: the pixel before each place.
        upper: the pixel after it.
        nearest: the pixel nearest to it.
        fraction: how far it is from the lower pixel.
        is_inside: whether it is in the image.
    """

    lower: Any
    upper: Any
    nearest: Any
    fraction: Any
    is_inside: Any


def samples(starts: Any, ends: Any, size: int, crop: int, xp: Any) -> Samples:
    """Where boxes that reach from `starts` to `ends` are sampled in an image of `size` pixels.

    Raises:
        InvalidArgumentError: a place is NaN; TensorFlow would read beyond the image.
    """
    if crop > 1:
        step = (ends - starts) * (size - 1) / (crop - 1)
        places = (starts * (size - 1))[:, None] + step[:, None] * xp.arange(crop, dtype=np.float32)
    else:
        places = (0.5 * (starts + ends) * (size - 1))[:, None]
    are_numbers = xp is not np or not np.isnan(places).any()
    require(are_numbers, "Boxes are too large, or contain an element that is not a number")
    is_inside = (places >= 0) & (places <= size - 1)
    places = xp.where(is_inside, places, xp.zeros_like(places))
    floor = xp.floor(places)
    fraction = places - floor
    return Samples(
        floor.astype(np.int32),
        xp.ceil(places).astype(np.int32),
        floor.astype(np.int32) + (fraction >= 0.5),
        fraction,
        is_inside,
    )


def check_images(name: str, images: Any, extent: str) -> None:
    """Raise InvalidArgumentError unless these are images with at least one pixel."""
    require_rank(images, 4, f"{name} must be 4-D{{}}")
    if 0 in images.shape[1:3]:
        raise InvalidArgumentError(f"{extent} dimensions must be positive")


def check_boxes(boxes: Any, box_index: Any) -> int:
    """The number of boxes; without any, the ranks alone are checked."""
    if boxes.ndim == 2 and box_index.ndim == 1 and boxes.size == box_index.size == 0:
        return 0
    check_one_for_each_box("box_index", box_index, boxes)
    return int(boxes.shape[0])


def check_one_for_each_box(name: str, values: Any, boxes: Any) -> None:
    """Raise InvalidArgumentError unless `boxes` is [n, 4] and a tensor of this name is [n]."""
    require_rank(boxes, 2, "boxes must be 2-D{}")
    require_equal(boxes.shape[1], 4, "boxes must have 4 columns, got {}")
    require_vector(values, f"{name} must be 1-D{{}}")
    if values.shape[0] != boxes.shape[0]:
        raise InvalidArgumentError(
            f"{name} has incompatible shape {list(values.shape)} for {boxes.shape[0]} boxes"
        )


def check_box_index(box_index: Any, batch: int) -> None:
    if isinstance(box_index, np.ndarray) and ((box_index < 0) | (box_index >= batch)).any():
        raise OutOfRangeError(f"box_index has values outside [0, {batch})")


def _crop_size(crop_size: Any) -> tuple[int, int]:
    require_vector(crop_size, "crop_size must be 1-D{}")
    require_equal(crop_size.shape, (2,), "crop_size must have two elements{}")
    height, width = (int(v) for v in crop_size)
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(f"crop dimensions must be positive, got {height} and {width}")
    return height, width


def _nearest(image: Any, index: Any, rows: Samples, columns: Samples) -> Any:
    return image[index, rows.nearest[:, :, None], columns.nearest[:, None, :]].astype(np.float32)


def _bilinear(image: Any, index: Any, rows: Samples, columns: Samples) -> Any:
    def line(of: Any) -> Any:
        left = image[index, of[:, :, None], columns.lower[:, None, :]].astype(np.float32)
        right = image[index, of[:, :, None], columns.upper[:, None, :]].astype(np.float32)
        return left + (right - left) * columns.fraction[:, None, :, None]

    top, bottom = line(rows.lower), line(rows.upper)
    return top + (bottom - top) * rows.fraction[:, :, None, None]


@register_kernel(
    CROP_AND_RESIZE, types={"T": REAL_NUMBERS}, host_memory=["crop_size"], factory=True
)
def crop_and_resize(
    *, method: str, extrapolation_value: float, xp: Any
) -> Callable[[Any, Any, Any, Any], Any]:
    interpolate = _bilinear if method == "bilinear" else _nearest
    outside = np.float32(extrapolation_value)

    def kernel(image: Any, boxes: Any, box_ind: Any, crop_size: Any) -> Any:
        check_images("input image", image, "image")
        count = check_boxes(boxes, box_ind)
        size = _crop_size(crop_size)
        batch, height, width, depth = image.shape
        shape = check_allocation((count, *size, depth), DataType.DT_FLOAT)
        if count == 0:
            return xp.zeros(shape, dtype=np.float32)
        check_box_index(box_ind, batch)
        if xp is np and not np.isfinite(boxes).all():
            raise InvalidArgumentError("Boxes contains at least one element that is not finite")
        rows = samples(boxes[:, 0], boxes[:, 2], height, size[0], xp)
        columns = samples(boxes[:, 1], boxes[:, 3], width, size[1], xp)
        crops = interpolate(image, box_ind[:, None, None], rows, columns)
        is_inside = rows.is_inside[:, :, None] & columns.is_inside[:, None, :]
        return xp.where(is_inside[..., None], crops, outside)

    return kernel


@g.register_gradient("CropAndResize", not_derivative="boxes have the gradient of method 'bilinear'")
def crop_and_resize_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    image, boxes, box_index, _ = op.inputs
    for_image = None
    if image.dtype.is_floating:
        attrs = g.attrs_of(op, "T", "method")
        for_image = g.nodes.CropAndResizeGradImage(
            grad, boxes, box_index, g.shape_of(image), **attrs
        )
    for_boxes = g.nodes.CropAndResizeGradBoxes(grad, image, boxes, box_index)
    return for_image, for_boxes, None, None


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


@register_kernel(
    CROP_AND_RESIZE_GRAD_IMAGE,
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


@register_kernel(CROP_AND_RESIZE_GRAD_BOXES, types={"T": REAL_NUMBERS})
def grad_boxes(grads: Any, image: Any, boxes: Any, box_ind: Any) -> Any:
    check_images("grads image", grads, "grads")
    check_images("input image", image, "image")
    batch, height, width, depth = image.shape
    require_equal(depth, grads.shape[3], "image, grads depth differ: {} and {} channels")
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
