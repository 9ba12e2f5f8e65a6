"""AudioMicrofrontend: features of speech from 16-bit sound, in the integers of small devices.

Source: TensorFlow lite/experimental/microfrontend/ops/audio_microfrontend_op.cc, lib/frontend.c, window.c, fft.cc.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.work_clock import WorkClock
from opkernel.kernel import check_allocation, from_attrs
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.audio_channels import (
    FILTER_BITS,
    Filterbank,
    Filters,
    GainControl,
    LogScale,
    NoiseReduction,
    bit_length,
    not_ready,
    root,
)
from opkernel.ops.fixed_point_fourier import FixedPointFourier
from opkernel.ops.input_checks import require, require_vector
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_SAMPLES_AT_ONCE = 1 << 16
"""So many samples are transformed together, in windows."""
_ARRAYS = 8
"""So many arrays of the size of all frames are there at once."""
_MAX_INT = 2**31 - 1
_WINDOW_BITS = 12
_LEAST = 2
"""So many samples are transformed at least."""


def _microfrontend_shape(c: InferenceContext) -> None:
    """[samples] -> features [frames, channels], each with those of the frames around it.

    As in TensorFlow, a sound of unknown length counts as one that is shorter than a window.
    """
    samples = c.dim(c.with_rank(c.input(0), 1), 0)
    per_millisecond = _quotient(c.get_attr("sample_rate"), 1000)
    window = c.get_attr("window_size") * per_millisecond
    step = c.get_attr("window_step") * per_millisecond
    frames = c.make_dim(0)
    if samples.value >= window:
        frames = c.divide(c.subtract(samples, window), step, evenly_divisible=False)
        frames = c.add(c.divide(frames, c.get_attr("frame_stride"), evenly_divisible=False), 1)
    stacked = 1 + c.get_attr("left_context") + c.get_attr("right_context")
    features = c.multiply(c.make_dim(c.get_attr("num_channels")), stacked)
    c.set_output(0, c.matrix(frames, features))


def _quotient(dividend: int, divisor: int) -> int:
    """Division that rounds towards zero."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)


AUDIO_MICROFRONTEND = register_op(
    "AudioMicrofrontend(audio: int16) -> filterbanks: out_type",
    attrs=[
        "sample_rate: int = 16000",
        "window_size: int = 25",
        "window_step: int = 10",
        "num_channels: int = 32",
        "upper_band_limit: float = 7500.0",
        "lower_band_limit: float = 125.0",
        "smoothing_bits: int = 10",
        "even_smoothing: float = 0.025",
        "odd_smoothing: float = 0.06",
        "min_signal_remaining: float = 0.05",
        "enable_pcan: bool = false",
        "pcan_strength: float = 0.95",
        "pcan_offset: float = 80.0",
        "gain_bits: int = 21",
        "enable_log: bool = true",
        "scale_shift: int = 6",
        "left_context: int = 0",
        "right_context: int = 0",
        "frame_stride: int = 1",
        "zero_padding: bool = false",
        "out_scale: int = 1",
        "out_type: {uint16, float} = DT_UINT16",
    ],
    shape_fn=_microfrontend_shape,
    doc="The strengths of channels that are even on the Mel scale, in windows of a sound, less the steady noise.",
)


@dataclass(frozen=True)
class _Windows:
    """The windows of the sound, by their attrs in milliseconds."""

    sample_rate: int
    window_size: int
    window_step: int

    def samples(self, milliseconds: int) -> int:
        """A time as a number of samples.

        Raises:
            InvalidArgumentError: an int32 does not hold what it is computed with.
        """
        product = milliseconds * self.sample_rate
        require(
            0 <= product <= _MAX_INT, f"{milliseconds} ms at {self.sample_rate} Hz is no length"
        )
        return product // 1000

    def of(self, audio: Any) -> Any:
        """The windows [frames, samples] of a sound, not copied.

        Raises:
            InvalidArgumentError: windows do not begin one after the other, or leave samples out.
        """
        size, step = self.samples(self.window_size), self.samples(self.window_step)
        if len(audio) < size:
            return np.zeros((0, size), np.int16)
        message = f"window_step must be from 1 sample to a window of {size}, got {step} samples"
        require(0 < step <= size or (step and size < _LEAST), message)
        return np.lib.stride_tricks.sliding_window_view(audio, size)[::step]


def _shaded(windows: Any) -> Any:
    """Windows of 16-bit samples with the weights of Hann, which are 12-bit fractions."""
    size = windows.shape[1]
    step = np.float32(np.pi * 2 / float(np.float32(size)))
    hann = (0.5 - 0.5 * np.cos(float(step) * (np.arange(size) + 0.5))).astype(np.float32)
    weights = np.floor(hann.astype(np.float64) * (1 << _WINDOW_BITS) + 0.5).astype(np.int32)
    return ((windows * weights) >> _WINDOW_BITS).astype(np.int16)


@dataclass(frozen=True)
class _Stack:
    """Puts frames side by side with those around them."""

    num_channels: int
    left_context: int
    right_context: int
    frame_stride: int
    zero_padding: bool
    out_scale: int
    out_type: DataType

    def shape(self, frames: int) -> tuple[int, ...]:
        """The shape of the output, which may be allocated."""
        stacked = 1 + self.left_context + self.right_context
        require(stacked >= 0, f"A frame with its context must not be negative, got {stacked}")
        if frames:
            require(self.frame_stride > 0, f"frame_stride must be > 0, got {self.frame_stride}")
        count = (frames - 1) // self.frame_stride + 1 if frames else 0
        return check_allocation([count, self.num_channels * stacked], self.out_type)

    def __call__(self, values: Any) -> Any:
        """Features of the values uint16 [frames, channels]."""
        frames, shape = self._divided(values), self.shape(len(values))
        if not shape[0] or not shape[1]:
            return np.zeros(shape, frames.dtype)
        around = range(-self.left_context, self.right_context + 1)
        check_allocation([_ARRAYS, shape[0], len(around)], DataType.DT_INT64)
        places = np.arange(0, len(frames), self.frame_stride)[:, None] + np.array(around)
        result = frames[np.clip(places, 0, len(frames) - 1)]
        if self.zero_padding:
            result[(places < 0) | (places >= len(frames))] = 0
        return result.reshape(shape)

    def _divided(self, values: Any) -> Any:
        if self.out_type == DataType.DT_FLOAT:
            with np.errstate(all="ignore"):
                return values.astype(np.float32) / np.float32(self.out_scale)
        require(self.out_scale or not values.size, "out_scale must not be 0 for integers")
        quotients = values.astype(np.int64) // max(abs(self.out_scale), 1)
        return (quotients if self.out_scale > 0 else -quotients).astype(np.uint16)


@register_kernel(AUDIO_MICROFRONTEND, types={"out_type": [DataType.DT_UINT16, DataType.DT_FLOAT]})
@from_attrs(
    windows=_Windows,
    filterbank=Filterbank,
    noise_reduction=NoiseReduction,
    gain_control=GainControl,
    log_scale=LogScale,
    stack=_Stack,
)
def audio_microfrontend(
    audio: Any,
    *,
    windows: _Windows,
    filterbank: Filterbank,
    noise_reduction: NoiseReduction,
    gain_control: GainControl,
    log_scale: LogScale,
    stack: _Stack,
) -> Any:
    require_vector(audio, "audio is not a vector")
    channels = filterbank.num_channels
    require(0 <= channels < _MAX_INT, f"num_channels must be in [0, 2^31 - 1), got {channels}")
    framed = windows.of(audio)
    stack.shape(len(framed))
    check_allocation([_ARRAYS, max(len(framed), 1), channels + 1], DataType.DT_UINT64)
    size = 1 << (framed.shape[1] - 1).bit_length()
    if framed.shape[1] < _LEAST:
        raise not_ready(f"the window has fewer than {_LEAST} samples")
    check_allocation([_ARRAYS, size], DataType.DT_COMPLEX64)
    filters = filterbank.filters(windows.sample_rate, size // 2 + 1)
    strengths = _strengths(framed, FixedPointFourier(size), filters, channels)
    correction = size.bit_length() - 1 - FILTER_BITS // 2
    signal, noise = noise_reduction(strengths)
    if gain_control.enable_pcan:
        signal = gain_control(signal, noise, noise_reduction.smoothing_bits, correction)
    return stack(log_scale(signal, correction))


def _strengths(windows: Any, transform: FixedPointFourier, filters: Filters, channels: int) -> Any:
    """The roots of the energies of the channels, uint64 [frames, channels]."""
    result = np.empty((len(windows), channels), np.uint64)
    step = max(1, _SAMPLES_AT_ONCE // transform.size)
    clock = WorkClock("transforming windows of a sound")
    for start in range(0, len(windows), step):
        clock.spend(step * transform.size * 64)
        some = _shaded(windows[start : start + step])
        shifts = 15 - bit_length(np.abs(some).max(axis=1, initial=0).astype(np.int64))[:, None]
        samples = np.zeros((len(some), transform.size), np.int32)
        samples[:, : some.shape[1]] = some.astype(np.int32) << shifts
        energies = filters(transform(samples))
        result[start : start + step] = root(energies) >> shifts.astype(np.uint64)
    return result
