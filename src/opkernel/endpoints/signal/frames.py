"""Signals in frames, and their spectra.

Source: TensorFlow python/ops/signal/shape_ops.py, reconstruction_ops.py, spectral_ops.py, mel_ops.py, mfcc_ops.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.signal.spectra import dct, irfft, rfft
from opkernel.endpoints.signal.windows import hann_window, vorbis_window
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    composed,
    convert,
    dtype_of,
    known_number,
    known_rank,
    like,
    number_like,
    shape_of,
    static_value,
)
from opkernel.types import DataType, as_dtype


@composed
def frame(
    signal: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    pad_end: bool = False,
    pad_value: TensorLike = 0,
    axis: int = -1,
    name: str | None = None,
) -> Any:
    """A signal in frames that may overlap: an axis becomes two, frames and samples.

    Args:
        signal: a tensor.
        frame_length: how many samples a frame has.
        frame_step: how many samples frames are apart.
        pad_end: give all frames that begin in the signal, with `pad_value` after its end.
        pad_value: the sample that is added.
        axis: the axis.
        name: a name for the scope of nodes in a graph.
    """
    x = convert(signal)
    length, step = (
        known_number(frame_length, "frame_length"),
        known_number(frame_step, "frame_step"),
    )
    rank = known_rank(x, "frame")
    place = axis % rank
    samples = shape_of(x)[place]
    if pad_end:
        count = -(-samples // np.int32(step))
        missing = (count - np.int32(1)) * np.int32(step) + np.int32(length) - samples
        missing = raw_ops.Maximum(x=missing, y=np.int32(0))
        pairs = [np.zeros(2, np.int32)] * rank
        pairs[place] = raw_ops.Pack(values=[np.int32(0), missing])
        x = raw_ops.PadV2(
            input=x,
            paddings=raw_ops.Pack(values=pairs),
            constant_values=like(pad_value, dtype_of(x)),
        )
    else:
        count = (samples - np.int32(length)) // np.int32(step) + np.int32(1)
        count = raw_ops.Maximum(x=count, y=np.int32(0))
    starts = raw_ops.Range(start=np.int32(0), limit=count, delta=np.int32(1))
    rows = raw_ops.ExpandDims(input=starts * np.int32(step), axis=1)
    indices = raw_ops.AddV2(x=rows, y=np.arange(length, dtype=np.int32))
    return raw_ops.GatherV2(params=x, indices=indices, axis=place)


@composed
def overlap_and_add(signal: TensorLike, frame_step: TensorLike, name: str | None = None) -> Any:
    """A signal from its frames: the last two axes, frames and samples, become one.

    Args:
        signal: frames of samples.
        frame_step: how many samples frames are apart.
        name: a name for the scope of nodes in a graph.
    """
    x = convert(signal)
    step = convert(frame_step)
    if static_value(step) is not None and not dtype_of(step).is_integer:
        raise ValueError("frame_step is an integer")
    rank = known_rank(x, "overlap_and_add")
    shape = shape_of(x)
    starts = raw_ops.Range(start=np.int32(0), limit=shape[-2], delta=np.int32(1)) * np.int32(
        known_number(step, "frame_step")
    )
    places = raw_ops.ExpandDims(input=starts, axis=1) + raw_ops.Range(
        start=np.int32(0), limit=shape[-1], delta=np.int32(1)
    )
    total = (shape[-2] - np.int32(1)) * np.int32(known_number(step, "frame_step")) + shape[-1]
    turned = raw_ops.Transpose(x=x, perm=np.array([rank - 2, rank - 1, *range(rank - 2)], np.int32))
    sums = raw_ops.UnsortedSegmentSum(data=turned, segment_ids=places, num_segments=total)
    return raw_ops.Transpose(x=sums, perm=np.array([*range(1, rank - 1), 0], np.int32))


def _fft_length(frame_length: int, fft_length: Any) -> int:
    """The length of a transform: the next power of two, if it is not given."""
    if fft_length is None:
        return 1 << max(frame_length - 1, 0).bit_length()
    return known_number(fft_length, "fft_length")


@composed
def stft(
    signals: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    fft_length: TensorLike | None = None,
    window_fn: Callable[..., Any] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Any:
    """The spectra of the frames of signals.

    Args:
        signals: real signals along the last axis.
        frame_length: how many samples a frame has.
        frame_step: how many samples frames are apart.
        fft_length: the length of the transform; the next power of two if None.
        window_fn: gives the window, for its length and `dtype`; None for none.
        pad_end: add zeros after the end.
        name: a name for the scope of nodes in a graph.

    Returns:
        Complex numbers, [..., frames, fft_length / 2 + 1].
    """
    length = known_number(frame_length, "frame_length")
    frames = frame(signals, length, frame_step, pad_end=pad_end)
    if window_fn is not None:
        frames = raw_ops.Mul(x=frames, y=window_fn(length, dtype=dtype_of(frames)))
    return rfft(frames, [_fft_length(length, fft_length)])


@composed
def inverse_stft(
    stfts: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    fft_length: TensorLike | None = None,
    window_fn: Callable[..., Any] | None = hann_window,
    name: str | None = None,
) -> Any:
    """Signals from their spectra; see stft. `inverse_stft_window_fn` gives the window that fits."""
    length = known_number(frame_length, "frame_length")
    size = _fft_length(length, fft_length)
    frames = irfft(stfts, [size])[..., :length]
    if size < length:
        rank = known_rank(frames, "inverse_stft")
        pairs = [*[[0, 0]] * (rank - 1), [0, length - size]]
        frames = raw_ops.Pad(input=frames, paddings=np.array(pairs, np.int32))
    if window_fn is not None:
        frames = raw_ops.Mul(x=frames, y=window_fn(length, dtype=dtype_of(frames)))
    return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(
    frame_step: TensorLike,
    forward_window_fn: Callable[..., Any] = hann_window,
    name: str | None = None,
) -> Callable[..., Any]:
    """The window function for inverse_stft that undoes the window of stft.

    Args:
        frame_step: how many samples frames are apart.
        forward_window_fn: the window function of stft.
        name: not used.
    """
    step = known_number(frame_step, "frame_step")

    def inverse_window(frame_length: TensorLike, dtype: DTypeLike) -> Any:
        length = known_number(frame_length, "frame_length")
        window = forward_window_fn(length, dtype=as_dtype(dtype))
        squares = raw_ops.Square(x=window)
        overlaps = -(-length // step)
        squares = raw_ops.Pad(
            input=squares, paddings=np.array([[0, overlaps * step - length]], np.int32)
        )
        rows = raw_ops.Reshape(tensor=squares, shape=np.array([overlaps, step], np.int32))
        sums = raw_ops.Sum(input=rows, axis=np.array([0], np.int32), keep_dims=True)
        tiled = raw_ops.Tile(input=sums, multiples=np.array([overlaps, 1], np.int32))
        flat = raw_ops.Reshape(tensor=tiled, shape=np.array([-1], np.int32))
        return raw_ops.RealDiv(x=window, y=flat[:length])

    return inverse_window


def _reversed(x: Any) -> Any:
    return raw_ops.ReverseV2(tensor=x, axis=np.array([-1], np.int32))


@composed
def mdct(
    signals: TensorLike,
    frame_length: TensorLike,
    window_fn: Callable[..., Any] | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """The modified discrete cosine transform of frames that overlap by half.

    Args:
        signals: real signals along the last axis.
        frame_length: how many samples a frame has, a multiple of 4.
        window_fn: gives the window, for its length and `dtype`; None for a constant one.
        pad_end: add zeros after the end.
        norm: None or "ortho".
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the length is no multiple of 4.
    """
    length = known_number(frame_length, "frame_length")
    if length % 4:
        raise ValueError(f"frame_length is a multiple of 4, and not {length}")
    frames = frame(signals, length, length // 2, pad_end=pad_end)
    frames = raw_ops.Mul(x=frames, y=_mdct_window(window_fn, length, frames))
    a, b, c, d = raw_ops.Split(axis=-1, value=frames, num_split=4)
    first = raw_ops.Neg(x=_reversed(c)) - d
    return dct(raw_ops.ConcatV2(values=[first, a - _reversed(b)], axis=-1), 4, norm=norm)


def _mdct_window(window_fn: Callable[..., Any] | None, length: int, like: Any) -> Any:
    if window_fn is None:
        return number_like(like, 1 / math.sqrt(2))
    return window_fn(length, dtype=dtype_of(like))


@composed
def inverse_mdct(
    mdcts: TensorLike,
    window_fn: Callable[..., Any] | None = vorbis_window,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """Signals from their modified discrete cosine transforms; the arguments are those of mdct."""
    x = convert(mdcts)
    half = int(shape_of(x)[-1])
    found = dct(x, 4, norm=norm)
    if norm is None:
        found = found * number_like(found, 0.5 / half)
    first, second = raw_ops.Split(axis=-1, value=found, num_split=2)
    parts = [second, -_reversed(second), -_reversed(first), -first]
    frames = raw_ops.ConcatV2(values=parts, axis=-1)
    frames = raw_ops.Mul(x=frames, y=_mdct_window(window_fn, 2 * half, frames))
    return overlap_and_add(frames, half)


@composed
def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: TensorLike = 129,
    sample_rate: TensorLike = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
) -> Any:
    """The matrix that makes mel spectra from spectra: `spectrogram @ matrix`.

    Args:
        num_mel_bins: how many bands.
        num_spectrogram_bins: how many frequencies a spectrum has.
        sample_rate: how many samples a second has.
        lower_edge_hertz: the lowest frequency of a band.
        upper_edge_hertz: the highest one, half of the sample rate at most.
        dtype: a floating type.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: a number is out of range, or the type is not floating.
    """
    wanted = as_dtype(dtype)
    rate, bins = (
        float(np.asarray(sample_rate)),
        known_number(num_spectrogram_bins, "num_spectrogram_bins"),
    )
    if num_mel_bins <= 0 or rate <= 0 or not wanted.is_floating:
        raise ValueError("num_mel_bins and sample_rate are positive, and dtype is floating")
    if not 0 <= lower_edge_hertz < upper_edge_hertz <= rate / 2:
        raise ValueError(
            f"Edges rise from 0 to half of the sample rate, and are not {lower_edge_hertz} and "
            f"{upper_edge_hertz}"
        )
    kept = wanted.numpy_dtype
    frequencies = _mel(np.linspace(0, rate / 2, bins)[1:].astype(kept))[:, None]
    edges = np.linspace(
        _mel(np.array(lower_edge_hertz, kept)), _mel(np.array(upper_edge_hertz, kept)), num_mel_bins + 2
    ).astype(kept)  # fmt: skip
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    rising = (frequencies - lower) / (center - lower)
    falling = (upper - frequencies) / (upper - center)
    weights = np.maximum(0, np.minimum(rising, falling)).astype(kept)
    return convert(np.pad(weights, [[1, 0], [0, 0]]))


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log(1.0 + hertz / 700.0)


@composed
def mfccs_from_log_mel_spectrograms(
    log_mel_spectrograms: TensorLike, name: str | None = None
) -> Any:
    """The mel-frequency cepstral coefficients of the logarithms of mel spectra, the last axis.

    Raises:
        ValueError: the axis is empty.
    """
    x = convert(log_mel_spectrograms)
    bins = int(shape_of(x)[-1])
    if not bins:
        raise ValueError("The last axis has one band or more")
    found = dct(x, 2)
    return found * number_like(found, 1 / math.sqrt(2 * bins))
