"""From op, inputs and attrs to a node: what `Graph.create_op` does before scopes and shapes.

Attrs that follow from the inputs are worked out: types, the lengths of lists, lists of types. What
is no tensor becomes a constant of the type that the op wants.

Source: TensorFlow python/framework/op_def_library.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph.operation import Operation, input_type_error, types_compatible
from opkernel.graph.tensor import Tensor
from opkernel.opdef import (
    OpRegistrationData,
    attr_from_python,
    infer_attr_from_python,
    is_list_arg,
    unknown_shape,
)
from opkernel.proto import AttrValue, NodeDef, OpDef
from opkernel.types import DataType, as_dtype, tensor_to_proto

if TYPE_CHECKING:
    from opkernel.graph.graph import Graph

__all__ = ["NodeRequest", "as_tensor", "build_node"]


@dataclass(slots=True)
class NodeRequest:
    """What the caller of `create_op` asked for."""

    op_type: str
    inputs: list[Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    op_def: OpDef | None = None
    input_types: Sequence[Any] | None = None
    dtypes: Sequence[Any] | None = None


def build_node(
    graph: Graph, name: str, request: NodeRequest, control_inputs: Sequence[Operation]
) -> Operation:
    """An operation that is valid for its op, not yet part of the graph."""
    registration = _registration(graph, request)
    inference = _AttrInference(name, registration.op_def, request)
    tensors = [
        as_tensor(graph, name, value, arg_name, dtype)
        for value, arg_name, dtype in inference.arguments()
    ]
    node = NodeDef(name=name, op=registration.op_def.name)
    for attr, value in inference.attrs.items():
        node.attr[attr].CopyFrom(value)
    op = Operation(graph, name, node, graph.version)
    op._edges = tuple(part for tensor in tensors for part in (tensor.op, tensor.value_index))
    op._control_inputs = tuple(dict.fromkeys(control_inputs))
    for source in (*op._edges[::2], *op._control_inputs):
        graph._check_own(source, f"input of {name!r}")
    op._write_inputs()
    op._signature = graph._resolver.resolve(node, len(tensors), registration)
    _check_types(op, tensors, request)
    return op


def _registration(graph: Graph, request: NodeRequest) -> OpRegistrationData:
    if request.op_def is None:
        return graph._look_up(request.op_type)
    return OpRegistrationData(op_def=request.op_def, shape_inference_fn=unknown_shape)


def _check_types(op: Operation, tensors: list[Tensor], request: NodeRequest) -> None:
    expected = op._signature.input_types
    for index, tensor in enumerate(tensors):
        if not types_compatible(expected[index], tensor.dtype):
            raise input_type_error(op, index, tensor.op, tensor.value_index)
    for what, asked, have in (
        ("input", request.input_types, expected),
        ("output", request.dtypes, op._signature.output_types),
    ):
        if asked is not None and [as_dtype(t).base for t in asked] != [t.base for t in have]:
            raise InvalidArgumentError(
                f"Node '{op.name}' ({op.type}) has {what} types {[t.string for t in have]}, not "
                f"{[as_dtype(t).string for t in asked]}",
                node=op.name,
                op=op.type,
            )


class _AttrInference:
    """Works out the attrs of one node.

    Attributes:
        attrs: the attrs given and found so far.
    """

    def __init__(self, name: str, op_def: OpDef, request: NodeRequest) -> None:
        self._name = name
        self._op_def = op_def
        self._declared = {attr.name: attr for attr in op_def.attr}
        self._found_by: dict[str, str] = {}
        self.attrs = {attr: self._given(attr, v) for attr, v in request.attrs.items()}
        self._groups = self._split(request.inputs)
        self._infer_lengths()
        self._infer_types()

    def arguments(self) -> Iterator[tuple[Any, str, DataType | None]]:
        """Each input, flat: the value, the name of its argument, and the type wanted."""
        for arg, values in self._groups:
            is_list = is_list_arg(arg)
            for index, value in enumerate(values):
                label = f"{arg.name}_{index}" if is_list else arg.name
                yield value, label, self._wanted_type(arg, index)

    def _given(self, name: str, value: Any) -> AttrValue:
        if isinstance(value, AttrValue):
            return value
        if name in self._declared:
            return attr_from_python(value, self._declared[name].type)
        if not name.startswith("_"):
            raise self._error(f"'{self._op_def.name}' Op has no attr named '{name}'")
        return infer_attr_from_python(value)

    def _split(self, inputs: list[Any]) -> list[tuple[OpDef.ArgDef, list[Any]]]:
        """The inputs by argument."""
        args = list(self._op_def.input_arg)
        lists = [is_list_arg(arg) for arg in args]
        if len(inputs) == len(args) and all(
            isinstance(value, list | tuple)
            for value, is_list in zip(inputs, lists, strict=True)
            if is_list
        ):
            pairs = zip(args, inputs, lists, strict=True)
            return [(arg, list(value) if is_list else [value]) for arg, value, is_list in pairs]
        groups, start = [], 0
        for arg, length in zip(args, self._lengths(len(inputs)), strict=True):
            groups.append((arg, inputs[start : start + length]))
            start += length
        if start != len(inputs) or any(len(v) < 1 for a, v in groups if not is_list_arg(a)):
            raise self._error(
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

    def _infer_lengths(self) -> None:
        for arg, values in self._groups:
            if arg.number_attr:
                self._set(arg, arg.number_attr, AttrValue(i=len(values)))

    def _infer_types(self) -> None:
        """Types follow from the tensors, then from defaults, then from the other values."""
        for arg, values in self._groups:
            for value in values:
                if arg.type_attr and isinstance(value, Tensor):
                    self._set(arg, arg.type_attr, AttrValue(type=value.dtype.base))
        for arg, values in self._groups:
            if arg.type_attr and values and arg.type_attr not in self.attrs:
                default = self._declared[arg.type_attr].default_value
                dtype = DataType(default.type) or _natural_type(values[0])
                self._set(arg, arg.type_attr, AttrValue(type=dtype))
            if arg.type_list_attr:
                types = [_natural_type(value).base for value in values]
                self._set(arg, arg.type_list_attr, AttrValue(list=AttrValue.ListValue(type=types)))

    def _set(self, arg: OpDef.ArgDef, name: str, value: AttrValue) -> None:
        known = self.attrs.setdefault(name, value)
        if known == value:
            self._found_by.setdefault(name, arg.name)
            return
        by = f"argument '{self._found_by[name]}'" if name in self._found_by else "the attr given"
        raise self._error(
            f"Input '{arg.name}' of '{self._op_def.name}' Op has {_described(value)} that does not "
            f"match {_described(known)} of {by} (attr '{name}')"
        )

    def _wanted_type(self, arg: OpDef.ArgDef, index: int) -> DataType | None:
        if arg.type_list_attr:
            types = self.attrs[arg.type_list_attr].list.type
            return DataType(types[index]) if index < len(types) else None
        return DataType(self.attrs[arg.type_attr].type if arg.type_attr else arg.type)

    def _error(self, message: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{message} (node '{self._name}')", node=self._name, op=self._op_def.name
        )


def _described(value: AttrValue) -> str:
    kind = value.WhichOneof("value")
    if kind == "type":
        return f"type {DataType(value.type).string}"
    if kind == "i":
        return f"length {value.i}"
    return f"types {[DataType(item).string for item in value.list.type]}"


def as_tensor(graph: Graph, name: str, value: Any, arg_name: str, dtype: DataType | None) -> Tensor:
    """The tensor itself, or a constant that holds the value."""
    convert = getattr(value, "_as_graph_element", None)
    value = convert() if convert is not None else value
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Operation):
        raise InvalidArgumentError(
            f"Input '{arg_name}' of '{name}' is an Operation; expected a Tensor or a value"
        )
    try:
        proto = tensor_to_proto(value, None if dtype is None else dtype.base)
    except OpError as error:
        wanted = "a value" if dtype is None else dtype.string
        raise InvalidArgumentError(
            f"Input '{arg_name}' of '{name}' expected {wanted}, got {value!r} of type "
            f"'{type(value).__name__}' instead: {error.message}",
            node=name,
        ) from error
    attrs = {"dtype": DataType(proto.dtype), "value": AttrValue(tensor=proto)}
    with graph._scopes.in_name(name):
        return graph.create_op("Const", name=arg_name, attrs=attrs).outputs[0]


def _natural_type(value: Any) -> DataType:
    """The type of a tensor, or the one that a value has as a constant of its own."""
    return value.dtype if isinstance(value, Tensor) else DataType(tensor_to_proto(value).dtype)
