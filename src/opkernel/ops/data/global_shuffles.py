"""A dataset in random order, all of it without a buffer: each element is asked for by its number.

Source: TensorFlow core/kernels/data/experimental/global_shuffle_dataset_op.cc, core/data/global_shuffle_utils.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import Step
from opkernel.ops.data.dataset import DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.passed_on import SameDataset
from opkernel.ops.data.random_access import check_shuffles, element_at
from opkernel.ops.data.random_numbers import seeds_of
from opkernel.ops.data.shuffles import generator_of
from opkernel.ops.random.shuffle import random_index_shuffle
from opkernel.types import DataType

__all__ = ["GlobalShuffleDataset"]

_ROUNDS = 8
_AT_ONCE = 512
"""So many numbers are computed at a time."""
_shuffled = random_index_shuffle(rounds=_ROUNDS, dtype=DataType.DT_UINT64)


class _GlobalShuffleIterator(DatasetIterator):
    state = ("seeds", "seeds_used", "position")

    def start(self) -> None:
        generator = self.dataset.generator
        (first, second), (third, _) = generator.next(), generator.next()
        self.seeds = [first, second, third]
        self.seeds_used, self.position = generator.used, 0
        self._numbers: list[int] = []
        self._size: int = self.dataset.cardinality()

    def restored(self, step: Step) -> None:
        self.dataset.generator.go_to(self.seeds_used)
        self._numbers = self._computed(self.position // _AT_ONCE * _AT_ONCE)

    def next(self, step: Step) -> Element | None:
        if self.position >= self._size:
            return None
        place = self.position % _AT_ONCE
        if not place:
            self._numbers = self._computed(self.position)
        self.position += 1
        try:
            return element_at(self.dataset.input, step, self._numbers[place])
        except OutOfRangeError:  # as the end of the input
            return None

    def _computed(self, start: int) -> list[int]:
        """The numbers of the elements for the positions from `start` on."""
        positions = np.arange(start, min(start + _AT_ONCE, self._size), dtype=np.uint64)
        if not positions.size:
            return []
        seeds = np.array(self.seeds, np.int64)
        numbers: list[int] = _shuffled(positions, seeds, np.uint64(self._size - 1)).tolist()
        return numbers


@dataset_op(
    "GlobalShuffleDataset",
    doc="The elements in random order, by random access to a dataset of known size.",
)
class GlobalShuffleDataset(SameDataset):
    """The elements of another dataset in random order."""

    iterator_type = _GlobalShuffleIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        check_shuffles(self.input)
        if self.input.cardinality() <= 0:
            raise InvalidArgumentError(
                f"{self.input!r} cannot be shuffled as a whole: its number of elements is "
                f"{self.input.cardinality()}, and has to be above 0"
            )
        changes: bool = node.attr("reshuffle_each_iteration")
        self.generator: Any = generator_of(node, seeds_of(node), changes=changes)
