"""Who has which array: what tests of it write over, and what they look at."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

Build = Callable[..., Any]
"""Takes arrays or tensors, and gives one, or some, nested."""

Call = Callable[[Sequence[Any]], Sequence[Any]]
"""Runs something on arrays; the results, flat."""

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def at(number: int) -> Any:
    """An axis or index as ops take it."""
    return np.int32(number)


def ints(*numbers: int) -> Any:
    """A vector of indices or sizes."""
    return np.array(numbers, np.int32)


def own(value: Any) -> Any:
    """A copy of an array or a scalar; `np.array` of a structured scalar would show its memory."""
    return np.asarray(value).copy()


def arrays(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, np.ndarray)]


def write_over(values: Sequence[Any]) -> None:
    """Write zeros over all arrays, and over the numbers that NumPy lets one write to."""
    for value in values:
        if isinstance(value, np.ndarray):
            value[...] = b"-" if value.dtype == object else np.zeros((), value.dtype)
        elif isinstance(value, np.void):
            (field,) = value.dtype.names or ()
            value[field] = 0


def check_equal(found: Sequence[Any], expected: Sequence[Any], when: str) -> None:
    assert len(found) == len(expected)
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(plain(value), plain(wanted), err_msg=when, strict=True)


def plain(value: Any) -> Any:
    """A value without its quantised type, which sessions do not show."""
    return value[value.dtype.names[0]] if value.dtype.names else value


def check_apart(results: Sequence[Any], others: Sequence[Any]) -> None:
    """Results are there to be written to, and share no memory, be it with others or one another."""
    results = arrays(results)
    assert all(value.flags.writeable for value in results)
    pairs = [*combinations(results, 2), *((a, b) for a in results for b in arrays(others))]
    assert not any(np.may_share_memory(a, b) for a, b in pairs)
