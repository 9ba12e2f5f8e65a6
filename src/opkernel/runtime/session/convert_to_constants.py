"""Freezing: variables become constants with the values that they have in a session.

Values are read in the session, on the graph that is to be frozen; then what took a variable's handle or reference is
followed, through Identity, Switch and Enter, to where the value is read.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.control_flow_ops import ENTER_OPS, SWITCH_OPS
from opkernel.graph.edit.graph_edit import GraphEdit, listed
from opkernel.graph.edit.inline_function import expand_inline_functions
from opkernel.runtime.session.session import Session
from opkernel.types import DataType

__all__ = ["convert_variables_to_constants"]

_REFERENCES = frozenset({"Variable", "VariableV2", "AutoReloadVariable"})
_VARIABLES = _REFERENCES | {"VarHandleOp"}
_PASS_ON = (SWITCH_OPS - {"_SwitchN"}) | ENTER_OPS | {"Identity", "RefIdentity"}
"""Ops that give the handle or reference that they take; without `Ref`, they do so with a value."""
_MAX_DEPTH = 8
"""Functions with handles among their arguments that call each other more deeply are refused."""


def convert_variables_to_constants(
    session: Session,
    outputs: Iterable[Tensor | Operation | str] | Tensor | Operation | str,
    inputs: Iterable[Tensor | str] | Tensor | str = (),
) -> Graph:
    """A new graph with what some outputs need, and constants for variables.

    Variables are VarHandleOp, VariableV2 and Variable; their values are those that they have in the
    session now. Constants have the names of the variables, what read them is an Identity. Calls of
    functions that take variables are inlined.

    Args:
        session: it has the graph and the values; both stay as they are.
        outputs: the tensors and operations that the new graph is for, or a single one.
        inputs: as for `GraphEdit.extract`: tensors that get a Placeholder there.

    Raises:
        InvalidArgumentError: what the outputs need changes a variable, or hands it to what does not
            simply read it; the message names the node.
        NotFoundError: the graph lacks an output or an input.
        FailedPreconditionError: a variable has no value, or the session is closed or finalized.
    """
    session._check_open()
    graph, wanted = session.graph, listed(outputs)
    frozen = GraphEdit(graph).extract(wanted, inputs)
    elements = [graph.as_graph_element(one) for one in wanted]
    ops = [element.op if isinstance(element, Tensor) else element for element in elements]
    _inline_calls(frozen, {frozen.get_operation_by_name(op.name) for op in ops})
    _keep_needed_functions(frozen)
    variables = [op for op in frozen.get_operations() if op.type in _VARIABLES]
    values = _values(session, frozen, variables)
    with frozen.edit() as edit:
        for variable, value in zip(variables, values, strict=True):
            _convert(edit, variable, value)
    return frozen


def _inline_calls(graph: Graph, fetchable: set[Operation]) -> None:
    """Inline the calls that take handles."""
    for _ in range(_MAX_DEPTH):
        if not expand_inline_functions(
            graph,
            consider=lambda call, body: DataType.DT_RESOURCE in call.input_types,
            fetchable=fetchable,
        ):
            break


def _keep_needed_functions(graph: Graph) -> None:
    """Drop the functions that no call needs any more; refuse variables in the others."""
    needed = graph.function_library.reachable_definitions(
        [op.message for op in graph.get_operations()]
    )
    for name in graph.function_library.keys() - needed.keys():
        graph.function_library.remove_function(name)
    for function in needed.values():
        for node in function.node_def:
            if node.op in _VARIABLES:
                raise InvalidArgumentError(
                    f"Variable {node.name!r} of function {function.signature.name!r} cannot become a "
                    f"constant: only variables outside of functions can",
                    node=node.name,
                    op=node.op,
                )


def _values(session: Session, graph: Graph, variables: Sequence[Operation]) -> list[Any]:
    """The values of the variables in a session."""
    with graph.edit() as edit:
        reads = [
            op.outputs[0]
            if op.type in _REFERENCES
            else edit.add(
                "ReadVariableOp", op.outputs, f"{op.name}/read", {"dtype": _dtype(op)}
            ).outputs[0]
            for op in variables
        ]
    values: list[Any] = session._callable(session._executables.for_graph(graph), reads, ())()
    with graph.edit() as edit:
        edit.remove(*[read.op for read in reads if read.op.type == "ReadVariableOp"])
    return values


def _convert(edit: GraphEdit, variable: Operation, value: Any) -> None:
    """Put a constant in the place of a variable."""
    constant = edit.constant(
        value, _dtype(variable), f"{variable.name}/value", variable.device, variable.control_inputs
    )
    going = [variable]
    places = [(variable.outputs[0], constant)]
    for source, by in places:
        for consumer, index in source.consumer_edges():
            is_passed_on = index == 0 and consumer.type in _PASS_ON
            if is_passed_on and _is_no_value(consumer.output_types[0]):
                going.append(consumer)
                twin = _twin(edit, consumer, by)
                places += zip(consumer.outputs, twin.outputs, strict=False)
            elif index >= 0:
                _read(edit, variable, consumer, index, by)
    edit.remove(*going)
    edit.rename({constant.op: variable.name})


def _twin(edit: GraphEdit, op: Operation, value: Tensor) -> Operation:
    """What passes a value on as `op` does a handle or reference."""
    attrs = {name: attr for name, attr in op.attr.items() if name != "T" and name[0] != "_"}
    inputs = [value, *op.inputs[1:]]
    name = f"{op.name}/value"
    return edit.add(op.type.removeprefix("Ref"), inputs, name, attrs, op.device, op.control_inputs)


def _read(edit: GraphEdit, variable: Operation, op: Operation, index: int, value: Tensor) -> None:
    """Have an operation take the value of a variable, in the place of its handle or reference."""
    dtype = op.input_types[index]
    if not _is_no_value(dtype):
        op.update_input(index, value)
    elif op.type == "ReadVariableOp":
        edit.become(op, "Identity", [value])
    elif op.type == "VariableShape":
        edit.become(op, "Shape", [value], {"out_type": op.attr["out_type"]})
    elif op.type == "ResourceGather":
        axis = edit.constant(op.attr["batch_dims"].i, DataType.DT_INT32, f"{op.name}/axis")
        attrs = {"batch_dims": op.attr["batch_dims"]}
        edit.become(op, "GatherV2", [value, op.inputs[1], axis], attrs)
    else:
        raise InvalidArgumentError(
            f"Variable {variable.name!r} cannot become a constant: node {op.name!r} ({op.type}) takes "
            f"it as input {index}, and does not simply read it. Choose outputs that do not need that "
            f"node",
            node=op.name,
            op=op.type,
        )


def _is_no_value(dtype: DataType) -> bool:
    """Whether tensors of a type stand for what has a value: handles and references."""
    return dtype.is_ref or dtype is DataType.DT_RESOURCE


def _dtype(variable: Operation) -> DataType:
    return DataType(variable.attr["dtype"].type)
