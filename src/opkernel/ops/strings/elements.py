"""Functions of one string, for all strings of a tensor."""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["map_strings", "strings_like"]


def map_strings(function: Callable[[Any], bytes], tensor: Any) -> Any:
    """The tensor of the strings that `function` makes of the elements."""
    return strings_like(tensor.shape, [function(element) for element in tensor.flat])


def strings_like(shape: tuple[int, ...], strings: list[bytes]) -> Any:
    """The tensor of strings of this shape, rank 0 included."""
    output = np.empty(len(strings), object)
    output[:] = strings
    return output.reshape(shape)
