"""Several datasets as one: one after the other, side by side, or as a selector says.

Source: TensorFlow core/kernels/data/concatenate_dataset_op.cc, zip_dataset_op.cc,
experimental/directed_interleave_dataset_op.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.kernel import Step
from opkernel.ops.data.dataset import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    DatasetBase,
    DatasetIterator,
    Element,
)
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.types import DataType, PartialTensorShape

__all__ = ["ConcatenateDataset", "DirectedInterleaveDataset", "ZipDataset"]


def common_shapes(datasets: Sequence[DatasetBase]) -> list[PartialTensorShape]:
    """What the shapes of the elements of all datasets have in common."""
    columns = zip(*[dataset.shapes for dataset in datasets], strict=True)
    return [reduce(PartialTensorShape.most_specific_compatible_shape, shapes) for shapes in columns]


def check_alike(datasets: Sequence[DatasetBase], message: str) -> None:
    """Raise InvalidArgumentError unless the elements of all datasets are of the same types."""
    for dataset in datasets[1:]:
        if dataset.dtypes != datasets[0].dtypes:
            raise InvalidArgumentError(message.format(datasets[0], dataset))


class _SeveralIterator(DatasetIterator):
    """Has a pass over each input; None for one that is over."""

    state: ClassVar[tuple[str, ...]] = ("passes",)

    def start(self) -> None:
        self.passes: list[DatasetIterator | None]
        self.passes = [dataset.iterator() for dataset in self.dataset.inputs]


class _ConcatenateIterator(DatasetIterator):
    state = ("number", "input")

    def start(self) -> None:
        self.number = 0
        self.input: DatasetIterator = self.dataset.inputs[0].iterator()

    def restored(self, step: Step) -> None:
        self.input = self.dataset.inputs[self.number].iterator()

    def next(self, step: Step) -> Element | None:
        inputs = self.dataset.inputs
        while (element := self.input.next(step)) is None and self.number + 1 < len(inputs):
            self.input.close()
            self.number += 1
            self.input = inputs[self.number].iterator()
        return element


@dataset_op(
    "ConcatenateDataset", doc="The elements of `input_dataset`, then those of `another_dataset`."
)
class ConcatenateDataset(DatasetBase):
    """The elements of one dataset, then those of another."""

    iterator_type = _ConcatenateIterator

    def __init__(self, node: DatasetNode) -> None:
        both = [node.dataset(), node.dataset("another_dataset")]
        check_alike(both, "input dataset and another dataset have different output_types {} and {}")
        super().__init__(both[0].dtypes, common_shapes(both), both)

    def cardinality(self) -> int:
        sizes = [dataset.cardinality() for dataset in self.inputs]
        for special in (INFINITE_CARDINALITY, UNKNOWN_CARDINALITY):
            if special in sizes:
                return special
        return sum(sizes)


class _ZipIterator(_SeveralIterator):
    """Where one input fails, the others go on, too: their elements stay side by side. The first end ends them all."""

    def next(self, step: Step) -> Element | None:
        found: Element = ()
        failure: OpError | None = None
        for one in self.passes:
            try:
                element = None if one is None else one.next(step)
            except OpError as error:
                failure = failure or error
                continue
            if element is None:
                self.close()
                self.passes = []
                return None
            found += element
        if failure is not None:
            raise failure
        return found if self.passes else None


@dataset_op("ZipDataset", doc="The elements of all datasets side by side, as long as each has one.")
class ZipDataset(DatasetBase):
    """The components of the elements of several datasets."""

    iterator_type = _ZipIterator

    def __init__(self, node: DatasetNode) -> None:
        inputs = node.datasets("input_datasets")
        dtypes = [dtype for dataset in inputs for dtype in dataset.dtypes]
        super().__init__(dtypes, [shape for one in inputs for shape in one.shapes], inputs)

    def cardinality(self) -> int:
        sizes = [dataset.cardinality() for dataset in self.inputs]
        if UNKNOWN_CARDINALITY in sizes:
            return UNKNOWN_CARDINALITY
        return min((s for s in sizes if s != INFINITE_CARDINALITY), default=INFINITE_CARDINALITY)


class _DirectedIterator(_SeveralIterator):
    """The first pass is the selector's."""

    state = ("passes", "are_open")

    def start(self) -> None:
        super().start()
        self.are_open = [True] * len(self.passes)

    def restored(self, step: Step) -> None:
        for number, is_open in enumerate(self.are_open):
            if not is_open:
                self.passes[number] = None

    def next(self, step: Step) -> Element | None:
        selector = self.passes[0]
        while selector is not None and (chosen := selector.next(step)) is not None:
            number = int(chosen[0])
            count = len(self.passes) - 1
            if not 0 <= number < count:
                raise InvalidArgumentError(f"Selector index out of range: {number} >= {count}")
            source = self.passes[number + 1]
            element = None if source is None else source.next(step)
            if element is not None:
                return element
            self._close(number + 1)
            if self.dataset.stops_early or not any(self.are_open[1:]):
                self._close(0)
                return None
            step.check()
            check_time("selecting elements")
        return None

    def _close(self, number: int) -> None:
        closed = self.passes[number]
        if closed is not None:
            closed.close()
        self.passes[number], self.are_open[number] = None, False


@dataset_op(
    "DirectedInterleaveDataset",
    "ExperimentalDirectedInterleaveDataset",
    doc="An element of that dataset whose number the selector gives, each time.",
)
class DirectedInterleaveDataset(DatasetBase):
    """Elements of several datasets, in the order that another one says."""

    iterator_type = _DirectedIterator

    def __init__(self, node: DatasetNode) -> None:
        selector, inputs = (
            node.dataset("selector_input_dataset"),
            node.datasets("data_input_datasets"),
        )
        if selector.dtypes != (DataType.DT_INT64,) or not selector.shapes[0].is_compatible_with(
            PartialTensorShape([])
        ):
            raise InvalidArgumentError(
                "The selector input must be a dataset of scalar int64 elements."
            )
        check_alike(inputs, "All inputs must have the same output_dtypes: {} and {}")
        super().__init__(inputs[0].dtypes, common_shapes(inputs), [selector, *inputs])
        self.stops_early: bool = node.attr("stop_on_empty_dataset", False)

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY
