"""Checks of the ranks and shapes of a kernel's inputs.

Each takes the message of its error as TensorFlow has it; a `{}` in the message stands for a shape.

Source: OP_REQUIRES in TensorFlow core/framework/op_requires.h.
"""

from collections.abc import Sequence
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


def require_same_shape(first: Any, second: Any, message: str) -> None:
    """Raise InvalidArgumentError, with both shapes, unless the tensors have the same shape."""
    if first.shape != second.shape:
        raise _refusal(message, first.shape, second.shape)


def _refusal(message: str, *shapes: Sequence[int]) -> InvalidArgumentError:
    for shape in shapes:
        message = message.replace("{}", str(TensorShape(shape)), 1)
    return InvalidArgumentError(message)
