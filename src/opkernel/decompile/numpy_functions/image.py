"""Images and boxes as plain NumPy functions; channels are last."""

from typing import Any

import numpy as np

__all__ = ["FUNCTIONS"]


def places(size: int, wanted: int, align_corners: bool, half_pixel_centers: bool) -> Any:
    """Where the pixels of a resized axis lie on the given one."""
    if align_corners and wanted > 1:
        return np.arange(wanted, dtype=np.float32) * np.float32((size - 1) / (wanted - 1))
    scale = np.float32(size / wanted)
    if half_pixel_centers:
        return (np.arange(wanted, dtype=np.float32) + np.float32(0.5)) * scale - np.float32(0.5)
    return np.arange(wanted, dtype=np.float32) * scale


def resize_bilinear(
    images: Any, size: Any, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    images = images.astype(np.float32)
    for axis, wanted in zip((1, 2), size.tolist(), strict=True):
        length = images.shape[axis]
        at = places(length, wanted, align_corners, half_pixel_centers)
        low = np.maximum(np.floor(at), 0).astype(int)
        high = np.minimum(np.ceil(at), length - 1).astype(int)
        weight = (at - np.floor(at)).reshape(-1, *[1] * (3 - axis))
        first, second = np.take(images, low, axis), np.take(images, high, axis)
        images = first + (second - first) * weight
    return images


def resize_nearest_neighbor(
    images: Any, size: Any, *, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    for axis, wanted in zip((1, 2), size.tolist(), strict=True):
        length = images.shape[axis]
        at = places(length, wanted, align_corners, half_pixel_centers)
        nearest = np.floor(at + np.float32(0.5)) if align_corners or half_pixel_centers else at
        images = np.take(images, np.clip(nearest.astype(int), 0, length - 1), axis)
    return images


def overlap(box: Any, boxes: Any) -> Any:
    """The intersections of a box with others over their unions."""
    (low, high), (lows, highs) = (
        (np.minimum(b[..., :2], b[..., 2:]), np.maximum(b[..., :2], b[..., 2:]))
        for b in (box, boxes)
    )
    sides = np.maximum(np.minimum(high, highs) - np.maximum(low, lows), 0)
    shared = sides.prod(axis=-1)
    union = (high - low).prod() + (highs - lows).prod(axis=-1) - shared
    return np.where(union > 0, shared / union, 0)


def adjust_contrast(images: Any, factor: Any) -> Any:
    mean = images.mean(axis=(-3, -2), keepdims=True)
    return (images - mean) * factor + mean


def non_max_suppression(
    boxes: Any, scores: Any, limit: Any, iou_threshold: Any, score_threshold: Any = -np.inf
) -> Any:
    """The boxes of the highest scores that do not overlap one of higher score too much."""
    chosen: list[int] = []
    for i in np.argsort(-scores, kind="stable").tolist():
        if len(chosen) == limit or scores[i] <= score_threshold:
            break
        if not (overlap(boxes[i], boxes[chosen]) > iou_threshold).any():
            chosen.append(i)
    return np.array(chosen, np.int32)


def non_max_suppression_v1(
    boxes: Any, scores: Any, limit: Any, *, iou_threshold: float = 0.5
) -> Any:
    return non_max_suppression(boxes, scores, limit, iou_threshold)


FUNCTIONS = {
    "AdjustContrastv2": adjust_contrast,
    "NonMaxSuppression": non_max_suppression_v1,
    "NonMaxSuppressionV2": non_max_suppression,
    "NonMaxSuppressionV3": non_max_suppression,
    "ResizeBilinear": resize_bilinear,
    "ResizeNearestNeighbor": resize_nearest_neighbor,
}
