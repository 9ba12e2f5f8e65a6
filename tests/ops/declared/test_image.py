"""Files, boxes and parts of images. Expected values are TensorFlow's."""

import re

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
INT32 = DataType.DT_INT32
OF_FLOATS = {"T": FLOAT}


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("DecodePng", {"channels": 3}, "[]", None, "[?,?,3]"),
        ("DecodePng", {}, "[]", None, "[?,?,?]"),
        ("DecodeImage", {}, "[]", None, "?"),
        ("DecodeImage", {"expand_animations": False, "channels": 1}, "[]", None, "[?,?,1]"),
        ("DecodeGif", {}, "[]", None, "[?,?,?,3]"),
        ("DecodeWebP", {"channels": 3}, "[]", None, "[?,?,?,3]"),
        ("DecodeAndCropJpeg", {}, "[] [4]", {1: ints(1, 2, 5, 6)}, "[5,6,?]"),
        ("EncodeJpeg", {}, "[8,8,3]", None, "[]"),
        ("EncodePng", {}, "[5,?,8,8,3]", None, "[d0_0,d0_1]"),
        ("ExtractJpegShape", {}, "[]", None, "[3]"),
    ],
)
def test_files(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("DecodePng", {"channels": -1}, "[]", "channels must be non-negative, got -1"),
        ("DecodePng", {}, "[2]", "Shape must be rank 0 but is rank 1"),
        ("DecodeAndCropJpeg", {}, "[] [3]", "Dimension must be 4 but is 3"),
        ("EncodeJpeg", {}, "[8,8]", "Shape must be rank 3 but is rank 2"),
    ],
)
def test_files_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("DrawBoundingBoxes", {}, "[2,8,8,3] [2,5,4]", "in0"),
        ("SampleDistortedBoundingBoxV2", {"T": INT32}, "[3] [1,5,4] []", "[3];[3];[1,1,4]"),
        (
            "GenerateBoundingBoxProposals",
            {"post_nms_topn": 7},
            "[2,8,8,3] [2,8,8,12] [2,5] [8,8,12] [] [] []",
            "[d0_0,7,4];[d0_0,7]",
        ),
    ],
)
def test_boxes(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "DrawBoundingBoxes",
            {},
            "[2,8,8,2] [2,5,4]",
            "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)",
        ),
        ("DrawBoundingBoxes", {}, "[2,8,8,3] [2,5,3]", "Dimension must be 4 but is 3"),
        ("DrawBoundingBoxesV2", {}, "[8,8] ? ?", "Shape must be at least rank 3 but is rank 2"),
        (
            "StatelessSampleDistortedBoundingBox",
            {"T": INT32, "Tseed": INT32},
            "[3] [1,5,4] [] [3]",
            "Dimension must be 2 but is 3",
        ),
        (
            "GenerateBoundingBoxProposals",
            {},
            "[2,8,8,3] [2,8,8,12] [2,4] [8,8,12] [] [] []",
            "Dimension must be 5 but is 4",
        ),
    ],
)
def test_boxes_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "constants", "expected"),
    [
        ("RandomCrop", OF_FLOATS, "[8,8,3] [2]", {1: np.array([4, 5])}, "[4,5,d0_2]"),
        ("ExtractGlimpse", {}, "[?,8,8,3] [2] [4,2]", {1: ints(5, 6)}, "[d2_0,5,6,d0_3]"),
        (
            "ImageProjectiveTransformV3",
            {"dtype": FLOAT, "interpolation": "NEAREST"},
            "[2,8,8,3] [1,8] [2] []",
            {2: ints(4, 5)},
            "[d0_0,4,5,d0_3]",
        ),
        (
            "ExtractVolumePatches",
            {"T": FLOAT, "ksizes": [1, 3, 3, 3, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"},
            "[2,8,7,6,3]",
            None,
            "[d0_0,4,4,3,81]",
        ),
        (
            "ExtractVolumePatches",
            {"T": FLOAT, "ksizes": [1, 3, 3, 3, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"},
            "[2,8,?,6,3]",
            None,
            "[d0_0,?,?,81]",
        ),
        ("NearestNeighbors", {}, "[5,2] [3,2] []", None, "?;?"),
    ],
)
def test_parts(infer_op, op, attrs, inputs, constants, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs, constants=constants) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        (
            "RandomCrop",
            OF_FLOATS,
            "[8,8,3] [3]",
            "Dimension 0 in both shapes must be equal, but are 3 and 2",
        ),
        (
            "ExtractGlimpse",
            {"noise": "zero"},
            "[4,8,8,3] [2] [4,2]",
            "The uniform_noise should not be True when noise is not uniform",
        ),
        (
            "ExtractVolumePatches",
            {
                "T": FLOAT,
                "ksizes": [1, 3, 3, 3, 1, 1],
                "strides": [1, 2, 2, 2, 1],
                "padding": "VALID",
            },
            "[2,8,?,6,3]",
            "ExtractVolumePatches requires the ksizes attribute to contain 5 values, but got: 6",
        ),
    ],
)
def test_parts_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
