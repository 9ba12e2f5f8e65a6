"""Convolutions, pools, images and boxes as plain NumPy functions; channels are last."""

from typing import Any

import numpy as np

__all__ = ["FUNCTIONS", "NEEDED_ATTRS"]


def padded(
    x: Any, window: Any, strides: Any, padding: str, value: Any = 0, explicit: Any = ()
) -> Any:
    """Images with the borders that SAME wants; `window` is the size that a filter covers."""
    if padding == "VALID":
        return x
    amounts = [(0, 0)]
    for size, covered, stride in zip(x.shape[1:-1], window, strides, strict=True):
        missing = max((-(-size // stride) - 1) * stride + covered - size, 0)
        amounts.append((missing // 2, missing - missing // 2))
    if padding == "EXPLICIT":
        amounts = list(zip(explicit[:-2:2], explicit[1:-2:2], strict=True))
    return np.pad(x, [*amounts, (0, 0)], constant_values=value)


def windows(x: Any, size: Any, strides: Any, dilations: Any) -> Any:
    """Views of the images under each element of a filter: [batch, y, x, channel, height, width]."""
    axes = tuple(range(1, x.ndim - 1))
    views = np.lib.stride_tricks.sliding_window_view(x, covered(size, dilations), axis=axes)
    steps, spread = ([slice(None, None, n) for n in one] for one in (strides, dilations))
    return views[(slice(None), *steps, slice(None), *spread)]


def covered(size: Any, dilations: Any) -> Any:
    """The size of the area that a filter covers."""
    return tuple((s - 1) * d + 1 for s, d in zip(size, dilations, strict=True))


def convolution(
    x: Any,
    filter: Any,
    *,
    strides: Any,
    padding: str,
    dilations: Any = (1, 1, 1, 1),
    explicit_paddings: Any = (),
) -> Any:
    size, channels = filter.shape[:-2], filter.shape[-2]
    groups = x.shape[-1] // channels
    if groups > 1:
        attrs = {"strides": strides, "padding": padding, "dilations": dilations}
        pairs = zip(np.split(x, groups, -1), np.split(filter, groups, -1), strict=True)
        parts = [convolution(*pair, explicit_paddings=explicit_paddings, **attrs) for pair in pairs]
        return np.concatenate(parts, -1)
    rank, step, spread = len(size), strides[1:-1], dilations[1:-1]
    x = padded(x, covered(size, spread), step, padding, 0, explicit_paddings)
    views = windows(x, size, step, spread)
    of_views = [*range(rank + 2, 2 * rank + 2), rank + 1]
    return np.tensordot(views, filter, (of_views, list(range(rank + 1))))


def convolution_3d(
    x: Any, filter: Any, *, strides: Any, padding: str, dilations: Any = (1, 1, 1, 1, 1)
) -> Any:
    return convolution(x, filter, strides=strides, padding=padding, dilations=dilations)


def depthwise_conv2d(
    x: Any,
    filter: Any,
    *,
    strides: Any,
    padding: str,
    dilations: Any = (1, 1, 1, 1),
    explicit_paddings: Any = (),
) -> Any:
    height, width, channels, multiplier = filter.shape
    size, step, spread = (height, width), strides[1:3], dilations[1:3]
    x = padded(x, covered(size, spread), step, padding, 0, explicit_paddings)
    views = windows(x, size, step, spread)
    result = np.zeros((*views.shape[:4], multiplier), x.dtype)
    for i in range(height):
        for j in range(width):
            result += views[..., i, j, np.newaxis] * filter[i, j]
    return result.reshape(*views.shape[:3], channels * multiplier)


def convolution_backprop_input(
    sizes: Any,
    filter: Any,
    gradient: Any,
    *,
    strides: Any,
    padding: str,
    dilations: Any = (1, 1, 1, 1),
) -> Any:
    batch, *lengths, channels = sizes.tolist()
    step, spread = strides[1:-1], dilations[1:-1]
    spans = [(n - 1) * s + 1 for n, s in zip(gradient.shape[1:-1], step, strict=True)]
    windows = covered(filter.shape[:-2], spread)
    padded = [
        max(span + window - 1, length)
        for span, window, length in zip(spans, windows, lengths, strict=True)
    ]
    result = np.zeros((batch, *padded, channels), gradient.dtype)
    for place in np.ndindex(*filter.shape[:-2]):
        starts = [p * d for p, d in zip(place, spread, strict=True)]
        reached = [slice(p, p + n, s) for p, n, s in zip(starts, spans, step, strict=True)]
        result[(slice(None), *reached)] += gradient @ filter[place].T
    missing = [0 if padding == "VALID" else p - n for p, n in zip(padded, lengths, strict=True)]
    kept = [slice(m // 2, m // 2 + n) for m, n in zip(missing, lengths, strict=True)]
    return result[(slice(None), *kept)]


def convolution_3d_backprop_input(
    sizes: Any,
    filter: Any,
    gradient: Any,
    *,
    strides: Any,
    padding: str,
    dilations: Any = (1, 1, 1, 1, 1),
) -> Any:
    return convolution_backprop_input(
        sizes, filter, gradient, strides=strides, padding=padding, dilations=dilations
    )


def conv2d_backprop_filter(
    x: Any, sizes: Any, gradient: Any, *, strides: Any, padding: str, dilations: Any = (1, 1, 1, 1)
) -> Any:
    size, step, spread = sizes.tolist()[:2], strides[1:3], dilations[1:3]
    views = windows(padded(x, covered(size, spread), step, padding), size, step, spread)
    return np.moveaxis(np.tensordot(views, gradient, ([0, 1, 2], [0, 1, 2])), 0, 2)


def max_pool(x: Any, *, ksize: Any, strides: Any, padding: str) -> Any:
    if ksize[-1] > 1:
        return x.reshape(*x.shape[:-1], -1, ksize[-1]).max(axis=-1)
    size, step = ksize[1:-1], strides[1:-1]
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    views = windows(padded(x, size, step, padding, lowest), size, step, [1] * len(size))
    return views.max(axis=tuple(range(x.ndim, views.ndim)))


def avg_pool(x: Any, *, ksize: Any, strides: Any, padding: str) -> Any:
    return pooled_sums(x, ksize, strides, padding) / pooled_sums(
        np.ones((1, *x.shape[1:-1], 1), x.dtype), ksize, strides, padding
    )


def pooled_sums(x: Any, ksize: Any, strides: Any, padding: str) -> Any:
    size, step = ksize[1:-1], strides[1:-1]
    views = windows(padded(x, size, step, padding), size, step, [1] * len(size))
    return views.sum(axis=tuple(range(x.ndim, views.ndim)))


def extract_image_patches(
    images: Any, *, ksizes: Any, strides: Any, rates: Any, padding: str
) -> Any:
    size, step, spread = ksizes[1:3], strides[1:3], rates[1:3]
    views = windows(padded(images, covered(size, spread), step, padding), size, step, spread)
    return views.transpose(0, 1, 2, 4, 5, 3).reshape(*views.shape[:3], -1)


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
    "AvgPool": avg_pool,
    "AvgPool3D": avg_pool,
    "Conv2D": convolution,
    "Conv2DBackpropFilter": conv2d_backprop_filter,
    "Conv2DBackpropInput": convolution_backprop_input,
    "Conv3D": convolution_3d,
    "Conv3DBackpropInputV2": convolution_3d_backprop_input,
    "DepthwiseConv2dNative": depthwise_conv2d,
    "ExtractImagePatches": extract_image_patches,
    "MaxPool": max_pool,
    "MaxPool3D": max_pool,
}

NEEDED_ATTRS: dict[str, dict[str, Any]] = {
    "AvgPool": {"data_format": "NHWC"},
    "AvgPool3D": {"data_format": "NDHWC"},
    "Conv2D": {"data_format": "NHWC"},
    "Conv2DBackpropFilter": {"data_format": "NHWC", "explicit_paddings": []},
    "Conv2DBackpropInput": {"data_format": "NHWC", "explicit_paddings": []},
    "Conv3D": {"data_format": "NDHWC"},
    "Conv3DBackpropInputV2": {"data_format": "NDHWC"},
    "DepthwiseConv2dNative": {"data_format": "NHWC"},
    "MaxPool": {"data_format": "NHWC", "explicit_paddings": []},
    "MaxPool3D": {"data_format": "NDHWC"},
}
