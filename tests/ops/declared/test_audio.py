"""Sound. Expected values are TensorFlow's."""

import re

import pytest

from opkernel.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "expected"),
    [
        ("DecodeWav", {}, "[]", "[?,?];[]"),
        ("DecodeWav", {"desired_channels": 2, "desired_samples": 99}, "[]", "[99,2];[]"),
        ("EncodeWav", {}, "[99,2] []", "[]"),
        ("AudioSpectrogram", {"window_size": 5, "stride": 2}, "[20,?]", "[d0_1,8,5]"),
        ("AudioSpectrogram", {"window_size": 16, "stride": 2}, "[10,1]", "[d0_1,0,9]"),
        ("Mfcc", {}, "[2,9,257] []", "[d0_0,d0_1,13]"),
        ("AudioMicrofrontend", {"num_channels": 4, "left_context": 2}, "[1000]", "[4,12]"),
        ("AudioMicrofrontend", {"num_channels": 4}, "[?]", "[0,4]"),
    ],
)
def test_sound(infer_op, op, attrs, inputs, expected):
    assert infer_op(op, *inputs.split(), attrs=attrs) == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "fact"),
    [
        ("DecodeWav", {"desired_samples": -2}, "[]", "samples must be non-negative, got -2"),
        ("EncodeWav", {}, "[99] []", "Shape must be rank 2 but is rank 1"),
        (
            "AudioSpectrogram",
            {"window_size": 1, "stride": 2},
            "[10,1]",
            "window size must be > 1, got 1",
        ),
        (
            "AudioSpectrogram",
            {"window_size": 2, "stride": 0},
            "[10,1]",
            "stride must be strictly positive, got 0",
        ),
    ],
)
def test_sound_refuses(infer_op, op, attrs, inputs, fact):
    with pytest.raises(InvalidArgumentError, match=re.escape(fact)):
        infer_op(op, *inputs.split(), attrs=attrs)
