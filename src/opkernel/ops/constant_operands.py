"""What kernels make of an operand that never changes, made once."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

__all__ = ["OncePerConstant", "is_constant"]

_Made = TypeVar("_Made")
_Array = np.ndarray[Any, Any]


def is_constant(array: Any) -> bool:
    """Whether an array lies in bytes, as the value of a Const does, so that nobody can change it."""
    while isinstance(array, np.ndarray) and not array.flags.writeable:
        array = array.base
    return isinstance(array, bytes)


class OncePerConstant(Generic[_Made]):
    """A function of constants that remembers what it made as long as the constant exists."""

    def __init__(self, make: Callable[[_Array], _Made]) -> None:
        self._make = make
        self._known: dict[int, tuple[weakref.ref[_Array], _Made]] = {}

    def __call__(self, array: _Array) -> _Made:
        """What is made of an array; of one that may change, anew each time."""
        key = id(array)
        known = self._known.get(key)
        if known is not None and known[0]() is array:
            return known[1]
        made = self._make(array)
        if is_constant(array):
            self._known[key] = weakref.ref(array, lambda _: self._known.pop(key, None)), made
        return made
