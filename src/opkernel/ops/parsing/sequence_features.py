"""The two parts of sequence examples as tensors of each kind: the context, and the feature lists.

Feature lists of sequence examples: a Feature for each step, as dense, sparse and ragged tensors.

Source: TensorFlow core/kernels/example_parsing_ops.cc, core/util/example_proto_helper.cc,
core/example/example.proto, core/util/example_proto_fast_parsing.cc.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import WorkClock
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef.common_shapes.rules import defined_shape
from opkernel.ops.parsing.columns import DenseFeature, ragged_of, sparse_of
from opkernel.ops.parsing.example import columns_of, text_of
from opkernel.ops.parsing.features import (
    Column,
    Spans,
    column_of,
    message_spans,
    spans_of_features,
)
from opkernel.ops.parsing.wire import WireError, fields
from opkernel.ops.ragged.rows import lengths_to_splits, ranges
from opkernel.types import DataType, PartialTensorShape

_OF_STEP = 1 << 12
"""The work of reading a step."""
_ARRAYS = 9
"""Of indices that those of sparse values are made with."""


@dataclass(frozen=True, slots=True)
class StepColumn:
    """The values of one feature list: how many steps each example has, and each step's values."""

    name: str
    steps: Any
    """-1 where the list is missing."""
    column: Column
    """Of all steps of all examples."""

    @property
    def lengths(self) -> Any:
        """The numbers of steps, 0 where the list is missing."""
        return np.maximum(self.steps, 0)

    def sparse(self) -> tuple[Any, Any, Any]:
        """Indices, values and shape: of examples, steps and values."""
        lengths, values = self.lengths, self.column.lengths
        size = self.column.values.size
        check_allocation((size, 3), DataType.DT_INT64)
        with making_bytes("indices of values", _ARRAYS * 8 * size):
            return self._sparse(lengths, values)

    def _sparse(self, lengths: Any, values: Any) -> tuple[Any, Any, Any]:
        examples = np.repeat(np.arange(lengths.size), lengths)
        steps = ranges(np.zeros(lengths.size, np.int64), lengths)
        places = ranges(np.zeros(values.size, np.int64), values)
        columns = [np.repeat(examples, values), np.repeat(steps, values), places]
        sizes = [lengths.size, lengths.max(initial=0), values.max(initial=0)]
        return (
            np.stack(columns, axis=1).astype(np.int64),
            self.column.values,
            np.array(sizes, np.int64),
        )

    def ragged(self, dtype: DataType) -> tuple[Any, Any, Any]:
        """Values, splits of the examples and splits of the steps."""
        outer = lengths_to_splits(self.lengths, dtype)
        inner = lengths_to_splits(self.column.lengths, dtype)
        return self.column.values, outer, inner


def step_columns(
    records: Sequence[bytes], keys: Sequence[bytes], types: Sequence[DataType]
) -> list[StepColumn]:
    """The feature lists of serialized sequence examples."""
    with making_bytes("records") as made:
        spans = spans_of_features(*message_spans(records, 2, made), keys)
        return [
            _steps_of(span, dtype, key.decode(errors="backslashreplace"))
            for span, dtype, key in zip(spans, types, keys, strict=True)
        ]


def _steps_of(spans: Spans, dtype: DataType, name: str) -> StepColumn:
    steps, found = [], array("q")
    clock = WorkClock("reading feature lists")
    try:
        with making_bytes("feature lists") as made:
            for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
                before = len(found)
                for number, wire, a, b in fields(spans.buffer.data, start, end):
                    clock.spend(_OF_STEP)
                    if (number, wire) == (1, 2):
                        found.extend((a, b))
                made.add(8 * (len(found) - before))
                steps.append((len(found) - before) // 2 if start >= 0 else -1)
    except WireError as error:
        raise InvalidArgumentError(f"Could not parse feature list {name}: {error}") from None
    places = np.array(found, np.int64).reshape(-1, 2)
    features = Spans(spans.buffer, places[:, 0], places[:, 1])
    return StepColumn(name, np.array(steps, np.int64), column_of(features, dtype, name))


@dataclass(frozen=True, slots=True)
class DenseFeatureList:
    """A feature list each of whose steps has a shape."""

    dtype: DataType
    shape: PartialTensorShape
    may_be_missing: bool
    """Whether an example without the list has no steps; it is an error else."""

    def tensor(self, steps: StepColumn) -> tuple[Any, Any]:
        """The values of all examples, zeros after their last steps, and how many steps they have."""
        inner = tuple(int(size or 0) for size in self.shape.as_list())
        size = prod(inner)
        if (steps.steps < 0).any() and not self.may_be_missing:
            raise InvalidArgumentError(
                f"Name: <unknown>, Feature list '{steps.name}' is required but could not be found. "
                "Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?"
            )
        wrong = steps.column.lengths != size
        if wrong.any():
            raise InvalidArgumentError(
                f"Feature list '{steps.name}' has an unexpected number of values. A step has "
                f"{steps.column.lengths[wrong.argmax()]}, which is not consistent with output "
                f"shape: {self.shape}"
            )
        lengths = steps.lengths
        longest = int(lengths.max(initial=0))
        shape = check_allocation((lengths.size, longest, *inner), self.dtype)
        output = np.zeros((lengths.size * longest, size), self.dtype.numpy_dtype)
        if self.dtype is DataType.DT_STRING:
            output[...] = b""
        rows = ranges(np.arange(lengths.size) * longest, lengths)
        output[rows] = steps.column.values.reshape(rows.size, size)
        return output.reshape(shape), lengths


Types = Sequence[DataType]
Outputs = tuple[list[Any], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The features of the context, or the feature lists: types by their kind."""

    name: str
    sparse: Types
    dense: Types
    dense_shapes: Sequence[PartialTensorShape]
    ragged: Types
    splits: Types

    @property
    def types(self) -> list[DataType]:
        return [*self.sparse, *self.dense, *self.ragged]

    def check(self, num_sparse: int, num_dense: int) -> None:
        """Raise InvalidArgumentError unless there are as many types and shapes as features."""
        self._check_lengths("sparse", num_sparse, sparse_types=self.sparse)
        self._check_lengths(
            "dense", num_dense, dense_types=self.dense, dense_shapes=self.dense_shapes
        )
        self._check_lengths("ragged", len(self.ragged), ragged_split_types=self.splits)

    def check_keys(self, sparse_keys: Sequence[str], dense_keys: Sequence[str]) -> None:
        """Raise InvalidArgumentError unless there is a key for each feature."""
        self._check_lengths("sparse", len(self.sparse), sparse_keys=sparse_keys)
        self._check_lengths("dense", len(self.dense), dense_keys=dense_keys)

    def _check_lengths(self, kind: str, count: int, **lists: Sequence[Any]) -> None:
        for name, values in lists.items():
            if len(values) != count:
                raise InvalidArgumentError(
                    f"num_{self.name}_{kind} ({count}) must match the size of {name} ({len(values)})"
                )

    def context_outputs(
        self, records: Sequence[bytes], keys: Sequence[bytes], defaults: Sequence[Any]
    ) -> Outputs:
        """Indices, values and shapes of sparse features, dense ones, ragged values and splits."""
        sparse, dense, ragged = self._by_kind(columns_of(records, keys, self.types))
        rows = [sparse_of(column) for column in sparse]
        features = self._dense_features(keys, defaults)
        tensors = [feature.tensor(column) for feature, column in zip(features, dense, strict=True)]
        splits = [
            ragged_of(column, dtype) for column, dtype in zip(ragged, self.splits, strict=True)
        ]
        return *_transposed(rows, 3), tensors, *_transposed(splits, 2)

    def list_outputs(
        self, records: Sequence[bytes], keys: Sequence[bytes], optional: Sequence[bool]
    ) -> Outputs:
        """As `context_outputs`; lengths after the dense ones, splits of examples and of steps."""
        sparse, dense, ragged = self._by_kind(step_columns(records, keys, self.types))
        rows = [steps.sparse() for steps in sparse]
        lists = map(DenseFeatureList, self.dense, self.dense_shapes, optional)
        tensors = [one.tensor(steps) for one, steps in zip(lists, dense, strict=True)]
        splits = [steps.ragged(dtype) for steps, dtype in zip(ragged, self.splits, strict=True)]
        return *_transposed(rows, 3), *_transposed(tensors, 2), *_transposed(splits, 3)

    def _by_kind(self, columns: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The columns of each kind."""
        first, second = len(self.sparse), len(self.sparse) + len(self.dense)
        return columns[:first], columns[first:second], columns[second:]

    def _dense_features(self, keys: Sequence[bytes], defaults: Sequence[Any]) -> list[DenseFeature]:
        names = map(text_of, keys[len(self.sparse) :])
        features = [
            DenseFeature(*of_one)
            for of_one in zip(names, self.dense, self.dense_shapes, defaults, strict=False)
        ]
        for feature in features:
            feature.check_default()
        return features


def part_of(
    name: str,
    sparse: Types,
    dense: Types,
    dense_shapes: Sequence[PartialTensorShape],
    ragged: Types = (),
    splits: Types = (),
) -> Part:
    """A part whose dense shapes must be defined."""
    return Part(name, sparse, dense, list(map(defined_shape, dense_shapes)), ragged, splits)


def _transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(width)]


def of_one(outputs: Outputs) -> Outputs:
    """Outputs of the context of a batch of one, without the dimension of the batch."""
    indices, values, shapes, dense, *ragged = outputs
    return (
        [one[:, 1:] for one in indices],
        values,
        [one[1:] for one in shapes],
        [one[0] for one in dense],
        *ragged,
    )


def list_of_one(outputs: Outputs) -> Outputs:
    """Outputs of the feature lists of a batch of one, without the dimension of the batch."""
    lengths = [one[0] for one in outputs[4]]
    return *of_one(outputs[:4]), lengths, *outputs[5:]
