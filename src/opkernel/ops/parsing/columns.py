"""Columns of features as dense, sparse and ragged tensors.

Source: TensorFlow core/util/example_proto_fast_parsing.cc.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.parsing.features import Column
from opkernel.ops.ragged.rows import lengths_to_splits, ranges
from opkernel.types import DataType, PartialTensorShape

_ARRAYS = 6
"""Of indices that those of sparse values are made with."""


def sparse_of(column: Column) -> tuple[Any, Any, Any]:
    """Indices, values and shape: a row for each example."""
    lengths = column.lengths
    check_allocation((column.values.size, 2), DataType.DT_INT64)
    with making_bytes("indices of values", _ARRAYS * 8 * column.values.size):
        rows = np.repeat(np.arange(lengths.size), lengths)
        places = ranges(np.zeros(lengths.size, np.int64), lengths)
        indices = np.stack([rows, places], axis=1).astype(np.int64, copy=False)
    shape = np.array([lengths.size, lengths.max(initial=0)], np.int64)
    return indices, column.values, shape


def ragged_of(column: Column, dtype: DataType) -> tuple[Any, Any]:
    """Values and row splits."""
    return column.values, lengths_to_splits(column.lengths, dtype)


@dataclass(frozen=True, slots=True)
class DenseFeature:
    """A feature with a shape, whose first size may vary, and a default value."""

    name: str
    dtype: DataType
    shape: PartialTensorShape
    default: Any

    @property
    def is_variable(self) -> bool:
        """Whether examples may have values of different lengths."""
        return bool(self.shape.rank) and self.shape.as_list()[0] is None

    @property
    def inner(self) -> tuple[int, ...]:
        """The sizes that are fixed."""
        sizes = self.shape.as_list()
        return tuple(int(size or 0) for size in (sizes[1:] if self.is_variable else sizes))

    def check_default(self) -> None:
        """Raise InvalidArgumentError unless the default value fits the shape."""
        if self.is_variable:
            if self.default.size != 1:
                raise InvalidArgumentError(
                    f"dense_shape[{self.name}] is a variable length shape: its default must have "
                    f"exactly one element, not {self.default.size}"
                )
        elif self.default.size and self.default.shape != self.inner:
            raise InvalidArgumentError(
                f"def_value[{self.name}].shape() == {list(self.default.shape)} is not compatible "
                f"with dense_shapes_[{self.name}] == {self.shape}"
            )

    def tensor(self, column: Column) -> Any:
        """The values of all examples, with the default for those that are missing."""
        return self._padded(column) if self.is_variable else self._fixed(column)

    def _fixed(self, column: Column) -> Any:
        size = prod(self.inner)
        is_missing = column.counts < 0
        wrong = ~is_missing & (column.counts != size)
        if wrong.any():
            at = int(wrong.argmax())
            raise InvalidArgumentError(
                f"Key: {self.name}, Index: {at}. Number of {self.dtype.string} values != expected. "
                f"Values size: {column.counts[at]} but output shape: {self.shape}"
            )
        if is_missing.any() and not self.default.size:
            raise InvalidArgumentError(
                f"Feature: {self.name} (data type: {self.dtype.string}) is required but could not "
                "be found."
            )
        shape = check_allocation((column.counts.size, *self.inner), self.dtype)
        if not is_missing.any():
            return column.values.reshape(shape)
        output = np.empty((column.counts.size, size), self.dtype.numpy_dtype)
        output[~is_missing] = column.values.reshape(np.count_nonzero(~is_missing), size)
        output[is_missing] = self.default.reshape(-1)
        return output.reshape(shape)

    def _padded(self, column: Column) -> Any:
        stride = prod(self.inner)
        lengths = column.lengths
        wrong = lengths % max(stride, 1) != 0
        if wrong.any():
            at = int(wrong.argmax())
            raise InvalidArgumentError(
                f"Key: {self.name}, Index: {at}. Number of {self.dtype.string} values is not a "
                f"multiple of stride length. Values size: {lengths[at]} but output shape: "
                f"{self.shape}"
            )
        longest = int(lengths.max(initial=0)) // max(stride, 1)
        shape = check_allocation((lengths.size, longest, *self.inner), self.dtype)
        width = longest * stride
        output = np.empty(lengths.size * width, self.dtype.numpy_dtype)
        output[...] = self.default.reshape(-1)[0]
        output[ranges(np.arange(lengths.size) * width, lengths)] = column.values
        return output.reshape(shape)
