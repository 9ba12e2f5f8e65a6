"""Following: which handles of a graph, and of the functions that it calls, become values.

A function that takes such handles has a body of its own for them: for each call with the same
arguments among them the same one, so that functions may call themselves. What is known of values
grows until nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from opkernel.device.budget import check_time
from opkernel.errors import ResourceExhaustedError
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import STRUCTURAL_OPS
from opkernel.graph.freezing.body import Body
from opkernel.graph.freezing.calls import called_functions, calls_functions, first_argument
from opkernel.graph.freezing.held_values import VARIABLES, HeldValue, joined
from opkernel.graph.freezing.reads import READING
from opkernel.graph.functions.call_types import declared_types, misfit
from opkernel.graph.functions.function_body import instantiate_function
from opkernel.graph.functions.function_library import (
    FunctionLibraryDefinition,
    functions_named_by,
)
from opkernel.proto import NameAttrList

_MAX_BODIES = 10_000
"""So many bodies of functions may a graph have: attrs that grow with each call would make ever more."""


_STATELESS = READING | STRUCTURAL_OPS
"""Ops that are declared to have state, and do not make a function stateful that has none else."""


class Followed:
    """A graph whose handles have been followed.

    Attributes:
        top: the graph.
    """

    def __init__(
        self,
        graph: Graph,
        captured: Mapping[Operation, HeldValue],
        kept: Collection[str] = (),
    ) -> None:
        """Follow the handles of all variables.

        Args:
            graph: the graph.
            captured: the placeholders whose value is known.
            kept: the names of variables that stay as they are.

        Raises:
            NotFoundError, InvalidArgumentError: a function that takes a handle, or has variables,
                is missing or breaks a rule.
            ResourceExhaustedError: the functions call ever others.
        """
        self._kept = kept
        self.top = Body(graph, kept=kept)
        self.top.variables |= captured
        self._library = graph.function_library
        self._with_variables = functions_with_variables(graph.function_library)
        self._known: dict[tuple[object, ...], Body] = {}
        self._waiting: dict[Body, None] = {}
        self._follow(self._add(self.top))
        self._find_stateful()

    def bodies(self) -> Iterator[Body]:
        """The graph, and the bodies of the functions that change with it."""
        found = dict.fromkeys([self.top])
        waiting = [self.top]
        while waiting:
            body = waiting.pop()
            yield body
            for callee in [callee for callees in body.calls.values() for callee in callees]:
                if callee not in found:
                    found[callee] = None
                    waiting.append(callee)

    def _find_stateful(self) -> None:
        """Find the bodies that have state, and so those that call them."""
        waiting = [body for body in self.bodies() if any(_has_state(body, op) for op in body.ops)]
        while waiting:
            body = waiting.pop()
            if not body.is_stateful:
                body.is_stateful = True
                waiting += body.callers

    def _add(self, body: Body) -> Body:
        """Take in a body; calls of functions that have variables are followed in any case."""
        self._waiting[body] = None
        for op in body.ops:
            if calls_functions(op):
                names = [function.name for function in called_functions(op)]
                if not self._with_variables.isdisjoint(names):
                    body.calls[op] = []
        return body

    def _follow(self, body: Body) -> None:
        self._waiting[body] = None
        while self._waiting:
            following, _ = self._waiting.popitem()
            check_time("following the variables of", following.name)
            before = following.results
            following.follow(partial(self._call, following))
            if following.results != before:
                self._waiting.update(following.callers)

    def _call(self, inside: Body, op: Operation) -> Sequence[HeldValue | None]:
        """What a node gives that calls functions, as far as it is known by now."""
        taken = inside.taken(op.inputs)[first_argument(op) :]
        callees = [
            self._callee(inside, op, number, function, taken)
            for number, function in enumerate(called_functions(op))
        ]
        inside.calls[op] = callees
        given = [callee.results for callee in callees]
        if op.traits.calls == "while":
            turn = [
                None if first is None else joined([first, last])
                for first, last in zip(taken, given[1], strict=True)
            ]
            given = [turn]
            taken = [known or first for known, first in zip(turn, taken, strict=True)]
        for callee in callees:
            self._widen(callee, taken)
        return [joined(values) for values in zip(*given, strict=True)]

    def _widen(self, callee: Body, taken: Sequence[HeldValue | None]) -> None:
        """Note what the arguments of a function may be, too."""
        known = [
            None if new is None else joined([old, new])
            for old, new in zip(callee.arguments, taken, strict=True)
        ]
        if known != callee.arguments:
            callee.arguments = known
            self._waiting[callee] = None

    def _callee(
        self,
        inside: Body,
        op: Operation,
        number: int,
        function: NameAttrList,
        taken: Sequence[HeldValue | None],
    ) -> Body:
        """The body of a function that a node calls with these values for some of the handles."""
        types = tuple([None if value is None else value.dtype for value in taken])
        key = function.SerializeToString(deterministic=True), types
        if key not in self._known:
            if len(self._known) >= _MAX_BODIES:
                raise ResourceExhaustedError(
                    f"Node {op.name!r} ({op.type}) calls ever further functions that take variables: "
                    f"more than {_MAX_BODIES}",
                    node=op.name,
                    op=op.type,
                )
            body = instantiate_function(self._library, function)
            self._known[key] = self._add(Body(body.graph, body, self._kept))
        self._check_types(op, number, function)
        callee = self._known[key]
        callee.callers[inside] = None
        return callee

    def _check_types(self, op: Operation, number: int, function: NameAttrList) -> None:
        """Raise InvalidArgumentError where a function takes or gives other types than a call says."""
        signature = self._library.get_function(function.name).signature
        attr = ("cond", "body")[number] if op.traits.calls == "while" else ""
        error = misfit(op, attr, function.name, declared_types(signature, function.attr))
        if error is not None:
            raise error


def _has_state(body: Body, op: Operation) -> bool:
    """Whether a node has state, which neither is a variable nor reads one nor calls a body."""
    becomes_stateless = op in body.variables or op in body.calls or op.type in _STATELESS
    return op.op_def.is_stateful and not becomes_stateless


def functions_with_variables(library: FunctionLibraryDefinition) -> set[str]:
    """The functions that have variables, or call functions that do, at whatever depth."""
    callers: dict[str, list[str]] = {}
    for name, function in library.items():
        for node in function.node_def:
            for callee in functions_named_by(node):
                callers.setdefault(callee, []).append(name)
    found: set[str] = set()
    waiting = [name for variable in VARIABLES for name in callers.get(variable, ())]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += callers.get(name, ())
    return found
