"""Nodes that call functions: which functions each calls, on what, one after the other.

A node under way is a generator. It yields the calls that it asks for, is sent the results, and
returns its outputs. The generator knows neither who runs the function nor for how long.

Sources: TensorFlow core/kernels/functional_ops.cc, function_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from opkernel.graph import Operation
from opkernel.runtime.plan.functional_ops import FunctionLibrary, LibraryFunction
from opkernel.runtime.plan.services import branch_index, truth

Requests = Generator[tuple[LibraryFunction, Sequence[Any]], Sequence[Any], Sequence[Any]]
"""The calls that a node makes: functions with their arguments."""


def requests_of(
    op: Operation, library: FunctionLibrary
) -> Callable[[Sequence[Any]], Requests] | None:
    """The function that makes a node's calls from its inputs; None for nodes that call nothing."""
    make = _REQUESTS.get(op.traits.calls)
    if make is not None:
        return make(op, library)
    function = library.function_of(op)
    return None if function is None else _requests_of_call(function)


def _call(op: Operation, library: FunctionLibrary) -> Callable[[Sequence[Any]], Requests]:
    (function,) = library.functions(op, "f")
    return _requests_of_call(function)


def _requests_of_call(function: LibraryFunction) -> Callable[[Sequence[Any]], Requests]:
    def requests(inputs: Sequence[Any]) -> Requests:
        return (yield function, inputs)

    return requests


def _if(op: Operation, library: FunctionLibrary) -> Callable[[Sequence[Any]], Requests]:
    (then,), (otherwise,) = (library.functions(op, attr) for attr in ("then_branch", "else_branch"))

    def requests(inputs: Sequence[Any]) -> Requests:
        return (yield then if truth(inputs[0]) else otherwise, inputs[1:])

    return requests


def _case(op: Operation, library: FunctionLibrary) -> Callable[[Sequence[Any]], Requests]:
    branches = library.functions(op, "branches")

    def requests(inputs: Sequence[Any]) -> Requests:
        return (yield branches[branch_index(inputs[0], len(branches))], inputs[1:])

    return requests


def _while(op: Operation, library: FunctionLibrary) -> Callable[[Sequence[Any]], Requests]:
    (condition,), (body,) = (library.functions(op, attr) for attr in ("cond", "body"))

    def requests(variables: Sequence[Any]) -> Requests:
        while truth((yield condition, variables)[0]):
            variables = yield body, variables
        return variables

    return requests


_REQUESTS = {"case": _case, "function": _call, "if": _if, "while": _while}
