"""Inlining: the body of a function takes the place of a node that calls it.

For a node `call` the body's nodes are named `call/node`, its arguments `Func/call/input/_0`, its results
`Func/call/output/_1`; `Func/call/input_control_node/_2` waits for what the call waited for, and what
waited for the call waits for `Func/call/output_control_node/_3`. Numbers are unique in the graph.

Source: TensorFlow core/common_runtime/inline_function_utils.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.graph.control_flow_ops import ENTER_OPS
from opkernel.graph.function_body import instantiate_function
from opkernel.graph.function_instance import FunctionBody
from opkernel.graph.graph_rewriter import Endpoint, GraphRewriter
from opkernel.graph.operation import COLOCATION_ATTR, COLOCATION_PREFIX, Operation
from opkernel.graph.structural_ops import STRUCTURAL_OPS
from opkernel.graph.tensor_name import CONTROL_SLOT
from opkernel.proto import NameAttrList, NodeDef
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph.function_library import FunctionLibraryDefinition
    from opkernel.graph.graph import Graph

__all__ = [
    "ExpandInlineFunctionsOptions",
    "InlineFunctionBodyOptions",
    "KeepCallerNode",
    "OutputControlSource",
    "called_function",
    "expand_inline_functions",
    "inline_function_body",
    "is_function_call",
    "validate_inlining",
]

_PARTITIONED_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_GRADIENT = "SymbolicGradient"
_NOINLINE = "_noinline"


class KeepCallerNode(Enum):
    """What stays in the place of a call, under its name."""

    DO_NOT_KEEP = "DoNotKeep"
    """Nothing."""
    FETCHABLE = "Fetchable"
    """An IdentityN that gives the results; a NoOp where there are none."""
    TARGETABLE = "Targetable"
    """A NoOp that waits for the function."""


class OutputControlSource(Enum):
    """What those that waited for a call wait for."""

    DATA_OUTPUTS = "DataOutputs"
    """The results, as functions of TensorFlow 1 want it."""
    CONTROL_OUTPUTS = "ControlOutputs"
    """What the function returns control from."""


@dataclass(frozen=True, slots=True)
class InlineFunctionBodyOptions:
    """How one call is inlined.

    Attributes:
        disable_inlining: inline nothing.
        ignore_noinline: inline functions with the attr `_noinline`, too.
        inline_impl_selection_group_functions: inline functions that implement an interface, too.
        keep_caller_node: what stays under the name of the call.
        output_control_src: what those that waited for the call wait for.
        uniquify_frame_names: prefix the names of the loops in the body.
    """

    disable_inlining: bool = False
    ignore_noinline: bool = False
    inline_impl_selection_group_functions: bool = False
    keep_caller_node: KeepCallerNode = KeepCallerNode.DO_NOT_KEEP
    output_control_src: OutputControlSource = OutputControlSource.DATA_OUTPUTS
    uniquify_frame_names: bool = True


@dataclass(frozen=True, slots=True)
class ExpandInlineFunctionsOptions:
    """How the calls of a graph are inlined.

    Attributes:
        native_options: for nodes whose op is a function.
        multi_device_options: for PartitionedCall and StatefulPartitionedCall.
    """

    native_options: InlineFunctionBodyOptions = InlineFunctionBodyOptions()
    multi_device_options: InlineFunctionBodyOptions = field(
        default=InlineFunctionBodyOptions(output_control_src=OutputControlSource.CONTROL_OUTPUTS)
    )


def is_function_call(library: FunctionLibraryDefinition, op: Operation) -> bool:
    """Whether a node calls a function: by its op, by its attr `f`, or for a gradient."""
    return op.type in library or op.type in _PARTITIONED_CALLS or op.type == _GRADIENT


def called_function(node: NodeDef) -> NameAttrList:
    """The function that a call calls, with its attrs."""
    if node.op in _PARTITIONED_CALLS:
        return node.attr["f"].func
    return NameAttrList(name=node.op, attr=node.attr)


def expand_inline_functions(
    graph: Graph,
    options: ExpandInlineFunctionsOptions = ExpandInlineFunctionsOptions(),
    consider: Callable[[Operation, FunctionBody], bool] | None = None,
    fetchable: Container[Operation] = (),
) -> bool:
    """Inline the calls of a graph, once: calls in the inlined bodies stay.

    Functions with `_noinline`, those that cannot be instantiated, and calls that `validate_inlining`
    refuses stay as they are.

    Args:
        graph: the graph.
        options: how calls are inlined.
        consider: says which calls may be inlined, of those that can be.
        fetchable: calls in whose place something that gives their results stays, under their name.

    Returns:
        Whether any call was inlined.
    """
    library = graph.function_library
    rewriter = GraphRewriter(graph)
    bodies: dict[bytes, FunctionBody | None] = {}
    for op in graph.get_operations():
        if not is_function_call(library, op) or _is_noinline(library, op):
            continue
        body = _body_of_call(library, op, bodies)
        is_multi_device = op.type in _PARTITIONED_CALLS
        how = options.multi_device_options if is_multi_device else options.native_options
        if op in fetchable:
            how = replace(how, keep_caller_node=KeepCallerNode.FETCHABLE)
        try:
            if body is not None and (consider is None or consider(op, body)):
                validate_inlining(op, body, how)
                _Inlining(rewriter, op, body, how).run()
        except InvalidArgumentError:
            continue
    return rewriter.commit()


def inline_function_body(
    graph: Graph,
    call: Operation,
    body: FunctionBody,
    options: InlineFunctionBodyOptions = InlineFunctionBodyOptions(),
) -> None:
    """Put the body of a function into a graph, in the place of a node that calls it.

    Raises:
        InternalError: `validate_inlining` refuses it; the graph stays as it is.
    """
    try:
        validate_inlining(call, body, options)
    except InvalidArgumentError as error:
        raise InternalError(f"Inlining mismatch: {error.message}", node=call.name) from error
    rewriter = GraphRewriter(graph)
    _Inlining(rewriter, call, body, options).run()
    rewriter.commit()


def validate_inlining(
    call: Operation, body: FunctionBody, options: InlineFunctionBodyOptions
) -> None:
    """Check that a body can take the place of a call.

    Raises:
        InvalidArgumentError: the types differ, or options or the function say that it is not to be.
    """
    inputs, outputs = len(call.inputs), len(call.outputs)
    if inputs != len(body.arg_types):
        raise InvalidArgumentError(
            f"Node inputs do not match function arguments: inputs={inputs} "
            f"arg_types={len(body.arg_types)} arg_nodes={len(body.arg_nodes)}"
        )
    if outputs != len(body.ret_types):
        raise InvalidArgumentError(
            f"Node outputs do not match function returns: outputs={outputs} "
            f"ret_types={len(body.ret_types)} ret_nodes={len(body.ret_nodes)}"
        )
    _check_types("input type doesn't match function argument", call.input_types, body.arg_types)
    _check_types("output type doesn't match function return", call.output_types, body.ret_types)
    if options.disable_inlining:
        raise InvalidArgumentError(
            "Function inlining explicitly disabled by 'options.disable_inlining'"
        )
    attrs = body.function_def.attr
    if "api_implements" in attrs and not options.inline_impl_selection_group_functions:
        raise InvalidArgumentError(
            f"Inlining of implementation selection group function {body.name} is disabled by "
            "options.inline_impl_selection_group_functions"
        )
    if not options.ignore_noinline and _NOINLINE in attrs and attrs[_NOINLINE].b:
        raise InvalidArgumentError("Can't inline function marked with '_noinline'")


def _check_types(what: str, node: Sequence[DataType], function: Sequence[DataType]) -> None:
    for index, (one, other) in enumerate(zip(node, function, strict=True)):
        if one != other:
            raise InvalidArgumentError(
                f"Node {what} type: {one.string} != {other.string} @ index={index}"
            )


def _is_noinline(library: FunctionLibraryDefinition, op: Operation) -> bool:
    value = library.get_attr(op.node_def, _NOINLINE)
    return value is not None and value.b


def _body_of_call(
    library: FunctionLibraryDefinition, op: Operation, known: dict[bytes, FunctionBody | None]
) -> FunctionBody | None:
    """The body of the function that a node calls; None where it cannot be instantiated."""
    function = called_function(op.node_def)
    key = function.SerializeToString(deterministic=True)
    if key not in known:
        try:
            known[key] = instantiate_function(library, function)
        except OpError:
            known[key] = None
    return known[key]


class _Inlining:
    """Puts one body in the place of one call.

    State: `_copies` says what stands for an operation of the body: its copy, or the Identity of an
    argument.
    """

    def __init__(
        self,
        rewriter: GraphRewriter,
        call: Operation,
        body: FunctionBody,
        options: InlineFunctionBodyOptions,
    ) -> None:
        self._rewriter = rewriter
        self._call = call
        self._body = body
        self._options = options
        self._library = call.graph.function_library
        self._input_control: Operation | None = None
        self._copies: dict[Operation, Operation] = {}

    def run(self) -> None:
        """Note all changes."""
        call = self._call
        if call.control_inputs:
            self._input_control = self._no_op("input_control_node", call.control_inputs)
        controls = [self._input_control] if self._input_control else []
        for arg, tensor in zip(self._body.arg_nodes, call.inputs, strict=True):
            source = tensor.op, tensor.value_index
            device = tensor.op.device
            self._copies[arg] = self._identity("input", source, tensor.dtype, controls, device)
        self._copy_body()
        outputs = [
            self._identity("output", *self._end(ret), [self._copies[c] for c in ret.control_inputs])
            for ret in self._body.ret_nodes
        ]
        self._hand_on(outputs)

    def _copy_body(self) -> None:
        nodes = self._body.graph.get_operations()
        copied = [op for op in nodes if op.type not in STRUCTURAL_OPS]
        names = {op.name: f"{self._call.name}/{op.name}" for op in copied}
        arguments = {op.name: self._copies[op].name for op in self._body.arg_nodes}
        for op in copied:
            node = self._node(op, names | arguments)
            self._copies[op] = self._rewriter.add(node, signature=op._signature, like=self._call)
        for op in copied:
            inputs = [self._endpoint(*edge) for edge in _edges(op)]
            controls = [self._copies[c] for c in op.control_inputs if c in self._copies]
            if self._input_control is not None and self._waits_for_call(op):
                controls.append(self._input_control)
            self._rewriter.connect(self._copies[op], inputs, controls)

    def _node(self, op: Operation, names: dict[str, str]) -> NodeDef:
        """The node of a copy, without inputs."""
        node = NodeDef()
        node.CopyFrom(op.node_def)
        del node.input[:]
        node.name = names[op.name]
        if op.type in ENTER_OPS and self._options.uniquify_frame_names:
            frame = node.attr["frame_name"]
            frame.s = f"{self._call.name}/".encode() + frame.s
        if COLOCATION_ATTR in node.attr:
            groups = node.attr[COLOCATION_ATTR].list
            groups.s[:] = [_renamed_group(group, names) for group in groups.s]
        if not node.HasField("experimental_debug_info"):
            node.experimental_debug_info.original_node_names.append(op.name)
            node.experimental_debug_info.original_func_names.append(self._body.name)
        return node

    def _waits_for_call(self, op: Operation) -> bool:
        """Whether nothing but the call itself says when a node of the body may run.

        A call waits, too, so that what will be inlined for it does.
        """
        if is_function_call(self._library, op):
            return not op.control_inputs
        return not op._edges and not op.control_inputs

    def _hand_on(self, outputs: Sequence[Operation]) -> None:
        """Lead what left the call elsewhere."""
        call, keep = self._call, self._options.keep_caller_node
        is_awaited = any(index == CONTROL_SLOT for _, index in call._consumer_edges())
        done = None
        if is_awaited or keep != KeepCallerNode.DO_NOT_KEEP:
            done = self._output_control(outputs)
        results = [(output, 0) for output in outputs]
        self._rewriter.redirect(call, results, done)
        if done is None or keep == KeepCallerNode.DO_NOT_KEEP:
            self._rewriter.remove(call)
        elif keep == KeepCallerNode.FETCHABLE and outputs:
            node = NodeDef(name=call.name, op="IdentityN", device=call.device)
            node.attr["T"].list.type.extend([dtype.base for dtype in self._body.ret_types])
            self._rewriter.become(call, node, results, [done])
        else:
            node = NodeDef(name=call.name, op="NoOp", device=call.device)
            self._rewriter.become(call, node, [], [done])

    def _output_control(self, outputs: Sequence[Operation]) -> Operation:
        """What waits for the function to be done."""
        if self._options.output_control_src == OutputControlSource.DATA_OUTPUTS:
            sources = list(outputs)
        else:
            sources = [self._copies[op] for op in self._body.control_ret_nodes]
        if not sources and self._input_control is not None:
            sources = [self._input_control]
        return self._no_op("output_control_node", sources)

    def _end(self, ret: Operation) -> tuple[Endpoint, DataType]:
        """Where a result comes from, and its type."""
        (source, index), *_ = _edges(ret)
        return self._endpoint(source, index), source.output_types[index]

    def _endpoint(self, source: Operation, index: int) -> Endpoint:
        return self._copies[source], index

    def _no_op(self, name: str, control_inputs: Sequence[Operation]) -> Operation:
        node = NodeDef(name=self._new_name(name), op="NoOp")
        return self._rewriter.add(node, (), control_inputs, like=self._call)

    def _identity(
        self,
        name: str,
        source: Endpoint,
        dtype: DataType,
        control_inputs: Sequence[Operation],
        device: str = "",
    ) -> Operation:
        node = NodeDef(name=self._new_name(name), op="Identity", device=device)
        node.attr["T"].type = dtype.base
        return self._rewriter.add(node, [source], control_inputs, like=self._call)

    def _new_name(self, name: str) -> str:
        return self._rewriter.new_name(f"Func/{self._call.name}/{name}")


def _edges(op: Operation) -> list[Endpoint]:
    return list(zip(op._edges[::2], op._edges[1::2], strict=True))


def _renamed_group(group: bytes, names: dict[str, str]) -> bytes:
    """A colocation group with the name that its node has after inlining."""
    if not group.startswith(COLOCATION_PREFIX):
        return group
    name = group[len(COLOCATION_PREFIX) :].decode("utf-8", "surrogateescape")
    return COLOCATION_PREFIX + names.get(name, name).encode("utf-8", "surrogateescape")
