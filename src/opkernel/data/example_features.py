"""The features that `parse_example_dataset` looks for in Example messages.

Source: TensorFlow python/ops/parsing_config.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opkernel.endpoints.array import reshape
from opkernel.endpoints.tensors import convert
from opkernel.messages import short_repr
from opkernel.types import DataType, PartialTensorShape, as_dtype


class FixedLenFeature(NamedTuple):
    """As many values in each example; they become a dense tensor.

    Attributes:
        shape: The shape of the values of one example.
        dtype: int64, float32 or string.
        default_value: The values of an example without the feature; without it that is an error.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """Rows of values, some number in each example; they become a dense tensor, which is padded.

    Attributes:
        shape: The shape of a row.
        dtype: int64, float32 or string.
        allow_missing: Has to be True: an example without the feature has no rows.
        default_value: The scalar to pad with; 0 or an empty string if None.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """Any number of values in each example; they become a sparse matrix.

    Attributes:
        dtype: int64, float32 or string.
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """Values of one feature at the indices that others hold; they become a sparse tensor.

    Attributes:
        index_key: The feature of the indices, or a list with one for each dimension.
        value_key: The feature of the values.
        dtype: The type of the values: int64, float32 or string.
        size: The size of the dimension, or a list of sizes.
        already_sorted: Whether indices are in order; otherwise they are sorted.
    """

    index_key: str | Sequence[str]
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class RowSplits(NamedTuple):
    """A partition: the feature `key` says where each row begins, and where the last one ends."""

    key: str


class RowLengths(NamedTuple):
    """A partition: the feature `key` holds the length of each row."""

    key: str


class RowStarts(NamedTuple):
    """A partition: the feature `key` says where each row begins."""

    key: str


class RowLimits(NamedTuple):
    """A partition: the feature `key` says where each row ends."""

    key: str


class ValueRowIds(NamedTuple):
    """A partition: the feature `key` holds the number of the row of each value."""

    key: str


class UniformRowLength(NamedTuple):
    """A partition: all rows have the length `length`."""

    length: int


Partition = RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength


class RaggedFeature(NamedTuple):
    """Any number of values in each example, in rows of rows; they become a ragged tensor.

    Attributes:
        dtype: int64, float32 or string.
        value_key: The feature of the values; the feature's own key if None.
        partitions: How the values of an example are split, outermost first.
        row_splits_dtype: int32 or int64.
        validate: Ignored: splits that do not fit the values are an error in any case.
    """

    dtype: Any
    value_key: str | None = None
    partitions: Sequence[Partition] = ()
    row_splits_dtype: Any = DataType.DT_INT32
    validate: bool = False


Feature = FixedLenFeature | FixedLenSequenceFeature | VarLenFeature | SparseFeature | RaggedFeature


class ParsedFeatures:
    """The features that the op parses, for the features that were asked for.

    Args:
        features: The features, by key.

    Attributes:
        sparse: The types of sparse features, by key.
        dense: The types, shapes and defaults of dense features, by key.
        ragged: The types of values and of splits of ragged features, by key.

    Raises:
        ValueError: a feature is of another kind or not complete, or two ask for one key in different ways.
    """

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self.sparse: dict[str, DataType] = {}
        self.dense: dict[str, tuple[DataType, PartialTensorShape, Any]] = {}
        self.ragged: dict[str, tuple[DataType, DataType]] = {}
        for key in sorted(features):
            feature = features[key]
            if not isinstance(feature, Feature):
                raise ValueError(  # noqa: TRY004  # as TensorFlow
                    f"{key!r} is {short_repr(feature)}, which is no feature"
                )
            if not feature.dtype:
                raise ValueError(f"The feature {key!r} has no dtype: {feature}")
            self._add(key, feature)
        seen: set[str] = set()
        for keys in (self.sparse, self.dense, self.ragged):
            if both := seen.intersection(keys):
                raise ValueError(f"{sorted(both)} are asked for as features of several kinds")
            seen.update(keys)

    def _add(self, key: str, feature: Feature) -> None:
        if isinstance(feature, VarLenFeature):
            self._add_sparse(key, feature.dtype)
        elif isinstance(feature, SparseFeature):
            if not feature.index_key or not feature.value_key:
                raise ValueError(f"The feature {key!r} has no key of indices or values: {feature}")
            for index_key in sorted(index_keys(feature)):
                self._add_sparse(index_key, DataType.DT_INT64)
            self._add_sparse(feature.value_key, feature.dtype)
        elif isinstance(feature, RaggedFeature):
            splits = as_dtype(feature.row_splits_dtype)
            self._add_ragged(value_key(key, feature), as_dtype(feature.dtype), splits)
            for partition in feature.partitions:
                if not isinstance(partition, UniformRowLength):
                    self._add_ragged(partition.key, DataType.DT_INT64, splits)
        else:
            self._add_dense(key, feature)

    def _add_sparse(self, key: str, dtype: Any) -> None:
        if self.sparse.setdefault(key, as_dtype(dtype)) != as_dtype(dtype):
            raise ValueError(f"The feature {key!r} is asked for in two types")

    def _add_ragged(self, key: str, *dtypes: DataType) -> None:
        values, splits = dtypes
        if self.ragged.setdefault(key, (values, splits)) != dtypes:
            raise ValueError(
                f"The feature {key!r} is asked for in two types, or with two of splits"
            )

    def _add_dense(self, key: str, feature: FixedLenFeature | FixedLenSequenceFeature) -> None:
        if feature.shape is None:
            raise ValueError(f"The feature {key!r} has no shape: {feature}")
        dtype, shape = as_dtype(feature.dtype), PartialTensorShape(feature.shape)
        default = feature.default_value
        if isinstance(feature, FixedLenFeature):
            if not shape.is_fully_defined():
                raise ValueError(
                    f"The shape of the feature {key!r} must be known, and is {shape}: take "
                    "FixedLenSequenceFeature where examples have different numbers of rows"
                )
            given = [] if default is None else default
            wanted: Any = [0] if default is None else shape.as_list()
        else:
            if not feature.allow_missing:
                raise ValueError(f"The feature {key!r} needs allow_missing=True")
            shape = PartialTensorShape([None]).concatenate(shape)
            filler: Any = "" if dtype is DataType.DT_STRING else 0
            given, wanted = (filler if default is None else default), []
        self.dense[key] = dtype, shape, reshape(convert(given, dtype), wanted)

    def op_arguments(self) -> dict[str, Any]:
        """The attrs and inputs of ParseExampleDatasetV2."""
        return {
            "dense_defaults": [default for _, _, default in self.dense.values()],
            "sparse_keys": [*self.sparse],
            "dense_keys": [*self.dense],
            "sparse_types": [*self.sparse.values()],
            "dense_shapes": [shape for _, shape, _ in self.dense.values()],
            "ragged_keys": [*self.ragged],
            "ragged_value_types": [values for values, _ in self.ragged.values()],
            "ragged_split_types": [splits for _, splits in self.ragged.values()],
        }


def index_keys(feature: SparseFeature) -> list[str]:
    """The features of the indices, one for each dimension."""
    return [feature.index_key] if isinstance(feature.index_key, str) else [*feature.index_key]


def value_key(key: str, feature: RaggedFeature) -> str:
    """The feature of the values."""
    return key if feature.value_key is None else feature.value_key
