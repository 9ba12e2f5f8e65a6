"""Distributions of classes that candidates are drawn from.

Numbers drawn one by one from the words of a stream, where each decides what is drawn next.

Source: TensorFlow core/kernels/range_sampler.cc, core/lib/random/distribution_sampler.cc, weighted_picker.cc,
core/lib/random/simple_philox.h, exact_uniform_int.h.
"""

import itertools
import math
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import in_time
from opkernel.kernel import check_allocation
from opkernel.ops.philox import Philox, words_one_by_one
from opkernel.types import DataType


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


Array = np.ndarray[Any, Any]


_OF_CLASS = 120
"""The bytes that a class takes while its alias is found."""


class Sampler:
    """Draws classes from 0 to a largest one.

    Attributes:
        count: How many classes there are.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def draw(self, draws: ScalarDraws) -> int:
        """A class."""
        raise NotImplementedError(f"{type(self).__name__} does not override draw")

    def probabilities(self, classes: Array) -> Array:
        """How likely each of some classes is: int64 [n] -> float32 [n]."""
        raise NotImplementedError(f"{type(self).__name__} does not override probabilities")

    def learn(self, classes: Array) -> None:
        """Note that these classes were seen."""

    def sample(self, draws: ScalarDraws, size: int, *, unique: bool) -> tuple[Array, int]:
        """So many classes, and how many were drawn until they were all there."""
        if not unique:
            found = [self.draw(draws) for _ in in_time(range(size))]
            return np.array(found, np.int64), size
        classes: dict[int, None] = {}
        for tries in in_time(itertools.count(1)):
            classes[self.draw(draws)] = None
            if len(classes) == size:
                return np.array([*classes], np.int64), tries
        raise AssertionError("counting never ends")


class Uniform(Sampler):
    """Each class is as likely."""

    def draw(self, draws: ScalarDraws) -> int:
        return draws.below_wide(self.count)

    def probabilities(self, classes: Array) -> Array:
        return np.full(classes.shape, 1 / self.count, np.float32)


class LogUniform(Sampler):
    """The logarithm of a class's number is uniform: classes are sorted by their frequency."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._range = math.log1p(count)

    def draw(self, draws: ScalarDraws) -> int:
        return (int(math.exp(draws.uniform_double() * self._range)) - 1) % self.count

    def probabilities(self, classes: Array) -> Array:
        return (np.log((classes + 2.0) / (classes + 1.0)) / self._range).astype(np.float32)


class LearnedUnigram(Sampler):
    """Each class is as likely as it was seen often, and once before."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        check_allocation([count], DataType.DT_INT64)
        self._lock = threading.Lock()
        self._weights = np.ones(count, np.int64)
        self._sums = np.cumsum(self._weights)

    def draw(self, draws: ScalarDraws) -> int:
        place = draws.below(int(self._sums[-1]))
        return int(np.searchsorted(self._sums, place, side="right"))

    def probabilities(self, classes: Array) -> Array:
        total = np.float32(self._sums[-1])
        return self._weights[classes].astype(np.float32) / total

    def learn(self, classes: Array) -> None:
        with self._lock:
            np.add.at(self._weights, classes, 1)
            self._sums = np.cumsum(self._weights)


class FixedUnigram(Sampler):
    """Each class is as likely as a given weight to some power, by Walker's method of aliases.

    Args:
        weights: The weights of all classes that are not reserved.
        distortion: The power.
        reserved: How many classes before them are never drawn.
        shards: How many samplers share the classes.
        shard: Which of these this is.
    """

    def __init__(
        self, weights: Sequence[float], distortion: float, reserved: int, shards: int, shard: int
    ) -> None:
        powers = np.array(weights, np.float64) ** np.float64(distortion)
        own = np.zeros(len(range(shard, reserved, shards)), np.float32)
        # TensorFlow numbers the classes from the sampler's own reserved ones on
        kept = powers.astype(np.float32)[(shard - len(own)) % shards :: shards]
        self._weights = np.concatenate([own, kept])
        super().__init__(len(self._weights))
        self._total = np.cumsum(kept, dtype=np.float32)[-1] if kept.size else np.float32(0)
        self._chances, self._aliases = _aliases(self._weights)

    def draw(self, draws: ScalarDraws) -> int:
        chance = draws.uniform()
        index = draws.below(self.count)
        return index if chance < self._chances[index] else self._aliases[index]

    def probabilities(self, classes: Array) -> Array:
        weights: Array = self._weights[classes] / self._total
        return weights


def _aliases(weights: Array) -> tuple[list[float], list[int]]:
    """Of each class how likely it stands for itself, and which other one it stands for else."""
    count = len(weights)
    with making_bytes("aliases of classes", _OF_CLASS * count):
        return _paired(weights, count)


def _paired(weights: Array, count: int) -> tuple[list[float], list[int]]:
    scaled = (weights * np.float32(count)).astype(np.float64) / float(
        np.cumsum(weights, dtype=np.float64)[-1] if count else 1
    )
    chances: list[float] = scaled.tolist()
    aliases = [-1] * count
    low = [i for i in range(count) if chances[i] < 1]
    high = [i for i in range(count) if not chances[i] < 1]
    for _ in in_time(range(count)):
        if not (high and low):
            break
        small, large = low.pop(), high.pop()
        aliases[small] = large
        chances[large] -= 1 - chances[small]
        (low if chances[large] < 1 else high).append(large)
    for i in (*high, *low):  # by rounding
        chances[i], aliases[i] = 1.0, i
    return np.array(chances).astype(np.float32).tolist(), aliases
