"""Datasets of the elements of another one, in their order: prefetched, watched, or with options for how to compute them.

A thread reads ahead for a prefetch (`read_ahead`). Models and pools of threads change nothing.

Source: TensorFlow core/kernels/data/prefetch_dataset_op.cc, options_dataset_op.cc, model_dataset_op.cc,
optimize_dataset_op.cc, finalize_dataset_op.cc, experimental/assert_cardinality_dataset_op.cc,
ignore_errors_dataset_op.cc, sleep_dataset_op.cc, threadpool_dataset_op.cc, non_serializable_dataset_op.cc,
stats_dataset_ops.cc.
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from opkernel.device.budget import check_time
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OpError
from opkernel.kernel import Step
from opkernel.logs import logger
from opkernel.ops.data.combinations import check_alike
from opkernel.ops.data.dataset import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    DatasetBase,
    DatasetIterator,
    Element,
    InputIterator,
    PassedOnIterator,
)
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.read_ahead import AUTOTUNED_CAPACITY, ReadAheadIterator
from opkernel.ops.data.selections import SelectionDataset
from opkernel.proto import DecodeError, Options

__all__ = ["AssertCardinalityDataset", "IgnoreErrorsDataset", "OptionsDataset", "PrefetchDataset"]


class SameDataset(SelectionDataset):
    """The elements of another dataset."""

    iterator_type: ClassVar[type[DatasetIterator]] = PassedOnIterator

    def cardinality(self) -> int:
        return self.input.cardinality()


for _name in [
    "ExperimentalBytesProducedStatsDataset",
    "BytesProducedStatsDataset",
    "ExperimentalLatencyStatsDataset",
    "LatencyStatsDataset",
    "FinalizeDataset",
    "ModelDataset",
    "NonSerializableDataset",
    "ExperimentalNonSerializableDataset",
    "OptimizeDataset",
    "OptimizeDatasetV2",
    "ThreadPoolDataset",
    "ExperimentalThreadPoolDataset",
    "RewriteDataset",
]:
    dataset_op(_name, doc="The elements of `input_dataset`.")(SameDataset)


@dataset_op(
    "PrefetchDataset",
    doc="The elements of `input_dataset`; up to `buffer_size` may be computed ahead.",
)
class PrefetchDataset(SameDataset):
    """The elements of another dataset."""

    iterator_type = ReadAheadIterator
    compute = None

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        size = node.scalar("buffer_size")
        if size < -1:
            raise InvalidArgumentError(
                "buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning"
            )
        self.threads = int(size != 0)
        self.capacity = AUTOTUNED_CAPACITY if size == -1 else size


@dataset_op(
    "ChooseFastestDataset",
    "ExperimentalChooseFastestDataset",
    doc="The elements of the first of datasets that have the same elements.",
)
class ChooseFastestDataset(DatasetBase):
    """The elements of one of several datasets that compute the same."""

    iterator_type = PassedOnIterator

    def __init__(self, node: DatasetNode) -> None:
        inputs = node.datasets("input_datasets")
        check_alike(inputs, "The datasets must have the same output_types: {} and {}")
        super().__init__(node.dtypes, node.shapes, inputs)

    def cardinality(self) -> int:
        return self.input.cardinality()


@dataset_op(
    "PrivateThreadPoolDataset",
    "ExperimentalPrivateThreadPoolDataset",
    doc="The elements of `input_dataset`, for whose computation there may be threads of its own.",
)
class PrivateThreadPoolDataset(SameDataset):
    """The elements of another dataset."""

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        if node.scalar("num_threads") < 0:
            raise InvalidArgumentError("`num_threads` must be >= 0")


@dataset_op(
    "MaxIntraOpParallelismDataset",
    "ExperimentalMaxIntraOpParallelismDataset",
    doc="The elements of `input_dataset`; a kernel may spread its work over so many threads.",
)
class MaxIntraOpParallelismDataset(SameDataset):
    """The elements of another dataset."""

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        if node.scalar("max_intra_op_parallelism") < 0:
            raise InvalidArgumentError("`max_intra_op_parallelism` must be >= 0")


@dataset_op("OptionsDataset", doc="The elements of `input_dataset`, with options.")
class OptionsDataset(SameDataset):
    """The elements of another dataset, with options that GetOptions finds."""

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        text: Any = node.attr("serialized_options")
        self._options = text if isinstance(text, bytes) else text.encode(errors="surrogateescape")
        try:
            Options.FromString(self._options)
        except DecodeError:
            raise InvalidArgumentError(
                "Could not parse serialized_options as valid Options."
            ) from None

    @property
    def options(self) -> bytes:
        return super().options + self._options


class _SleepIterator(InputIterator):
    def next(self, step: Step) -> Element | None:
        """The next element, after a pause that ends where the step does."""
        cancelled, manager = threading.Event(), step.cancellation_manager
        token = None if manager is None else manager.get_cancellation_token()
        if manager is None or manager.register_callback(token or 0, cancelled.set):
            cancelled.wait(self.dataset.seconds)
        if manager is not None and token is not None:
            manager.deregister_callback(token)
        step.check()
        check_time("sleeping")
        return self.input.next(step)


@dataset_op("SleepDataset", "ExperimentalSleepDataset", doc="The elements, each after a pause.")
class SleepDataset(SameDataset):
    """The elements of another dataset, slowly."""

    iterator_type = _SleepIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.seconds = max(node.scalar("sleep_microseconds"), 0) / 1e6


class _AssertCardinalityIterator(InputIterator):
    state = ("input", "found")

    def start(self) -> None:
        super().start()
        self.found = 0

    def next(self, step: Step) -> Element | None:
        wanted, element = self.dataset.count, self.input.next(step)
        self.found += element is not None
        expected = f"Input dataset was expected to contain {_counted(wanted)}"
        if element is None and self.found != wanted:
            raise FailedPreconditionError(f"{expected} but contained only {_counted(self.found)}.")
        if element is not None and self.found > wanted >= 0:
            raise FailedPreconditionError(
                f"{expected} but contained at least {_counted(self.found)}."
            )
        return element


def _counted(count: int) -> str:
    if count == INFINITE_CARDINALITY:
        return "an infinite number of elements"
    return f"{count} element{'' if count == 1 else 's'}"


@dataset_op(
    "AssertCardinalityDataset",
    doc="The elements of `input_dataset`; a FailedPreconditionError if they are not `cardinality`.",
)
class AssertCardinalityDataset(SameDataset):
    """The elements of another dataset, which are counted."""

    iterator_type = _AssertCardinalityIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.count = node.scalar("cardinality")

    def cardinality(self) -> int:
        return int(self.count)


class _IgnoreErrorsIterator(InputIterator):
    def next(self, step: Step) -> Element | None:
        while True:
            try:
                return self.input.next(step)
            except OpError as error:
                step.check()
                check_time("leaving out elements")
                if self.dataset.warns:
                    logger(__name__).warning("Error raised with error message %s", error)


@dataset_op(
    "IgnoreErrorsDataset",
    "ExperimentalIgnoreErrorsDataset",
    doc="The elements of `input_dataset` that can be computed.",
)
class IgnoreErrorsDataset(SameDataset):
    """The elements of another dataset but those that fail."""

    iterator_type = _IgnoreErrorsIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.warns: bool = node.attr("log_warning")

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY
