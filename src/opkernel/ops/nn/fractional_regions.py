"""Where the windows of fractional pooling begin: all are of two sizes, in an order drawn by chance.

Source: TensorFlow core/kernels/fractional_pool_common.cc.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.ops.random.philox import Philox, words_one_by_one

_BLOCK = 4


class RegionSource:
    """Regions drawn one dimension after the other from one stream of random numbers."""

    def __init__(self, seed: int, seed2: int, pseudo_random: bool) -> None:
        self._samples = words_one_by_one(Philox.seeded(seed, seed2))
        self._pseudo_random = pseudo_random

    def regions(self, size: int, count: int) -> Any:
        """The beginnings of `count` windows of a dimension of `size`, and its end."""
        lengths = self._even(size, count) if self._pseudo_random else self._shuffled(size, count)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def _reserved(self, count: int) -> Iterator[int]:
        """The next `count` numbers; those that are left of their last block are skipped."""
        return iter([*itertools.islice(self._samples, -(-count // _BLOCK) * _BLOCK)])

    def _shuffled(self, size: int, count: int) -> list[int]:
        least, longer = divmod(size, count)
        lengths = [least + (number < longer) for number in range(count)]
        samples = self._reserved(count)
        for first in range(count - 1):
            other = first + next(samples) % (count - first)
            lengths[first], lengths[other] = lengths[other], lengths[first]
        return lengths

    def _even(self, size: int, count: int) -> list[int]:
        """The windows of a line of the slope `size / count` that begins by chance."""
        alpha, least = size / count, size // count
        most = min((least + 2) / alpha - 1, (size + 1 - least) / alpha - (count - 1))
        samples = self._reserved(2)
        high, low = next(samples), next(samples)
        (one_to_two,) = struct.unpack("<d", struct.pack("<II", low, high & 0xFFFFF | 1023 << 20))
        begin = (one_to_two - 1) * most
        inner = [math.ceil(alpha * (number + begin)) for number in range(1, count)]
        edges = [1, *inner, size + 1]
        return [after - before for before, after in itertools.pairwise(edges)]
