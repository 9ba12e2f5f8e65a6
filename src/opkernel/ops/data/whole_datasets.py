"""Ops on whole datasets: their elements folded into one, their size, one of their elements.

Source: TensorFlow core/kernels/data/dataset_ops.cc, reduce_dataset_op.cc, iterator_ops.cc (ToSingleElementOp),
get_options_op.cc, experimental/data_service_ops.cc is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.ops.data.dataset import DatasetBase, dataset_of
from opkernel.ops.data.dataset_op import DatasetNode, DatasetOp, declare
from opkernel.ops.data.iterator_resource import check_element, check_types
from opkernel.ops.registration import register_kernel
from opkernel.types import Variant, object_scalar

for _name, _doc in {
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


class _OnDataset(OpKernel):
    """A kernel whose first input is a dataset that it passes over."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.shapes = tuple(construction.get_attr("output_shapes"))

    def give(self, ctx: OpKernelContext, dataset: DatasetBase, element: Any) -> None:
        """Set the outputs to an element."""
        check_types(self.output_types, dataset.dtypes)
        check_element(self.shapes, element)
        for index, tensor in enumerate(element):
            ctx.set_output(index, tensor)


@register_kernel("DatasetToSingleElement")
class DatasetToSingleElementOp(_OnDataset):
    """Gives the only element."""

    def compute(self, ctx: OpKernelContext) -> None:
        dataset = dataset_of(ctx.input(0))
        iterator = dataset.iterator()
        try:
            element = iterator.next(ctx.step)
            if element is None:
                raise InvalidArgumentError("Dataset was empty.")
            self.give(ctx, dataset, element)
            if iterator.next(ctx.step) is not None:
                raise InvalidArgumentError("Dataset had more than one element.")
        finally:
            iterator.end()


@register_kernel("GetElementAtIndex")
class GetElementAtIndexOp(_OnDataset):
    """Gives the element of a number."""

    def compute(self, ctx: OpKernelContext) -> None:
        dataset, index = dataset_of(ctx.input(0)), int(ctx.input(1))
        size = dataset.cardinality()
        if 0 <= size <= index or index < 0:
            raise OutOfRangeError(f"Index out of range [0, {size}):{index}")
        iterator = dataset.iterator()
        try:
            for _ in range(index):
                ctx.step.check()
                check_time("looking for an element")
                iterator.next(ctx.step)
            element = iterator.next(ctx.step)
        finally:
            iterator.end()
        if element is None:
            raise OutOfRangeError(f"Index out of range: {index}")
        self.give(ctx, dataset, element)


@register_kernel("ReduceDataset")
class ReduceDatasetOp(DatasetOp):
    """Folds the elements."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction, _no_dataset)
        self._shapes = tuple(construction.get_attr("output_shapes"))

    def compute(self, ctx: OpKernelContext) -> None:
        """Fold.

        Raises:
            InvalidArgumentError: `f` takes or gives other types than state and elements have.
        """
        node = DatasetNode(self, ctx)
        dataset, state_types = node.dataset(), self.attr("Tstate")
        check_types(self.output_types, state_types)
        takes = (*state_types, *dataset.dtypes)
        function = node.function("f", "other_arguments", takes, state_types)
        state: tuple[Any, ...] = tuple(node.tensors("initial_state"))
        iterator = dataset.iterator()
        try:
            while (element := iterator.next(ctx.step)) is not None:
                state = function(ctx.step, state + element)
                check_time("reducing a dataset")
        finally:
            iterator.end()
        check_element(self._shapes, state)
        for index, tensor in enumerate(state):
            ctx.set_output(index, tensor)


def _no_dataset(node: DatasetNode) -> DatasetBase:
    raise NotImplementedError("ReduceDataset gives tensors")


@register_kernel("DatasetCardinality", "ExperimentalDatasetCardinality")
def dataset_cardinality(input_dataset: Any) -> Any:
    return np.int64(min(dataset_of(input_dataset).cardinality(), np.iinfo(np.int64).max))


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
