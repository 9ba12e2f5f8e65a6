"""FixedPointFourier: the Fourier transform of 16-bit numbers.

Source: kissfft 131.1.0, which TensorFlow builds with 16-bit numbers: kiss_fft.c, kiss_fftr.c.
"""

from typing import Any

import numpy as np


class FixedPointFourier:
    """The Fourier transform of real 16-bit numbers, divided by their count and rounded at each step.

    Complex numbers are int32 arrays [2, ...] of 16-bit parts.

    Args:
        size: How many numbers are transformed: a power of two, at least 2.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._half = half = size // 2
        self._radices = [4] * ((half.bit_length() - 1) // 2) + [2] * (half.bit_length() % 2 == 0)
        self._turns = _unit(-2 * np.pi * np.arange(half) / half)
        self._last_turns = _unit(-np.pi * (np.arange(1, half // 2 + 1) / half + 0.5))

    def __call__(self, samples: Any) -> Any:
        """Frequencies [2, frames, size / 2 + 1] of int32 samples [frames, size], of which 16 bits count."""
        half = self._half
        pairs = _int16(np.stack([samples[:, ::2], samples[:, 1::2]]))
        packed = self._recombined(pairs, self._radices) if half > 1 else _scaled(pairs, 1)
        result = np.zeros((2, len(samples), half + 1), np.int32)
        ends = _scaled(packed[..., 0], 2)
        result[0, :, 0] = _int16(ends[0] + ends[1])
        result[0, :, half] = _int16(ends[0] - ends[1])
        count = half // 2
        ahead = packed[..., 1 : count + 1]
        back = packed[..., half - count :][..., ::-1]
        ahead, back = _scaled(ahead, 2), _scaled(_int16(back * _CONJUGATE), 2)
        even, odd = _int16(ahead + back), _product(_int16(ahead - back), self._last_turns)
        result[..., 1 : count + 1] = (even + odd) >> 1
        result[..., half - count : half] = (((even - odd) * _CONJUGATE) >> 1)[..., ::-1]
        return result

    def _recombined(self, numbers: Any, radices: list[int]) -> Any:
        """The transform along the last axis, made of those of every second or fourth number."""
        *batch, size = numbers.shape
        radix, *rest = radices
        parts = numbers.reshape(*batch, size // radix, radix).swapaxes(-1, -2)
        if rest:
            parts = self._recombined(parts, rest)
        parts = _scaled(parts, radix)
        places = np.outer(np.arange(1, radix), np.arange(size // radix)) * (self._half // size)
        first, turned = parts[..., 0, :], _product(parts[..., 1:, :], self._turns[:, places])
        join = _joined_by_four if radix == 4 else _joined_by_two
        return _int16(np.stack(join(first, turned), axis=-2)).reshape(*batch, size)


_CONJUGATE = np.array([1, -1], np.int32).reshape(2, 1, 1)


def _joined_by_two(first: Any, turned: Any) -> list[Any]:
    other = turned[..., 0, :]
    return [first + other, first - other]


def _joined_by_four(first: Any, turned: Any) -> list[Any]:
    second, third, fourth = (turned[..., place, :] for place in range(3))
    total, difference = first + third, first - third
    outer, (real, imaginary) = second + fourth, second - fourth
    quarter = np.stack([imaginary, -real])
    return [total + outer, difference + quarter, total - outer, difference - quarter]


def _unit(angles: Any) -> Any:
    return np.floor(0.5 + 32767 * np.stack([np.cos(angles), np.sin(angles)])).astype(np.int32)


def _int16(values: Any) -> Any:
    """Of each number what 16 bits hold."""
    return values.astype(np.int16).astype(np.int32)


def _rounded(values: Any) -> Any:
    return _int16((values + (1 << 14)) >> 15)


def _scaled(values: Any, divisor: int) -> Any:
    return _rounded(values * np.int32(32767 // divisor))


def _product(first: Any, second: Any) -> Any:
    (a, b), (c, d) = first, second
    return np.stack([_rounded(a * c - b * d), _rounded(a * d + b * c)])
