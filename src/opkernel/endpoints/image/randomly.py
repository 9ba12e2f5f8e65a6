"""Images changed at random.

Source: TensorFlow python/ops/image_ops_impl.py, random_crop_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.global_seed import seeds_of
from opkernel.endpoints.image._images import on_batch
from opkernel.endpoints.image.color import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_jpeg_quality,
    adjust_saturation,
)
from opkernel.endpoints.random.distributions import uniform
from opkernel.endpoints.random.stateless import stateless_uniform
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    number_like,
    shape_of,
)
from opkernel.types import DataType


def _check(is_right: bool, rule: str) -> None:
    if not is_right:
        raise ValueError(rule)


def _around(max_delta: Any, limit: float | None, draw: Callable[..., Any]) -> Any:
    """A number from -max_delta to max_delta."""
    is_right = max_delta >= 0 and (limit is None or max_delta <= limit)
    _check(is_right, f"max_delta is from 0 to {limit or 'any number'}, and not {max_delta}")
    return draw(-max_delta, max_delta)


def _within(lower: Any, upper: Any, draw: Callable[..., Any]) -> Any:
    _check(0 <= lower < upper, f"0 <= lower < upper, and not {lower} and {upper}")
    return draw(lower, upper)


def _of_global_seed(seed: int | None) -> Callable[..., Any]:
    return lambda low, high: uniform([], low, high, seed=seed)


def _of_seed(seed: Any) -> Callable[..., Any]:
    return lambda low, high: stateless_uniform([], seed, low, high)


@composed
def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Any:
    """adjust_brightness by a number from `-max_delta` to `max_delta`."""
    return adjust_brightness(image, _around(max_delta, None, _of_global_seed(seed)))


@composed
def stateless_random_brightness(image: TensorLike, max_delta: float, seed: TensorLike) -> Any:
    """random_brightness by a seed of two integers."""
    return adjust_brightness(image, _around(max_delta, None, _of_seed(seed)))


@composed
def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Any:
    """adjust_contrast by a factor from `lower` to `upper`."""
    return adjust_contrast(image, _within(lower, upper, _of_global_seed(seed)))


@composed
def stateless_random_contrast(
    image: TensorLike, lower: float, upper: float, seed: TensorLike
) -> Any:
    """random_contrast by a seed of two integers."""
    return adjust_contrast(image, _within(lower, upper, _of_seed(seed)))


@composed
def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Any:
    """adjust_hue by a number from `-max_delta` to `max_delta`, which is 0.5 at most."""
    return adjust_hue(image, _around(max_delta, 0.5, _of_global_seed(seed)))


@composed
def stateless_random_hue(image: TensorLike, max_delta: float, seed: TensorLike) -> Any:
    """random_hue by a seed of two integers."""
    return adjust_hue(image, _around(max_delta, 0.5, _of_seed(seed)))


@composed
def random_saturation(
    image: TensorLike, lower: float, upper: float, seed: int | None = None
) -> Any:
    """adjust_saturation by a factor from `lower` to `upper`."""
    return adjust_saturation(image, _within(lower, upper, _of_global_seed(seed)))


@composed
def stateless_random_saturation(
    image: TensorLike, lower: float, upper: float, seed: TensorLike | None = None
) -> Any:
    """random_saturation by a seed of two integers."""
    return adjust_saturation(image, _within(lower, upper, _of_seed(seed)))


def _check_qualities(low: int, high: int) -> None:
    _check(0 <= low < high <= 100, f"Qualities are from 0 to 100, rising, and not {low} and {high}")


@composed
def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Any:
    """adjust_jpeg_quality by a quality from one up to, and without, another."""
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = uniform([], min_jpeg_quality, max_jpeg_quality, DataType.DT_INT32, seed)
    return adjust_jpeg_quality(image, quality)


@composed
def stateless_random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: TensorLike
) -> Any:
    """random_jpeg_quality by a seed of two integers."""
    _check_qualities(min_jpeg_quality, max_jpeg_quality)
    quality = stateless_uniform(
        [], seed, min_jpeg_quality, max_jpeg_quality, dtype=DataType.DT_INT32
    )
    return adjust_jpeg_quality(image, quality)


def _flipped(image: Any, axis: int, draw: Callable[..., Any]) -> Any:
    """Images of which each is turned along an axis, or not."""
    x = convert(image)

    def flipped(images: Any) -> Any:
        turned = raw_ops.ReverseV2(tensor=images, axis=np.array([axis], np.int32))
        if known_rank(x, "A random flip") == 3:
            chosen = raw_ops.Less(x=draw([]), y=np.float32(0.5))
        else:
            numbers = raw_ops.Round(x=draw(shape_of(images)[:1]))
            chosen = raw_ops.Greater(x=numbers, y=np.float32(0.5))
            chosen = raw_ops.Reshape(tensor=chosen, shape=np.array([-1, 1, 1, 1], np.int32))
        return raw_ops.SelectV2(condition=chosen, t=turned, e=images)

    return on_batch(x, flipped, "A random flip")


@composed
def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Any:
    """Each image, or its mirror image, with the same probability."""
    return _flipped(image, 2, lambda shape: uniform(shape, seed=seed))


@composed
def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Any:
    """Each image, upside down or not, with the same probability."""
    return _flipped(image, 1, lambda shape: uniform(shape, seed=seed))


@composed
def stateless_random_flip_left_right(image: TensorLike, seed: TensorLike) -> Any:
    """random_flip_left_right by a seed of two integers."""
    return _flipped(image, 2, lambda shape: stateless_uniform(shape, seed))


@composed
def stateless_random_flip_up_down(image: TensorLike, seed: TensorLike) -> Any:
    """random_flip_up_down by a seed of two integers."""
    return _flipped(image, 1, lambda shape: stateless_uniform(shape, seed))


def _cropped(value: Any, size: Any, draw: Callable[..., Any]) -> Any:
    """A part of a tensor, of which `draw` gives the beginning for its rank, type and limits."""
    x, wanted = convert(value), convert(size)
    dtype = dtype_of(wanted)
    shape = cast_to(shape_of(x), dtype)
    are_known = isinstance(shape, np.ndarray) and isinstance(wanted, np.ndarray)
    if are_known and shape.shape == wanted.shape and (shape < wanted).any():
        raise ValueError(f"A part of {wanted.tolist()} does not fit in {shape.tolist()}")
    limit = raw_ops.AddV2(x=raw_ops.Sub(x=shape, y=wanted), y=number_like(wanted, 1))
    numbers = draw(raw_ops.Shape(input=shape), dtype)
    return raw_ops.Slice(input=x, begin=raw_ops.FloorMod(x=numbers, y=limit), size=wanted)


@composed
def random_crop(
    value: TensorLike, size: TensorLike, seed: int | None = None, name: str | None = None
) -> Any:
    """A part of a tensor, of the given size, from anywhere.

    Raises:
        ValueError: the part is larger than the tensor.
    """
    return _cropped(value, size, lambda shape, dtype: uniform(shape, 0, dtype.max, dtype, seed))


@composed
def stateless_random_crop(
    value: TensorLike, size: TensorLike, seed: TensorLike, name: str | None = None
) -> Any:
    """random_crop by a seed of two integers."""
    return _cropped(
        value, size, lambda shape, dtype: stateless_uniform(shape, seed, 0, dtype.max, dtype)
    )


def _box_attrs(aspect: Any, area: Any, attempts: int | None, whole: bool | None) -> dict[str, Any]:
    given = {
        "aspect_ratio_range": aspect,
        "area_range": area,
        "max_attempts": attempts,
        "use_image_if_no_bounding_boxes": whole,
    }
    return {key: value for key, value in given.items() if value is not None}


@composed
def sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: int | None = 0,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """A part of an image that has enough of one of its objects.

    Args:
        image_size: height, width and channels.
        bounding_boxes: the boxes of objects, [batch, N, 4], from 0 to 1.
        seed: a seed beside the global one; 0 for another part in each call.
        min_object_covered: the least part of a box.
        aspect_ratio_range: the limits of width divided by height.
        area_range: the limits of the part's area, as a part of the image's.
        max_attempts: how often to try before the whole image is taken.
        use_image_if_no_bounding_boxes: take the whole image as a box where there is none.
        name: a name for the scope of nodes in a graph.

    Returns:
        The begin and the size of the part for a slice, and its box.
    """
    seeds = seeds_of(seed, bounding_boxes) if seed else {"seed": 0, "seed2": 0}
    attrs = _box_attrs(aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes)
    return raw_ops.SampleDistortedBoundingBoxV2(
        image_size=image_size,
        bounding_boxes=bounding_boxes,
        min_object_covered=min_object_covered,
        **attrs,
        **seeds,
    )


@composed
def stateless_sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: TensorLike,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """sample_distorted_bounding_box by a seed of two integers."""
    attrs = _box_attrs(aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes)
    return raw_ops.StatelessSampleDistortedBoundingBox(
        image_size=image_size,
        bounding_boxes=bounding_boxes,
        min_object_covered=min_object_covered,
        seed=seed,
        **attrs,
    )
