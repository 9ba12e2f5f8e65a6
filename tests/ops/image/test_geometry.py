"""Boxes drawn, glimpses, projective transforms and patches of volumes; expected values are literals or formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, OpError, OutOfRangeError, UnimplementedError

RAMP = np.arange(20, dtype=np.float32).reshape(1, 4, 5, 1)


def test_a_box_has_four_sides_in_turning_colors() -> None:
    images = np.zeros((1, 5, 5, 3), np.float32)
    boxes = np.array([[[0, 0, 0.5, 0.5], [0.75, 0.75, 2, 2]]], np.float32)
    found = raw_ops.DrawBoundingBoxes(images=images, boxes=boxes)[0]
    yellow, blue = [1, 1, 0], [0, 0, 1]
    assert found[0, 0].tolist() == found[2, 1].tolist() == found[1, 2].tolist() == yellow
    assert found[1, 1].tolist() == [0, 0, 0]
    assert found[3, 4].tolist() == found[4, 3].tolist() == blue
    assert found[4, 4].tolist() == [0, 0, 0]


def test_boxes_take_given_colors() -> None:
    images = np.zeros((1, 3, 3, 1), np.float16)
    boxes = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [0.5, 0, 0.5, 1]]], np.float32)
    colors = np.array([[0.5], [9]], np.float32)
    found = raw_ops.DrawBoundingBoxesV2(images=images, boxes=boxes, colors=colors)
    assert found[0, :, :, 0].tolist() == [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
    white = raw_ops.DrawBoundingBoxes(images=images, boxes=boxes[:, :1])
    assert white[0, 0, 0, 0] == 1


def glimpse(size: list[int], offset: list[float], op: str = "ExtractGlimpse", **attrs: Any) -> Any:
    found = getattr(raw_ops, op)(
        input=RAMP,
        size=np.array(size, np.int32),
        offsets=np.array([offset], np.float32),
        **{"uniform_noise": False, "noise": "zero"} | attrs,
    )
    return found[0, :, :, 0].tolist()


def test_a_glimpse_from_the_middle_of_the_image() -> None:
    assert glimpse([2, 3], [0, 0]) == [[6, 7, 8], [11, 12, 13]]
    assert glimpse([2, 3], [1, 1]) == [[18, 19, 0], [0, 0, 0]]
    assert glimpse([2, 2], [0, 0], "ExtractGlimpseV2", normalized=False) == [[12, 13], [17, 18]]


def test_noise_fills_what_the_image_lacks() -> None:
    found = np.array(glimpse([6, 5], [0, 0], noise="uniform", uniform_noise=True))
    assert found[1:5].tolist() == RAMP[0, :, :, 0].tolist()
    assert ((found[[0, 5]] >= 0) & (found[[0, 5]] < 1)).all()


def moved(x: float, fill_mode: str, interpolation: str = "NEAREST") -> Any:
    found = raw_ops.ImageProjectiveTransformV3(
        images=np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4, 1),
        transforms=np.array([[1, 0, x, 0, 1, 0, 0, 0]], np.float32),
        output_shape=np.array([1, 8], np.int32),
        fill_value=np.float32(9),
        interpolation=interpolation,
        fill_mode=fill_mode,
    )
    return found.reshape(-1).tolist()


def test_an_image_moved_aside() -> None:
    assert moved(-2, "CONSTANT") == [9, 9, 1, 2, 3, 4, 9, 9]
    assert moved(-2, "NEAREST") == [1, 1, 1, 2, 3, 4, 4, 4]
    assert moved(-2, "REFLECT") == [2, 1, 1, 2, 3, 4, 4, 3]
    assert moved(-2, "WRAP") == [3, 4, 1, 2, 3, 4, 1, 2]
    assert moved(0.25, "NEAREST", "BILINEAR")[:3] == [1.25, 2.25, 3.25]


def test_patches_of_volumes() -> None:
    volume = np.arange(2 * 3 * 3, dtype=np.int16).reshape(1, 2, 3, 3, 1)
    ones = [1, 1, 1, 1, 1]
    found = raw_ops.ExtractVolumePatches(
        input=volume, ksizes=[1, 2, 2, 2, 1], strides=ones, padding="VALID"
    )
    assert found.shape == (1, 1, 2, 2, 8)
    assert found[0, 0, 0, 1].tolist() == [1, 2, 4, 5, 10, 11, 13, 14]


ONES = [1, 1, 1, 1, 1]
TRANSFORM: dict[str, Any] = {
    "images": RAMP,
    "transforms": np.zeros((1, 8), np.float32),
    "output_shape": np.array([2, 2], np.int32),
    "interpolation": "NEAREST",
}


@pytest.mark.parametrize(
    ("op", "call", "error", "message"),
    [
        (
            "DrawBoundingBoxes",
            {"images": RAMP, "boxes": RAMP[0, :1]},
            InvalidArgumentError,
            "third",
        ),
        ("DrawBoundingBoxes", {"images": RAMP, "boxes": RAMP}, InvalidArgumentError, "rank of"),
        (
            "ImageProjectiveTransformV2",
            TRANSFORM | {"transforms": np.zeros((1, 7), np.float32)},
            InvalidArgumentError,
            "1 x 8",
        ),
        (
            "ImageProjectiveTransformV2",
            TRANSFORM | {"interpolation": "CUBIC"},
            InvalidArgumentError,
            "CUBIC",
        ),
        (
            "ExtractVolumePatches",
            {"input": RAMP[None], "ksizes": [2, *ONES[1:]], "strides": ONES, "padding": "SAME"},
            UnimplementedError,
            "across space",
        ),
        (
            "ExtractVolumePatches",
            {"input": RAMP[None], "ksizes": [1, 0, 1, 1, 1], "strides": ONES, "padding": "SAME"},
            OutOfRangeError,
            "ksizes",
        ),
    ],
)
def test_errors(op: str, call: dict[str, Any], error: type[OpError], message: str) -> None:
    with pytest.raises(error, match=message):
        getattr(raw_ops, op)(**call)
