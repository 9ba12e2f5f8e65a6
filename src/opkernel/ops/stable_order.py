"""The order that sorts keys: nothing interrupts NumPy's sorting, so it is not begun where time is too short."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from opkernel.device.budget import current_budget
from opkernel.device.work_clock import check_seconds

_SECONDS_A_STEP = 3e-9
_FEW = 1 << 18
_MANY = 1 << 12


def stable_order(*keys: Any) -> Any:
    """The permutation that sorts by a key, and where that is equal by the next ones; the rest stays in order.

    Args:
        keys: Vectors of one length; the first one matters most.

    Raises:
        DeadlineExceededError: the sorting is sure to take longer than the time that is left.
    """
    budget = current_budget()
    if budget is not None and budget.deadline is not None and len(keys[0]) > _FEW:
        check_seconds(sum(map(_steps, keys)) * _SECONDS_A_STEP, "sorting")
    keys = tuple(map(_narrowed, keys))
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


def _narrowed(key: Any) -> Any:
    """The key, or one of 16 bits in the same order, which NumPy sorts several times as fast."""
    key = np.asarray(key)
    if key.dtype.kind not in "iu" or key.itemsize <= 2 or key.size < _MANY:
        return key
    low, high = int(key.min()), int(key.max())
    return (key - key.dtype.type(low)).astype(np.uint16) if high - low < 1 << 16 else key


def best_first(scores: Any, few: int) -> Iterator[Any]:
    """The places of scores without NaN, the highest first and of equal ones the first one, in one or two parts.

    The second part is sorted when it is asked for; the first one has about `few` places.
    """
    rest = np.arange(len(scores))
    if len(scores) > 4 * few:
        is_best = scores >= np.partition(scores, -few)[-few]
        best, rest = np.flatnonzero(is_best), np.flatnonzero(~is_best)
        yield best[stable_order(-scores[best])]
    yield rest[stable_order(-scores[rest])]


def _steps(key: Any) -> int:
    """How many comparisons a merge of the runs takes that are in order already."""
    runs = 1 + int(np.count_nonzero(key[1:] < key[:-1]))
    return len(key) * runs.bit_length()
