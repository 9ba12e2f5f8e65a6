"""The facts that a drawing tells of each node of a graph, or of the body of a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import Graph, GraphShapes, Operation
from opkernel.kernel import find_kernel_registration
from opkernel.opdef import OpRegistryInterface, add_defaults_to_node_def
from opkernel.opdef.text import summarize_attr_value
from opkernel.proto import FunctionDef, NodeDef
from opkernel.records import dataclass, field
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS
from opkernel.types import DataType, PartialTensorShape

_MOST_LISTED = 8
_LONGEST_ATTR = 120
_NO_KERNEL = "none for CPU"


@dataclass(slots=True, eq=False)
class Node:
    """A node as it is drawn.

    Attributes:
        name: its name.
        op: its op.
        inputs: the nodes that it takes tensors of, with the names of these; and those that it waits
            for, with `^` before the name.
        outputs: the types and shapes of its outputs: `float32 [?,10]`.
        details: further lines: attrs, device.
        kernel: the class of its kernel; empty where it needs none, or where kernels were not asked for.
        seconds: how long it takes in a step; None where it was not measured.
        functions: the functions of the library that it calls.
        is_missing: whether no kernel of the process fits it.
        kind: "product" for products of matrices and convolutions, "state" for what works on a resource or a
            reference, else "plain".
        folded: the constants that are drawn as a part of it: names, and shapes or types.
        folded_names: the names of these.
    """

    name: str
    op: str
    inputs: Sequence[tuple[str, str]]
    outputs: Sequence[str] = ()
    details: Sequence[str] = ()
    kernel: str = ""
    seconds: float | None = None
    functions: Sequence[str] = ()
    is_missing: bool = False
    kind: Literal["plain", "product", "state"] = "plain"
    folded: list[tuple[str, str]] = field(default_factory=list)
    folded_names: list[str] = field(default_factory=list)


class Kernels:
    """Finds the kernels of nodes; each kind of node is looked up once."""

    def __init__(self, ops: OpRegistryInterface) -> None:
        self._ops = ops
        self._found: dict[tuple[str, frozenset[tuple[str, bytes]]], str] = {}

    def find(self, node: NodeDef) -> str:
        """The class of a node's kernel, nothing where it needs none; `none for CPU` where it lacks one."""
        if node.op in RUN_BY_EXECUTORS:
            return ""
        slim = NodeDef(name="node", op=node.op)
        for name, value in node.attr.items():
            if not value.HasField("tensor"):
                slim.attr[name].CopyFrom(value)
        attrs = ((name, value.SerializeToString()) for name, value in slim.attr.items())
        key = node.op, frozenset(attrs)
        if key not in self._found:
            self._found[key] = self._look_up(slim)
        return self._found[key]

    def _look_up(self, node: NodeDef) -> str:
        try:
            registration = self._ops.look_up(node.op)
            if registration.is_function_op:
                return ""
            add_defaults_to_node_def(node, registration.op_def)
            return find_kernel_registration("CPU", node).class_name
        except OpError:
            return _NO_KERNEL


def nodes_of_graph(
    graph: Graph, kernels: Kernels | None = None, seconds: Mapping[str, float] | None = None
) -> list[Node]:
    """The nodes of a graph, inputs mostly first."""
    try:
        shapes = graph.infer_shapes()
    except OpError:
        shapes = None
    nodes = []
    for op in graph:
        inputs = [(tensor.op.name, tensor.name) for tensor in op.inputs]
        inputs += [(control.name, f"^{control.name}") for control in op.control_inputs]
        node = _node(op.node_def, inputs, _outputs(op, shapes), graph, kernels)
        node.seconds = (seconds or {}).get(op.name)
        nodes.append(node)
    return nodes


def nodes_of_function(
    function: FunctionDef,
    graph: Graph,
    kernels: Kernels | None = None,
    seconds: Mapping[str, float] | None = None,
) -> list[Node]:
    """The nodes of a function's body, with its arguments before and its results behind them."""
    signature = function.signature
    nodes = [
        Node(arg.name, "_Arg", [], [_type_text(arg.type) or arg.type_attr])
        for arg in signature.input_arg
    ]
    taken = {node.name for node in nodes}
    for node_def in function.node_def:
        inputs = list(map(_input, node_def.input))
        node = _node(node_def, inputs, _given_shapes(node_def), graph, kernels)
        node.seconds = (seconds or {}).get(node_def.name)
        nodes.append(node)
        taken.add(node.name)
    for arg in signature.output_arg:
        name = arg.name if arg.name not in taken else f"{arg.name} (result)"
        nodes.append(Node(name, "_Retval", [_input(function.ret[arg.name])]))
    return nodes


def _input(text: str) -> tuple[str, str]:
    """The node that an input of a function's node is of, and the input itself."""
    if text.startswith("^"):
        return text[1:], text
    return text.partition(":")[0], text


def _outputs(op: Operation, shapes: GraphShapes | None) -> list[str]:
    found = []
    for tensor in op.outputs[:_MOST_LISTED]:
        try:
            shape = PartialTensorShape(None) if shapes is None else shapes[tensor]
        except OpError:
            shape = PartialTensorShape(None)
        is_known = tensor.dtype is not DataType.DT_INVALID
        dtype = tensor.dtype.tf_name if is_known else "unknown type"
        found.append(dtype if shape.rank is None else f"{dtype} {shape}")
    return found


def _given_shapes(node: NodeDef) -> list[str]:
    """The shapes that a node of a function carries, if it does."""
    if "_output_shapes" not in node.attr:
        return []
    shapes = node.attr["_output_shapes"].list.shape[:_MOST_LISTED]
    try:
        return [str(PartialTensorShape.from_proto(shape)) for shape in shapes]
    except InvalidArgumentError:
        return []


def _node(
    node: NodeDef,
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[str],
    graph: Graph,
    kernels: Kernels | None,
) -> Node:
    kernel = "" if kernels is None else kernels.find(node)
    return Node(
        node.name,
        node.op,
        inputs,
        outputs,
        details=list(_details(node)),
        kernel=kernel,
        is_missing=kernel == _NO_KERNEL,
        kind=_kind(node.op, graph),
        functions=[name for name in called_functions(node) if name in graph.function_library],
    )


def _kind(op: str, graph: Graph) -> Literal["plain", "product", "state"]:
    if graph.function_library.traits(op).cost in ("convolution", "product"):
        return "product"
    try:
        op_def = graph.function_library.look_up_op_def(op)
    except OpError:
        return "plain"
    args = (*op_def.input_arg, *op_def.output_arg)
    has_state = any(arg.is_ref or arg.type == DataType.DT_RESOURCE for arg in args)
    return "state" if has_state else "plain"


def _details(node: NodeDef) -> Iterator[str]:
    shown = [name for name in sorted(node.attr) if not name.startswith("_")]
    for name in shown[: 2 * _MOST_LISTED]:
        value = node.attr[name]
        text = "a tensor" if value.HasField("tensor") else summarize_attr_value(value)
        yield f"{name} = {text:.{_LONGEST_ATTR}}"
    if node.device:
        yield f"device: {node.device:.{_LONGEST_ATTR}}"


def called_functions(node: NodeDef) -> Iterator[str]:
    """The names of functions that a node may call: its op, and functions in its attrs."""
    yield node.op
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        elif value.HasField("list"):
            for function in value.list.func:
                yield function.name


def _type_text(number: int) -> str:
    try:
        return DataType(number).tf_name if number else ""
    except ValueError:
        return ""
