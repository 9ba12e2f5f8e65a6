"""Ops on whole datasets: their elements folded into one, their size, one of their elements.

Source: TensorFlow core/kernels/data/dataset_ops.cc, reduce_dataset_op.cc, iterator_ops.cc (ToSingleElementOp),
get_options_op.cc, experimental/compute_batch_size_op.cc, experimental/data_service_ops.cc is left out.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import OpKernelContext
from opkernel.ops.data.batches import BatchedDataset
from opkernel.ops.data.dataset import DatasetBase, dataset_of
from opkernel.ops.data.dataset_op import DatasetNode, KernelOfDatasets, declare
from opkernel.ops.data.iterator_resource import check_element, check_types
from opkernel.ops.data.iterators import OfElements
from opkernel.ops.data.random_access import element_at
from opkernel.ops.registration import register_kernel
from opkernel.types import Variant, object_scalar

for _name, _doc in {
    "ComputeBatchSize": "The size of the batches that are the elements; -1 where it is not known.",
    "DatasetCardinality": "The number of elements; -1 for infinitely many, -2 where it is not known.",
    "DatasetToSingleElement": "The only element of a dataset.",
    "ExperimentalDatasetCardinality": "The number of elements; -1 for infinitely many, -2 where it is not known.",
    "GetElementAtIndex": "The element of a number; an OutOfRangeError where there is none.",
    "GetOptions": "The serialized options of a dataset.",
    "ReduceDataset": "Calls `f` with the state and each element; the state at the end.",
    "UnwrapDatasetVariant": "The dataset in a wrapper.",
    "WrapDatasetVariant": "A dataset in a wrapper.",
}.items():
    declare(_name, doc=_doc)


@register_kernel("DatasetToSingleElement")
class DatasetToSingleElementOp(OfElements):
    """Gives the only element."""

    def compute(self, ctx: OpKernelContext) -> None:
        dataset = dataset_of(ctx.input(0))
        with dataset.iterator() as iterator:
            element = iterator.next(ctx.step)
            if element is None:
                raise InvalidArgumentError("Dataset was empty.")
            self.check(dataset.dtypes, element)
            self.give(ctx, element)
            if iterator.next(ctx.step) is not None:
                raise InvalidArgumentError("Dataset had more than one element.")


@register_kernel("GetElementAtIndex")
class GetElementAtIndexOp(OfElements):
    """Gives the element of a number."""

    def compute(self, ctx: OpKernelContext) -> None:
        dataset = dataset_of(ctx.input(0))
        element = element_at(dataset, ctx.step, int(ctx.input(1)))
        self.check(dataset.dtypes, element)
        self.give(ctx, element)


@register_kernel("ReduceDataset")
class ReduceDatasetOp(KernelOfDatasets, OfElements):
    """Folds the elements."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Fold.

        Raises:
            InvalidArgumentError: `f` takes or gives other types than state and elements have.
        """
        node = DatasetNode(self, ctx)
        dataset, state_types = node.dataset(), self.attr("Tstate")
        check_types(self.dtypes, state_types)
        takes = (*state_types, *dataset.dtypes)
        function = node.function("f", "other_arguments", takes, state_types)
        state: tuple[Any, ...] = tuple(node.tensors("initial_state"))
        with dataset.iterator() as iterator:
            while (element := iterator.next(ctx.step)) is not None:
                state = function(ctx.step, state + element)
                check_time("reducing a dataset")
        check_element(self.shapes, state)
        self.give(ctx, state)


@register_kernel("DatasetCardinality", "ExperimentalDatasetCardinality")
def dataset_cardinality(input_dataset: Any) -> Any:
    return np.int64(min(dataset_of(input_dataset).cardinality(), np.iinfo(np.int64).max))


_BATCHES = {
    "BatchDataset",
    "ExperimentalMapAndBatchDataset",
    "MapAndBatchDataset",
    "PaddedBatchDataset",
}
_SEVERAL = {"ConcatenateDataset", "ZipDataset"}
_SAME_SIZE = {
    *("AssertCardinalityDataset", "CacheDataset", "FilterDataset", "ModelDataset"),
    *("OptionsDataset", "ParseExampleDataset", "PrefetchDataset", "RepeatDataset"),
    *("ShardDataset", "ShuffleAndRepeatDataset", "ShuffleDataset", "SkipDataset", "TakeDataset"),
}
"""Ops whose elements have the batch size of their input's."""
_VERSION = re.compile(r"V\d+$")


@register_kernel("ComputeBatchSize")
def compute_batch_size(input_dataset: Any) -> Any:
    try:
        return np.int64(_batch_size(dataset_of(input_dataset), {}))
    except RecursionError:
        raise ResourceExhaustedError("The dataset has too many stages") from None


def _batch_size(dataset: DatasetBase, known: dict[int, int]) -> int:
    """The size of the batches of a dataset; `known` has the sizes of datasets that were asked before, by identity."""
    while (op := _VERSION.sub("", dataset.op)) in _SAME_SIZE:
        dataset = dataset.input
    if op in _BATCHES and isinstance(dataset, BatchedDataset):
        return dataset.batch_size
    if op not in _SEVERAL:
        return -1
    if id(dataset) not in known:
        sizes = {_batch_size(one, known) for one in dataset.inputs}
        known[id(dataset)] = sizes.pop() if len(sizes) == 1 else -1
    return known[id(dataset)]


@register_kernel("GetOptions")
def get_options(input_dataset: Any) -> Any:
    return object_scalar(dataset_of(input_dataset).options)


class WrappedDataset(Variant):
    """A dataset that ops on datasets do not take, until it is unwrapped."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def to_proto(self) -> Any:
        """As that of the dataset."""
        return dataset_of(self.tensor).to_proto()


@register_kernel("WrapDatasetVariant")
def wrap_dataset_variant(input_handle: Any) -> Any:
    dataset_of(input_handle)
    return object_scalar(WrappedDataset(input_handle))


@register_kernel("UnwrapDatasetVariant")
def unwrap_dataset_variant(input_handle: Any) -> Any:
    value = input_handle[()] if input_handle.ndim == 0 else None
    if not isinstance(value, WrappedDataset):
        raise InvalidArgumentError("Tensor must be a WrappedDataset object.")
    return value.tensor.copy()
