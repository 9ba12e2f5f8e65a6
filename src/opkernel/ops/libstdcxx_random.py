"""Random numbers of C++'s standard library: std::mt19937_64, and the order that std::shuffle makes with it.

Source: Nishimura, Tables of 64-bit Mersenne twisters (2000); GCC libstdc++ bits/random.tcc, bits/stl_algo.h,
bits/uniform_int_dist.h.
"""

from collections.abc import Sequence
from typing import TypeVar

_Element = TypeVar("_Element")

_MASK = (1 << 64) - 1
_WORDS, _MIDDLE = 312, 156
_TWIST = 0xB5026F5AA96619E9
_UPPER, _LOWER = _MASK ^ 0x7FFFFFFF, 0x7FFFFFFF
_NEXT_WORD = 6364136223846793005
_TEMPERING = ((17, 0x71D67FFFEDA60000), (37, 0xFFF7EEE000000000))


class MersenneTwister64:
    """As `std::mt19937_64`: integers of 64 bits.

    Args:
        seed: An integer, of which 64 bits count.
    """

    def __init__(self, seed: int) -> None:
        words = [seed & _MASK]
        for i in range(1, _WORDS):
            last = words[-1]
            words.append((_NEXT_WORD * (last ^ last >> 62) + i) & _MASK)
        self._words = words
        self._at = _WORDS

    def __call__(self) -> int:
        """The next integer."""
        if self._at == _WORDS:
            self._twist()
        word = self._words[self._at]
        self._at += 1
        word ^= word >> 29 & 0x5555555555555555
        for shift, mask in _TEMPERING:
            word ^= word << shift & mask
        return word ^ word >> 43

    def below(self, count: int) -> int:
        """An integer from 0 to `count`, without `count`, as `std::uniform_int_distribution` draws it."""
        scale = _MASK // count
        drawn = self()
        while drawn >= count * scale:
            drawn = self()
        return drawn // scale

    def _twist(self) -> None:
        words = self._words
        for i in range(_WORDS):
            both = words[i] & _UPPER | words[(i + 1) % _WORDS] & _LOWER
            words[i] = words[(i + _MIDDLE) % _WORDS] ^ both >> 1 ^ (_TWIST if both & 1 else 0)
        self._at = 0


def shuffled(elements: Sequence[_Element], draw: MersenneTwister64) -> list[_Element]:
    """The elements in the order of `std::shuffle`, which draws two places at once."""
    found = list(elements)

    def swap(i: int, j: int) -> None:
        found[i], found[j] = found[j], found[i]

    first = 1
    if found and len(found) % 2 == 0:
        swap(1, draw.below(2))
        first = 2
    for i in range(first, len(found), 2):
        both = draw.below((i + 1) * (i + 2))
        swap(i, both // (i + 2))
        swap(i + 1, both % (i + 2))
    return found
