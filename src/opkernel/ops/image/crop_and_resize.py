"""Crops of images, each resized to one size.

A box is [y1, x1, y2, x2], where 0 and 1 are the centers of the first and the last pixel; it may lie
outside of the image, and y2 may be less than y1, which flips the crop.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/crop_and_resize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import InferenceContext, register_op
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


def sampled_places(starts: Any, ends: Any, size: int, crop: int, xp: Any) -> Any:
    """The places `[boxes, crop]` that boxes from `starts` to `ends` are sampled at; -1 outside of the `size` pixels.

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
    return xp.where((places >= 0) & (places <= size - 1), places, np.float32(-1))


def samples(places: Any, xp: Any) -> Samples:
    """The pixels around `sampled_places`."""
    is_inside = places >= 0
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


Crop = Callable[[Any, Any, Any, Any, Any, Any], Any]
"""A function as `crop_bilinear`."""


def crop_bilinear(
    image: Array, box_index: Array, rows: Array, columns: Array, outside: Any, crops: Array
) -> None:
    """Fill the crops of some boxes.

    Args:
        image: [batch, height, width, channels].
        box_index: [boxes].
        rows: [boxes, crop height]: as `sampled_places` gives them.
        columns: [boxes, crop width].
        outside: float32: what there is outside of the image.
        crops: [boxes, crop height, crop width, channels], float32.
    """
    _crop(_bilinear, image, box_index, rows, columns, outside, crops)


def crop_nearest(*arguments: Any) -> None:
    """As `crop_bilinear`, from the nearest pixels."""
    _crop(_nearest, *arguments)


def _crop(
    interpolate: Callable[..., Any],
    image: Any,
    box_index: Any,
    rows: Any,
    columns: Any,
    *outside_and_crops: Any,
) -> None:
    outside, crops = outside_and_crops
    crops[...] = _cropped(interpolate, image, box_index, rows, columns, outside, np)


def _cropped(
    interpolate: Callable[..., Any],
    image: Any,
    box_index: Any,
    row_places: Any,
    column_places: Any,
    *outside_and_xp: Any,
) -> Any:
    outside, xp = outside_and_xp
    rows, columns = samples(row_places, xp), samples(column_places, xp)
    crops = interpolate(image, box_index[:, None, None], rows, columns)
    is_inside = rows.is_inside[:, :, None] & columns.is_inside[:, None, :]
    return xp.where(is_inside[..., None], crops, outside)


def some_boxes(count: int, of_one: int) -> Iterable[slice]:
    """Parts of so many boxes, each with `of_one` elements, with looks at the clock between them."""
    step = max(_AT_ONCE // max(of_one, 1), 1)
    starts = in_time(range(0, count, step), SLOW, "cropping images")
    return (slice(start, start + step) for start in starts)


_AT_ONCE = 1 << 17
"""About so many elements are computed at a time: the arrays stay in the processor's cache."""


def register_crop_and_resize(
    bilinear: Crop,
    types: Sequence[DataType] = REAL_NUMBERS,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernel of CropAndResize with a function that crops."""

    def crop_and_resize(
        *, method: str, extrapolation_value: float, xp: Any
    ) -> Callable[[Any, Any, Any, Any], Any]:
        is_bilinear = method == "bilinear"
        crop, interpolate = (bilinear, _bilinear) if is_bilinear else (crop_nearest, _nearest)
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
            rows = sampled_places(boxes[:, 0], boxes[:, 2], height, size[0], xp)
            columns = sampled_places(boxes[:, 1], boxes[:, 3], width, size[1], xp)
            if xp is not np:
                return _cropped(interpolate, image, box_ind, rows, columns, outside, xp)
            crops = np.empty(shape, np.float32)
            for some in some_boxes(count, size[0] * size[1] * depth):
                crop(image, box_ind[some], rows[some], columns[some], outside, crops[some])
            return crops

        return kernel

    register_kernel(
        CROP_AND_RESIZE,
        types={"T": types},
        host_memory=["crop_size"],
        factory=True,
        registry=registry,
    )(crop_and_resize)


register_crop_and_resize(crop_bilinear)


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
