"""Gradients of resizing, and the selection of boxes, whose number is fixed in compiled code.

Source: TensorFlow compiler/tf2xla/kernels/image_resize_ops.cc, image_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation
from opkernel.ops.image.box_selection import box_corners, box_overlap
from opkernel.ops.image.crop_and_resize import check_one_for_each_box
from opkernel.ops.image.resize import check_alignment, cubic, linear, nearest
from opkernel.ops.image.resize_grad import check_gradient, check_nearest_gradient
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.types import Array, DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel


def _sums(values: Any, places: Array, size: int, axis: int) -> Any:
    """The sums of the slices that go to each of `size` places."""
    shape = (*values.shape[:axis], size, *values.shape[axis + 1 :])
    zeros = jnp().zeros(shape, values.dtype)
    return zeros.at[(slice(None),) * axis + (places,)].add(values)


def _along(weights: Array, axis: int) -> Array:
    """Weights along one of the dimensions [batch, height, width, channels]."""
    return weights.reshape(-1, *(1,) * (3 - axis))


@register_xla_kernel("ResizeBilinearGrad", factory=True)
def resize_bilinear_grad(
    *, align_corners: bool, half_pixel_centers: bool, T: DataType
) -> Callable[[Any, Any], Any]:
    """Shares are computed in float, as on the CPU; those of half and bfloat16 add up in float, too."""
    check_alignment(align_corners, half_pixel_centers)
    total = np.float32 if T in NARROW_FLOATS else T.numpy_dtype

    def neighbours(size: int, output: int, axis: int) -> list[tuple[Any, Any]]:
        at = linear(size, output, align_corners, half_pixel_centers)
        upper = _along(at.fraction, axis)
        return [(at.lower, 1 - upper), (at.upper, upper)]

    def kernel(grads: Any, original_image: Any) -> Any:
        check_gradient(grads, original_image, T)
        height, width = original_image.shape[1:3]
        parts = []
        for rows, row_weights in neighbours(height, grads.shape[1], 1):
            for columns, column_weights in neighbours(width, grads.shape[2], 2):
                shares = (grads * row_weights * column_weights).astype(total)
                parts.append(_sums(_sums(shares, rows, height, 1), columns, width, 2))
        return sum(parts[1:], start=parts[0])

    return kernel


@register_xla_kernel("ResizeBicubicGrad", factory=True)
def resize_bicubic_grad(
    *, align_corners: bool, half_pixel_centers: bool, T: DataType
) -> Callable[[Any, Any], Any]:
    check_alignment(align_corners, half_pixel_centers)

    def kernel(grads: Any, original_image: Any) -> Any:
        check_gradient(grads, original_image, T)
        result = grads.astype(T.numpy_dtype)
        for axis in (1, 2):
            size = original_image.shape[axis]
            at = cubic(size, grads.shape[axis], align_corners, half_pixel_centers)
            first, *others = (
                _sums(result * _along(weights, axis), indices, size, axis)
                for indices, weights in zip(at.indices, at.weights, strict=True)
            )
            result = sum(others, start=first)
        return result

    return kernel


@register_xla_kernel("ResizeNearestNeighborGrad", compile_time_constants=["size"], factory=True)
def resize_nearest_neighbor_grad(
    *, align_corners: bool, half_pixel_centers: bool, T: DataType
) -> Callable[[Any, Any], Any]:
    """Integers wrap around; half and bfloat16 are added up in float."""

    def kernel(grads: Any, size: Any) -> Any:
        new_size = check_nearest_gradient(grads, size, T)
        result = grads.astype(np.float32) if T in NARROW_FLOATS else grads
        for axis, new in enumerate(new_size, 1):
            places = nearest(new, grads.shape[axis], align_corners, half_pixel_centers)
            result = _sums(result, places, new, axis)
        return result

    return kernel


@register_xla_kernel("NonMaxSuppressionV3", compile_time_constants=["max_output_size"])
def nms_v3(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any
) -> Any:
    raise UnimplementedError(
        "NonMaxSuppressionV3 selects as many boxes as the values say, and XLA needs a fixed number; "
        "NonMaxSuppressionV4 with pad_to_max_output_size has one"
    )


@register_xla_kernel(
    "NonMaxSuppressionV4", compile_time_constants=["max_output_size"], factory=True
)
def nms_v4(*, pad_to_max_output_size: bool) -> Callable[..., Any]:
    """Thresholds that make no sense are not refused: they are values of the program."""
    if not pad_to_max_output_size:
        raise UnimplementedError(
            "NonMaxSuppressionV4 is compiled with pad_to_max_output_size only: XLA needs a fixed number "
            "of boxes"
        )

    def kernel(
        boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any
    ) -> Any:
        check_one_for_each_box("scores", scores, boxes)
        for name, limit in (
            ("max_output_size", max_output_size),
            ("iou_threshold", iou_threshold),
            ("score_threshold", score_threshold),
        ):
            if limit.ndim:
                raise InvalidArgumentError(f"{name} must be 0-D, got shape {list(limit.shape)}")
        if max_output_size < 0:
            raise InvalidArgumentError("output size must be non-negative")
        (length,) = check_allocation((int(max_output_size),), DataType.DT_INT32)
        return _selected(boxes, scores, length, iou_threshold, score_threshold)

    return kernel


def _selected(
    boxes: Any, scores: Any, length: int, iou_threshold: Any, score_threshold: Any
) -> tuple[Any, Any]:
    """The indices of boxes, best score first, with zeros after them; and how many they are."""
    chosen = jnp().zeros(length, np.int32)
    if not length or not len(scores):
        return chosen, np.zeros((), np.int32)
    corners = box_corners(boxes.astype(np.float32), xp=jnp())

    def more(state: Any) -> Any:
        count, left, _ = state
        return (count < length) & left.any()

    def turn(state: Any) -> Any:
        count, left, chosen = state
        best = jnp().where(left, scores, -np.inf).argmax()
        best = jnp().where(left[best], best, left.argmax())
        overlap = box_overlap(corners, corners[:, best], xp=jnp()).astype(scores.dtype)
        left = (left & (overlap <= iou_threshold)).at[best].set(False)
        return count + 1, left, chosen.at[count].set(best.astype(np.int32))

    start = (jnp().zeros((), np.int32), scores > score_threshold, chosen)
    count, _, chosen = lax().while_loop(more, turn, start)
    return chosen, count
