"""AudioMicrofrontend. Expected values and checksums are TensorFlow's."""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np
import pytest

from opkernel import Session, constant, placeholder, raw_ops
from opkernel.errors import InternalError, InvalidArgumentError, OpError, ResourceExhaustedError
from opkernel.graph import Graph
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT


def sound() -> Any:
    """Silence, loud sound, faint sound and loud sound."""
    time = np.arange(4000)
    samples = ((time * time * 31 + time * 977) % 60013 - 30006).astype(np.int16)
    samples[:300] = 0
    samples[1600:2400] //= 500
    return samples


def features(audio: Any, **attrs: Any) -> Any:
    return np.asarray(raw_ops.AudioMicrofrontend(audio=audio, **attrs))


def test_each_window_has_the_strengths_of_its_channels() -> None:
    found = features(sound()[:1200], num_channels=6, window_step=20)
    assert found.dtype == np.uint16
    assert found.tolist() == [
        [761, 712, 721, 710, 754, 841],
        [828, 854, 865, 865, 877, 909],
        [866, 884, 909, 912, 903, 882],
    ]
    lowest = features(np.full(500, -32768, np.int16), window_size=10, window_step=5, num_channels=4)
    assert lowest[[0, 4]].tolist() == [[687, 472, 399, 401], [680, 456, 393, 385]]


def test_frames_stand_beside_those_around_them() -> None:
    attrs = {"num_channels": 3, "window_step": 20, "left_context": 1, "right_context": 1}
    attrs |= {"zero_padding": True, "frame_stride": 2, "enable_log": False, "out_scale": 64}
    found = features(sound()[:1200], **attrs, out_type=FLOAT)
    most = 65535 / 64
    assert found.dtype == np.float32
    assert found.tolist() == [
        [0, 0, 0, 265.765625, 180.96875, 828.5, most, most, most],
        [most, most, most, most, most, most, 0, 0, 0],
    ]


@pytest.mark.parametrize(
    ("attrs", "shape", "checksum"),
    [
        ({}, (23, 32), 2273790238),
        ({"enable_pcan": True}, (23, 32), 84339565),
        (
            {"enable_pcan": True, "enable_log": False, "pcan_strength": 0.5, "gain_bits": 18},
            (23, 32),
            2531677846,
        ),
        ({"enable_pcan": True, "gain_bits": 31}, (23, 32), 2795152541),
        (
            {"sample_rate": 8000, "upper_band_limit": 3800.0, "lower_band_limit": 0.0},
            (48, 32),
            1538854022,
        ),
        ({"window_size": 4, "window_step": 1, "num_channels": 5}, (247, 5), 2687933717),
        ({"num_channels": 80, "scale_shift": 10}, (23, 80), 595683239),
        (
            {
                "smoothing_bits": 3,
                "even_smoothing": 0.5,
                "odd_smoothing": 1.5,
                "min_signal_remaining": 0.3,
            },
            (23, 32),
            3982256597,
        ),
        ({"left_context": 2, "right_context": -1, "frame_stride": 3}, (8, 64), 3135064549),
        ({"left_context": 9, "right_context": 1}, (23, 352), 2612876896),
        ({"out_scale": -3}, (23, 32), 727768930),
        ({"out_scale": 7, "out_type": FLOAT}, (23, 32), 1834365238),
        ({"upper_band_limit": 100.0}, (23, 32), 3803857854),
        (
            {
                "sample_rate": 1000,
                "window_size": 7,
                "window_step": 2,
                "upper_band_limit": 400.0,
                "num_channels": 3,
            },
            (1997, 3),
            3007348417,
        ),
        ({"sample_rate": 44100, "upper_band_limit": 16000.0}, (7, 32), 4162844634),
        ({"scale_shift": 31}, (23, 32), 2890589944),
    ],
)
def test_features_have_tensorflow_s_bits(attrs: dict[str, Any], shape: Any, checksum: int) -> None:
    found = features(sound(), **attrs)
    assert found.shape == shape
    assert zlib.crc32(found.tobytes()) == checksum


@pytest.mark.parametrize(
    ("count", "attrs", "shape"),
    [
        (0, {}, (0, 32)),
        (399, {"left_context": 1}, (0, 64)),
        (400, {"num_channels": 0}, (1, 0)),
        (560, {"left_context": -1}, (2, 0)),
        (399, {"window_step": 26, "frame_stride": 0, "out_scale": 0}, (0, 32)),
    ],
)
def test_nothing_comes_of_nothing(count: int, attrs: dict[str, Any], shape: Any) -> None:
    assert features(np.zeros(count, np.int16), **attrs).shape == shape


def test_a_graph_may_learn_the_length_late() -> None:
    with Graph().as_default() as graph:
        audio = placeholder(DataType.DT_INT16, [None])
        late = raw_ops.AudioMicrofrontend(audio=audio)
        known = raw_ops.AudioMicrofrontend(audio=constant(sound()))
    session = Session(graph)
    found, expected = session.run([late, known], {audio: sound()})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("attrs", "error", "fact"),
    [
        ({"sample_rate": -1}, InvalidArgumentError, "25 ms at -1 Hz"),
        ({"sample_rate": 2**31 - 1}, InvalidArgumentError, "is no length"),
        ({"window_step": 0}, InvalidArgumentError, "window_step must be"),
        ({"window_step": 26}, InvalidArgumentError, "window_step must be"),
        ({"frame_stride": 0}, InvalidArgumentError, "frame_stride must be > 0, got 0"),
        ({"out_scale": 0}, InvalidArgumentError, "out_scale must not be 0"),
        ({"num_channels": -1}, InvalidArgumentError, "num_channels must be in"),
        ({"left_context": -2}, InvalidArgumentError, "must not be negative, got -1"),
        ({"smoothing_bits": 32}, InvalidArgumentError, "smoothing_bits must be in [0, 32)"),
        ({"scale_shift": -1}, InvalidArgumentError, "scale_shift must be in [0, 32)"),
        ({"enable_pcan": True, "gain_bits": 3}, InvalidArgumentError, "must be in [0, 32)"),
        ({"lower_band_limit": float("nan")}, InvalidArgumentError, "lower_band_limit must be"),
        ({"lower_band_limit": 9000.0}, InternalError, "failed to populate frontend state"),
        ({"upper_band_limit": 9000.0}, InternalError, "failed to populate frontend state"),
        ({"upper_band_limit": float("inf")}, InternalError, "failed to populate frontend state"),
        (
            {"sample_rate": 1000, "window_size": 1, "window_step": 1},
            InternalError,
            "failed to populate frontend state",
        ),
        ({"window_size": 0}, InternalError, "failed to populate frontend state"),
        ({"left_context": 2**31 - 1}, ResourceExhaustedError, "OOM"),
    ],
)
def test_attrs_that_make_no_features(
    attrs: dict[str, Any], error: type[OpError], fact: str
) -> None:
    with pytest.raises(error, match=re.escape(fact)):
        features(sound(), **attrs)


def test_a_sound_is_a_vector() -> None:
    with pytest.raises(InvalidArgumentError, match="audio is not a vector"):
        features(sound().reshape(2, -1))
