"""Conditionals and loops of programs of NumPy alone; dead tensors are None."""

from typing import Any

import numpy as np


def truth(tensor: Any) -> bool:
    """Whether a condition holds: a scalar that is not zero, or any other tensor with elements."""
    return bool(tensor) if np.ndim(tensor) == 0 else tensor.size > 0


def switch_index(index: Any, outputs: int) -> int:
    """The output that is chosen: the last one stands for all indices out of range."""
    return int(index) if 0 <= index < outputs else outputs - 1


def first_alive(*tensors: Any) -> Any:
    """The first tensor that has a value, and its index."""
    for index, tensor in enumerate(tensors):
        if tensor is not None:
            return tensor, np.int32(index)
    return None, None


def check_alive(tensor: Any, name: str) -> None:
    """Raise ValueError where a tensor that is wanted has no value."""
    if tensor is None:
        raise ValueError(f"{name} has no value: it is on a branch that was not taken")
