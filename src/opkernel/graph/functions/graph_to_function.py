"""graph_to_function_def: the nodes of a graph as a function.

Source: TensorFlow core/framework/graph_to_functiondef.cc.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph.core.edges import edges_of
from opkernel.graph.core.node import copied
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.functions.function_library import function_def_hash
from opkernel.graph.inference.shape_refiner import facts_of
from opkernel.opdef import find_attr, name_ranges_for_node
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra
from opkernel.proto import AttrValue, FunctionDef, NodeDef, OpDef
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph

_UNIQUE_ID = "_resource_arg_unique_id"
_OUTPUT_SHAPES = "_output_shapes"


def graph_to_function_def(
    graph: Graph,
    name: str,
    inputs: Sequence[Tensor] | None = None,
    outputs: Sequence[Tensor] | None = None,
    *,
    body: Iterable[Operation] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    control_outputs: Mapping[str, Operation] | None = None,
    attrs: Mapping[str, AttrValue] | None = None,
    description: str = "",
    append_hash_to_fn_name: bool = False,
    copy_placeholder_attrs: bool = False,
) -> FunctionDef:
    """The function that computes `outputs` from `inputs` with the nodes of a graph.

    Arguments get the names of their nodes, in lower case. Nodes of the body with such a name get another
    one. A stateful node makes the function stateful.

    Args:
        graph: where the nodes are.
        name: the name of the function.
        inputs: its arguments, each the output of a node such as a Placeholder or `_Arg`; its internal
            attrs and its shape are kept. The `_Arg` nodes of the graph, by their index, if None.
        outputs: its results, which may be inputs; if None, the tensors that the `_Retval` nodes take.
        body: its nodes; if None, all nodes but those of the inputs, `_Arg` and `_Retval`.
        input_names: the names of the arguments; if None, the names of their nodes.
        output_names: the names of the results; if None, the names of their nodes.
        control_outputs: by name, the operations that run though no result depends on them.
        attrs: the attrs of the function itself, such as `_noinline`.
        description: the description of its signature.
        append_hash_to_fn_name: whether the name ends in a hash of the function.
        copy_placeholder_attrs: whether the function declares the attrs that its nodes take from it.

    Raises:
        InvalidArgumentError: an input or a name is given twice; a node or result needs a tensor that is
            neither in the body nor an input; or the numbers of the graph's arguments have gaps.
    """
    given_inputs = [op.outputs[0] for op in _by_index(graph, ARG_OPS)] if inputs is None else inputs
    if outputs is None:
        outputs = [op.inputs[0] for op in _by_index(graph, RETVAL_OPS)]
    writer = _FunctionWriter(graph, name)
    function = writer.function
    function.signature.description = description
    labels = writer.name_outputs(outputs, output_names)
    writer.add_inputs(given_inputs, input_names)
    writer.add_body(graph.get_operations() if body is None else body, skip_ends=body is None)
    if copy_placeholder_attrs:
        writer.declare_attrs()
    writer.add_outputs(labels, outputs)
    for attr, value in (attrs or {}).items():
        function.attr[attr].CopyFrom(value)
    if append_hash_to_fn_name:
        digest = function_def_hash(function).to_bytes(8, "little")
        encoded = base64.b64encode(digest, altchars=b"Aa").decode().rstrip("=")
        function.signature.name = f"{name}_{encoded}"
    writer.add_control_outputs(control_outputs or {})
    return function


def _by_index(graph: Graph, op_types: frozenset[str]) -> list[Operation]:
    """The arguments, or results, of a body in the order of their index.

    Raises:
        InvalidArgumentError: an index is there twice, or missing.
    """
    found: dict[int, Operation] = {}
    kind = min(op_types, key=len)
    for op in graph.get_operations():
        if op.type in op_types:
            index = op.get_attr("index")
            if found.setdefault(index, op) is not op:
                raise InvalidArgumentError(
                    f"Multiple '{op.type}' nodes found with index {index}; originally we already "
                    f"have: {found[index].name!r}, now we have: {op.name!r}"
                )
    for index in range(len(found)):
        if index not in found:
            raise InvalidArgumentError(f"Missing '{kind}' node at index {index}")
    return [found[index] for index in range(len(found))]


class _Names:
    """Names in a function: each is there once, and those of arguments are of another form.

    State: `_counts` are the names in use, each with the number that the next double gets.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, or the first `name_N` that is free."""
        if name not in self._counts:
            self._counts[name] = 0
            return name
        while True:
            candidate = f"{name}_{self._counts[name]}"
            self._counts[name] += 1
            if candidate not in self._counts:
                self._counts[candidate] = 0
                return candidate

    def argument(self, name: str) -> str:
        """A name that an argument may have: letters in lower case, digits, underscores."""
        normal = re.sub(r"[^a-z0-9]", "_", name.lower())
        first_letter = re.search(r"[a-z]", normal)
        return self.unique(normal[first_letter.start() :] if first_letter else "unknown")

    def keep(self, name: str) -> str:
        """A name as it is; results may have it, too."""
        self._counts.setdefault(name, 0)
        return name

    def use(self, name: str) -> str:
        """A name as it is; InvalidArgumentError where it is taken."""
        if name in self._counts:
            raise InvalidArgumentError(
                f"Cannot have duplicate output names. Name '{name}' appears more than once in "
                "'output_names' array."
            )
        return self.unique(name)


class _FunctionWriter:
    """Writes one function, with inputs named as inside a function.

    State: `_texts` is what a tensor is called in the function, `_node_names` a node.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.function = FunctionDef(signature=OpDef(name=name))
        self._graph = graph
        self._name = name
        self._names = _Names()
        self._texts: dict[tuple[Operation, int], str] = {}
        self._node_names: dict[Operation, str] = {}
        self._body: list[Operation] = []

    def name_outputs(self, outputs: Sequence[Tensor], names: Sequence[str] | None) -> list[str]:
        """The names of the results, which come before all others."""
        if not names:
            return [self._names.argument(tensor.op.name) for tensor in outputs]
        if len(names) != len(outputs):
            raise InvalidArgumentError(
                f"Expected number of outputs ({len(outputs)}) and the number of output names "
                f"({len(names)}) to match but they do not."
            )
        return [self._names.use(name) for name in names]

    def add_inputs(self, inputs: Sequence[Tensor], names: Sequence[str] | None) -> None:
        """Add the arguments."""
        for number, tensor in enumerate(inputs):
            op, index = tensor.op, tensor.value_index
            self._graph.check_own(op, "function input")
            if (op, index) in self._texts:
                raise InvalidArgumentError(f"'{tensor.name}' is an input of the function twice")
            label = self._names.keep(names[number]) if names else self._names.argument(op.name)
            self._texts[op, index] = self._node_names[op] = label
            self.function.signature.input_arg.append(self._declaration(label, tensor))
            self._keep_attrs(number, op)

    def add_body(self, body: Iterable[Operation], *, skip_ends: bool) -> None:
        """Add the nodes of the body."""
        inputs = set(self._node_names)
        for op in body:
            if skip_ends and (op in inputs or op.type in ARG_OPS | RETVAL_OPS):
                continue
            self._body.append(op)
            node_name = self._node_names[op] = self._names.unique(op.name)
            for label, (start, stop) in name_ranges_for_node(op.node_def, op.op_def)[1].items():
                for index in range(start, stop):
                    self._texts.setdefault((op, index), f"{node_name}:{label}:{index - start}")
        self.function.node_def.extend([self._node(op) for op in self._body])
        self.function.signature.is_stateful = any(op.op_def.is_stateful for op in self._body)

    def declare_attrs(self) -> None:
        """Declare the attrs of the function that nodes name as placeholders."""
        declared = self.function.signature.attr
        for op in self._body:
            for attr, value in sorted(op.node_def.attr.items()):
                if value.placeholder and not any(a.name == value.placeholder for a in declared):
                    definition = find_attr(op.op_def, attr)
                    if definition is None:
                        raise UnimplementedError(
                            "Placeholder value is not supported for attributes not in OpDef. "
                            f"Attribute: {attr}, OpDef: {op.type}"
                        )
                    declared.add(name=value.placeholder, type=definition.type)

    def add_outputs(self, labels: Sequence[str], outputs: Sequence[Tensor]) -> None:
        """Add the results."""
        for label, tensor in zip(labels, outputs, strict=True):
            text = self._texts.get((tensor.op, tensor.value_index))
            if text is None:
                raise InvalidArgumentError(
                    f"TF_Output {tensor.name} is neither in the function body nor among function "
                    f"inputs. Encountered while creating function '{self._name}'"
                )
            self.function.signature.output_arg.append(self._declaration(label, tensor))
            self.function.ret[label] = text

    def add_control_outputs(self, control_outputs: Mapping[str, Operation]) -> None:
        """Add the control outputs."""
        for label, op in control_outputs.items():
            if not label:
                raise InvalidArgumentError("Control output name must be not empty")
            if op not in self._node_names:
                raise InvalidArgumentError(
                    f"Control output '{label}' is not in the function body: {op.name!r}"
                )
            self.function.signature.control_output.append(label)
            self.function.control_ret[label] = self._node_names[op]

    def _declaration(self, label: str, tensor: Tensor) -> OpDef.ArgDef:
        """A tensor as an argument of the function; a resource with the facts of its contents."""
        arg = OpDef.ArgDef(name=label, type=tensor.dtype)
        if tensor.dtype == DataType.DT_RESOURCE:
            held = facts_of(tensor).held
            for entry in held or ():
                shape = ShapeAlgebra.as_partial_shape(entry.shape)
                arg.handle_data.add(dtype=entry.dtype, shape=shape.to_proto())
        return arg

    def _keep_attrs(self, number: int, op: Operation) -> None:
        """Note the internal attrs of the node of an argument, and the shape that it has."""
        kept: dict[str, AttrValue] = {}
        for attr, value in op.node_def.attr.items():
            if attr.startswith("_"):
                kept[attr] = value
            elif attr == "shape" and op.output_types[0] != DataType.DT_RESOURCE:
                kept.setdefault(_OUTPUT_SHAPES, AttrValue()).list.shape.append(value.shape)
            elif attr == "value" and op.type == "Const":
                shape = value.tensor.tensor_shape
                kept.setdefault(_OUTPUT_SHAPES, AttrValue()).list.shape.append(shape)
        for attr, value in kept.items():
            self.function.arg_attr[number].attr[attr].CopyFrom(value)
        if _UNIQUE_ID in kept:
            self.function.resource_arg_unique_id[number] = kept[_UNIQUE_ID].i

    def _node(self, op: Operation) -> NodeDef:
        node = copied(op.node_def)
        node.name = self._node_names[op]
        del node.input[:]
        for number, (source, index) in enumerate(edges_of(op)):
            text = self._texts.get((source, index))
            if text is None:
                raise InvalidArgumentError(
                    f"Input {number}, '{source.name}:{index}', of node '{op.name}' in function "
                    f"'{self._name}' is not available. You might need to include it in inputs or "
                    "include its source node in the body"
                )
            node.input.append(text)
        for control in sorted(op.control_inputs, key=lambda control: control.name):
            if control not in self._node_names:
                raise InvalidArgumentError(
                    f"The source of control edge {control.name} -> {op.name} is not in the body. "
                    f"Encountered while creating function '{self._name}'"
                )
            node.input.append(f"^{self._node_names[control]}")
        return node
