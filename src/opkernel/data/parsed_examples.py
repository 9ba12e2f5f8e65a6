"""`parse_example_dataset`: the features of serialized Examples as elements.

Source: TensorFlow python/data/experimental/ops/parsing_ops.py; sparse_merge in python/ops/sparse_ops.py; partitions of
ragged tensors in python/ops/parsing_config.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.data.component_specs import RaggedTensorSpec, SparseTensorSpec
from opkernel.data.dataset import Dataset
from opkernel.data.example_features import (
    Feature,
    ParsedFeatures,
    Partition,
    RaggedFeature,
    RowLengths,
    RowSplits,
    RowStarts,
    SparseFeature,
    UniformRowLength,
    ValueRowIds,
    index_keys,
    value_key,
)
from opkernel.data.structured_function import call_op
from opkernel.endpoints import array, math
from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.graph import TensorSpec
from opkernel.graph.core.default_graph import innermost_default
from opkernel.types import DataType, PartialTensorShape


def parse_example_dataset(
    features: Mapping[str, Feature],
    num_parallel_calls: int = 1,
    deterministic: bool | None = None,
) -> Callable[[Dataset], Dataset]:
    """A transformation for `Dataset.apply`: vectors of serialized Examples become dicts of their features.

        batches = examples.batch(32).apply(
            parse_example_dataset({"label": FixedLenFeature([], opkernel.int64), "words": VarLenFeature(opkernel.string)})
        )

    A FixedLenFeature or FixedLenSequenceFeature becomes a tensor, a VarLenFeature or SparseFeature a SparseTensor, and a
    RaggedFeature a RaggedTensor. The first dimension of each counts the examples.

    Args:
        features: The features, by key.
        num_parallel_calls: How many batches may be parsed side by side.
        deterministic: Ignored: elements come in order.

    Raises:
        ValueError: `features` is None, a feature is not complete, or two of them do not go together.
        TypeError: the dataset that it is applied to has elements other than vectors of strings.
    """
    if features is None:
        raise ValueError("`features` is needed")
    wanted = ParsedFeatures(features)
    policy = {None: "default", True: "true", False: "false"}[deterministic]

    def apply(dataset: Dataset) -> Dataset:
        parsed = _parsed(dataset, wanted, num_parallel_calls, policy)
        if not any(isinstance(one, SparseFeature | RaggedFeature) for one in features.values()):
            return parsed
        return parsed.map(lambda found: _composites(features, found))

    return apply


def _parsed(dataset: Dataset, wanted: ParsedFeatures, calls: int, policy: str) -> Dataset:
    """The dataset of what the op gives."""
    given, vector = dataset.element_spec, PartialTensorShape([None])
    if (
        not isinstance(given, TensorSpec)
        or given.dtype is not DataType.DT_STRING
        or not given.shape.is_compatible_with(vector)
    ):
        raise TypeError(f"The dataset must have vectors of strings as elements, not {given}")
    batch = given.shape.merge_with(vector)
    rows = batch.concatenate(vector)
    spec: dict[str, Any] = {
        key: SparseTensorSpec(rows, dtype) for key, dtype in wanted.sparse.items()
    }
    for key, (values, splits) in wanted.ragged.items():
        spec[key] = RaggedTensorSpec(rows, values, 1, splits)
    for key, (dtype, shape, _) in wanted.dense.items():
        spec[key] = TensorSpec(batch.concatenate(shape), dtype)
    spec = {key: spec[key] for key in sorted(spec)}
    variant = call_op(
        "ParseExampleDatasetV2",
        input_dataset=dataset.variant_tensor,
        num_parallel_calls=np.int64(calls),
        deterministic=policy,
        spec=spec,
        **wanted.op_arguments(),
    )
    return Dataset(variant, spec)


def _composites(features: Mapping[str, Feature], tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The features that were asked for, of those that were parsed for them."""
    made = dict(tensors)
    for key, feature in features.items():
        if isinstance(feature, SparseFeature):
            made[key] = _merged(feature, tensors)
        elif isinstance(feature, RaggedFeature):
            made[key] = tensors[value_key(key, feature)]
            for partition in reversed(feature.partitions):
                made[key] = _partitioned(made[key], partition, tensors)
    return {key: made[key] for key in sorted(features)}


def _merged(feature: SparseFeature, tensors: Mapping[str, Any]) -> SparseTensor:
    """The values of one sparse feature at the indices that others hold."""
    keys = index_keys(feature)
    sizes = [feature.size] if isinstance(feature.index_key, str) else [*feature.size]
    if len(sizes) != len(keys):
        raise ValueError(f"There are {len(keys)} keys of indices, and {len(sizes)} sizes")
    first = tensors[keys[0]]
    columns = [array.reshape(tensors[key].values, [-1, 1]) for key in keys]
    indices = array.concat([first.indices[:, :-1], *columns], axis=1)
    shape = array.concat([first.dense_shape[:-1], np.array(sizes, np.int64)], axis=0)
    values = tensors[feature.value_key].values
    if not feature.already_sorted:
        indices, values = raw_ops.SparseReorder(
            input_indices=indices, input_values=values, input_shape=shape
        )
    return SparseTensor(indices, values, shape)


def _partitioned(
    rows: RaggedTensor, partition: Partition, tensors: Mapping[str, Any]
) -> RaggedTensor:
    """Ragged rows, one for each example, whose values are split to rows by a partition."""
    if isinstance(partition, UniformRowLength):
        return _in_equal_rows(rows, partition.length)
    given = tensors[partition.key]
    outer, starts = given.row_splits, rows.row_splits[:-1]
    values, none = array.cast(given.values, outer.dtype), array.cast([0], outer.dtype)
    owners = _owners(outer)
    if isinstance(partition, RowSplits):
        first = array.gather(outer[:-1], owners)
        is_limit = math.greater(array.cast(_range(values), outer.dtype), first)
        values, owners = (array.boolean_mask(one, is_limit) for one in (values, owners))
        lengths = math.maximum(outer[1:] - outer[:-1] - 1, 0)
        outer = array.concat([none, math.cumsum(lengths)], axis=0)
    if isinstance(partition, RowLengths):
        splits = array.concat([none, math.cumsum(values)], axis=0)
    elif isinstance(partition, ValueRowIds):
        outer, splits = _splits_of_row_ids(values, owners, outer)
    else:
        places = values + array.gather(starts, owners)
        count = array.cast(array.reshape(_count(rows.values), [1]), outer.dtype)
        parts = [places, count] if isinstance(partition, RowStarts) else [none, places]
        splits = array.concat(parts, axis=0)
    return _ragged(_ragged(rows.values, splits), outer)


def _in_equal_rows(rows: RaggedTensor, length: int) -> RaggedTensor:
    """Rows whose values are split to rows of one length: a dimension of the values, or a ragged one of ragged values."""
    values, dtype = rows.values, rows.row_splits.dtype
    outer = math.floordiv(rows.row_splits, length)
    if isinstance(values, RaggedTensor):
        count = math.floordiv(_count(values), length)
        splits = array.cast(array.range(count + 1) * length, dtype)
        return _ragged(_ragged(values, splits), outer)
    shape = array.concat([[-1, length], array.shape(values)[1:]], axis=0)
    return _ragged(array.reshape(values, shape), outer)


def _splits_of_row_ids(ids: Any, owners: Any, outer: Any) -> tuple[Any, Any]:
    """The splits of the examples and of their rows, of the numbers of rows of values in each example."""
    none = array.cast([0], outer.dtype)
    found = math.unsorted_segment_max(ids + 1, owners, _count(outer) - 1)
    outer = array.concat([none, math.cumsum(math.maximum(found, 0))], axis=0)
    ids = ids + array.gather(outer[:-1], owners)
    count = array.concat([none, ids + 1], axis=0)[-1]
    lengths = math.unsorted_segment_sum(array.ones_like(ids), ids, count)
    return outer, array.concat([none, math.cumsum(lengths)], axis=0)


def _ragged(values: Any, splits: Any) -> RaggedTensor:
    """Rows of values; at run time an InvalidArgumentError where the splits do not fit the values."""
    count = array.cast(_count(values), splits.dtype)
    lengths = splits[1:] - splits[:-1]
    fits = [math.equal(splits[0], 0), math.equal(splits[-1], count)]
    is_right = math.reduce_all(array.concat([array.stack(fits), lengths >= 0], axis=0))
    message = "The partition of a ragged feature does not fit its values"
    check = raw_ops.Assert(condition=is_right, data=[np.array(message)])
    graph = innermost_default()
    assert graph is not None
    with graph.control_dependencies([check]):
        return RaggedTensor(values, array.identity(splits))


def _owners(splits: Any) -> Any:
    """The number of the row that each value is in, of the splits of rows."""
    places = array.cast(array.range(splits[-1]), splits.dtype)
    return array.searchsorted(splits, places, side="right") - 1


def _range(values: Any) -> Any:
    return array.range(_count(values))


def _count(values: Any) -> Any:
    """The number of rows of a tensor or a ragged tensor."""
    if isinstance(values, RaggedTensor):
        return _count(values.row_splits) - 1
    return array.shape(values)[0]
