"""FunctionBody: an instance of a function as a graph that the runtime can run; and the way back.

Source: TensorFlow core/common_runtime/function_def_utils.cc, core/common_runtime/graph_to_functiondef.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opkernel.errors import InvalidArgumentError
from opkernel.graph.function_instance import FunctionBody, instantiate_into
from opkernel.graph.graph import Graph
from opkernel.graph.operation import Operation
from opkernel.graph.structural_ops import RETVAL_OPS
from opkernel.graph.tensor import Tensor
from opkernel.opdef import name_ranges_for_node
from opkernel.opdef.shape_algebra import ShapeAlgebra
from opkernel.proto import AttrValue, FunctionDef, NameAttrList, NodeDef, OpDef
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph.function_library import FunctionLibraryDefinition

__all__ = ["FunctionBody", "graph_to_function_def", "instantiate_function"]


def instantiate_function(
    library: FunctionLibraryDefinition,
    function: str | NameAttrList | FunctionDef,
    attrs: Mapping[str, AttrValue] | None = None,
) -> FunctionBody:
    """The body of a function.

    Args:
        library: where its name, and those of the functions that it calls, are looked up.
        function: its name, the value of an attr that names it, or the function itself.
        attrs: values for the attrs of its signature, over those of a NameAttrList.

    Raises:
        NotFoundError: there is no such function, an attr is missing, or an op is not registered.
        InvalidArgumentError: a node of the function breaks a rule.
    """
    return instantiate_into(Graph(function_library=library), function, attrs)


def graph_to_function_def(
    graph: Graph,
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    *,
    output_names: Sequence[str] | None = None,
    control_outputs: Mapping[str, Operation] | None = None,
    attrs: Mapping[str, AttrValue] | None = None,
) -> FunctionDef:
    """The function that computes `outputs` from `inputs` with the nodes of a graph.

    Args:
        graph: the body; all of its nodes but those that give the inputs, and `_Retval` nodes.
        name: the name of the function.
        inputs: its arguments, each the output of a node such as a Placeholder or `_Arg`.
        outputs: its results.
        output_names: the names of the results; made from those of the nodes if there are none.
        control_outputs: what has to run though no result depends on it, by name.
        attrs: the attrs of the function itself, such as `_noinline`.

    Raises:
        InvalidArgumentError: an input is given twice, or is not of the graph.
    """
    writer = _FunctionWriter(graph, inputs)
    function = FunctionDef(signature=OpDef(name=name))
    function.signature.input_arg.extend(writer.arguments())
    taken: set[str] = set()
    for index, tensor in enumerate(outputs):
        wanted = output_names[index] if output_names else tensor.op.name
        label = _unique(_argument_name(wanted), taken)
        function.signature.output_arg.append(writer.declaration(label, tensor))
        function.ret[label] = writer.text_of(tensor)
    function.node_def.extend(writer.nodes())
    for label, op in (control_outputs or {}).items():
        function.signature.control_output.append(label)
        function.control_ret[label] = op.name
    for attr, value in (attrs or {}).items():
        function.attr[attr].CopyFrom(value)
    function.signature.is_stateful = writer.is_stateful
    return function


class _FunctionWriter:
    """Writes the nodes of a graph with their inputs named as inside a function."""

    def __init__(self, graph: Graph, inputs: Sequence[Tensor]) -> None:
        self._graph = graph
        self._inputs = inputs
        self._names: dict[Tensor, str] = {}
        taken: set[str] = set()
        for tensor in inputs:
            graph._check_own(tensor.op, "function input")
            if tensor in self._names:
                raise InvalidArgumentError(f"'{tensor.name}' is an input of the function twice")
            self._names[tensor] = _unique(_argument_name(tensor.op.name), taken)
        sources = {tensor.op for tensor in inputs}
        self._body = [
            op for op in graph.get_operations() if op not in sources and op.type not in RETVAL_OPS
        ]
        self._sources = sources
        self._ranges: dict[Operation, list[tuple[str, int]]] = {}

    @property
    def is_stateful(self) -> bool:
        """Whether any node is."""
        return any(op.op_def.is_stateful for op in self._body)

    def arguments(self) -> list[OpDef.ArgDef]:
        """The input arguments of the function."""
        return [self.declaration(self._names[tensor], tensor) for tensor in self._inputs]

    def declaration(self, name: str, tensor: Tensor) -> OpDef.ArgDef:
        """A tensor as an argument of the function; of a resource also what it holds."""
        arg = OpDef.ArgDef(name=name, type=tensor.dtype)
        if tensor.dtype == DataType.DT_RESOURCE:
            held = self._graph._refiner.facts_of((tensor.op, tensor.value_index)).held
            for entry in held or ():
                shape = ShapeAlgebra.as_partial_shape(entry.shape)
                arg.handle_data.add(dtype=entry.dtype, shape=shape.to_proto())
        return arg

    def nodes(self) -> list[NodeDef]:
        """The nodes of the body."""
        return [self._node(op) for op in self._body]

    def text_of(self, tensor: Tensor) -> str:
        """What a tensor is called inside the function: `x`, or `node:out:0`."""
        if tensor in self._names:
            return self._names[tensor]
        label, offset = self._outputs(tensor.op)[tensor.value_index]
        return f"{tensor.op.name}:{label}:{offset}"

    def _node(self, op: Operation) -> NodeDef:
        node = NodeDef()
        node.CopyFrom(op.node_def)
        del node.input[:]
        node.input.extend([self.text_of(tensor) for tensor in op.inputs])
        for control in op.control_inputs:
            first = control.outputs[0] if control in self._sources else None
            node.input.append(f"^{control.name if first is None else self._names[first]}")
        return node

    def _outputs(self, op: Operation) -> list[tuple[str, int]]:
        """The argument and offset of each output of a node."""
        if op not in self._ranges:
            ranges = name_ranges_for_node(op.node_def, op.op_def)[1]
            self._ranges[op] = [
                (label, index - start)
                for label, (start, stop) in ranges.items()
                for index in range(start, stop)
            ]
        return self._ranges[op]


def _argument_name(name: str) -> str:
    """A name that an argument may have: lower case, letters, digits and underscores."""
    normal = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return normal if normal[:1].isalpha() else f"arg_{normal}"


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 0, name
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    taken.add(unique)
    return unique
