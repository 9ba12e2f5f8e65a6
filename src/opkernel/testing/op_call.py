"""OpCall: one node with the values of its inputs, as text, as a GraphDef, and from one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import load_graph_def
from opkernel.opdef import (
    OpRegistrationData,
    OpRegistry,
    global_op_registry,
    in_out_types_for_node,
    infer_call,
    is_list_arg,
    summarize_attr_value,
)
from opkernel.proto import GraphDef, NodeDef
from opkernel.testing.op_runs import (
    Inputs,
    all_attrs,
    by_argument,
    graph_def_version_for,
    node_of,
)
from opkernel.types import DataType, tensor_from_proto, tensor_to_proto

_MAX_ELEMENTS = 24


class CheckFailure(AssertionError):
    """A kernel, or the shape function, breaks a rule.

    Attributes:
        call: The call on which the rule is broken.
        what: The rule and the fact.
    """

    def __init__(self, call: "OpCall", what: str) -> None:
        super().__init__(f"{what}\n{call}")
        self.call = call
        self.what = what


@dataclass(frozen=True, repr=False)
class OpCall:
    """A call of an op.

    Attributes:
        registration: The op.
        node_def: The node, with all attrs and a name for each input.
        inputs: The input tensors, flat; for an input by reference, the tensor that it refers to.
    """

    registration: OpRegistrationData
    node_def: NodeDef
    inputs: tuple[Any, ...]

    @property
    def input_types(self) -> list[DataType]:
        """The types of the inputs."""
        return in_out_types_for_node(self.node_def, self.registration.op_def)[0]

    def infer_shapes(self, *, with_values: bool = True) -> list[tuple[int, ...] | None]:
        """The shapes that kernels must give the outputs; -1 for sizes that the shape function leaves open.

        Raises:
            OpError: it refuses the inputs.
            CheckFailure: it raises something else.
        """
        values = [np.asarray(v) for v in self.inputs] if with_values else ()
        shapes = [np.shape(v) for v in self.inputs]
        try:
            return shapes_of_outputs(self.registration, self.node_def, shapes, values)
        except OpError:
            raise
        except Exception as error:
            what = f"the shape function raises {type(error).__name__}: {error}"
            raise CheckFailure(self, what) from error

    def __repr__(self) -> str:
        return f"<a call of {self.node_def.op}>"

    def __str__(self) -> str:
        """The call in a few lines: `Op`, its inputs with their values, its attrs."""
        op_def = self.registration.op_def
        types = self.input_types
        lines = [
            f"  {name}: {dtype.string}{list(np.shape(value))} = {_values_text(value)}"
            for name, dtype, value in zip(self.node_def.input, types, self.inputs, strict=True)
        ]
        attrs = [
            f"  {name} = {_attr_text(value)}" for name, value in sorted(self.node_def.attr.items())
        ]
        return "\n".join([op_def.name, *lines, *attrs])

    def graph_def(self) -> GraphDef:
        """The node in a graph, with a Const for each input.

        Raises:
            InvalidArgumentError: an input is of a type that no constant has.
        """
        graph = GraphDef()
        graph.versions.producer = graph_def_version_for(self.registration.op_def)
        for name, dtype, value in zip(
            self.node_def.input, self.input_types, self.inputs, strict=True
        ):
            constant = graph.node.add(name=name, op="Const")
            constant.attr["dtype"].type = dtype.base
            constant.attr["value"].tensor.CopyFrom(tensor_to_proto(value, dtype.base))
        graph.node.append(self.node_def)
        return graph


def shapes_of_outputs(
    registration: OpRegistrationData,
    node_def: NodeDef,
    shapes: Sequence[Sequence[int | None] | None],
    values: Sequence[Any] = (),
) -> list[tuple[int, ...] | None]:
    """What a shape function states for shapes and values, as `OpCall.infer_shapes` gives it."""
    version = graph_def_version_for(registration.op_def)
    context = infer_call(registration, node_def, shapes, values, version)
    return [
        None if shape is None or shape.dims is None else tuple(dim.value for dim in shape.dims)
        for shape in context.reliable_outputs()
    ]


def call_of(op: str, inputs: Inputs, attrs: Mapping[str, Any]) -> OpCall:
    """A call of an op of the global registry with the inputs and attrs that `run_op` takes.

    Raises:
        NotFoundError: there is no such op.
        InvalidArgumentError: inputs or attrs do not fit it.
    """
    registration = global_op_registry().look_up(op)
    op_def = registration.op_def
    given = by_argument(op_def, inputs)
    lists = {arg.name for arg in op_def.input_arg if is_list_arg(arg)}
    arrays = {
        name: [*map(np.asarray, value)] if name in lists else np.asarray(value)
        for name, value in given.items()
    }
    node = node_of(op_def, all_attrs(op_def, arrays, attrs))
    flat: list[Any] = []
    for arg in op_def.input_arg:
        flat += arrays[arg.name] if arg.name in lists else [arrays[arg.name]]
    return OpCall(registration, node, tuple(flat))


def read_op_call(path: str | Path, op_registry: OpRegistry) -> OpCall:
    """The call that a file holds, as `OpCall.graph_def` wrote it.

    Raises:
        InvalidArgumentError: there is not one node whose inputs are constants.
    """
    graph = load_graph_def(path)
    constants = {node.name: node for node in graph.node if node.op == "Const"}
    fed = {name for node in graph.node for name in node.input}
    calls = [node for node in graph.node if node.name not in fed]
    if len(calls) != 1 or not set(calls[0].input) <= set(constants):
        raise InvalidArgumentError(f"{path}: expected one node whose inputs are constants")
    (node,) = calls
    inputs = [tensor_from_proto(constants[name].attr["value"].tensor) for name in node.input]
    return OpCall(op_registry.look_up(node.op), node, tuple(inputs))


def _values_text(value: Any) -> str:
    array = np.asarray(value)
    if array.size <= _MAX_ELEMENTS:
        return str(array.tolist())
    return np.array2string(array.reshape(-1), threshold=8, separator=", ")


def _attr_text(value: Any) -> str:
    try:
        return summarize_attr_value(value)
    except OpError:
        return str(value)
