"""freeze_graph: a graph with constants in the place of variables, from values that are given.

Source: TensorFlow python/framework/convert_to_constants.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import PLACEHOLDER_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.graph_edit import GraphEdit, listed
from opkernel.graph.edit.prune import prune_and_order
from opkernel.graph.freezing.follow import Followed
from opkernel.graph.freezing.frozen_functions import frozen_graph
from opkernel.graph.freezing.held_values import HeldValue, variable_name
from opkernel.graph.freezing.tables import TABLE_INITIALIZERS, table_initializers
from opkernel.messages import did_you_mean
from opkernel.proto import TensorProto
from opkernel.types import DataType, PartialTensorShape, tensor_to_proto

Elements = Iterable[Tensor | Operation | str] | Tensor | Operation | str
_NONE: Mapping[str, Any] = MappingProxyType({})


def freeze_graph(
    graph: Graph,
    outputs: Elements,
    inputs: Iterable[Tensor | str] | Tensor | str = (),
    *,
    values: Mapping[str, Any] = _NONE,
    captured: Mapping[str, Any] = _NONE,
) -> Graph:
    """A new graph with what some outputs need, and constants for variables.

    Variables are VarHandleOp, VariableV2, Variable and AutoReloadVariable, in the graph and in its
    functions. Constants have the names of the variables, what read them is an Identity. Functions that
    take handles become functions that take the values, also those of If, Case, While and
    PartitionedCall; a function that is called with variables of several types becomes several.
    Functions that nothing calls any more are left out.

    Tables are kept, with the operations that initialise them; the collection "table_initializer" has
    these.

    Args:
        graph: The graph; it stays as it is.
        outputs: The tensors and operations that the new graph is for, or a single one.
        inputs: As for `GraphEdit.extract`: tensors that get a Placeholder there.
        values: The values of variables, by their shared names or the names of their nodes.
        captured: The values of placeholders: of handles, as functions of a SavedModel take them, or of
            other tensors.

    Raises:
        FailedPreconditionError: A variable or handle has no value, what the outputs need changes a
            variable, or nothing initialises a table.
        InvalidArgumentError: A value is not of the type or shape of its variable.
        NotFoundError: The graph lacks an output, an input, or a captured placeholder.
        UnimplementedError: A handle may be that of a variable, or another.
    """
    given = {_placeholder(graph, name): value for name, value in captured.items()}

    def read(variables: Sequence[Operation]) -> list[Any]:
        return [_value(op, values) for op in variables]

    frozen = freeze_with(graph, outputs, inputs, read, given)
    _check_handles(frozen, inputs)
    return frozen


def freeze_with(
    graph: Graph,
    outputs: Elements,
    inputs: Iterable[Tensor | str] | Tensor | str,
    read: Callable[[Sequence[Operation]], Sequence[Any]],
    captured: Mapping[Operation, Any] = MappingProxyType({}),
) -> Graph:
    """As `freeze_graph`, with the values that `read` gives of the nodes of variables.

    Args:
        graph: as for `freeze_graph`, as are the outputs and the inputs.
        outputs: the outputs.
        inputs: the inputs.
        read: gives the values of nodes, each of which is in another graph, of the same attrs.
        captured: the values of placeholders of the graph.
    """
    extracted, initializers = _extract(graph, listed(outputs), listed(inputs))
    known = {
        extracted.by_name[op.name]: value
        for op, value in captured.items()
        if op.name in extracted.by_name
    }
    followed = Followed(extracted, {op: _held(op, value) for op, value in known.items()})
    variables = [op for body in followed.bodies() for op in body.variables if op not in known]
    known |= zip(variables, read(variables), strict=True)
    frozen = frozen_graph(followed, lambda op, held: _proto(held, known[op]))
    for op in initializers:
        frozen.add_to_collection(TABLE_INITIALIZERS, frozen.by_name[op.name])
    return frozen


def _extract(graph: Graph, outputs: list[Any], inputs: list[Any]) -> tuple[Graph, list[Operation]]:
    """What outputs need, and the initialisers of its tables."""
    edit = GraphEdit(graph)
    elements = [graph.as_graph_element(element) for element in outputs]
    tensors = [element for element in elements if isinstance(element, Tensor)]
    ops = [element for element in elements if isinstance(element, Operation)]
    feeds = [
        tensor if isinstance(tensor, Tensor) else graph.get_tensor_by_name(tensor)
        for tensor in inputs
    ]
    initializers = table_initializers(graph, prune_and_order(tensors, ops, feeds))
    return edit.extract([*elements, *initializers], inputs), initializers


def _placeholder(graph: Graph, name: str) -> Operation:
    op = graph.by_name.get(name.removesuffix(":0"))
    if op is None or op.type not in PLACEHOLDER_OPS:
        names = [op.name for op in graph.get_operations() if op.type in PLACEHOLDER_OPS]
        raise NotFoundError(f"The graph has no placeholder {name!r}{did_you_mean(name, names)}")
    return op


def _value(variable: Operation, values: Mapping[str, Any]) -> Any:
    """The value of a variable.

    Raises:
        FailedPreconditionError: there is none.
    """
    names = [variable_name(variable), variable.name]
    for name in [*names, *(f"{name}:0" for name in names)]:
        if name in values:
            return values[name]
    raise FailedPreconditionError(
        f"Variable {names[0]!r} cannot become a constant: it has no value among those given"
        f"{did_you_mean(names[0], values)}",
        node=variable.name,
        op=variable.type,
    )


def _held(placeholder: Operation, value: Any) -> HeldValue:
    """What takes the place of a placeholder; its own type, if it is not one of a handle."""
    dtype = placeholder.output_types[0].base
    proto = tensor_to_proto(value, None if dtype is DataType.DT_RESOURCE else dtype)
    shape = PartialTensorShape.from_proto(proto.tensor_shape)
    return HeldValue(DataType(proto.dtype), shape, placeholder.name)


def _proto(held: HeldValue, value: Any) -> TensorProto:
    """The value of a variable as a message.

    Raises:
        InvalidArgumentError: it is not of the type or shape of the variable.
    """
    proto = tensor_to_proto(value, held.dtype)
    shape = PartialTensorShape.from_proto(proto.tensor_shape)
    if not held.shape.is_compatible_with(shape):
        raise InvalidArgumentError(
            f"Variable {held.variable!r} has the shape {held.shape}, and its value {shape}"
        )
    return proto


def _check_handles(graph: Graph, inputs: Iterable[Tensor | str] | Tensor | str) -> None:
    """Raise FailedPreconditionError where a placeholder of a handle is left that is no input."""
    wanted = {getattr(tensor, "name", tensor).partition(":")[0] for tensor in listed(inputs)}
    for op in graph.get_operations():
        is_handle = op.type in PLACEHOLDER_OPS and DataType.DT_RESOURCE in op.output_types
        if is_handle and op.name not in wanted:
            raise FailedPreconditionError(
                f"Placeholder {op.name!r} of a handle has no value: give that of its variable in "
                f"`captured`, or make it an input",
                node=op.name,
                op=op.type,
            )
