"""Functions of the elements, one by one: map, scan, the datasets that functions give one after the other or side by side.

Parallel forms give their elements in the order of the sequential ones. Threads compute them where that pays
(`read_ahead`).

Source: TensorFlow core/kernels/data/map_dataset_op.cc, parallel_map_dataset_op.cc, flat_map_dataset_op.cc,
interleave_dataset_op.cc, parallel_interleave_dataset_op.cc, experimental/scan_dataset_op.cc.
"""

from __future__ import annotations

import os

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import Step
from opkernel.ops.data.captured_function import CapturedFunction
from opkernel.ops.data.dataset import (
    UNKNOWN_CARDINALITY,
    DatasetBase,
    DatasetIterator,
    Element,
    InputIterator,
)
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.read_ahead import ReadAheadDataset, ReadAheadIterator, threads_for

__all__ = ["FlatMapDataset", "InterleaveDataset", "MapDataset", "ScanDataset"]


def mapped(
    function: CapturedFunction, step: Step, element: Element, *, keeps_count: bool
) -> Element | None:
    """The results of a function; None where it ends the dataset by an OutOfRangeError.

    Raises:
        InvalidArgumentError: it would end a dataset whose number of elements is known.
    """
    try:
        return function.within(step, element)
    except OutOfRangeError as error:
        if keeps_count:
            raise InvalidArgumentError(
                f"Function invocation produced OutOfRangeError: {error.message}"
            ) from error
        return None


@dataset_op(
    "MapDataset",
    "ParallelMapDataset",
    "ParallelMapDatasetV2",
    doc="The results of `f` for each element.",
)
class MapDataset(DatasetBase):
    """The results of a function for each element."""

    iterator_type = ReadAheadIterator

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        super().__init__(node.dtypes, node.shapes, [source])
        self.function = node.function("f", "other_arguments", source.dtypes, node.dtypes)
        self.keeps_count: bool = node.attr("preserve_cardinality")
        self.threads = threads_for_calls(node, self.function)
        self.capacity = 2 * self.threads

    def compute(self, step: Step, element: Element) -> Element | None:
        """The results for an element."""
        return mapped(self.function, step, element, keeps_count=self.keeps_count)

    def cardinality(self) -> int:
        return self.input.cardinality() if self.keeps_count else UNKNOWN_CARDINALITY


def threads_for_calls(node: DatasetNode, function: CapturedFunction) -> int:
    """How many threads call a function; 0 where a node asks for none, or the order of the calls counts.

    Raises:
        InvalidArgumentError: the node asks for no possible number.
    """
    if not node.has_input("num_parallel_calls"):
        return 0
    calls = node.scalar("num_parallel_calls")
    check_parallel_calls(calls)
    may_differ = node.attr("deterministic") in ("false", b"false") or node.attr("sloppy", False)
    return 0 if function.is_stateful and not may_differ else threads_for(calls)


def check_parallel_calls(count: int) -> None:
    """Raise InvalidArgumentError unless calls may run side by side; -1 leaves their number open."""
    if count <= 0 and count != -1:
        raise InvalidArgumentError("num_parallel_calls must be greater than zero.")


class _ScanIterator(InputIterator):
    state = ("input", "carried")

    def start(self) -> None:
        super().start()
        self.carried: Element = self.dataset.initial_state

    def next(self, step: Step) -> Element | None:
        element = self.input.next(step)
        if element is None:
            return None
        dataset = self.dataset
        results = mapped(
            dataset.function, step, self.carried + element, keeps_count=dataset.keeps_count
        )
        if results is None:
            return None
        count = len(self.carried)
        self.carried = results[:count]
        return results[count:]


@dataset_op(
    "ScanDataset",
    "ExperimentalScanDataset",
    doc="The results of `f` for the state and each element; its first results are the next state.",
)
class ScanDataset(DatasetBase):
    """The results of a function that has a state."""

    iterator_type = _ScanIterator

    def __init__(self, node: DatasetNode) -> None:
        source, state_types = node.dataset(), node.attr("Tstate")
        super().__init__(node.dtypes, node.shapes, [source])
        self.initial_state = tuple(node.tensors("initial_state"))
        self.keeps_count: bool = node.attr("preserve_cardinality")
        takes, gives = (*state_types, *source.dtypes), (*state_types, *node.dtypes)
        self.function = node.function("f", "other_arguments", takes, gives)

    def cardinality(self) -> int:
        return self.input.cardinality() if self.keeps_count else UNKNOWN_CARDINALITY


class DatasetsOfFunction(DatasetBase):
    """A dataset of the elements of those datasets that a function gives."""

    def __init__(self, node: DatasetNode) -> None:
        source = node.dataset()
        super().__init__(node.dtypes, node.shapes, [source])
        self.function = node.function("f", "other_arguments", source.dtypes)

    threads = 0

    def iterator_of(self, step: Step, arguments: Element) -> DatasetIterator:
        """A pass over the dataset that the function gives; with a thread where `threads` are asked for.

        Raises:
            InvalidArgumentError: its elements are of other types.
        """
        dataset = self.function.dataset(step, arguments)
        if dataset.dtypes != self.dtypes:
            raise InvalidArgumentError(
                f"The function gives {dataset}, and should give datasets like {self}"
            )
        return (ReadAheadDataset(dataset) if self.threads else dataset).iterator()


class _FlatMapIterator(InputIterator):
    state = ("input", "arguments", "current")

    def start(self) -> None:
        super().start()
        self.arguments: Element | None = None
        self.current: DatasetIterator | None = None

    def restored(self, step: Step) -> None:
        if self.arguments is not None:
            self.current = self.dataset.iterator_of(step, self.arguments)

    def next(self, step: Step) -> Element | None:
        while True:
            if self.current is not None:
                element = self.current.next(step)
                if element is not None:
                    return element
                self.current.close()
                self.current = self.arguments = None
            arguments = self.input.next(step)
            if arguments is None:
                return None
            step.check()
            check_time("looking for elements")
            self.current = self.dataset.iterator_of(step, arguments)
            self.arguments = arguments


@dataset_op(
    "FlatMapDataset",
    doc="The elements of the datasets that `f` gives, one dataset after the other.",
)
class FlatMapDataset(DatasetsOfFunction):
    """The elements of datasets one after the other."""

    iterator_type = _FlatMapIterator


class _InterleaveIterator(InputIterator):
    state = ("input", "arguments", "open", "cycle", "block", "is_input_over")

    def start(self) -> None:
        super().start()
        length = self.dataset.cycle_length
        self.arguments: list[Element | None] = [None] * length
        self.open: list[DatasetIterator | None] = [None] * length
        self.cycle = self.block = 0
        self.is_input_over = False

    def restored(self, step: Step) -> None:
        make = self.dataset.iterator_of
        self.open = [None if given is None else make(step, given) for given in self.arguments]

    def next(self, step: Step) -> Element | None:
        while not self.is_input_over or any(one is not None for one in self.open):
            current = self.open[self.cycle]
            if current is None:
                self._open_next(step)
                continue
            element = current.next(step)
            if element is not None:
                self.block += 1
                if self.block == self.dataset.block_length:
                    self._turn()
                return element
            current.close()
            self.open[self.cycle] = self.arguments[self.cycle] = None
            self._turn()
        return None

    def _open_next(self, step: Step) -> None:
        step.check()
        check_time("looking for elements")
        if not self.is_input_over:
            given = self.input.next(step)
            if given is not None:
                self.open[self.cycle] = self.dataset.iterator_of(step, given)
                self.arguments[self.cycle] = given
                return
            self.is_input_over = True
        self._turn()

    def _turn(self) -> None:
        self.block, self.cycle = 0, (self.cycle + 1) % len(self.open)


_MAX_CYCLE = 1 << 16


@dataset_op(
    "InterleaveDataset",
    "ParallelInterleaveDatasetV2",
    "ParallelInterleaveDatasetV3",
    "ParallelInterleaveDatasetV4",
    "LegacyParallelInterleaveDatasetV2",
    "ParallelInterleaveDataset",
    "ExperimentalParallelInterleaveDataset",
    doc="The elements of the datasets that `f` gives: `block_length` from each of `cycle_length` in turn.",
)
class InterleaveDataset(DatasetsOfFunction):
    """The elements of several datasets at a time in turn."""

    iterator_type = _InterleaveIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.cycle_length: int = node.scalar("cycle_length")
        self.block_length: int = node.scalar("block_length")
        if self.cycle_length == -1:
            self.cycle_length = (
                len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count() or 1
            )
        for name in ("cycle_length", "block_length"):
            if getattr(self, name) <= 0:
                raise InvalidArgumentError(f"`{name}` must be > 0")
        if self.cycle_length > _MAX_CYCLE:
            raise InvalidArgumentError(f"`cycle_length` must be at most {_MAX_CYCLE}")
        if node.has_input("num_parallel_calls"):
            calls = node.scalar("num_parallel_calls")
            _check_calls_of_cycle(calls, node.scalar("cycle_length"))
            self.threads = min(threads_for(calls), self.cycle_length)


def _check_calls_of_cycle(calls: int, cycle_length: int) -> None:
    check_parallel_calls(calls)
    if 0 < cycle_length < calls:
        raise InvalidArgumentError(
            "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either "
            "`tf.data.AUTOTUNE` or a value less than or equal to `cycle_length`. However, "
            f"`num_parallel_calls` is set to {calls} while `cycle_length` is set to {cycle_length}."
        )


_HAS_AFFINITY = hasattr(os, "sched_getaffinity")
