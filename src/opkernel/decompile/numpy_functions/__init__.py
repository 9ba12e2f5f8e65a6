"""Ops as plain NumPy functions, for programs that have NumPy and nothing else.

`opkernel decompile --numpy` copies them, as they stand here, into the programs that it writes: they
take the inputs of the op, by keywords the attrs that they look at, and use NumPy and each other only.
They are written to be read; the kernels of the catalogue are faster, and refuse wrong inputs.
"""

import functools
import re
import sys
from collections.abc import Callable
from inspect import isfunction
from typing import Any

import numpy as np

from opkernel.decompile.numpy_functions import (
    array,
    convolutions_pools_images,
    elementwise,
    linalg,
    lists_and_control_flow,
    nn,
    reductions_scans_segments,
)
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.registrations import OpRules, declaring_site

__all__ = ["BY_NAME", "NEEDED_ATTRS", "NUMPY_FUNCTIONS", "numpy_functions"]

_NAMED = (array, elementwise, linalg, nn, reductions_scans_segments)
"""The modules whose functions are named like ops, except for those in `FUNCTIONS`."""
_OF_OPS = (*_NAMED, convolutions_pools_images, lists_and_control_flow)
_WORD = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _named_as(op: str) -> Callable[..., Any] | None:
    """The function, ours or a ufunc of NumPy, whose name is that of an op in lower case."""
    name = _WORD.sub("_", op).lower()
    own = [vars(module)[name] for module in _NAMED if isfunction(vars(module).get(name))]
    function: Any = own[0] if own else getattr(np, name, None)
    return function if own or isinstance(function, np.ufunc) else None


def _register(op: str) -> None:
    listed = [module.FUNCTIONS[op] for module in _OF_OPS if op in module.FUNCTIONS]
    function = listed[0] if listed else _named_as(op) if op in MODULE_OF_OP else None
    if function is not None:
        NUMPY_FUNCTIONS.put(op, function, declaring_site(sys._getframe()))


NUMPY_FUNCTIONS = OpRules[Callable[..., Any]]("NumPy", _register)
"""The function of each op that has one, some of them NumPy's own."""


@functools.cache
def numpy_functions() -> OpRules[Callable[..., Any]]:
    """The functions of all ops."""
    for op in MODULE_OF_OP:
        NUMPY_FUNCTIONS.find(op)
    return NUMPY_FUNCTIONS


NEEDED_ATTRS: dict[str, dict[str, Any]] = {
    **array.NEEDED_ATTRS,
    **convolutions_pools_images.NEEDED_ATTRS,
    **nn.NEEDED_ATTRS,
}
"""The values that attrs must have: the functions know no others."""

BY_NAME: dict[str, Callable[..., Any]] = {
    name: function
    for module in _OF_OPS
    for name, function in vars(module).items()
    if isfunction(function)
}
"""All functions that may stand in a program, by their names."""
