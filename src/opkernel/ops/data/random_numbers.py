"""Random numbers of datasets: streams that can be saved, and the generators of their seeds.

Source: TensorFlow core/kernels/data/random_seed_ops.{h,cc}, core/data/dataset_utils.cc; SingleSampleAdapter in
core/lib/random/random_distributions.h.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import TypeAlias

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import Step
from opkernel.ops.data.dataset import DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode
from opkernel.ops.random.philox import Philox, ScalarDraws, words_one_by_one

Seeds: TypeAlias = tuple[int, int]


def seeds_of(node: DatasetNode) -> Seeds:
    """The inputs `seed` and `seed2`; seeds of the system where both are 0."""
    seeds = node.scalar("seed"), node.scalar("seed2")
    return seeds if any(seeds) else system_seeds()


def system_seeds() -> Seeds:
    """Seeds that nobody has chosen."""
    first, second = (int.from_bytes(os.urandom(8), "little", signed=True) for _ in range(2))
    return first, second


class RandomNumbers(DatasetIterator):
    """The words of a stream of Philox, one by one; the number of those used is the state.

    Args:
        seed, seed2: Choose the stream.
    """

    state = ("seeds", "used")

    def __init__(self, seed: int, seed2: int) -> None:
        self.seeds = (seed, seed2)
        super().__init__(None)

    def start(self) -> None:
        self.used = 0
        self._words = words_one_by_one(Philox.seeded_as_given(*self.seeds))

    def restored(self, step: Step) -> None:
        self.go_to(self.used)

    def go_to(self, used: int) -> None:
        """Go on after so many words."""
        self.used = used
        blocks, rest = divmod(used, 4)
        self._words = words_one_by_one(Philox.seeded_as_given(*self.seeds).skip(blocks))
        next(itertools.islice(self._words, rest, rest), None)

    def next(self, step: Step) -> Element | None:
        """Nothing: numbers come by `word`."""
        return None

    def word(self) -> int:
        """The next word of 32 bits."""
        self.used += 1
        return next(self._words)

    def uniform(self) -> float:
        """A number of float from 0 to 1, without 1."""
        return ScalarDraws.float_of(self.word())


class SeedGenerator:
    """Gives the seeds of each pass over a dataset; used from any thread.

    Args:
        seeds: What the seeds follow from.
        changes: Whether each pass has other seeds, rather than these.
    """

    def __init__(self, seeds: Seeds, *, changes: bool) -> None:
        self._seeds, self._changes = seeds, changes
        self._numbers = RandomNumbers(*seeds)
        self._lock = threading.Lock()

    def next(self) -> Seeds:
        """The seeds of the next pass."""
        if not self._changes:
            return self._seeds
        with self._lock:
            return self._numbers.word(), self._numbers.word()

    @property
    def seeds(self) -> Seeds:
        """The seeds of random access; where all passes have the same, TensorFlow takes the first one twice."""
        return self._seeds if self._changes else (self._seeds[0], self._seeds[0])

    @property
    def used(self) -> int:
        """How many numbers it has given."""
        return self._numbers.used

    def go_to(self, used: int) -> None:
        """Go on after so many numbers.

        Raises:
            InvalidArgumentError: it is no number.
        """
        if type(used) is not int or used < 0:
            raise InvalidArgumentError(f"A generator of seeds cannot have given {used!r} numbers")
        with self._lock:
            self._numbers.go_to(used)
