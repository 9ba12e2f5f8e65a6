"""Feature lists of sequence examples: a Feature for each step, as dense, sparse and ragged tensors.

Source: TensorFlow core/example/example.proto, core/util/example_proto_fast_parsing.cc.
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

__all__ = ["DenseFeatureList", "StepColumn", "step_columns"]


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
