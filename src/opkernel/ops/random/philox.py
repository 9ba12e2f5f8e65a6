"""Streams of random numbers, which a key and a counter determine (Philox4x32-10), and tensors filled with them.

A kernel of a stateful op has a stream, of which each call takes the next part. Tensors are filled tile by tile,
on all intra-op threads.

Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011); PhiloxRandom in TensorFlow
core/lib/random/philox_random.h, FillPhiloxRandom in core/kernels/random_op_cpu.h,
core/util/guarded_philox_random.h, core/lib/random/simple_philox.h, exact_uniform_int.h.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.kernel import OpKernel, OpKernelConstruction, allocate, cut, scratch, shard
from opkernel.types import Array, DataType

_WORD = 1 << 32
_MASK = np.uint64(_WORD - 1)
_HALF = np.uint64(32)
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
_BUFFERS = 5
_FEW_BLOCKS, _MANY_BLOCKS = 4, 1024


@dataclass(frozen=True)
class Philox:
    """A place in a stream of random blocks; a block is four words of 32 bits.

    Attributes:
        key: Chooses the stream: an integer of 64 bits.
        counter: The number of the next block: an integer of 128 bits.
    """

    key: int
    counter: int

    @classmethod
    def seeded(cls, seed: int, seed2: int) -> Philox:
        """As `PhiloxRandom(seed, seed2)`; where both are 0, a stream that the system chooses."""
        if not seed and not seed2:
            seed, seed2 = (int.from_bytes(os.urandom(8), "little") for _ in range(2))
        return cls.seeded_as_given(seed, seed2)

    @classmethod
    def seeded_as_given(cls, seed: int, seed2: int) -> Philox:
        """As `PhiloxRandom(seed, seed2)`, also where both are 0."""
        return cls(seed % (1 << 64), seed2 % (1 << 64) << 64)

    @classmethod
    def at(cls, place: Array) -> Philox:
        """The place that `place` gave."""
        key, low, high = place.tolist()
        return cls(key, low | high << 64)

    def place(self) -> Array:
        """The key, and the lower and the upper half of the counter: uint64 [3]."""
        mask = (1 << 64) - 1
        return np.array([self.key, self.counter & mask, self.counter >> 64], np.uint64)

    def skip(self, blocks: int) -> Philox:
        """The place so many blocks further on."""
        return Philox(self.key, (self.counter + blocks) % (1 << 128))

    def blocks(self, count: int) -> Array:
        """The next blocks: uint32 [count, 4]."""
        first = self.counter % _WORD
        if first + count > _WORD:
            return self.blocks_at(np.arange(count, dtype=np.uint64))
        free = list(scratch("Philox words", (_BUFFERS, count), np.dtype(np.uint64)))
        low = free.pop()
        low[:] = np.arange(first, first + count, dtype=np.uint64)
        rest = (np.uint64(self.counter >> shift & 0xFFFFFFFF) for shift in (32, 64, 96))
        return _enciphered(self.key, [low, *rest], free)

    def blocks_at(self, offsets: Array) -> Array:
        """The blocks at distances from here: uint64 [n] -> uint32 [n, 4]."""
        low, high = (np.uint64(self.counter >> shift & (1 << 64) - 1) for shift in (0, 64))
        lower = low + offsets
        upper = high + (lower < offsets)  # the carry
        words = [lower & _MASK, lower >> _HALF, upper & _MASK, upper >> _HALF]
        return _enciphered(self.key, words, [np.empty_like(lower)])


def _enciphered(key: int, words: list[Any], free: list[Any]) -> Array:
    """The blocks of counters, whose words are arrays of uint64, or scalars that all blocks share.

    The arrays are written over; `free` are further ones, of which two become words for each scalar.
    """
    c0, c1, c2, c3 = words
    k0, k1 = key % _WORD, key >> 32
    with np.errstate(over="ignore"):
        for _ in range(ROUNDS):
            p0, p1 = _product(c0, MULTIPLIERS[0]), _product(c2, MULTIPLIERS[1])
            c0, c2 = _mixed(p1, c1, np.uint64(k0), free), _mixed(p0, c3, np.uint64(k1), free)
            c1, c3 = _low(p1), _low(p0)
            k0, k1 = (k0 + WEYL[0]) % _WORD, (k1 + WEYL[1]) % _WORD
    halves = np.empty((len(c0), 2), np.uint64)
    for i, (low, high) in enumerate(((c0, c1), (c2, c3))):
        np.left_shift(high, _HALF, out=high)
        np.bitwise_or(low, high, out=halves[:, i])
    return halves.view(np.uint32)


def _product(word: Any, multiplier: np.uint64) -> Any:
    if isinstance(word, np.ndarray):
        return np.multiply(word, multiplier, out=word)
    return word * multiplier


def _low(product: Any) -> Any:
    if isinstance(product, np.ndarray):
        return np.bitwise_and(product, _MASK, out=product)
    return product & _MASK


def _mixed(product: Any, word: Any, key: np.uint64, free: list[Any]) -> Any:
    """The upper half of a product, with a word and a key; it takes the memory of the word."""
    if not isinstance(product, np.ndarray):
        upper = product >> _HALF ^ key
        return np.bitwise_xor(word, upper, out=word if isinstance(word, np.ndarray) else None)
    if not isinstance(word, np.ndarray):
        upper = np.right_shift(product, _HALF, out=free.pop())
        return np.bitwise_xor(upper, word ^ key, out=upper)
    upper = np.right_shift(product, _HALF, out=free[-1])
    np.bitwise_xor(word, upper, out=word)
    return np.bitwise_xor(word, key, out=word)


def words_one_by_one(random: Philox) -> Iterator[int]:
    """The words without end, one after the other."""
    count = _FEW_BLOCKS
    while True:
        yield from random.blocks(count).reshape(-1).tolist()
        random = random.skip(count)
        count = min(2 * count, _MANY_BLOCKS)


BLOCKS_PER_OUTPUT = 256
"""Blocks that a generator skips for each number it gives, whatever the numbers need."""


def filled(
    shape: tuple[int, ...],
    dtype: DataType,
    values: Callable[[slice], Array],
    group: int,
    tile: int,
) -> Array:
    """A tensor whose elements come in groups.

    Args:
        shape: The shape.
        dtype: The type.
        values: The elements of the groups of a range, at least.
        group: How many elements a group has.
        tile: How many groups are computed at once.

    Raises:
        ResourceExhaustedError: the tensor is larger than the allocation limit.
    """
    output = allocate(shape, dtype)
    flat = output.reshape(-1)

    def fill(part: slice) -> None:
        piece = flat[part.start * group : part.stop * group]
        piece[:] = values(part).reshape(-1)[: piece.size]

    if flat.size:
        groups = -(-flat.size // group)
        shard(fill, cut(groups, -(-groups // tile)))
    return output


class GuardedPhilox:
    """A stream that the attrs `seed` and `seed2` of a node choose; both 0: the system does."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        self._lock = threading.Lock()
        self._next = Philox.seeded(construction.get_attr("seed"), construction.get_attr("seed2"))

    def reserve(self, blocks: int) -> Philox:
        """The place where so many blocks begin, which no other call gets."""
        with self._lock:
            place = self._next
            self._next = place.skip(blocks)
        return place

    def reserve_outputs(self, count: int) -> Philox:
        """The place of the blocks of so many numbers."""
        return self.reserve(count * BLOCKS_PER_OUTPUT)

    def reserve_words(self, count: int) -> Philox:
        """The place of at least so many words."""
        return self.reserve(-(-count // 4))


class StreamKernel(OpKernel):
    """A kernel with a stream of random numbers of its own."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = self.output_types[0]
        self.generator = GuardedPhilox(construction)


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
        return self.float_of(self.word())

    @staticmethod
    def float_of(word: int) -> float:
        """The number of float from 0 to 1, without 1, that a word stands for."""
        (number,) = struct.unpack("<f", struct.pack("<I", 127 << 23 | word & 0x7FFFFF))
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
