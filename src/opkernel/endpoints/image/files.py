"""Image files, and boxes of objects.

Source: TensorFlow python/ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
)
from opkernel.types import DataType


@composed
def decode_image(
    contents: TensorLike,
    channels: int | None = None,
    dtype: DTypeLike = DataType.DT_UINT8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Any:
    """The image of a BMP, GIF, JPEG or PNG file.

    Args:
        contents: the bytes of the file, a scalar string.
        channels: how many channels to give; None or 0 for those of the file.
        dtype: the type: uint8, uint16 or float32.
        name: a name for the scope of nodes in a graph.
        expand_animations: give all images of a GIF file, of rank 4; otherwise the first one.

    Raises:
        InvalidArgumentError: the bytes are no such file.
    """
    return raw_ops.DecodeImage(
        contents=contents,
        channels=channels or 0,
        dtype=dtype,
        expand_animations=expand_animations,
    )


@composed
def is_jpeg(contents: TensorLike, name: str | None = None) -> Any:
    """Whether bytes begin as a JPEG file does."""
    begin = raw_ops.Substr(input=contents, pos=0, len=3)
    return raw_ops.Equal(x=begin, y=np.array(b"\xff\xd8\xff", object))


@composed
def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    soft_nms_sigma: TensorLike = 0.0,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The boxes with the highest scores, without those that overlap one of them.

    Args:
        boxes: [N, 4]: two opposite corners, rows before columns.
        scores: the score of each box.
        max_output_size: how many boxes to give at most.
        iou_threshold: the part of the common area that makes boxes overlap.
        score_threshold: the least score.
        soft_nms_sigma: lower the scores of boxes that overlap, instead of leaving them out, if not 0.
        name: a name for the scope of nodes in a graph.

    Returns:
        The indices of boxes, and their scores.
    """
    x = convert(boxes)
    found = raw_ops.NonMaxSuppressionV5(
        boxes=x,
        scores=scores,
        max_output_size=max_output_size,
        iou_threshold=like(iou_threshold, dtype_of(x)),
        score_threshold=like(score_threshold, dtype_of(x)),
        soft_nms_sigma=like(soft_nms_sigma, dtype_of(x)),
        pad_to_max_output_size=False,
    )
    return found[0], found[1]


@composed
def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: TensorLike,
    iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = float("-inf"),
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Any, Any]:
    """The indices of the boxes with the highest scores, and how many they are.

    Args:
        boxes: [N, 4]: two opposite corners, rows before columns.
        scores: the score of each box.
        max_output_size: how many boxes to give at most.
        iou_threshold: the part of the common area that makes boxes overlap.
        score_threshold: the least score.
        pad_to_max_output_size: add zeros up to `max_output_size`.
        name: a name for the scope of nodes in a graph.
        sorted_input: ignored: a hint.
        canonicalized_coordinates: ignored: a hint.
        tile_size: ignored: a hint.

    Raises:
        ValueError: the boxes come in batches.
    """
    x = convert(boxes)
    if known_rank(x, "non_max_suppression_padded") != 2:
        raise ValueError("non_max_suppression_padded takes boxes of the shape [N, 4], no batches")
    found = raw_ops.NonMaxSuppressionV4(
        boxes=x,
        scores=scores,
        max_output_size=max_output_size,
        iou_threshold=like(iou_threshold, DataType.DT_FLOAT),
        score_threshold=like(score_threshold, DataType.DT_FLOAT),
        pad_to_max_output_size=pad_to_max_output_size,
    )
    return found[0], found[1]
