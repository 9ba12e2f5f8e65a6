"""Nodes as they are drawn, of a graph or of the body of a function: their facts as short texts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import Graph, GraphShapes, Operation
from opkernel.graph.functions.function_library import FunctionLibraryDefinition, functions_named_by
from opkernel.kernel import find_kernel_registration
from opkernel.opdef import add_defaults_to_node_def
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
        only_reads: whether its op reads state and changes none.
        path: the name that says in which scopes it is drawn; empty where it is `name`.
        is_port: whether it is an input or output of a signature.
        folded: the constants and variables that are drawn as a part of it: names, and shapes or types.
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
    only_reads: bool = False
    path: str = ""
    is_port: bool = False
    folded: list[tuple[str, str]] = field(default_factory=list)


class SharedFacts(NamedTuple):
    """The facts of a node that follow from its op, attrs and device."""

    kernel: str
    kind: Literal["plain", "product", "state"]
    details: Sequence[str]
    functions: Sequence[str]
    only_reads: bool


class NodeFacts:
    """Finds the facts of nodes; nodes of one op with the same attrs and device are looked up once.

    Args:
        library: the ops and functions that nodes may have.
        with_kernels: whether kernels are looked up.
    """

    def __init__(self, library: FunctionLibraryDefinition, *, with_kernels: bool = False) -> None:
        self._library = library
        self._with_kernels = with_kernels
        self._found: dict[tuple[Hashable, ...], SharedFacts] = {}

    def of(self, node: NodeDef) -> SharedFacts:
        """The facts of a node."""
        attrs = ((name, b"" if value.HasField("tensor") else value.SerializeToString())
                 for name, value in node.attr.items())  # fmt: skip
        key = node.op, node.device, frozenset(attrs)
        if key not in self._found:
            functions = [name for name in functions_named_by(node) if name in self._library]
            kernel = self._kernel(node) if self._with_kernels else ""
            only_reads = self._library.traits(node.op).only_reads_state
            details = [*_details(node)]
            self._found[key] = SharedFacts(
                kernel, self._kind(node.op), details, functions, only_reads
            )
        return self._found[key]

    def _kernel(self, node: NodeDef) -> str:
        """The class of a node's kernel, nothing where it needs none; `none for CPU` where it lacks one."""
        if node.op in RUN_BY_EXECUTORS:
            return ""
        slim = NodeDef(name="node", op=node.op)
        for name, value in node.attr.items():
            if not value.HasField("tensor"):
                slim.attr[name].CopyFrom(value)
        try:
            registration = self._library.look_up(node.op)
            if registration.is_function_op:
                return ""
            add_defaults_to_node_def(slim, registration.op_def)
            return find_kernel_registration("CPU", slim).class_name
        except OpError:
            return _NO_KERNEL

    def _kind(self, op: str) -> Literal["plain", "product", "state"]:
        if self._library.traits(op).cost in ("convolution", "product"):
            return "product"
        try:
            op_def = self._library.look_up_op_def(op)
        except OpError:
            return "plain"
        args = (*op_def.input_arg, *op_def.output_arg)
        has_state = any(arg.is_ref or arg.type == DataType.DT_RESOURCE for arg in args)
        return "state" if has_state else "plain"


_NOT_MEASURED: Mapping[str, float] = MappingProxyType({})


def nodes_of_graph(
    graph: Graph, facts: NodeFacts | None = None, seconds: Mapping[str, float] = _NOT_MEASURED
) -> list[Node]:
    """The nodes of a graph, inputs mostly first."""
    try:
        shapes = graph.infer_shapes()
    except OpError:
        shapes = None
    nodes = []
    facts = facts or NodeFacts(graph.function_library)
    for op in graph:
        inputs = [(tensor.op.name, tensor.name) for tensor in op.inputs]
        inputs += [(control.name, f"^{control.name}") for control in op.control_inputs]
        node = _node(op.slim_node_def, inputs, _outputs(op, shapes), facts)
        node.seconds = seconds.get(op.name)
        nodes.append(node)
    return nodes


def nodes_of_function(
    function: FunctionDef,
    graph: Graph,
    facts: NodeFacts | None = None,
    seconds: Mapping[str, float] = _NOT_MEASURED,
) -> list[Node]:
    """The nodes of a function's body, with its arguments before and its results behind them."""
    signature = function.signature
    facts = facts or NodeFacts(graph.function_library)
    nodes = [
        Node(arg.name, "_Arg", [], [_type_text(arg.type) or arg.type_attr])
        for arg in signature.input_arg
    ]
    taken = {node.name for node in nodes}
    for node_def in function.node_def:
        inputs = list(map(_input, node_def.input))
        node = _node(node_def, inputs, _given_shapes(node_def), facts)
        node.seconds = seconds.get(node.name)
        nodes.append(node)
        taken.add(node.name)
    for arg in signature.output_arg:
        name = arg.name if arg.name not in taken else f"{arg.name} (result)"
        nodes.append(Node(name, "_Retval", [_input(function.ret[arg.name])]))
    return nodes


def _input(text: str) -> tuple[str, str]:
    """The node that an input of a function's node is of, and the input itself."""
    return text.removeprefix("^").partition(":")[0], text


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
    node: NodeDef, inputs: Sequence[tuple[str, str]], outputs: Sequence[str], facts: NodeFacts
) -> Node:
    shared = facts.of(node)
    return Node(
        node.name,
        node.op,
        inputs,
        outputs,
        details=shared.details,
        kernel=shared.kernel,
        is_missing=shared.kernel == _NO_KERNEL,
        kind=shared.kind,
        functions=shared.functions,
        only_reads=shared.only_reads,
    )


def _details(node: NodeDef) -> Iterator[str]:
    shown = [name for name in sorted(node.attr) if not name.startswith("_")]
    for name in shown[: 2 * _MOST_LISTED]:
        value = node.attr[name]
        text = "a tensor" if value.HasField("tensor") else summarize_attr_value(value)
        yield f"{name} = {text:.{_LONGEST_ATTR}}"
    if node.device:
        yield f"device: {node.device:.{_LONGEST_ATTR}}"


def _type_text(number: int) -> str:
    try:
        return DataType(number).tf_name if number else ""
    except ValueError:
        return ""
