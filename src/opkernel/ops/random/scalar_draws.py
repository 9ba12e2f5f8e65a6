"""Numbers drawn one by one from the words of a stream, where each decides what is drawn next.

Source: TensorFlow core/lib/random/simple_philox.h, exact_uniform_int.h.
"""

import struct
from collections.abc import Callable

from opkernel.ops.philox import Philox, words_one_by_one

__all__ = ["ScalarDraws"]


class ScalarDraws:
    """As `SimplePhilox`: draws from a stream, word by word."""

    def __init__(self, random: Philox) -> None:
        self._words = words_one_by_one(random)

    def word(self) -> int:
        """A word of 32 bits."""
        return next(self._words)

    def double_word(self) -> int:
        """A word of 64 bits, the lower half first."""
        low, high = self.word(), self.word()
        return low | high << 32

    def uniform(self) -> float:
        """A number of float from 0 to 1, without 1."""
        (number,) = struct.unpack("<f", struct.pack("<I", 127 << 23 | self.word() & 0x7FFFFF))
        return float(number) - 1.0

    def uniform_double(self) -> float:
        """A number from 0 to 1, without 1."""
        high, low = self.word(), self.word()
        bits = 1023 << 52 | (high & 0xFFFFF) << 32 | low
        (number,) = struct.unpack("<d", struct.pack("<Q", bits))
        return float(number) - 1.0

    def below(self, count: int) -> int:
        """An integer from 0 to `count`, without `count`, each as likely."""
        return self._exact(count, self.word, 1 << 32)

    def below_wide(self, count: int) -> int:
        """As `below`, of 64 bits."""
        return self._exact(count, self.double_word, 1 << 64)

    @staticmethod
    def _exact(count: int, draw: Callable[[], int], values: int) -> int:
        """Draws that would favour small integers are left out."""
        if count & count - 1 == 0:
            return draw() & count - 1 if count else draw() * 0
        left_out = (values - 1) % count + 1
        number = draw()
        while number < left_out:
            number = draw()
        return number % count
