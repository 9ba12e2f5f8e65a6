"""The channels of AudioMicrofrontend: filters, noise, gain and logarithms, in integers as C computes them.

Source: TensorFlow lite/experimental/microfrontend/lib/filterbank.c, noise_reduction.c, pcan_gain_control.c,
log_scale.c, and the files beside them that make their tables.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.work_clock import WorkClock
from opkernel.errors import InternalError
from opkernel.ops.input_checks import require

FILTER_BITS = 12
"""Shares of a frequency are fractions of so many bits."""
_WORD = np.uint64(0xFFFFFFFF)
_NOISE_BITS = 14
_SNR_BITS, _GAIN_OUTPUT_BITS = 12, 6
_LOG_BITS, _SEGMENT_BITS = 16, 7
_LOG_OF_2 = 45426
"""Of 2**16."""


def not_ready(why: str) -> InternalError:
    """TensorFlow's error for attrs that it makes no tables of."""
    return InternalError(f"failed to populate frontend state: {why}")


def bit_length(values: Any) -> Any:
    """Of integers below 2**32."""
    return np.frexp(values.astype(np.float64))[1]


@dataclass(frozen=True)
class Filterbank:
    """Channels that are even on the Mel scale; a frequency is shared by the two around it."""

    num_channels: int
    upper_band_limit: float
    lower_band_limit: float

    def filters(self, rate: int, length: int) -> "Filters":
        """The shares that `length` frequencies have in the channels.

        Raises:
            InvalidArgumentError: a channel would begin below the first frequency.
            InternalError: the channels go beyond the last frequency.
        """
        hertz = np.float32(0.5 * rate / float(np.float32(length) - np.float32(1)))
        lower = np.float32(self.lower_band_limit)
        place = 1.5 + float(lower / hertz)
        require(place > -1, f"lower_band_limit must be at least 0, got {self.lower_band_limit}")
        if place >= length:
            raise not_ready("lower_band_limit is above the frequencies")
        start = int(place)
        low, centers = self._centers(lower)
        mels = _mel(np.arange(start, length, dtype=np.float32) * hertz)
        bounds = np.where(np.isnan(centers), np.float32(-np.inf), centers)
        ends = np.maximum.accumulate(np.searchsorted(mels, bounds, side="right"))
        if start + ends[-1] >= length:
            raise not_ready("upper_band_limit is above the frequencies")
        widths = np.diff(ends, prepend=0)
        owners = np.repeat(np.arange(len(centers)), widths)
        below = np.concatenate([[low], centers[:-1]])[owners]
        shares = (centers[owners] - mels[: ends[-1]]) / (centers[owners] - below)
        return Filters(start, np.concatenate([[0], ends]), shares.astype(np.float64))

    def _centers(self, lower: Any) -> tuple[Any, Any]:
        """The lower limit in Mel, and the centre of each channel and of one more."""
        count = self.num_channels + 1
        with np.errstate(all="ignore"):
            low, high = _mel(np.array([lower, self.upper_band_limit], np.float32))
            spacing = (high - low) / np.float32(count)
            return low, low + spacing * np.arange(1, count + 1, dtype=np.float32)


def _mel(hertz: Any) -> Any:
    with np.errstate(all="ignore"):
        return (1127.0 * np.log1p(hertz.astype(np.float64) / 700.0)).astype(np.float32)


class Filters:
    """Sums the energies of frequencies in channels; the first frequency, the bounds of channels, the shares."""

    def __init__(self, start: int, bounds: Any, shares: Any) -> None:
        self._start, self._bounds = start, bounds
        self._shares, self._others = _fraction(shares), _fraction(1.0 - shares)

    def __call__(self, frequencies: Any) -> Any:
        """Energies uint64 [frames, channels] of frequencies [2, frames, length]."""
        real, imaginary = frequencies[..., self._start : self._start + len(self._shares)]
        energies = (real * real + imaginary * imaginary).astype(np.uint64)
        own, others = (self._sums(energies * shares) for shares in (self._shares, self._others))
        return own[:, 1:] + others[:, :-1]

    def _sums(self, energies: Any) -> Any:
        ahead = np.zeros((len(energies), energies.shape[1] + 1), np.uint64)
        np.cumsum(energies, axis=1, out=ahead[:, 1:])
        return np.diff(ahead[:, self._bounds], axis=1)


def _fraction(shares: Any) -> Any:
    return np.floor(shares * (1 << FILTER_BITS) + 0.5).astype(np.int16).astype(np.uint64)


def root(squares: Any) -> Any:
    """Rounded square roots of uint64, as uint64; the roots of the largest numbers of 32 and 64 bits go down."""
    roots = np.minimum(np.sqrt(squares.astype(np.float64)), 2.0**32 - 1).astype(np.uint64)
    one = np.uint64(1)
    roots -= (roots * roots > squares).astype(np.uint64)
    more = np.minimum(roots + one, _WORD)
    roots = np.where(more * more <= squares, more, roots)
    most = np.where(squares <= _WORD, np.uint64(0xFFFF), _WORD)
    return roots + ((squares - roots * roots > roots) & (roots != most)).astype(np.uint64)


@dataclass(frozen=True)
class NoiseReduction:
    """Takes a moving average away from each channel."""

    smoothing_bits: int
    even_smoothing: float
    odd_smoothing: float
    min_signal_remaining: float

    def __call__(self, signal: Any) -> tuple[Any, Any]:
        """The signal uint64 [frames, channels] less the noise, and the noise, scaled by 2**smoothing_bits.

        Raises:
            InvalidArgumentError: smoothing_bits is not in [0, 32).
        """
        bits = _shift("smoothing_bits", self.smoothing_bits)
        scaled = (signal << bits) & _WORD
        smoothing = np.empty(signal.shape[1], np.uint64)
        smoothing[::2], smoothing[1::2] = (
            _smoothing(self.even_smoothing),
            _smoothing(self.odd_smoothing),
        )
        kept = (np.uint64(1 << _NOISE_BITS) - smoothing) & _WORD
        noise, estimate = np.empty_like(scaled), np.zeros_like(smoothing)
        clock, down = WorkClock("reducing the noise of a sound"), np.uint64(_NOISE_BITS)
        for frame, row in enumerate(scaled):
            clock.spend(1024 + len(row))
            estimate = ((row * smoothing + estimate * kept) >> down) & _WORD
            noise[frame] = estimate
        least = (signal * _smoothing(self.min_signal_remaining)) >> down
        return np.maximum((scaled - np.minimum(noise, scaled)) >> bits, least), noise


def _shift(name: str, bits: int) -> Any:
    """A number of bits to shift 32-bit integers by; C does not say what others do."""
    require(0 <= bits < 32, f"{name} must be in [0, 32), got {bits}")
    return np.uint64(bits)


def _smoothing(value: float) -> Any:
    """An attr as a fraction of 14 bits, of which 16 bits are kept."""
    return np.uint64(_truncated(np.float32(value) * np.float32(1 << _NOISE_BITS)) & 0xFFFF)


def _truncated(value: Any) -> int:
    """As an int32; numbers that are none are the least."""
    return int(value) if abs(value) < 2.0**31 else -(2**31)


@dataclass(frozen=True)
class GainControl:
    """Divides each channel by a power of its noise."""

    enable_pcan: bool
    pcan_strength: float
    pcan_offset: float
    gain_bits: int

    def __call__(self, signal: Any, noise: Any, bits: int, correction: int) -> Any:
        """The signal [frames, channels] with its gain.

        Args:
            signal: uint64 of 32 bits.
            noise: The same, scaled by `bits`.
            bits: So many bits the noise was moved up.
            correction: So many bits the signal is moved up before its logarithm.

        Raises:
            InvalidArgumentError: a shift is not in [0, 32).
        """
        _shift("gain_bits", self.gain_bits)
        what = f"smoothing_bits - {correction}"
        table = self._table(int(_shift(what, bits - correction)))
        shift = self.gain_bits - correction - _SNR_BITS
        gains = _interpolated(noise.astype(np.int64), table).astype(np.uint64) & _WORD
        ratios = (
            (signal * gains) >> _shift(f"gain_bits - {correction + _SNR_BITS}", shift)
        ) & _WORD
        small = ratios * ratios >> np.uint64(2 + 2 * _SNR_BITS - _GAIN_OUTPUT_BITS)
        large = (ratios >> np.uint64(_SNR_BITS - _GAIN_OUTPUT_BITS)) - np.uint64(
            1 << _GAIN_OUTPUT_BITS
        )
        return np.where(ratios < np.uint64(2 << _SNR_BITS), small, large) & _WORD

    def _table(self, bits: int) -> Any:
        """For noise of each length in bits, up to 32, the three factors of a parabola."""
        table = np.zeros((33, 3), np.int64)
        table[:2, 0] = self._gains(np.arange(2), bits)
        starts = 1 << np.arange(1, 32)
        ends = np.minimum(2 * starts, 2**32 - 1)
        at_start, middle, at_end = (
            self._gains(places, bits) for places in (starts, starts + starts // 2, ends)
        )
        slope = 4 * (middle - at_start) - (at_end - at_start)
        bend = at_end - at_start - slope
        table[2:] = np.stack([at_start, slope.astype(np.int16), bend.astype(np.int16)], axis=1)
        return table

    def _gains(self, noise: Any, bits: int) -> Any:
        with np.errstate(all="ignore"):
            base = noise.astype(np.float32) / np.float32(1 << bits) + np.float32(self.pcan_offset)
            exponent = -float(np.float32(self.pcan_strength))
            powers = np.power(base.astype(np.float64), exponent).astype(np.float32)
            gains = powers * np.float32(1 << self.gain_bits)
            whole = [32767 if g > 32767 else _truncated(g + np.float32(0.5)) for g in gains]
        return np.array(whole).astype(np.int16).astype(np.int64)


def _interpolated(noise: Any, table: Any) -> Any:
    lengths = bit_length(noise)
    start, slope, bend = np.moveaxis(table[lengths], -1, 0)
    shifts = 11 - lengths
    place = ((noise << np.maximum(shifts, 0)) >> np.maximum(-shifts, 0)) & 0x3FF
    rise = ((((bend * place) >> 5) + (slope << 5)) * place).astype(np.int32)
    curve = start + ((rise + np.int32(1 << 14)) >> 15)
    return np.where(noise <= 2, start, curve).astype(np.int16)


@dataclass(frozen=True)
class LogScale:
    """Takes logarithms, and keeps 16 bits."""

    enable_log: bool
    scale_shift: int

    def __call__(self, signal: Any, correction: int) -> Any:
        """Values uint16 of a signal, which is first moved up by `correction` bits.

        Raises:
            InvalidArgumentError: scale_shift is not in [0, 32).
        """
        if self.enable_log:
            up, down = np.uint64(max(correction, 0)), np.uint64(max(-correction, 0))
            numbers = ((signal << up) & _WORD) >> down
            signal = np.where(numbers > np.uint64(1), self._logarithms(numbers), np.uint64(0))
        return np.minimum(signal, np.uint64(0xFFFF)).astype(np.uint16)

    def _logarithms(self, numbers: Any) -> Any:
        shift, values = _shift("scale_shift", self.scale_shift), numbers.astype(np.int64)
        whole = np.maximum(bit_length(values) - 1, 0).astype(np.int64)
        fraction = ((values - (1 << whole)) << _LOG_BITS) >> whole
        segment = fraction >> (_LOG_BITS - _SEGMENT_BITS)
        start, end = _LOGARITHMS[segment], _LOGARITHMS[segment + 1]
        inside = fraction - (segment << (_LOG_BITS - _SEGMENT_BITS))
        binary = (whole << _LOG_BITS) + fraction + start + (((end - start) * inside) >> _LOG_BITS)
        half, down = np.uint64(1 << (_LOG_BITS - 1)), np.uint64(_LOG_BITS)
        natural = (binary.astype(np.uint64) * np.uint64(_LOG_OF_2) + half) >> down
        return (((natural << shift) + half) & _WORD) >> down


_PLACES = np.arange((1 << _SEGMENT_BITS) + 1) / (1 << _SEGMENT_BITS)
_LOGARITHMS = np.append(np.rint((np.log2(1 + _PLACES) - _PLACES) * (1 << _LOG_BITS)), 0).astype(
    np.int64
)
"""How far log2(1 + x) is above x at the bounds of segments, and once more."""
