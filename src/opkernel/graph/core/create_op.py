"""From op, inputs and attrs to a node: `Graph.create_op` without scopes and shapes.

Attrs that follow from the inputs are worked out: types, the lengths of lists, lists of types.
Inputs that are no tensors become constants of the type that the op wants.

Source: TensorFlow python/framework/op_def_library.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.node import NodeRequest, graph_element
from opkernel.graph.core.operation import Operation, check_inputs
from opkernel.graph.core.signature import NodeSignature
from opkernel.graph.core.tensor import Tensor, tensors_in
from opkernel.messages import did_you_mean, short_repr
from opkernel.opdef import (
    CallInputs,
    InputValues,
    OpRegistrationData,
    attr_for_op,
    attr_from_python,
    attr_to_python,
    infer_attr_from_python,
    inferred_attr_names,
    is_list_arg,
    not_registered,
    unknown_shape,
)
from opkernel.proto import AttrValue, NodeDef, OpDef
from opkernel.types import DataType, as_dtype, dtype_of_array, natural_dtype, tensor_to_proto

__all__ = ["Arguments", "as_tensor", "build_node", "op_named"]


def build_node(
    graph: Graph, name: str, request: NodeRequest, control_inputs: Sequence[Operation]
) -> Operation:
    """An operation that is valid for its op, not yet part of the graph."""
    registration = (
        op_named(graph, request.op_type)
        if request.op_def is None
        else OpRegistrationData(op_def=request.op_def, shape_inference_fn=unknown_shape)
    )
    try:
        arguments = Arguments(name, registration.op_def, request)
        tensors = arguments.tensors(graph)
    except OpError as error:
        error.add_node(name, registration.op_def.name)
        raise
    node = NodeDef(name=name, op=registration.op_def.name)
    for attr, value in arguments.attrs.items():
        node.attr[attr].CopyFrom(value)
    op = make_operation(graph, node, tensors, control_inputs, registration=registration)
    _check_types(op, request)
    return op


def make_operation(
    graph: Graph,
    node: NodeDef,
    inputs: Sequence[Tensor],
    control_inputs: Collection[Operation],
    *,
    registration: OpRegistrationData | None = None,
    signature: NodeSignature | None = None,
) -> Operation:
    """An operation from a message, not yet part of the graph.

    Args:
        graph: the graph that it will be part of.
        node: its name, op, device and attrs; it is taken over.
        inputs: the tensors that it takes.
        control_inputs: the operations that it waits for.
        registration: its op, if not the registered one.
        signature: the signature of another node with the same op and attrs, if there is one; inputs
            are not checked then, and `link_copies` may set them.

    Raises:
        NotFoundError, InvalidArgumentError: the node breaks a rule of its op, or an input is not of
            the graph.
    """
    op = Operation(graph, node.name, node, graph.version, inputs, control_inputs)
    for source in (*op.edges[::2], *op.control_inputs):
        graph.check_own(source, "input", op.name)
    if signature is None:
        op.write_inputs()
        op.signature = graph.resolve(node, len(inputs), registration)
        check_inputs(op, inputs, op.signature)
    else:
        op.signature, op.stale = signature, True
    return op


def op_named(graph: Graph, op_type: str) -> OpRegistrationData:
    """The op, or function of the graph's library, that a program names.

    Raises:
        NotFoundError: there is none; the message tells those with names like it.
    """
    library = graph.function_library
    try:
        return library.look_up(op_type)
    except NotFoundError:
        raise not_registered(op_type, [*library, *graph.op_registry.names()]) from None


def _check_types(op: Operation, request: NodeRequest) -> None:
    for what, asked, have in (
        ("input", request.input_types, op.signature.input_types),
        ("output", request.dtypes, op.signature.output_types),
    ):
        if asked is not None and [as_dtype(t).base for t in asked] != [t.base for t in have]:
            raise op.error(
                f"Node '{op.name}' ({op.type}) has {what} types {[t.string for t in have]}, not "
                f"{[as_dtype(t).string for t in asked]}"
            )


class Arguments:
    """Works out the attrs of one node from its inputs.

    Attributes:
        attrs: the attrs given and found.
    """

    def __init__(self, name: str, op_def: OpDef, request: NodeRequest) -> None:
        self._name = name
        self._op_def = op_def
        self._declared = {attr.name: attr for attr in op_def.attr}
        self.attrs = {attr: self._given(attr, v) for attr, v in request.attrs.items()}
        kinds = {attr: self._declared[attr].type for attr in inferred_attr_names(op_def)}
        given = {a: attr_to_python(self.attrs[a], k) for a, k in kinds.items() if a in self.attrs}
        self._call = CallInputs(op_def, self._split(request.inputs), given, type_of_tensor)
        for attr, value in self._call.attrs.items():
            self.attrs.setdefault(attr, attr_from_python(value, kinds[attr]))

    def tensors(self, graph: Graph) -> list[Tensor]:
        """The inputs, flat; values become constants of the types wanted."""
        tensors = []
        for argument in self._call.arguments:
            tensors.extend(self._tensors_of(argument, graph))
        return tensors

    def _tensors_of(self, argument: InputValues, graph: Graph) -> list[Tensor]:
        arg, values, dtypes = argument
        found = [type_of_tensor(value) for value in values]
        for dtype, wanted in zip(found, dtypes, strict=True):
            if dtype is not None and dtype.base != wanted.base and wanted:
                types = [t or natural_dtype(value) for t, value in zip(found, values, strict=True)]
                raise self._call.mismatch(argument, types)
        is_list = is_list_arg(arg)
        return [
            as_tensor(graph, self._name, value, f"{arg.name}_{i}" if is_list else arg.name, dtype)
            for i, (value, dtype) in enumerate(zip(values, dtypes, strict=True))
        ]

    def _given(self, name: str, value: Any) -> AttrValue:
        if name not in self._declared:
            if not name.startswith("_"):
                hint = did_you_mean(name, self._declared)
                raise InvalidArgumentError(
                    f"'{self._op_def.name}' Op has no attr named '{name}'{hint}"
                )
            return infer_attr_from_python(value)
        return attr_for_op(self._op_def.name, self._declared[name], value)

    def _split(self, inputs: list[Any] | dict[str, Any]) -> dict[str, Any]:
        """The inputs by argument."""
        if isinstance(inputs, dict):
            return inputs
        args = list(self._op_def.input_arg)
        if len(inputs) == len(args) and all(
            isinstance(value, list | tuple)
            for value, arg in zip(inputs, args, strict=True)
            if is_list_arg(arg)
        ):
            return {arg.name: value for arg, value in zip(args, inputs, strict=True)}
        groups: dict[str, Any] = {}
        start = 0
        for arg, length in zip(args, self._lengths(len(inputs)), strict=True):
            group = inputs[start : start + length]
            start += length
            if group or is_list_arg(arg):
                groups[arg.name] = group if is_list_arg(arg) else group[0]
        if start != len(inputs) or len(groups) < len(args):
            raise InvalidArgumentError(
                f"'{self._op_def.name}' Op takes {len(args)} input arguments "
                f"({', '.join(arg.name for arg in args)}), which do not match the "
                f"{len(inputs)} inputs given"
            )
        return groups

    def _lengths(self, total: int) -> list[int]:
        """How many of `total` flat inputs belong to each argument."""
        known = [self._known_length(arg) for arg in self._op_def.input_arg]
        open_args = known.count(None)
        left = total - sum(length for length in known if length is not None)
        each = max(left, 0) // open_args if open_args else 0
        return [each if length is None else min(length, total) for length in known]

    def _known_length(self, arg: OpDef.ArgDef) -> int | None:
        if not is_list_arg(arg):
            return 1
        value = self.attrs.get(arg.number_attr or arg.type_list_attr)
        if value is None:
            return None
        return value.i if arg.number_attr else len(value.list.type)


def type_of_tensor(value: Any) -> DataType | None:
    """The type of a tensor of a graph, of a list with one in it, or of an array; else None."""
    tensor = next(tensors_in(value), None)
    return dtype_of_array(value) if tensor is None else tensor.dtype


def as_tensor(graph: Graph, name: str, value: Any, arg_name: str, dtype: DataType | None) -> Tensor:
    """The tensor itself, a list of tensors packed, or a constant that holds the value."""
    if isinstance(value, list | tuple):
        first = next(tensors_in(value), None)
        if first is not None:  # at any depth
            scope = f"{name}/{arg_name}"
            items = [as_tensor(graph, scope, v, str(i), first.dtype) for i, v in enumerate(value)]
            with graph.scopes.in_name(name):
                return graph.create_op("Pack", [items], name=arg_name).outputs[0]
    value = graph_element(value)
    if isinstance(value, Tensor):
        return graph.as_own(value)
    if isinstance(value, Operation):
        raise InvalidArgumentError(
            f"Input '{arg_name}' of '{name}' is an Operation; expected a Tensor or a value"
        )
    try:
        proto = tensor_to_proto(value, None if dtype is None else dtype.base)
    except OpError as error:
        wanted = "a value" if dtype is None else dtype.string
        raise InvalidArgumentError(
            f"Input '{arg_name}' of '{name}' expected {wanted}, got {short_repr(value)} of type "
            f"'{type(value).__name__}' instead: {error.message}",
            node=name,
        ) from error
    attrs = {"dtype": DataType(proto.dtype), "value": AttrValue(tensor=proto)}
    with graph.scopes.in_name(name):
        return graph.create_op("Const", name=arg_name, attrs=attrs).outputs[0]
