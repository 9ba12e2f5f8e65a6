"""Inlining: the body of a function takes the place of a node that calls it.

For a node `call` the body's nodes are named `call/node`, its arguments `Func/call/input/_0`, its results
`Func/call/output/_1`; `Func/call/input_control_node/_2` waits for the control inputs of the call,
and operations that waited for the call wait for `Func/call/output_control_node/_3`. Numbers are
unique in the graph.

Source: TensorFlow core/common_runtime/inline_function_utils.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from opkernel.device.budget import check_time
from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.graph.core.node import COLOCATION_ATTR, copied
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import ENTER_OPS, STRUCTURAL_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.colocation_groups import renamed_groups
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.graph_edit import GraphEdit
from opkernel.graph.edit.subgraph import link_copies
from opkernel.graph.functions.calls import called_function
from opkernel.graph.functions.function_body import FunctionBody, instantiate_function
from opkernel.proto import NodeDef
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.functions.function_library import FunctionLibraryDefinition

_NOINLINE = "_noinline"
_SEAM = "Func/"


def is_seam(name: str) -> bool:
    """Whether a node of this name stands for an argument, a result or the order of a call that was inlined."""
    return name.startswith(_SEAM)


class KeepCallerNode(Enum):
    """The node that stays in place of a call, under its name."""

    DO_NOT_KEEP = "DoNotKeep"
    """Nothing."""
    FETCHABLE = "Fetchable"
    """An IdentityN that gives the results; a NoOp if the function has none."""
    TARGETABLE = "Targetable"
    """A NoOp that waits for the function."""


class OutputControlSource(Enum):
    """The operations for which the consumers of a call's control output wait."""

    DATA_OUTPUTS = "DataOutputs"
    """The results, as functions of TensorFlow 1 want it."""
    CONTROL_OUTPUTS = "ControlOutputs"
    """The operations from which the function returns control."""


@dataclass(frozen=True, slots=True)
class InlineFunctionBodyOptions:
    """How one call is inlined.

    Attributes:
        disable_inlining: inline nothing.
        ignore_noinline: inline functions with the attr `_noinline`, too.
        inline_impl_selection_group_functions: inline functions that implement an interface, too.
        keep_caller_node: the node that stays under the name of the call.
        output_control_src: the new control inputs of the operations that waited for the call.
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
    return op.type in library or op.traits.calls in ("function", "gradient")


def expand_inline_functions(
    graph: Graph,
    options: ExpandInlineFunctionsOptions = ExpandInlineFunctionsOptions(),
    consider: Callable[[Operation, FunctionBody], bool] | None = None,
    fetchable: Container[Operation] = (),
) -> bool:
    """Inline the calls of a graph, once: calls in the inlined bodies stay.

    Functions with `_noinline`, functions that cannot be instantiated, and calls that
    `validate_inlining` refuses stay as they are.

    Args:
        graph: the graph.
        options: how calls are inlined.
        consider: says which calls may be inlined, of those that can be.
        fetchable: calls in whose place something that gives their results stays, under their name.

    Returns:
        Whether any call was inlined.
    """
    library = graph.function_library
    bodies: dict[bytes, FunctionBody | None] = {}
    inlined = False
    calls = [op for op in graph.get_operations() if is_function_call(library, op)]
    if not calls:
        return False
    with graph.edit() as edit:
        for op in calls:
            check_time("inlining functions at", op.name)
            noinline = library.get_attr(op.node_def, _NOINLINE)
            if noinline is not None and noinline.b:
                continue
            function = called_function(op)
            key = function.SerializeToString(deterministic=True)
            if key not in bodies:
                bodies[key] = None
                with suppress(OpError):  # it cannot be instantiated
                    bodies[key] = instantiate_function(library, function)
            body = bodies[key]
            is_multi_device = op.traits.calls == "function"
            how = options.multi_device_options if is_multi_device else options.native_options
            if op in fetchable:
                how = replace(how, keep_caller_node=KeepCallerNode.FETCHABLE)
            try:
                if body is not None and (consider is None or consider(op, body)):
                    validate_inlining(op, body, how)
                    _Inlining(edit, op, body, how).run()
                    inlined = True
            except InvalidArgumentError:
                continue
    return inlined


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
    with graph.edit() as edit:
        _Inlining(edit, call, body, options).run()


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


class PlaceOfCall:
    """Makes the nodes that stand around what takes the place of a node.

    Args:
        edit: changes the graph.
        call: the node.
    """

    def __init__(self, edit: GraphEdit, call: Operation) -> None:
        self._edit, self._call = edit, call

    def no_op(self, name: str, control_inputs: Collection[Operation]) -> Operation:
        """A new NoOp that waits for others."""
        node = NodeDef(name=self._edit.new_name(f"{_SEAM}{self._call.name}/{name}"), op="NoOp")
        return self._edit.add_node(node, (), control_inputs, like=self._call)

    def identity(
        self,
        name: str,
        source: Tensor,
        control_inputs: Collection[Operation] = (),
        device: str = "",
    ) -> Operation:
        """A new Identity of a tensor."""
        name = self._edit.new_name(f"{_SEAM}{self._call.name}/{name}")
        node = NodeDef(name=name, op="Identity", device=device)
        node.attr["T"].type = source.dtype.base
        return self._edit.add_node(node, [source], control_inputs, like=self._call)


class _Inlining(PlaceOfCall):
    """Puts one body in the place of one call.

    State: `_copies` says what stands for an operation of the body: its copy, or the Identity of an
    argument.
    """

    def __init__(
        self,
        edit: GraphEdit,
        call: Operation,
        body: FunctionBody,
        options: InlineFunctionBodyOptions,
    ) -> None:
        super().__init__(edit, call)
        self._body = body
        self._options = options
        self._library = call.graph.function_library
        self._input_control: Operation | None = None
        self._copies: dict[Operation, Operation] = {}

    def run(self) -> None:
        """Make all changes."""
        call = self._call
        if call.control_inputs:
            self._input_control = self.no_op("input_control_node", call.control_inputs)
        controls = [self._input_control] if self._input_control else []
        for arg, tensor in zip(self._body.arg_nodes, call.inputs, strict=True):
            self._copies[arg] = self.identity("input", tensor, controls, tensor.op.device)
        self._copy_body()
        outputs = []
        for ret in self._body.ret_nodes:
            (tensor,) = ret.inputs
            inside = self._copies[tensor.op].outputs[tensor.value_index]
            waits = [self._copies[control] for control in ret.control_inputs]
            outputs.append(self.identity("output", inside, waits).outputs[0])
        self._hand_on(outputs)

    def _copy_body(self) -> None:
        nodes = self._body.graph.get_operations()
        copied = [op for op in nodes if op.type not in STRUCTURAL_OPS]
        names = {op.name: f"{self._call.name}/{op.name}" for op in copied}
        arguments = {op.name: self._copies[op].name for op in self._body.arg_nodes}
        for op in copied:
            node = self._node(op, names | arguments)
            self._copies[op] = self._edit.add_node(node, signature=op.signature, like=self._call)
        link_copies(self._copies, copied)
        if self._input_control is not None:
            for op in copied:
                # A call waits, too, so that what will be inlined for it does.
                takes = op.edges and not is_function_call(self._library, op)
                if not takes and not op.control_inputs:
                    self._copies[op].add_control_input(self._input_control)

    def _node(self, op: Operation, names: dict[str, str]) -> NodeDef:
        """The node of a copy, without inputs; it asks for the device of the call if it asks for none."""
        node = copied(op.node_def)
        del node.input[:]
        node.device = node.device or self._call.node_def.device
        node.name = names[op.name]
        if op.type in ENTER_OPS and self._options.uniquify_frame_names:
            frame = node.attr["frame_name"]
            frame.s = f"{self._call.name}/".encode() + frame.s
        if COLOCATION_ATTR in node.attr:
            groups = node.attr[COLOCATION_ATTR].list
            groups.s[:] = renamed_groups(groups.s, names)
        if not node.HasField("experimental_debug_info"):
            node.experimental_debug_info.original_node_names.append(op.name)
            node.experimental_debug_info.original_func_names.append(self._body.name)
        return node

    def _hand_on(self, outputs: Sequence[Tensor]) -> None:
        """Lead the edges that left the call elsewhere."""
        call, keep = self._call, self._options.keep_caller_node
        done = None
        if call.control_outputs or keep != KeepCallerNode.DO_NOT_KEEP:
            done = self._output_control([tensor.op for tensor in outputs])
        for old, new in zip(call.outputs, outputs, strict=True):
            self._edit.redirect(old, new)
        if done is not None:
            self._edit.redirect_control(call, done)
        if done is None or keep == KeepCallerNode.DO_NOT_KEEP:
            self._edit.remove(call)
            return
        call.set_control_inputs([done])
        if keep == KeepCallerNode.FETCHABLE and outputs:
            types = [dtype.base for dtype in self._body.ret_types]
            self._edit.become(call, "IdentityN", outputs, {"T": types})
        else:
            self._edit.become(call, "NoOp", ())

    def _output_control(self, outputs: Sequence[Operation]) -> Operation:
        """The operation that waits for the function to be done."""
        if self._options.output_control_src == OutputControlSource.DATA_OUTPUTS:
            sources = list(outputs)
        else:
            seen = [op for op in self._copies if effect_of(op.signature) is Effect.SEES]
            waited = dict.fromkeys([*self._body.control_ret_nodes, *seen])
            sources = [self._copies[op] for op in waited]
        if not sources and self._input_control is not None:
            sources = [self._input_control]
        return self.no_op("output_control_node", sources)
