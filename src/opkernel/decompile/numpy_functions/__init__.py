"""Ops as plain NumPy functions, for programs that have NumPy and nothing else.

`opkernel decompile --numpy` copies them, as they stand here, into the programs that it writes: they
take the inputs of the op, by keywords the attrs that they look at, and use NumPy and each other only.
They are written to be read; the kernels of the catalogue are faster, and refuse wrong inputs.
"""

import re
from collections.abc import Callable
from inspect import isfunction
from typing import Any

import numpy as np

from opkernel.decompile.numpy_functions import (
    array,
    control_flow,
    convolution,
    elementwise,
    fused,
    image,
    linalg,
    lists,
    nn,
    reductions,
)
from opkernel.ops.catalogue import MODULE_OF_OP

__all__ = ["BY_NAME", "NEEDED_ATTRS", "NUMPY_FUNCTIONS"]

_OF_OPS = (array, convolution, elementwise, fused, image, linalg, lists, nn, reductions)

_NAMED = (array, elementwise, linalg, nn, reductions)
"""The modules whose functions are named like ops, except for those in `FUNCTIONS`."""
_WORD = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _named_as(op: str) -> Callable[..., Any] | None:
    """The function, ours or a ufunc of NumPy, whose name is that of an op in lower case."""
    name = _WORD.sub("_", op).lower()
    own = [vars(module)[name] for module in _NAMED if isfunction(vars(module).get(name))]
    function: Any = own[0] if own else getattr(np, name, None)
    return function if own or isinstance(function, np.ufunc) else None


NUMPY_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{op: function for op in MODULE_OF_OP if (function := _named_as(op)) is not None},
    **{op: function for module in _OF_OPS for op, function in module.FUNCTIONS.items()},
}
"""The function of each op that has one, some of them NumPy's own."""

NEEDED_ATTRS: dict[str, dict[str, Any]] = {
    **array.NEEDED_ATTRS,
    **convolution.NEEDED_ATTRS,
    **fused.NEEDED_ATTRS,
    **nn.NEEDED_ATTRS,
}
"""The values that attrs must have: the functions know no others."""

BY_NAME: dict[str, Callable[..., Any]] = {
    name: function
    for module in (*_OF_OPS, control_flow)
    for name, function in vars(module).items()
    if isfunction(function)
}
"""All functions that may stand in a program, by their names."""
