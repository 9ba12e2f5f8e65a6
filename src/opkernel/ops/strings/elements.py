"""Functions of one string, for all strings of a tensor."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from opkernel.device.budget import Budget, current_budget

__all__ = ["in_time", "map_strings", "strings_like"]

_LOOKS_EVERY = 4096
"""Elements between two looks at the clock."""


def map_strings(function: Callable[[Any], bytes], tensor: Any) -> Any:
    """The tensor of the strings that `function` makes of the elements."""
    return strings_like(tensor.shape, [*map(function, in_time(tensor.flat))])


def in_time(elements: Iterable[Any]) -> Iterable[Any]:
    """The elements, with a look at the clock now and then if a deadline holds."""
    budget = current_budget()
    if budget is None or budget.deadline is None:
        return elements
    return _timed(elements, budget)


def _timed(elements: Iterable[Any], budget: Budget) -> Iterator[Any]:
    for number, element in enumerate(elements):
        if not number % _LOOKS_EVERY:
            budget.check_time("computing strings")
        yield element


def strings_like(shape: tuple[int, ...], strings: list[bytes]) -> Any:
    """The tensor of strings of this shape, rank 0 included."""
    output = np.empty(len(strings), object)
    output[:] = strings
    return output.reshape(shape)
