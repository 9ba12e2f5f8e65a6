"""frozen_graph: the graph, and its functions, with constants in the place of variables."""

from __future__ import annotations

from collections.abc import Mapping

from opkernel.errors import UnimplementedError
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.freezing.body import Body
from opkernel.graph.freezing.counterparts import Constants
from opkernel.graph.freezing.follow import Followed
from opkernel.graph.freezing.held_values import VARIABLES, HeldValue
from opkernel.graph.freezing.rewriting import rewrite
from opkernel.graph.functions.function_instance import FunctionBody
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.graph.functions.graph_to_function import graph_to_function_def
from opkernel.proto import FunctionDef, OpDef
from opkernel.types import DataType


def frozen_graph(followed: Followed, constants: Constants) -> Graph:
    """The graph with constants in the place of variables, and functions that take their values.

    The functions come into the library of the graph; those that nothing calls any more leave it.

    Raises:
        FailedPreconditionError, UnimplementedError, InvalidArgumentError: as `rewrite`; or a variable
            is in a function that is not simply called.
    """
    library = followed.top.graph.function_library
    functions = [(body, body.function) for body in followed.bodies() if body.function is not None]
    names: dict[Body, str] = {}
    for body, function in functions:
        names[body] = _free_name(function.name, library)
        library.add_function(_declaration(body, function, names[body]))
    for body, function in functions:
        definition = _definition(body, function, constants, names)
        library.remove_function(names[body])
        library.add_function(definition)
    graph, _ = rewrite(followed.top, constants, names)
    library.adopt(library.reachable_definitions([op.message for op in graph.get_operations()]))
    _check_functions(library)
    return graph


def _free_name(name: str, library: FunctionLibraryDefinition) -> str:
    wanted = free = f"{name}_frozen"
    number = 0
    while free in library:
        number += 1
        free = f"{wanted}_{number}"
    return free


def _declaration(body: Body, function: FunctionBody, name: str) -> FunctionDef:
    """A function without nodes, so that others, and itself, can call it before it is written."""
    signature = OpDef(name=name, is_stateful=body.is_stateful)
    for op, dtype, value in zip(
        function.arg_nodes, function.arg_types, body.arguments, strict=True
    ):
        signature.input_arg.add(name=op.name, type=_type(dtype, value))
    results = zip(_result_names(function), function.ret_types, body.results, strict=True)
    for label, dtype, value in results:
        signature.output_arg.add(name=label, type=_type(dtype, value))
    return FunctionDef(signature=signature)


def _definition(
    body: Body, function: FunctionBody, constants: Constants, names: Mapping[Body, str]
) -> FunctionDef:
    graph, copies = rewrite(body, constants, names)
    return graph_to_function_def(
        graph,
        names[body],
        [copies[op].outputs[0] for op in function.arg_nodes],
        [copies[op].inputs[0] for op in function.ret_nodes],
        input_names=[op.name for op in function.arg_nodes],
        output_names=_result_names(function),
        control_outputs=_control_outputs(function, copies),
        attrs=function.function_def.attr,
        description=function.function_def.signature.description,
    )


def _result_names(function: FunctionBody) -> list[str]:
    """The names of the results, one for each tensor."""
    return [op.name.replace("_RetVal", "") for op in function.ret_nodes]


def _control_outputs(
    function: FunctionBody, copies: Mapping[Operation, Operation]
) -> dict[str, Operation]:
    """What has to run though no result depends on it, by the names that the function has for it."""
    definition = function.function_def
    labels = dict.fromkeys([*definition.signature.control_output, *sorted(definition.control_ret)])
    by_name = function.graph.by_name
    return {label: copies[by_name[definition.control_ret[label]]] for label in labels}


def _type(dtype: DataType, value: HeldValue | None) -> DataType:
    return dtype if value is None else value.dtype


def _check_functions(library: FunctionLibraryDefinition) -> None:
    """Raise UnimplementedError where a function is left that has a variable."""
    for name, function in library.items():
        for node in function.node_def:
            if node.op in VARIABLES:
                raise UnimplementedError(
                    f"Variable {node.name!r} of function {name!r} cannot become a constant: the "
                    f"function is an attr of a node that does not simply call it",
                    node=node.name,
                    op=node.op,
                )
