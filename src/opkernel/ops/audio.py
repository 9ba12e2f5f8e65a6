"""Sound: DecodeWav and EncodeWav, for WAV files of 16 bits a sample; AudioSpectrogram and Mfcc.

Source: TensorFlow core/ops/audio_ops.cc, core/lib/wav/wav_io.cc, core/kernels/spectrogram.cc,
spectrogram_op.cc, core/kernels/mfcc.cc, mfcc_mel_filterbank.cc, mfcc_dct.cc.
"""

import functools
import itertools
import struct
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import WorkClock
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation, in_pieces
from opkernel.opdef import DimensionHandle, InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_scalars, shape_rule
from opkernel.ops.input_checks import (
    int32_attr,
    require,
    require_equal,
    require_rank,
    require_scalar,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_SCALE = 32768.0
_PCM = 1
_BITS, _BYTES = 16, 2
_FORMAT = struct.Struct("<HHIIHH")
_OF_CHUNK, _CHUNK = 1 << 10, struct.Struct("<4sI")
"""The work of finding a chunk."""
_MAX_CHUNK_BYTES = 2**31 - 1
_HEADER_BYTES = 36
"""What follows the size of the file in a header without other chunks."""


def _decode_wav_shape(c: InferenceContext) -> None:
    """A file -> samples [samples, channels] and their rate; the attrs may say how many."""
    check_scalars(c, 0)
    channels, samples = (_desired(c, name) for name in ("channels", "samples"))
    c.set_output(0, c.matrix(samples, channels))
    c.set_output(1, c.scalar())


def _desired(c: InferenceContext, name: str) -> DimensionHandle:
    size = c.get_attr(f"desired_{name}")
    require(size >= -1, f"{name} must be non-negative, got {size}")
    return c.make_dim(size)


DECODE_WAV = register_op(
    "DecodeWav(contents: string) -> audio: float, sample_rate: int32",
    attrs=["desired_channels: int = -1", "desired_samples: int = -1"],
    shape_fn=_decode_wav_shape,
    doc="The samples of a WAV file, between -1 and 1. More channels than the file has repeat its last one; "
    "samples beyond its end are 0.",
)
ENCODE_WAV = register_op(
    "EncodeWav(audio: float, sample_rate: int32) -> contents: string",
    shape_fn=shape_rule("[?, ?], [] -> []"),
    doc="A WAV file of samples [samples, channels], which are clipped to -1 and 1.",
)


class _File:
    """A WAV file, read from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        """The next bytes.

        Raises:
            InvalidArgumentError: the file ends before.
        """
        found = self._data[self._at : self._at + size]
        require(len(found) >= size, "Data too short when trying to read string")
        self._at += size
        return found

    def expect(self, text: bytes) -> None:
        """Take a text that must stand there."""
        found = self.take(len(text))
        if found != text:
            raise InvalidArgumentError(
                f"Header mismatch: Expected {text.decode()} but found {found.decode('latin-1')}"
            )

    def size(self) -> int:
        """A size of a chunk."""
        return int.from_bytes(self.take(4), "little")

    def size_of_samples(self) -> int | None:
        """The size of the next chunk of samples, which follows; None if there is none.

        Raises:
            InvalidArgumentError: a chunk is too large, or the file ends within its name or size.
        """
        data, at, end = self._data, self._at, len(self._data)
        spend, unpack = WorkClock("reading chunks of a WAV file").spend, _CHUNK.unpack_from
        while at < end:
            spend(_OF_CHUNK)
            if end - at < 8:
                raise InvalidArgumentError("Data too short when trying to read string")
            name, size = unpack(data, at)
            at += 8
            if size > _MAX_CHUNK_BYTES:
                raise InvalidArgumentError(f"WAV data chunk {name!r} is too large: {size} bytes")
            if name == b"data":
                self._at = at
                return int(size)
            at += size
        return None


def _decoded(data: bytes) -> tuple[Any, int]:
    """The samples [samples, channels] as integers, and their rate."""
    file = _File(data)
    file.expect(b"RIFF")
    file.size()  # of the file, which many writers leave wrong
    file.expect(b"WAVE")
    file.expect(b"fmt ")
    channels, rate = _format(file)
    size = file.size_of_samples()
    if size is None:
        raise InvalidArgumentError("No data chunk found in WAV")
    count = size // (_BYTES * channels)
    content = file.take(count * channels * _BYTES)
    require(file.size_of_samples() is None, "More than one data chunk found in WAV")
    return np.frombuffer(content, "<i2").reshape(count, channels), rate


def _format(file: _File) -> tuple[int, int]:
    """The number of channels and the rate, of the chunk that says what the samples are."""
    size = file.size()
    message = f"Bad format chunk size for WAV: Expected 16 or 18, but got {size}"
    require(size in (_FORMAT.size, _FORMAT.size + 2), message)
    kind, channels, rate, per_second, per_sample, bits = _FORMAT.unpack(file.take(_FORMAT.size))
    require_equal(kind, _PCM, "Bad audio format for WAV: Expected 1 (PCM), but got {}")
    require(channels >= 1, "Bad number of channels for WAV: Expected at least 1, but got 0")
    require_equal(bits, _BITS, "Can only read 16-bit WAV files, but received {}")
    require_equal(
        _BYTES * channels, per_sample, "Bad bytes per sample in WAV header: Expected {} but got {}"
    )
    message = f"Expected {{}} but got {{}} (sample_rate={rate}, bytes_per_sample={per_sample})"
    wanted = per_sample * rate
    require_equal(wanted, per_second, f"Bad bytes per second in WAV header: {message}")
    file.take(size - _FORMAT.size)
    return channels, rate


@register_kernel(DECODE_WAV)
def decode_wav(contents: Any, *, desired_channels: int, desired_samples: int) -> tuple[Any, Any]:
    require_scalar(contents, "contents must be scalar, got shape {}")
    for name, number in (("channels", desired_channels), ("samples", desired_samples)):
        int32_attr(f"desired_{name}", number)
        require(number >= -1, f"desired_{name} must be >= -1, got {number}")
    found, rate = _decoded(contents.item())
    count, channels = found.shape
    samples = count if desired_samples < 0 else desired_samples
    wanted = channels if desired_channels < 0 else desired_channels
    shape = check_allocation([samples, wanted], DataType.DT_FLOAT)
    kept = np.multiply(found[:samples, :wanted], np.float32(1 / _SCALE), dtype=np.float32)
    if kept.shape == shape:
        audio = kept
    else:
        audio = np.zeros(shape, np.float32)
        audio[: len(kept), : kept.shape[1]] = kept
        audio[: len(kept), channels:] = kept[:, -1:]
    return audio, np.array(rate, np.uint32).astype(np.int32)


@register_kernel(ENCODE_WAV)
def encode_wav(audio: Any, sample_rate: Any) -> Any:
    require_rank(audio, 2, "audio must be 2-dimensional{}")
    require_scalar(sample_rate, "Input sample_rate should be a scalar tensor, got {} instead.")
    rate, (count, channels) = sample_rate.item(), audio.shape
    if rate <= 0:
        raise InvalidArgumentError(f"sample_rate must be in (0, 2^32), got: {rate}")
    if not 0 < channels < 1 << 16:
        raise InvalidArgumentError(f"num_channels must be in (0, 2^16), got: {channels}")
    size = count * channels * _BYTES
    if size + _HEADER_BYTES >= 1 << 32:
        raise InvalidArgumentError(f"A WAV file cannot hold {size} bytes of samples")
    per_sample = _BYTES * channels
    header = _FORMAT.pack(_PCM, channels, rate, rate * per_sample & 0xFFFFFFFF, per_sample, _BITS)
    parts = [b"RIFF", _size(size + _HEADER_BYTES), b"WAVEfmt ", _size(_FORMAT.size), header]
    samples = in_pieces(_as_integers, audio).reshape(-1).view(np.uint8).data
    return string_tensor((), [joining(b"")([*parts, b"data", _size(size), samples])])


def _size(size: int) -> bytes:
    return size.to_bytes(4, "little")


def _as_integers(audio: Any) -> Any:
    """Rounded half away from zero; NaN is 0."""
    scaled = np.nan_to_num(audio * np.float32(_SCALE), nan=0, posinf=_SCALE, neginf=-_SCALE)
    clipped = np.clip(scaled, -_SCALE, _SCALE - 1)
    return np.trunc(clipped + np.copysign(np.float32(0.5), clipped)).astype("<i2")


_WINDOWS_AT_ONCE = 1 << 16
"""So many samples are transformed together, in windows."""


def _spectrogram_shape(c: InferenceContext) -> None:
    """[samples, channels] -> [channels, windows, frequencies]."""
    sound = c.with_rank(c.input(0), 2)
    window, stride = (int32_attr(name, c.get_attr(name)) for name in ("window_size", "stride"))
    require(window > 1, f"window size must be > 1, got {window}")
    require(stride > 0, f"stride must be strictly positive, got {stride}")
    length, channels = c.dim(sound, 0), c.dim(sound, 1)
    windows = _number_of_windows(length.value, window, stride) if c.value_known(length) else None
    c.set_output(0, c.make_shape([channels, windows, _transform_length(window) // 2 + 1]))


def _transform_length(window: int) -> int:
    return 1 << (window - 1).bit_length()


def _number_of_windows(length: int, window: int, stride: int) -> int:
    return max(0, (length - window) // stride + 1)


AUDIO_SPECTROGRAM = register_op(
    "AudioSpectrogram(input: float) -> spectrogram: float",
    attrs=["window_size: int", "stride: int", "magnitude_squared: bool = false"],
    shape_fn=_spectrogram_shape,
    doc="The magnitudes of frequencies in Hann windows of a sound [samples, channels], or their squares.",
)


@register_kernel(AUDIO_SPECTROGRAM)
def audio_spectrogram(
    tensor: Any, *, window_size: int, stride: int, magnitude_squared: bool
) -> Any:
    int32_attr("window_size", window_size)
    int32_attr("stride", stride)
    require_rank(tensor, 2, "input must be 2-dimensional{}")
    what = f"window size {window_size} and stride {stride}"
    require(window_size >= 2 and stride >= 1, f"Spectrogram initialization failed for {what}")
    length, channels = tensor.shape
    count, size = _number_of_windows(length, window_size, stride), _transform_length(window_size)
    shape = check_allocation([channels, count, size // 2 + 1], DataType.DT_FLOAT)
    result = np.empty(shape, np.float32)
    if not result.size:
        return result
    hann = 0.5 - 0.5 * np.cos(2 * np.pi / window_size * np.arange(window_size))
    windows = np.lib.stride_tricks.sliding_window_view(tensor, window_size, axis=0)[::stride]
    for heard, some in itertools.product(*_parts(channels, count, size)):
        check_time("transforming sound")
        transformed = np.fft.rfft(windows[some, heard].swapaxes(0, 1) * hann, size)
        squares = (transformed.real**2 + transformed.imag**2).astype(np.float32)
        result[heard, some] = squares if magnitude_squared else np.sqrt(squares)
    return result


def _parts(channels: int, windows: int, size: int) -> list[list[slice]]:
    """Slices of the channels and of the windows: so much is transformed at once."""
    at_once = max(1, _WINDOWS_AT_ONCE // size)
    steps = max(1, at_once // channels), min(channels, at_once)
    return [
        [slice(start, start + step) for start in range(0, count, step)]
        for count, step in zip((channels, windows), reversed(steps), strict=True)
    ]


_FLOOR = 1e-12
"""The least strength of a channel, whose logarithm is taken."""
_MOST_CHANNELS = 2**31 - 2
_SMALL = 1 << 16
"""Matrices of so many elements are kept."""
_ARRAYS = 3
"""So many arrays of its size a matrix is made with."""


MFCC = register_op(
    "Mfcc(spectrogram: float, sample_rate: int32) -> output: float",
    attrs=[
        "upper_frequency_limit: float = 4000",
        "lower_frequency_limit: float = 20",
        "filterbank_channel_count: int = 40",
        "dct_coefficient_count: int = 13",
    ],
    shape_fn=shape_rule(
        "[channels, windows, ?], [] -> [channels, windows, {dct_coefficient_count}]"
    ),
    doc="The cosine transform of the logarithms of strengths in channels that are even on the Mel scale.",
)


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(hertz / 700.0)


def _filters(
    length: int, rate: int, channels: int, lower: float, upper: float
) -> tuple[int, Any] | None:
    """The first frequency that is heard, and the share [heard, channels] that each has in each channel.

    A frequency between the centres of two channels is shared by both. None if some lie beyond the input.
    """
    make = _small_filters if length * channels <= _SMALL else _new_filters
    return make(length, rate, channels, lower, upper)


def _new_filters(
    length: int, rate: int, channels: int, lower: float, upper: float
) -> tuple[int, Any] | None:
    check_allocation([max(length, _ARRAYS), channels], DataType.DT_DOUBLE)
    step = 0.5 * rate / (length - 1)
    first, last = int(1.5 + lower / step), int(upper / step)
    if last >= length:
        return None
    low, high = _mel(lower), _mel(upper)
    centers = low + (high - low) / (channels + 1) * np.arange(1, channels + 2)
    places = np.arange(first, last + 1)
    mels = _mel(places * step)
    below = np.searchsorted(centers[:channels], mels) - 1  # -1: below the first centre
    starts = np.where(below < 0, low, centers[below])
    shares = (centers[below + 1] - mels) / (centers[below + 1] - starts)
    filters, rows = np.zeros((len(places), channels)), places - first
    inside, before_last = below >= 0, below + 1 < channels
    filters[rows[inside], below[inside]] = shares[inside]
    filters[rows[before_last], below[before_last] + 1] += 1 - shares[before_last]
    return first, filters


_small_filters = functools.lru_cache(8)(_new_filters)


def _cosines(count: int, length: int) -> Any:
    """The matrix [length, count] of the cosine transform."""
    check_allocation([_ARRAYS, length, count], DataType.DT_DOUBLE)
    return (_small_cosines if length * count <= _SMALL else _new_cosines)(count, length)


def _new_cosines(count: int, length: int) -> Any:
    angles = np.outer(np.arange(length) + 0.5, np.arange(count) * (np.pi / length))
    return np.sqrt(2.0 / length) * np.cos(angles)


_small_cosines = functools.lru_cache(8)(_new_cosines)


@register_kernel(MFCC)
def mfcc(
    spectrogram: Any,
    sample_rate: Any,
    *,
    upper_frequency_limit: float,
    lower_frequency_limit: float,
    filterbank_channel_count: int,
    dct_coefficient_count: int,
) -> Any:
    require_rank(spectrogram, 3, "spectrogram must be 3-dimensional{}")
    require_scalar(sample_rate, "Input sample_rate should be a scalar tensor, got {} instead.")
    rate, length = sample_rate.item(), spectrogram.shape[2]
    is_possible = (
        length >= 2
        and rate > 0
        and 0 < dct_coefficient_count <= filterbank_channel_count <= _MOST_CHANNELS
        and 0 <= lower_frequency_limit < upper_frequency_limit
    )
    what = f"channel count {length}, sample rate {rate}"
    message = f"{what} and filterbank_channel_count {filterbank_channel_count}"
    require(is_possible, f"Mfcc initialization failed for {message}")
    shape = (*spectrogram.shape[:2], dct_coefficient_count)
    filters = _filters(
        length, rate, filterbank_channel_count, lower_frequency_limit, upper_frequency_limit
    )
    if filters is None or not spectrogram.size:
        return np.zeros(shape, np.float32)
    first, shares = filters
    heard = spectrogram[..., first : first + len(shares)].astype(np.float64)
    strengths = np.sqrt(heard) @ shares
    logarithms = np.log(np.maximum(strengths, _FLOOR))
    return (logarithms @ _cosines(dct_coefficient_count, filterbank_channel_count)).astype(
        np.float32
    )
