"""Functions that plans call beside kernels: checks, and decisions between branches.

Source: TensorFlow core/kernels/control_flow_ops.cc, core/kernels/functional_ops.cc.
"""

from functools import cache
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.types import natural_dtype

__all__ = [
    "DEAD",
    "branch_index",
    "check_alive",
    "first_alive",
    "index_of_merge",
    "scalar_of",
    "switch_index",
    "truth",
]


_OF_CONDITIONS = "?fdbBhilq"
"""The numbers that a condition may be, as NumPy's codes."""


class _Dead:
    """The value of a tensor on the branch of a Switch that was not taken."""

    def __repr__(self) -> str:
        return "DEAD"


DEAD = _Dead()


def check_alive(tensor: Any, name: str) -> None:
    """Raise InvalidArgumentError where a tensor that must have a value is dead."""
    if tensor is DEAD:
        raise InvalidArgumentError(
            f"The tensor returned for {name} was not valid: it is on a branch that was not taken"
        )


def scalar_of(tensor: Any) -> Any:
    """The value by which a Switch decides.

    Raises:
        InvalidArgumentError: it is not a scalar.
    """
    if tensor.ndim:
        raise InvalidArgumentError(
            f"The second input must be a scalar, but it has shape {list(tensor.shape)}"
        )
    return tensor[()]


def switch_index(index: Any, outputs: int) -> int:
    """The output that a `_SwitchN` gives its data to: the last stands for all out of range."""
    return branch_index(scalar_of(index), outputs)


def branch_index(index: Any, branches: int) -> int:
    """The branch that a Case takes: the last one stands for all indices out of range.

    Raises:
        InvalidArgumentError: the index is not a scalar.
    """
    if np.ndim(index):
        raise InvalidArgumentError(
            f"branch_index must be scalar, but it has shape {list(index.shape)}"
        )
    chosen = int(index)
    return chosen if 0 <= chosen < branches else branches - 1


def first_alive(*tensors: Any) -> tuple[Any, Any]:
    """The first tensor that is alive, and its index."""
    for index, tensor in enumerate(tensors):
        if tensor is not DEAD:
            return tensor, index_of_merge(index)
    return DEAD, DEAD


@cache
def index_of_merge(index: int) -> np.int32:
    """The second output of a Merge."""
    return np.int32(index)


def truth(tensor: Any) -> bool:
    """Whether a condition holds.

    A scalar holds if it is true, not zero, or a string that is not empty; any other tensor if it
    has elements.

    Raises:
        InvalidArgumentError: it is a scalar of another type, such as complex numbers.
    """
    array = np.asarray(tensor)
    if array.ndim:
        return array.size > 0
    value: Any = array[()]
    kind = array.dtype.char
    if kind not in _OF_CONDITIONS and not (kind == "O" and isinstance(value, bytes)):
        raise InvalidArgumentError(
            f"{natural_dtype(value).string} cannot be converted to a boolean"
        )
    return bool(value)
