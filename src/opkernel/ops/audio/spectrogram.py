"""Spectra of sound: AudioSpectrogram, Mfcc.

Source: TensorFlow core/kernels/spectrogram.cc, spectrogram_op.cc, core/kernels/mfcc.cc,
mfcc_mel_filterbank.cc, mfcc_dct.cc.
"""

import functools
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_rank, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_WINDOWS_AT_ONCE = 1 << 16
"""So many samples are transformed together, in windows."""


def _spectrogram_shape(c: InferenceContext) -> None:
    """[samples, channels] -> [channels, windows, frequencies]."""
    sound = c.with_rank(c.input(0), 2)
    window, stride = c.get_attr("window_size"), c.get_attr("stride")
    if window <= 1:
        raise InvalidArgumentError(f"window size must be > 1, got {window}")
    if stride <= 0:
        raise InvalidArgumentError(f"stride must be strictly positive, got {stride}")
    length, channels = c.dim(sound, 0), c.dim(sound, 1)
    windows = _number_of_windows(length.value, window, stride) if c.value_known(length) else None
    c.set_output(0, c.make_shape([channels, windows, _transform_length(window) // 2 + 1]))


def _transform_length(window: int) -> int:
    return 1 << (window - 1).bit_length()


def _number_of_windows(length: int, window: int, stride: int) -> int:
    return max(0, (length - window) // stride + 1)


AUDIO_SPECTROGRAM = register_op(
    "AudioSpectrogram",
    inputs=["input: float"],
    outputs=["spectrogram: float"],
    attrs=["window_size: int", "stride: int", "magnitude_squared: bool = false"],
    shape_fn=_spectrogram_shape,
    doc="The magnitudes of frequencies in Hann windows of a sound [samples, channels], or their squares.",
)


@register_kernel(AUDIO_SPECTROGRAM)
def audio_spectrogram(
    tensor: Any, *, window_size: int, stride: int, magnitude_squared: bool
) -> Any:
    require_rank(tensor, 2, "input must be 2-dimensional{}")
    if window_size < 2 or stride < 1:
        raise InvalidArgumentError(
            f"Spectrogram initialization failed for window size {window_size} and stride {stride}"
        )
    length, channels = tensor.shape
    count, size = _number_of_windows(length, window_size, stride), _transform_length(window_size)
    shape = check_allocation([channels, count, size // 2 + 1], DataType.DT_FLOAT)
    result = np.empty(shape, np.float32)
    if not result.size:
        return result
    hann = 0.5 - 0.5 * np.cos(2 * np.pi / window_size * np.arange(window_size))
    windows = np.lib.stride_tricks.sliding_window_view(tensor, window_size, axis=0)[::stride]
    step = max(1, _WINDOWS_AT_ONCE // size)
    for start in range(0, count, step):
        some = windows[start : start + step].swapaxes(0, 1) * hann
        transformed = np.fft.rfft(some, size)
        squares = (transformed.real**2 + transformed.imag**2).astype(np.float32)
        result[:, start : start + step] = squares if magnitude_squared else np.sqrt(squares)
    return result


_FLOOR = 1e-12
"""The least strength of a channel, whose logarithm is taken."""
_MOST_CHANNELS = 2**31 - 2
_SMALL = 1 << 16
"""Matrices of so many elements are kept."""
_ARRAYS = 3
"""So many arrays of its size a matrix is made with."""


MFCC = register_op(
    "Mfcc",
    inputs=["spectrogram: float", "sample_rate: int32"],
    outputs=["output: float"],
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


def _filters(length: int, rate: int, channels: int, lower: float, upper: float) -> Any | None:
    """The share [length, channels] that each frequency has in each channel; None if some lie beyond the input.

    A frequency between the centres of two channels is shared by both.
    """
    make = _small_filters if length * channels <= _SMALL else _new_filters
    return make(length, rate, channels, lower, upper)


def _new_filters(length: int, rate: int, channels: int, lower: float, upper: float) -> Any | None:
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
    filters = np.zeros((length, channels))
    inside, before_last = below >= 0, below + 1 < channels
    filters[places[inside], below[inside]] = shares[inside]
    filters[places[before_last], below[before_last] + 1] += 1 - shares[before_last]
    return filters


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
    if not is_possible:
        raise InvalidArgumentError(
            f"Mfcc initialization failed for channel count {length}, sample rate {rate} and "
            f"filterbank_channel_count {filterbank_channel_count}"
        )
    shape = (*spectrogram.shape[:2], dct_coefficient_count)
    filters = _filters(
        length, rate, filterbank_channel_count, lower_frequency_limit, upper_frequency_limit
    )
    if filters is None or not spectrogram.size:
        return np.zeros(shape, np.float32)
    strengths = np.sqrt(spectrogram.astype(np.float64)) @ filters
    logarithms = np.log(np.maximum(strengths, _FLOOR))
    return (logarithms @ _cosines(dct_coefficient_count, filterbank_channel_count)).astype(
        np.float32
    )
