"""Rows of ragged tensors, by their splits."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import ALL_QUANTIZED, POD_OR_STRING
from opkernel.types import DataType

VALUE_TYPES = (*POD_OR_STRING, *ALL_QUANTIZED)
"""The types of the values of most ops on ragged tensors."""


def check_splits(splits: Any, size: int) -> None:
    """Raise InvalidArgumentError unless splits go up from 0 to the number of values."""
    if not splits.size:
        raise InvalidArgumentError(
            "Invalid ragged splits: ragged splits must have at least one splits, but is empty"
        )
    require_equal(
        splits[0], 0, "Invalid ragged splits: first element of ragged splits must be 0 but is {}"
    )
    falls = np.flatnonzero(splits[1:] < splits[:-1])
    if falls.size:
        at = falls[0]
        raise InvalidArgumentError(
            "Invalid ragged splits: ragged splits must be monotonically increasing, but "
            f"ragged_splits[{at + 1}]={splits[at + 1]} is smaller than {splits[at]}"
        )
    if splits[-1] != size:
        raise InvalidArgumentError(
            "Invalid ragged splits: last element of ragged splits must be the number of ragged "
            f"values ({size}) but is {splits[-1]}"
        )


def lengths_to_splits(lengths: Any, dtype: DataType = DataType.DT_INT64) -> Any:
    """Where rows of these lengths begin, and the end."""
    splits = np.zeros(check_allocation((lengths.size + 1,), dtype), dtype.numpy_dtype)
    splits[1:] = np.cumsum(lengths)
    return splits


def ranges(starts: Any, lengths: Any) -> Any:
    """The integers of ranges, one range after the other."""
    ends = np.cumsum(lengths)
    shifts = np.repeat(starts - (ends - lengths), lengths)
    return np.arange(shifts.size) + shifts


def nested_rows(splits: Sequence[Any], rows: Any) -> tuple[list[Any], Any]:
    """Choose rows of nested splits: the lengths at each level, and which flat values they have."""
    lengths = []
    for level in splits:
        lengths.append(level[rows + 1] - level[rows])
        rows = ranges(level[rows], lengths[-1])
    return lengths, rows
