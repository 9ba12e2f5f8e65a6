"""Checks of the ranks, shapes and sizes of a kernel's inputs.

Each takes the message of its error as TensorFlow has it; a `{}` in the message stands for a shape or size that
was compared.

Source: OP_REQUIRES in TensorFlow core/framework/op_requires.h.
"""

from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.types import TensorShape


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


def _refusal(message: str, *facts: object) -> InvalidArgumentError:
    for fact in facts:
        shown = TensorShape(fact) if isinstance(fact, tuple) else fact
        message = message.replace("{}", f"{shown}", 1)
    return InvalidArgumentError(message)
