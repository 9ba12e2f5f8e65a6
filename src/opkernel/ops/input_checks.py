"""Checks of the ranks, shapes and sizes of a kernel's inputs, and of the range of int attrs.

Each check of an input takes the message of its error as TensorFlow has it; a `{}` in the message stands for a shape or
size that was compared.

Source: OP_REQUIRES in TensorFlow core/framework/op_requires.h.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.types import TensorShape


def require(holds: Any, message: str) -> None:
    """Raise InvalidArgumentError unless something holds."""
    if not holds:
        raise InvalidArgumentError(message)


def require_rank(tensor: Any, rank: int, message: str) -> None:
    """Raise InvalidArgumentError unless the tensor has this rank."""
    if tensor.ndim != rank:
        raise _refusal(message, tensor.shape)


def require_scalar(tensor: Any, message: str) -> None:
    """Raise InvalidArgumentError unless the tensor has rank 0."""
    if tensor.ndim:
        raise _refusal(message, tensor.shape)


def require_vector(tensor: Any, message: str) -> None:
    """Raise InvalidArgumentError unless the tensor has rank 1."""
    if tensor.ndim != 1:
        raise _refusal(message, tensor.shape)


def require_rank_at_least(tensor: Any, rank: int, message: str) -> None:
    """Raise InvalidArgumentError if the tensor has a smaller rank."""
    if tensor.ndim < rank:
        raise _refusal(message, tensor.shape)


def require_rank_at_most(tensor: Any, rank: int, message: str) -> None:
    """Raise InvalidArgumentError if the tensor has a larger rank."""
    if tensor.ndim > rank:
        raise _refusal(message, tensor.shape)


def require_equal(first: object, second: object, message: str) -> None:
    """Raise InvalidArgumentError, with both, unless two shapes, sizes or the like are equal."""
    if first != second:
        raise _refusal(message, first, second)


def broadcast_shape(first: Sequence[int], second: Sequence[int], message: str) -> tuple[int, ...]:
    """The shape that both are broadcast to; raises InvalidArgumentError, with both, if they cannot be."""
    try:
        return np.broadcast_shapes(tuple(first), tuple(second))
    except ValueError:
        raise _refusal(message, first, second) from None


def _refusal(message: str, *facts: object) -> InvalidArgumentError:
    for fact in facts:
        shown = TensorShape(fact) if isinstance(fact, tuple) else fact
        message = message.replace("{}", f"{shown}", 1)
    return InvalidArgumentError(message)


_INT32 = range(-(2**31), 2**31)


def int32_attr(name: str, value: int) -> int:
    """The value, if an int32 can hold it.

    Raises:
        InvalidArgumentError: it cannot.
    """
    if value not in _INT32:
        raise InvalidArgumentError(f"Attr {name} has value {value} out of range for an int32")
    return value
