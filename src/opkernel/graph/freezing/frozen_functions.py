"""frozen_graph: the graph, and its functions, with constants in the place of variables.

`Followed` tells which handles of the graph, and of the functions that it calls, become values. A function that takes such
handles has a body of its own for them: for each call with the same arguments among them the same one, so that functions
may call themselves. What is known of values grows until nothing changes any more. Each node then has its counterpart, of
the same name and with as many outputs, in a new graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from opkernel.device.budget import check_time
from opkernel.errors import ResourceExhaustedError, UnimplementedError
from opkernel.graph.building.definitions import node_def
from opkernel.graph.core.edges import reached
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation, check_inputs
from opkernel.graph.core.structural_ops import (
    STRUCTURAL_OPS,
    VARIABLE_OPS,
)
from opkernel.graph.core.tensor_name import free_name
from opkernel.graph.edit.subgraph import link_copies
from opkernel.graph.freezing.body import Body, HeldValue, joined
from opkernel.graph.freezing.counterparts import (
    READING,
    Constants,
    Counterpart,
    counterpart,
    types_of_values,
)
from opkernel.graph.functions.calls import (
    called_functions,
    calls_functions,
    declared_types,
    misfit,
)
from opkernel.graph.functions.function_body import FunctionBody, instantiate_function
from opkernel.graph.functions.function_library import (
    FunctionLibraryDefinition,
    functions_named_by,
)
from opkernel.graph.functions.graph_to_function import graph_to_function_def
from opkernel.proto import FunctionDef, NameAttrList, OpDef
from opkernel.types import DataType

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

    def bodies(self) -> Collection[Body]:
        """The graph, and the bodies of the functions that change with it."""
        return reached([self.top], lambda body: chain.from_iterable(body.calls.values()))

    def _find_stateful(self) -> None:
        """Find the bodies that have state, and so those that call them."""
        stateful = [body for body in self.bodies() if any(_has_state(body, op) for op in body.ops)]
        for body in reached(stateful, lambda body: body.callers):
            body.is_stateful = True

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
        taken = inside.taken(op.inputs)[op.traits.chooses_function :]
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
                raise op.error(
                    f"Node {op.name!r} ({op.type}) calls ever further functions that take variables: "
                    f"more than {_MAX_BODIES}",
                    ResourceExhaustedError,
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
    return set(reached(VARIABLE_OPS, lambda name: callers.get(name, ()))) - VARIABLE_OPS


def frozen_graph(followed: Followed, constants: Constants) -> Graph:
    """The graph with constants in the place of variables, and functions that take their values.

    The functions come into the library of the graph; those that nothing calls any more leave it.

    Raises:
        FailedPreconditionError: a node takes a handle and does not simply read it.
        UnimplementedError: a node may have the handle of a variable, and may have another; or a variable
            is in a function that is not simply called.
        InvalidArgumentError: a node reads a value of another type than the variable has.
    """
    library = followed.top.graph.function_library
    functions = [(body, body.function) for body in followed.bodies() if body.function is not None]
    names: dict[Body, str] = {}
    for body, function in functions:
        names[body] = free_name(f"{function.name}_frozen", library)
        library.add_function(_declaration(body, function, names[body]))
    for body, function in functions:
        definition = _definition(body, function, constants, names)
        library.remove_function(names[body])
        library.add_function(definition)
    graph, _ = _rewrite(followed.top, constants, names)
    library.adopt(library.reachable_definitions([op.message for op in graph.get_operations()]))
    _check_functions(library)
    return graph


# Functions.


def _declaration(body: Body, function: FunctionBody, name: str) -> FunctionDef:
    """A function without nodes, so that others, and itself, can call it before it is written."""
    signature = OpDef(name=name, is_stateful=body.is_stateful)
    takes = types_of_values(function.arg_types, body.arguments)
    for op, dtype in zip(function.arg_nodes, takes, strict=True):
        signature.input_arg.add(name=op.name, type=dtype)
    gives = types_of_values(function.ret_types, body.results)
    for label, dtype in zip(_result_names(function), gives, strict=True):
        signature.output_arg.add(name=label, type=dtype)
    return FunctionDef(signature=signature)


def _definition(
    body: Body, function: FunctionBody, constants: Constants, names: Mapping[Body, str]
) -> FunctionDef:
    graph, copies = _rewrite(body, constants, names)
    definition, by_name = function.function_def, function.graph.by_name
    labels = dict.fromkeys([*definition.signature.control_output, *sorted(definition.control_ret)])
    return graph_to_function_def(
        graph,
        names[body],
        [copies[op].outputs[0] for op in function.arg_nodes],
        [copies[op].inputs[0] for op in function.ret_nodes],
        input_names=[op.name for op in function.arg_nodes],
        output_names=_result_names(function),
        control_outputs={label: copies[by_name[definition.control_ret[label]]] for label in labels},
        attrs=definition.attr,
        description=definition.signature.description,
    )


def _result_names(function: FunctionBody) -> list[str]:
    """The names of the results, one for each tensor."""
    return [op.name.replace("_RetVal", "") for op in function.ret_nodes]


def _check_functions(library: FunctionLibraryDefinition) -> None:
    """Raise UnimplementedError where a function is left that has a variable."""
    for name, function in library.items():
        for node in function.node_def:
            if node.op in VARIABLE_OPS:
                raise UnimplementedError(
                    f"Variable {node.name!r} of function {name!r} cannot become a constant: the "
                    f"function is an attr of a node that does not simply call it",
                    node=node.name,
                    op=node.op,
                )


# The nodes of one body.


def _rewrite(
    body: Body, constants: Constants, names: Mapping[Body, str]
) -> tuple[Graph, dict[Operation, Operation]]:
    """A new graph with the nodes of a body, in which values take the place of handles.

    Args:
        body: the body.
        constants: gives the values of its variables.
        names: the names of the functions that take the place of others.

    Returns:
        The graph, which shares the library of the body's, and the counterparts of the nodes.
    """
    graph = Graph(function_library=body.graph.function_library)
    graph.graph_def_versions.CopyFrom(body.graph.graph_def_versions)
    found: dict[Operation, Counterpart | None] = {}
    copies: dict[Operation, Operation] = {}
    for op in body.ops:
        check_time("freezing", op.name)
        new = found[op] = counterpart(body, op, constants, names)
        copy = Operation(graph, op.name, op.node_def if new is None else new.node, op.number)
        copy.definition_site = op.definition_site
        if new is None:
            copy.signature = op.signature
        copies[op] = copy
    axes = _link(graph, copies, found)
    for op, new in found.items():
        if new is not None:
            _resolve(graph, copies[op])
    graph.append([*axes, *copies.values()])
    graph.put_in_order(graph.get_operations())
    for copy in copies.values():
        check_inputs(copy, copy.inputs, copy.signature)
    for op, device in body.graph.assigned_devices.items():
        if op in copies:
            graph.assigned_devices[copies[op]] = device
    return graph, copies


def _link(
    graph: Graph,
    copies: Mapping[Operation, Operation],
    found: Mapping[Operation, Counterpart | None],
) -> list[Operation]:
    """Give the counterparts their edges; returns the constants among their inputs that are new."""
    link_copies(copies, found)
    taken, axes = {op.name for op in found}, []
    for op, new in found.items():
        if new is not None and not new.takes_inputs:
            copies[op].edges = ()
        if new is not None and new.axis is not None:
            name = free_name(f"{op.name}/axis", taken)
            taken.add(name)
            axes.append(_axis(graph, name, new.axis, op.message.device))
            copies[op].edges = (*copies[op].edges, axes[-1], 0)
    return axes


def _axis(graph: Graph, name: str, value: int, device: str) -> Operation:
    held = np.array(value, np.int32)
    node = node_def(name, "Const", device=device, dtype=DataType.DT_INT32, value=held)
    axis = Operation(graph, name, node, 0)
    _resolve(graph, axis)
    return axis


def _resolve(graph: Graph, op: Operation) -> None:
    """Give an operation the signature of its message."""
    op.write_inputs()
    op.signature = graph.resolve(op.message, len(op.edges) // 2)
