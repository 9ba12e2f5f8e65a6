"""Some elements of a dataset, or all of them more than once: take, skip, repeat, shard, take while, filter, unique.

Source: TensorFlow core/kernels/data/take_dataset_op.cc, skip_dataset_op.cc, repeat_dataset_op.cc,
shard_dataset_op.cc, filter_dataset_op.cc, experimental/take_while_dataset_op.cc, unique_dataset_op.cc,
sampling_dataset_op.cc.
"""

from __future__ import annotations

from typing import Any

from opkernel.device.budget import check_time
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import Step
from opkernel.ops.data.dataset import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    DatasetBase,
    DatasetIterator,
    Element,
    InputIterator,
    KeysInMemory,
)
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.random_numbers import RandomNumbers, seeds_of
from opkernel.types import DataType

__all__ = ["FilterDataset", "SamplingDataset", "ShardDataset", "SkipDataset", "TakeWhileDataset"]


class SelectionDataset(DatasetBase):
    """Elements of another dataset."""

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        super().__init__(source.dtypes, source.shapes, [source])


class _TakeIterator(InputIterator):
    state = ("input", "taken")

    def start(self) -> None:
        super().start()
        self.taken = 0

    def next(self, step: Step) -> Element | None:
        if 0 <= self.dataset.count <= self.taken:
            return None
        element = self.input.next(step)  # where it fails, it is not one of those to be taken
        self.taken += 1
        return element


@dataset_op("TakeDataset", doc="The first `count` elements; all where it is negative.")
class TakeDataset(SelectionDataset):
    """The first elements."""

    iterator_type = _TakeIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.count: int = max(node.scalar("count"), -1)

    def cardinality(self) -> int:
        size = self.input.cardinality()
        if size == UNKNOWN_CARDINALITY or self.count < 0:
            return size
        return self.count if size == INFINITE_CARDINALITY else min(size, self.count)


def _skip(source: DatasetIterator, step: Step, count: int) -> int:
    """Read so many elements, or all where the pass ends before; the number of those that were read."""
    for number in range(count):
        if source.next(step) is None:
            return number
        step.check()
        check_time("skipping elements")
    return max(count, 0)


class _SkipIterator(InputIterator):
    state = ("input", "has_skipped")

    def start(self) -> None:
        super().start()
        self.has_skipped = False

    def next(self, step: Step) -> Element | None:
        count = self.dataset.count
        if count < 0:
            return None
        if not self.has_skipped:
            _skip(self.input, step, count)
            self.has_skipped = True
        return self.input.next(step)


@dataset_op("SkipDataset", doc="All but the first `count` elements; none where it is negative.")
class SkipDataset(SelectionDataset):
    """All but the first elements."""

    iterator_type = _SkipIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.count = node.scalar("count")

    def cardinality(self) -> int:
        size = self.input.cardinality()
        if size < 0:
            return size
        return 0 if self.count < 0 else max(size - self.count, 0)


class _RepeatIterator(DatasetIterator):
    """Begins a new pass over the input at the end of each; not after one without elements, if it is to go on for ever.

    A new pass begins after the last one, too: it takes its seeds from a shuffle, as in TensorFlow.
    """

    state = ("epoch", "input", "is_new")

    def start(self) -> None:
        self.epoch = 0
        self.is_new = True
        self.input: DatasetIterator | None = None
        if self.dataset.count:
            self.input = self.dataset.input.iterator()

    def next(self, step: Step) -> Element | None:
        count = self.dataset.count
        while self.input is not None and (count < 0 or self.epoch < count):
            element = self.input.next(step)
            if element is not None:
                self.is_new = False
                return element
            self.input.close()
            self.epoch += 1
            if self.is_new and count < 0:
                self.input = None
                return None
            self.is_new = True
            step.check()
            self.input = self.dataset.input.iterator()
        return None


@dataset_op("RepeatDataset", doc="All elements `count` times; for ever where it is negative.")
class RepeatDataset(SelectionDataset):
    """The elements over and over."""

    iterator_type = _RepeatIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.count: int = max(node.scalar("count"), -1)

    def cardinality(self) -> int:
        size = self.input.cardinality()
        if self.count < 0:
            return size and INFINITE_CARDINALITY
        return size * self.count if size >= 0 or not self.count else size


SHARD_HINT = -1
"""The number of shards that asks AutoShardDataset to put in the right one."""


class _ShardIterator(InputIterator):
    state = ("input", "index")

    def start(self) -> None:
        if self.dataset.num_shards == SHARD_HINT:
            raise FailedPreconditionError(
                f"The number of shards is {SHARD_HINT}, a hint: apply AutoShardDataset with the policy HINT"
            )
        super().start()
        self.index = 0

    def next(self, step: Step) -> Element | None:
        shards = self.dataset.num_shards
        others = (self.dataset.index - self.index) % shards
        # Where another shard's element fails, those before it are forgotten, as in TensorFlow.
        if _skip(self.input, step, others) < others:
            return None
        self.index += others
        element = self.input.next(step)
        if element is not None:
            self.index += 1
            if self.dataset.require_non_empty and self.index < shards:
                self._read_first_of_others(step)
        return element

    def _read_first_of_others(self, step: Step) -> None:
        """Go on to this shard's next turn; an InvalidArgumentError where a shard behind it has no element."""
        shards = self.dataset.num_shards
        found = self.index + _skip(self.input, step, shards - self.index)
        if found < shards:
            raise InvalidArgumentError(
                "Could not apply FILE based sharding: the dataset only has "
                f"{found} file(s), which is not enough for the required {shards} shards/workers."
            )
        self.index = shards


class ShardedDataset(SelectionDataset):
    """Every n-th element.

    Args:
        node: The node.
        num_shards: The n.
        index: The first element.
        require_non_empty: Whether each shard must have an element.
    """

    iterator_type = _ShardIterator

    def __init__(
        self, node: DatasetNode, num_shards: int, index: int, *, require_non_empty: bool = False
    ) -> None:
        super().__init__(node)
        self.num_shards, self.index = num_shards, index
        self.require_non_empty = require_non_empty
        if self.num_shards == SHARD_HINT:
            return
        if self.num_shards <= 0:
            raise InvalidArgumentError(
                "Number of shards must be greater than zero (currently num_shards = "
                f"{self.num_shards})."
            )
        if not 0 <= self.index < self.num_shards:
            raise InvalidArgumentError(
                f"Index must be between 0 and {self.num_shards - 1} (currently index = "
                f"{self.index})."
            )

    def cardinality(self) -> int:
        size = self.input.cardinality()
        if size < 0 or self.num_shards == SHARD_HINT:
            return size
        return size // self.num_shards + (self.index < size % self.num_shards)


@dataset_op(
    "ShardDataset", doc="Every `num_shards`-th element, beginning with the element number `index`."
)
class ShardDataset(ShardedDataset):
    """Every n-th element, as the inputs say."""

    def __init__(self, node: DatasetNode) -> None:
        numbers = node.scalar("num_shards"), node.scalar("index")
        super().__init__(node, *numbers, require_non_empty=node.attr("require_non_empty"))


class _FilterIterator(InputIterator):
    def next(self, step: Step) -> Element | None:
        for element in self.inputs(step, "filtering a dataset"):
            if self.dataset.predicate.flag(step, element):
                return element
        return None


@dataset_op("FilterDataset", doc="The elements that `predicate` holds for.")
@dataset_op("ParallelFilterDataset", doc="The elements that `predicate` holds for.")
class FilterDataset(SelectionDataset):
    """The elements for which a function is true."""

    iterator_type = _FilterIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.predicate = node.function("predicate", "other_arguments", self.dtypes)


class _TakeWhileIterator(InputIterator):
    state = ("input", "is_over")

    def start(self) -> None:
        super().start()
        self.is_over = False

    def next(self, step: Step) -> Element | None:
        if self.is_over:
            return None
        element = self.input.next(step)
        if element is not None and self.dataset.predicate.flag(step, element):
            return element
        self.is_over = True
        return None


@dataset_op(
    "TakeWhileDataset",
    "ExperimentalTakeWhileDataset",
    doc="The elements before the first one that `predicate` does not hold for.",
)
class TakeWhileDataset(SelectionDataset):
    """The elements up to the first for which a function is false."""

    iterator_type = _TakeWhileIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.predicate = node.function("predicate", "other_arguments", self.dtypes)


class _UniqueIterator(InputIterator):
    state = ("input", "seen")

    def start(self) -> None:
        super().start()
        self.seen: dict[Any, None] = {}
        self._keys = KeysInMemory()

    def restored(self, step: Step) -> None:
        self._keys = KeysInMemory(self.seen)

    def next(self, step: Step) -> Element | None:
        for element in self.inputs(step, "looking for new elements"):
            (tensor,) = element
            content = tensor.tolist() if tensor.dtype == object else tensor.tobytes()
            key = f"({tensor.shape}, {content!r})"
            if key not in self.seen:
                self._keys.add(key)
                self.seen[key] = None
                return element
        return None


@dataset_op("UniqueDataset", "ExperimentalUniqueDataset", doc="Each element once.")
class UniqueDataset(SelectionDataset):
    """The elements without those that came before."""

    iterator_type = _UniqueIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        if len(self.dtypes) != 1 or self.dtypes[0] not in _COMPARED:
            raise InvalidArgumentError(
                "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or "
                "`tf.string` component."
            )


_COMPARED = (DataType.DT_INT32, DataType.DT_INT64, DataType.DT_STRING)


class _SamplingIterator(InputIterator):
    state = ("input", "numbers")

    def start(self) -> None:
        super().start()
        self.numbers = RandomNumbers(*self.dataset.seeds)

    def next(self, step: Step) -> Element | None:
        for element in self.inputs(step, "sampling a dataset"):
            if self.numbers.uniform() < self.dataset.rate:
                return element
        return None


@dataset_op("SamplingDataset", doc="Elements at random: each with the probability `rate`.")
class SamplingDataset(SelectionDataset):
    """Each element with a probability."""

    iterator_type = _SamplingIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.rate = node.scalar("rate")
        self.seeds = seeds_of(node)
