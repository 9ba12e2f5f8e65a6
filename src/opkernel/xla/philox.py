"""Philox4x32-10 in programs: the blocks of streams whose key and counter are values of the program.

Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011); opkernel.ops.philox is the same of known
numbers.
"""

from __future__ import annotations

from typing import Any

from opkernel.ops.philox import MULTIPLIERS, ROUNDS, WEYL
from opkernel.records import dataclass
from opkernel.xla.jax_numpy import jnp, lax

_MASK = 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class PhiloxStream:
    """A place in a stream of random blocks; a block is four words of 32 bits.

    Attributes:
        key: Chooses the stream: a scalar of uint64.
        low, high: The halves of the number of the next block, also.
    """

    key: Any
    low: Any
    high: Any

    def skipped(self, blocks: Any) -> PhiloxStream:
        """The places at distances from here: of blocks of uint64, any number at once."""
        low = self.low + blocks
        return PhiloxStream(self.key, low, self.high + (low < blocks))  # with the carry

    def blocks_at(self, offsets: Any) -> Any:
        """The blocks at distances from here: uint64 [n] -> uint32 [n, 4]."""
        place = self.skipped(offsets)
        words = [half for pair in (place.low, place.high) for half in _halves(pair)]
        return _enciphered(self.key, words)

    def blocks(self, count: int) -> Any:
        """The next blocks: uint32 [count, 4]."""
        return self.blocks_at(jnp().arange(count, dtype=jnp().uint64))


def _halves(value: Any) -> tuple[Any, Any]:
    """The lower and the upper 32 bits of uint64, as uint64."""
    return value & _MASK, lax().shift_right_logical(value, jnp().full_like(value, 32))


def _enciphered(key: Any, words: list[Any]) -> Any:
    c0, c1, c2, c3 = words
    k0, k1 = _halves(key)
    for _ in range(ROUNDS):
        (low0, high0), (low1, high1) = _halves(c0 * MULTIPLIERS[0]), _halves(c2 * MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + WEYL[0]) & _MASK, (k1 + WEYL[1]) & _MASK
    return jnp().stack([c0, c1, c2, c3], axis=-1).astype(jnp().uint32)
