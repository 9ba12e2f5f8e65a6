"""WAV files, spectrograms and Mel coefficients; expected values are TensorFlow's or a formula's."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, OpError

SOUND = np.array([[0.0, 0.5], [1, -1], [0.25, 2]], np.float32)
FILE = (
    b"RIFF0\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00@\x1f\x00\x00\x00}\x00\x00\x04\x00\x10\x00"
    b"data\x0c\x00\x00\x00\x00\x00\x00@\xff\x7f\x00\x80\x00 \xff\x7f"
)


def wav(data: bytes = b"\1\0\2\0", **changed: Any) -> bytes:
    values: dict[str, Any] = {
        "kind": 1,
        "channels": 1,
        "rate": 8000,
        "size": 16,
        "bits": 16,
        "more": b"",
    } | changed
    per_sample = changed.get("per_sample", 2 * values["channels"])
    per_second = changed.get("per_second", per_sample * values["rate"])
    body = b"WAVEfmt " + struct.pack(
        "<IHHIIHH",
        values["size"],
        values["kind"],
        values["channels"],
        values["rate"],
        per_second,
        per_sample,
        values["bits"],
    )
    body += values["more"] + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def decoded(contents: bytes, **attrs: int) -> Any:
    audio, rate = raw_ops.DecodeWav(contents=contents, **attrs)
    assert rate == np.int32(8000)
    return audio


def test_a_file_has_tensorflow_s_bytes() -> None:
    assert raw_ops.EncodeWav(audio=SOUND, sample_rate=8000) == FILE
    odd = np.array([[np.nan], [np.inf], [-np.inf], [0.5 / 32768], [-0.5 / 32768]], np.float32)
    assert raw_ops.EncodeWav(audio=odd, sample_rate=8000)[-10:] == b"\0\0\xff\x7f\0\x80\1\0\xff\xff"


def test_samples_of_a_file_as_many_as_wanted() -> None:
    top = 32767 / 32768
    whole = np.array([[0, 0.5], [top, -1], [0.25, top]], np.float32)
    np.testing.assert_array_equal(decoded(FILE), whole)
    np.testing.assert_array_equal(
        decoded(FILE, desired_channels=1, desired_samples=2), whole[:2, :1]
    )
    more = decoded(FILE, desired_channels=3, desired_samples=5)
    np.testing.assert_array_equal(more[:3], whole[:, [0, 1, 1]])
    np.testing.assert_array_equal(more[3:], np.zeros((2, 3)))
    assert decoded(FILE, desired_channels=0).shape == (3, 0)
    assert decoded(wav(b"")).shape == (0, 1)


def test_chunks_that_are_no_samples_are_passed_over() -> None:
    expected = decoded(FILE)
    note = b"note\x02\x00\x00\x00xx"
    np.testing.assert_array_equal(decoded(FILE[:36] + note + FILE[36:]), expected)
    np.testing.assert_array_equal(decoded(FILE + note), expected)
    np.testing.assert_array_equal(decoded(wav(size=18, more=b"\0\0")), decoded(wav()))


def test_after_the_samples_as_in_tensorflow_nothing_has_to_be_whole() -> None:
    expected = decoded(FILE)
    np.testing.assert_array_equal(decoded(FILE + b"note\xff\xff\0\0xx"), expected)
    with pytest.raises(InvalidArgumentError, match="too large"):
        raw_ops.DecodeWav(contents=FILE + b"note\xff\xff\xff\xffxx")
    with pytest.raises(InvalidArgumentError, match="too short"):
        raw_ops.DecodeWav(contents=wav(b"\1\0\2"))  # the third byte would begin a chunk


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "Data too short"),
        (FILE[:-3], "Data too short"),
        (b"RIFX" + FILE[4:], "Expected RIFF but found RIFX"),
        (FILE[:36], "No data chunk"),
        (wav(kind=3), "Expected 1 .PCM., but got 3"),
        (wav(channels=0), "at least 1, but got 0"),
        (wav(bits=24), "Can only read 16-bit WAV files, but received 24"),
        (wav(per_second=5), "Expected 16000 but got 5"),
        (wav(per_sample=3, per_second=16000), "Expected 2 but got 3"),
        (wav(size=14), "Expected 16 or 18, but got 14"),
    ],
)
def test_files_that_are_none_are_refused(contents: bytes, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.DecodeWav(contents=contents)


@given(st.integers(0, len(FILE) - 1), st.integers(0, 255))
def test_a_damaged_byte_is_told_or_is_a_sound(at: int, byte: int) -> None:
    damaged = FILE[:at] + bytes([byte]) + FILE[at + 1 :]
    try:
        audio, _ = raw_ops.DecodeWav(contents=damaged)
    except OpError:
        return
    assert audio.ndim == 2


def test_a_size_that_asks_for_too_much_is_refused() -> None:
    with pytest.raises(OpError):
        raw_ops.DecodeWav(contents=FILE, desired_channels=2**31 - 1, desired_samples=2**31 - 1)


@pytest.mark.parametrize("squared", [True, False])
def test_a_spectrogram_is_the_transform_of_hann_windows(squared: bool) -> None:
    sound = np.random.default_rng(1).normal(size=(50, 2)).astype(np.float32)
    found = raw_ops.AudioSpectrogram(
        input=sound, window_size=12, stride=5, magnitude_squared=squared
    )
    assert found.shape == (2, 8, 9)
    hann = np.sin(np.pi * np.arange(12) / 12) ** 2
    for channel in range(2):
        for window in range(8):
            part = sound[window * 5 : window * 5 + 12, channel] * hann
            expected = np.abs(np.fft.fft(part, 16)[:9]) ** (2 if squared else 1)
            np.testing.assert_allclose(found[channel, window], expected, rtol=1e-5, atol=1e-6)


def test_a_sound_shorter_than_a_window_has_no_spectrum() -> None:
    assert raw_ops.AudioSpectrogram(input=SOUND, window_size=4, stride=1).shape == (2, 0, 3)
    with pytest.raises(InvalidArgumentError, match="window size 1 and stride 1"):
        raw_ops.AudioSpectrogram(input=SOUND, window_size=1, stride=1)


def test_coefficients_are_tensorflow_s() -> None:
    expected = [-211.36038208007812, -16.164623260498047, -6.5144243240356445, 1.2261903285980225]
    found = raw_ops.Mfcc(spectrogram=np.ones((1, 1, 5), np.float32), sample_rate=8000)
    assert found.shape == (1, 1, 13)
    np.testing.assert_allclose(found[0, 0, :4], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("place", "expected"),
    [(2, [6.9197, -1.1962]), (3, [np.nan] * 2), (20, [np.nan] * 2), (21, [6.9197, -1.1962])],
)
def test_only_frequencies_between_the_limits_are_heard(place: int, expected: list[float]) -> None:
    sounds = np.arange(1, 34, dtype=np.float32).reshape(1, 1, 33)
    sounds[0, 0, place] = np.nan
    found = raw_ops.Mfcc(
        spectrogram=sounds,
        sample_rate=8000,
        lower_frequency_limit=300.0,
        upper_frequency_limit=2500.0,
        filterbank_channel_count=6,
        dct_coefficient_count=2,
    )
    np.testing.assert_allclose(found[0, 0], expected, atol=1e-4)


@pytest.mark.parametrize("attrs", [{"desired_channels": -2}, {"desired_samples": -2}])
def test_fewer_samples_than_none_are_refused(attrs: dict[str, int]) -> None:
    with pytest.raises(InvalidArgumentError, match=">= -1"):
        decoded(wav(), **attrs)


def test_frequencies_beyond_the_spectrum_give_zeros() -> None:
    ones = np.ones((1, 1, 65), np.float32)
    found = raw_ops.Mfcc(spectrogram=ones, sample_rate=8000, upper_frequency_limit=1e5)
    np.testing.assert_array_equal(found, np.zeros((1, 1, 13)))


@pytest.mark.parametrize(
    "attrs",
    [
        {"dct_coefficient_count": 0},
        {"dct_coefficient_count": 50},
        {"filterbank_channel_count": 2**31 - 1},
        {"upper_frequency_limit": 10.0},
        {"lower_frequency_limit": -1.0},
    ],
)
def test_impossible_coefficients_are_refused(attrs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="Mfcc initialization failed"):
        raw_ops.Mfcc(spectrogram=np.ones((1, 1, 5), np.float32), sample_rate=8000, **attrs)
