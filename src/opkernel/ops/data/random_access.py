"""Elements of datasets by their numbers.

`element_at` gives one where TensorFlow's datasets have random access (`at` of `tf.data.experimental`). What shuffles a
whole dataset asks it for its elements in any order, which fewer datasets allow (`check_shuffles`).

Source: DatasetBase::Get, CheckRandomAccessCompatible and RandomIndexingCompatible in TensorFlow
core/framework/dataset.{h,cc}, and their overrides in core/kernels/data.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from opkernel.errors import FailedPreconditionError, OutOfRangeError, UnimplementedError
from opkernel.kernel import Step
from opkernel.ops.data.batches import BatchDataset, UnbatchDataset
from opkernel.ops.data.caches import MemoryCacheDataset
from opkernel.ops.data.combinations import ConcatenateDataset, ZipDataset
from opkernel.ops.data.dataset import INFINITE_CARDINALITY, DatasetBase, Element
from opkernel.ops.data.maps import MapDataset
from opkernel.ops.data.passed_on import (
    AssertCardinalityDataset,
    OptionsDataset,
    PrefetchDataset,
)
from opkernel.ops.data.selections import RepeatDataset, ShardDataset, SkipDataset, TakeDataset
from opkernel.ops.data.shuffles import ShuffleDataset, ShuffleDatasetV2, ShuffledDataset
from opkernel.ops.data.sources import ListDataset, RangeDataset, TensorDataset, TensorSliceDataset


def element_at(dataset: DatasetBase, step: Step, index: int) -> Element:
    """The element of a number.

    Args:
        dataset: The dataset.
        step: The step that asks; functions run in it.
        index: The number, from 0 on.

    Raises:
        UnimplementedError: the dataset has no random access, or one that it is made from.
        FailedPreconditionError: its number of elements is infinite or unknown.
        OutOfRangeError: there is no such element.
    """
    get = _get.dispatch(type(dataset))
    if get is _ELSE:
        _ELSE(dataset, step, index)
    size = dataset.cardinality()
    if size < 0:
        kind = "infinite" if size == INFINITE_CARDINALITY else "unknown"
        raise FailedPreconditionError(
            f"{dataset!r} has no random access: its number of elements is {kind}"
        )
    if not 0 <= index < size:
        raise OutOfRangeError(f"Index out of range [0, {size}):{index}")
    element: Element = get(dataset, step, index)
    return element


def check_shuffles(dataset: DatasetBase) -> None:
    """Check that a dataset can be shuffled as a whole, with those it is made from.

    Raises:
        FailedPreconditionError: it cannot.
    """
    kind = type(dataset)
    if _get.dispatch(kind) is _ELSE or issubclass(kind, (ShuffledDataset, UnbatchDataset)):
        _refuse(f"{dataset!r} cannot give its elements in any order")
    if isinstance(dataset, BatchDataset) and not dataset.drops_rest:
        _refuse("batches need drop_remainder=True")
    if isinstance(dataset, RepeatDataset) and dataset.count < 0:
        _refuse("it is repeated without end")
    if isinstance(dataset, SkipDataset) and dataset.count < 0:
        _refuse(f"skip({dataset.count}) leaves no element")
    for one in dataset.inputs:
        check_shuffles(one)


def _refuse(why: str) -> None:
    raise FailedPreconditionError(
        f"Only datasets with random access are shuffled as a whole: {why}"
    )


@singledispatch
def _get(dataset: Any, step: Any, index: int) -> Any:
    raise UnimplementedError(f"{dataset!r} has no random access; cache it, or pass over it")


_ELSE = _get.dispatch(object)
register_random_access = _get.register
"""Registers the function that gives an element of a class of datasets; numbers are checked before."""


@_get.register(TensorDataset)
@_get.register(TensorSliceDataset)
@_get.register(RangeDataset)
@_get.register(ListDataset)
def _of_source(dataset: Any, step: Any, index: int) -> Any:
    return dataset.at(index)


@_get.register(PrefetchDataset)
@_get.register(OptionsDataset)
@_get.register(AssertCardinalityDataset)
@_get.register(TakeDataset)
def _of_input(dataset: Any, step: Any, index: int) -> Any:
    return element_at(dataset.input, step, index)


@_get.register(SkipDataset)
def _of_skip(dataset: Any, step: Any, index: int) -> Any:
    return element_at(dataset.input, step, index + dataset.count)


@_get.register(ShardDataset)
def _of_shard(dataset: Any, step: Any, index: int) -> Any:
    return element_at(dataset.input, step, index * dataset.num_shards + dataset.index)


@_get.register(RepeatDataset)
def _of_repeat(dataset: Any, step: Any, index: int) -> Any:
    return element_at(dataset.input, step, index % dataset.input.cardinality())


@_get.register(ConcatenateDataset)
def _of_concatenate(dataset: Any, step: Any, index: int) -> Any:
    for one in dataset.inputs[:-1]:
        if index < (size := one.cardinality()):
            return element_at(one, step, index)
        index -= size
    return element_at(dataset.inputs[-1], step, index)


@_get.register(ZipDataset)
def _of_zip(dataset: Any, step: Any, index: int) -> Any:
    return tuple(tensor for one in dataset.inputs for tensor in element_at(one, step, index))


@_get.register(MapDataset)
def _of_map(dataset: Any, step: Any, index: int) -> Any:
    element = dataset.compute(step, element_at(dataset.input, step, index))
    if element is None:
        raise OutOfRangeError("The function ran out of range")
    return element


@_get.register(BatchDataset)
def _of_batch(dataset: Any, step: Any, index: int) -> Any:
    if dataset.checks_rest:  # the parallel form has no random access in TensorFlow
        return _ELSE(dataset, step, index)
    first = index * dataset.batch_size
    last = min(first + dataset.batch_size, dataset.input.cardinality())
    elements = []
    for number in range(first, last):
        step.check()
        elements.append(element_at(dataset.input, step, number))
    return dataset.batch(elements)


@_get.register(UnbatchDataset)
def _of_unbatch(dataset: Any, step: Any, index: int) -> Any:
    number, row = divmod(index, dataset.rows)
    return tuple([tensor[row, ...] for tensor in element_at(dataset.input, step, number)])


@_get.register(MemoryCacheDataset)
def _of_cache(dataset: Any, step: Any, index: int) -> Any:
    if dataset.cache.elements is not None:
        return dataset.at(index)
    return element_at(dataset.input, step, index)


@_get.register(ShuffleDataset)
@_get.register(ShuffleDatasetV2)
def _of_shuffle(dataset: Any, step: Any, index: int) -> Any:
    return element_at(dataset.input, step, dataset.order[index])
