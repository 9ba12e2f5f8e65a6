"""Datasets made flat whose elements have numbers, so that they can be shuffled as a whole.

Source: TensorFlow core/kernels/data/experimental/index_flat_map_dataset_op.cc, weighted_flat_map_dataset_op.cc.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import Step
from opkernel.ops.data.combinations import check_alike
from opkernel.ops.data.dataset import (
    INFINITE_CARDINALITY,
    DatasetBase,
    DatasetIterator,
    Element,
    InputIterator,
)
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.random_access import element_at, register_random_access
from opkernel.types import DataType

__all__ = ["IndexFlatMapDataset"]

_NUMBERS = (DataType.DT_INT32, DataType.DT_INT64, DataType.DT_UINT32, DataType.DT_UINT64)


class _IndexFlatMapIterator(InputIterator):
    state = ("input", "count", "input_count", "current")

    def start(self) -> None:
        super().start()
        self.count = self.input_count = 0
        self.current: Element | None = None

    def next(self, step: Step) -> Element | None:
        dataset = self.dataset
        number, offset = dataset.place(step, self.count)
        if number > self.input_count or self.current is None:
            self.current = None
            element = self.input.next(step)
            if element is None:
                return None
            self.current = dataset.map_func(step, element)
            self.input_count = number
        self.count += 1
        return _row_of(self.current, offset)


def _row_of(element: Element, offset: int) -> Element:
    """The row of each tensor; scalars as they are.

    Raises:
        InvalidArgumentError: there is no such row.
    """
    for tensor in element:
        if tensor.ndim and not 0 <= offset < len(tensor):
            raise InvalidArgumentError(
                f"`index_map_func` gives the offset {offset} in a tensor of {len(tensor)} rows"
            )
    return tuple([tensor[offset, ...] if tensor.ndim else tensor for tensor in element])


@dataset_op(
    "IndexFlatMapDataset",
    doc="The rows of what `map_func` gives; `index_map_func` says where the element of a number is.",
)
class IndexFlatMapDataset(DatasetBase):
    """The rows of mapped elements, which have numbers."""

    iterator_type = _IndexFlatMapIterator

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        super().__init__(node.dtypes, node.shapes, [source])
        self.map_func = node.function("map_func", "map_func_other_args", source.dtypes)
        self._index_map_func = node.function(
            "index_map_func", "index_map_func_other_args", [DataType.DT_INT64]
        )
        self._size: int = node.scalar("output_cardinality")

    def cardinality(self) -> int:
        return self._size

    def place(self, step: Step, index: int) -> tuple[int, int]:
        """The number of the input's element and the row in it that are the element of a number.

        Raises:
            InvalidArgumentError: the function gives something else than two numbers.
        """
        found = self._index_map_func(step, (np.int64(index),))
        types = self._index_map_func.gives
        if len(found) != 2 or any(t not in _NUMBERS for t in types) or any(x.ndim for x in found):
            raise InvalidArgumentError(
                "index_map_func must give two integers, the number of an element and that of a row "
                f"in it, not {found}"
            )
        return int(found[0]), int(found[1])


@register_random_access(IndexFlatMapDataset)
def _of_index_flat_map(dataset: IndexFlatMapDataset, step: Step, index: int) -> Element:
    number, offset = dataset.place(step, index)
    return _row_of(dataset.map_func(step, element_at(dataset.input, step, number)), offset)


class _WeightedIterator(DatasetIterator):
    state = ("passes", "count")

    def start(self) -> None:
        self.passes = [one.iterator() for one in self.dataset.inputs]
        self.count = 0

    def next(self, step: Step) -> Element | None:
        if self.count >= self.dataset.cardinality():
            return None
        element: Element | None = self.passes[self.dataset.number_of(self.count)].next(step)
        self.count += 1
        return element


@dataset_op(
    "WeightedFlatMapDataset",
    doc="Elements of each of several datasets, as many as its weight says, one dataset after the other.",
)
class WeightedFlatMapDataset(DatasetBase):
    """The first elements of several datasets, in numbers that are in proportion to weights."""

    iterator_type = _WeightedIterator

    def __init__(self, node: DatasetNode) -> None:
        inputs = node.datasets("input_datasets")
        weights = [float(weight) for weight in node.tensors("weights")]
        if len(weights) != len(inputs):
            raise InvalidArgumentError(
                f"There are {len(inputs)} input_datasets, and {len(weights)} weights for them"
            )
        check_alike(inputs, "Datasets of one type of elements can be joined, not {} and {}")
        super().__init__(node.dtypes, node.shapes, inputs)
        self._ends = [*accumulate(_weighted_sizes(inputs, weights))]

    def cardinality(self) -> int:
        return self._ends[-1]

    def number_of(self, index: int) -> int:
        """The number of the dataset that has the element of a number."""
        return bisect_right(self._ends, index)


def _weighted_sizes(inputs: list[DatasetBase], weights: list[float]) -> list[int]:
    """How many elements each dataset gives: as many as there are until one of them has no more."""
    sizes = [dataset.cardinality() for dataset in inputs]
    for number, size in enumerate(sizes):
        if size < 0:
            kind = "infinite" if size == INFINITE_CARDINALITY else "unknown"
            raise InvalidArgumentError(
                f"Cardinalities of the inputs must be known. Input {number} has {kind} cardinality."
            )
    for number, weight in enumerate(weights):
        if not weight > 0:
            raise InvalidArgumentError(
                f"The weight of input {number} is {weight}, and has to be above 0"
            )
    largest = max(weights)
    shares = [size * weight / largest for size, weight in zip(sizes, weights, strict=True)]
    least = min(shares)
    first = weights[shares.index(least)]
    found = [int(least * weight / first) for weight in weights]
    for number, (count, size) in enumerate(zip(found, sizes, strict=True)):
        if count > size:
            raise InvalidArgumentError(
                f"Input {number} has {size} elements, and its weight asks for {count}"
            )
    return found
