"""RaggedTensor: rows of different lengths.

Source: TensorFlow python/ops/ragged/ragged_tensor.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from opkernel.endpoints.tensors import dtype_of
from opkernel.types import DataType


class RaggedTensor(NamedTuple):
    """A tensor whose rows have different lengths. A tuple of its two parts, arrays or tensors.

    Attributes:
        values: the rows one after the other; a RaggedTensor where these are ragged too.
        row_splits: where each row begins in `values`, and where the last one ends: a vector of integers.
    """

    values: Any
    row_splits: Any

    @classmethod
    def from_nested_row_splits(cls, flat_values: Any, nested_row_splits: Sequence[Any]) -> Any:
        """Innermost values in the rows of all levels, the outermost first; as they are where there is no level."""
        found = flat_values
        for splits in reversed(nested_row_splits):
            found = cls(found, splits)
        return found

    @property
    def flat_values(self) -> Any:
        """The innermost values."""
        return self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of all levels, the outermost first."""
        inner = self.values.nested_row_splits if isinstance(self.values, RaggedTensor) else ()
        return (self.row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """How many levels have rows of different lengths."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> DataType:
        """The type of the elements."""
        return dtype_of(self.flat_values)

    def __tf_flatten__(self) -> tuple[int, tuple[Any, ...]]:
        return self.ragged_rank, (self.flat_values, *self.nested_row_splits)

    @classmethod
    def __tf_unflatten__(cls, ragged_rank: int, parts: Sequence[Any]) -> Any:
        return cls.from_nested_row_splits(parts[0], parts[1:])

    def with_flat_values(self, values: Any) -> RaggedTensor:
        """The same rows of other innermost values."""
        inner = self.values
        is_nested = isinstance(inner, RaggedTensor)
        return RaggedTensor(
            inner.with_flat_values(values) if is_nested else values, self.row_splits
        )

    def to_list(self) -> list[Any]:
        """The rows as lists of Python; only where the parts are arrays."""
        items = (
            self.values.to_list() if isinstance(self.values, RaggedTensor) else self.values.tolist()
        )
        ends = [int(end) for end in self.row_splits]
        return [items[begin:end] for begin, end in itertools.pairwise(ends)]
