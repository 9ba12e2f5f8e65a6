"""The kernels of an op whose function takes inputs and attrs alike."""

import dis
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction
from opkernel.proto import OpDef

_RETURNING = {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"}
_CALLING = {"CACHE", "CALL", "PRECALL", "PUSH_NULL"}
_RAISING = {"RESUME", "NOP", "LOAD_CONST", "LOAD_GLOBAL", "RAISE_VARARGS", *_CALLING}


def has_body(function: FunctionType) -> bool:
    """Whether a function does anything; not one of `...`, or that raises NotImplementedError."""
    instructions = [*dis.get_instructions(function)]  # the source need not be at hand
    names = {one.opname for one in instructions}
    if "RAISE_VARARGS" in names:
        return not (names <= _RAISING and function.__code__.co_names == ("NotImplementedError",))
    returned = [i.argval for i in instructions if i.opname in ("LOAD_CONST", "RETURN_CONST")]
    return not (names <= _RETURNING and returned == [None])


def maker_of(function: Any, op_def: OpDef) -> Callable[..., Any] | None:
    """The maker of kernels for a function with the op's own parameters; None for one of inputs alone.

    Raises:
        InvalidArgumentError: the function has a parameter that is none of the op's.
    """
    if not isinstance(function, FunctionType):
        return None
    parameters = inspect.signature(function).parameters.values()
    num_positional = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
    num_inputs = len(op_def.input_arg)
    if num_positional <= num_inputs:
        return None
    attrs = [p.name for p in parameters][num_inputs:]
    wrong = sorted({*attrs} - {attr.name for attr in op_def.attr})
    if wrong:
        raise InvalidArgumentError(
            f"{op_def.name}: the kernel {function.__qualname__} has the parameter {wrong[0]!r}, which is no "
            "attr of the op; give it the parameters of the op"
        )
    return _with_attrs(function, attrs)


def _with_attrs(function: FunctionType, attrs: Sequence[str]) -> Callable[..., Any]:
    """The maker of the function of a node's inputs: it fills in the attrs by name."""

    def make(*, construction: OpKernelConstruction) -> Callable[..., Any]:
        return partial(function, **{name: construction.get_attr(name) for name in attrs})

    make.__name__, make.__qualname__ = function.__name__, function.__qualname__
    return make
