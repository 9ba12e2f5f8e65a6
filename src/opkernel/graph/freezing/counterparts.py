"""The counterpart of a node of a body in the graph in which values take the place of handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from opkernel.errors import FailedPreconditionError, UnimplementedError
from opkernel.graph.core.node import copied
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS, STATELESS_CALLS
from opkernel.graph.freezing.body import PASS_ON, Body, HeldValue, is_handle
from opkernel.graph.functions.calls import FUNCTION_ATTRS
from opkernel.graph.functions.function_library import functions_of
from opkernel.proto import AttrValue, NameAttrList, NodeDef, TensorProto
from opkernel.types import DataType

Constants = Callable[[Operation, HeldValue], TensorProto]
"""Gives the value of a variable of a body."""

_SHAPES = "_output_shapes"
_OF_HANDLES = (_SHAPES, "_handle_dtypes", "_handle_shapes", "_resource_arg_unique_id")
"""Internal attrs that tell of a handle what is not true of its value."""

_TYPES = {
    "case": ("Tin", "Tout"),
    "function": ("Tin", "Tout"),
    "if": ("Tin", "Tout"),
    "while": ("T", ""),
}
"""The attrs that name the types of arguments and results, by the trait `calls`."""


class Counterpart(NamedTuple):
    """What takes the place of a node.

    Attributes:
        node: the node, without inputs.
        takes_inputs: whether it takes the inputs of the other, or nothing.
        axis: a last input, which is a constant; None for none.
    """

    node: NodeDef
    takes_inputs: bool = True
    axis: int | None = None


def counterpart(
    body: Body, op: Operation, constants: Constants, names: Mapping[Body, str]
) -> Counterpart | None:
    """What takes the place of a node; None where the node can stay as it is.

    Args:
        body: the body of the node.
        op: the node.
        constants: gives the values of variables.
        names: the names of the functions that take the place of others.

    Raises:
        FailedPreconditionError: the node takes a handle and does not simply read it.
        UnimplementedError: the node may have the handle of a variable, and may have another.
    """
    if op in body.variables:
        value = body.variables[op]
        node = _like(op, "Const", dtype=AttrValue(type=value.dtype))
        node.attr["value"].tensor.CopyFrom(constants(op, value))
        return Counterpart(node)
    if op in body.calls:
        return Counterpart(_call(body, op, names))
    if op.type in ARG_OPS:
        held = body.arguments[op.attr["index"].i]
        return None if held is None else Counterpart(_argument(op, held))
    return _taking(body, op)


def _taking(body: Body, op: Operation) -> Counterpart | None:
    """What takes the place of a node that takes handles; None where it takes none."""
    inputs = body.taken(op.inputs)
    handles = [
        value
        for value, dtype in zip(inputs, op.input_types, strict=True)
        if is_handle(dtype) or (value is not None and dtype is DataType.DT_INVALID)
    ]
    values = [value for value in handles if value is not None]
    if not values:
        return None
    if op.type in PASS_ON:
        handles += body.taken([tensor for tensor in op.outputs if is_handle(tensor.dtype)])
    _check_all(op, handles)
    if op.type in PASS_ON or op.type in RETVAL_OPS:
        return Counterpart(_passing_on(op, inputs))
    read = _READINGS.get(op.type)
    if read is None:
        raise op.error(
            f"Variable {values[0].variable!r} cannot become a constant: node {op.name!r} ({op.type}) takes "
            f"it as input {inputs.index(values[0])}, and does not simply read it. Choose outputs that do "
            f"not need that node",
            FailedPreconditionError,
        )
    return read(op, values[0].dtype)


def _argument(op: Operation, value: HeldValue) -> NodeDef:
    node = _like(op, op.type, index=op.attr["index"], T=AttrValue(type=value.dtype))
    node.attr[_SHAPES].list.shape.append(value.shape.to_proto())
    return node


def _passing_on(op: Operation, values: Sequence[HeldValue | None]) -> NodeDef:
    """A node that passes values on as `op` does handles or references."""
    node = copied(op.message)
    node.op = op.type.removeprefix("Ref")
    node.ClearField("experimental_type")
    for name in _OF_HANDLES:
        node.attr.pop(name, None)
    if op.type == "IdentityN":
        node.attr["T"].list.type[:] = types_of_values(op.input_types, values)
    else:
        node.attr["T"].type = next(value.dtype for value in values if value is not None)
    return node


def _call(body: Body, op: Operation, names: Mapping[Body, str]) -> NodeDef:
    callees = body.calls[op]
    taken = body.taken(op.inputs)[op.traits.chooses_function :]
    given = body.taken(op.outputs)
    is_loop = op.traits.calls == "while"
    results = [callee.results for callee in callees[is_loop:]]
    for several in [*results, taken] if is_loop else results:
        for value, output in zip(several, given, strict=True):
            _check_all(op, [value, output])
    node = copied(op.message)
    node.attr.pop(_SHAPES, None)
    node.ClearField("experimental_type")
    if not any(callee.is_stateful for callee in callees):
        node.op = STATELESS_CALLS.get(op.type, op.type)
    attrs, new = FUNCTION_ATTRS.get(op.traits.calls), iter(names[callee] for callee in callees)
    if attrs is None:
        for one in op.op_def.attr:
            node.attr.pop(one.name, None)
        (node.op,) = new
    for attr in attrs or ():
        for function in functions_of(node.attr[attr]):
            function.CopyFrom(NameAttrList(name=next(new)))
    _set_call_types(op, node, taken, given)
    return node


def _set_call_types(
    op: Operation,
    node: NodeDef,
    taken: Sequence[HeldValue | None],
    given: Sequence[HeldValue | None],
) -> None:
    """Have the node of a call of functions take and give values in the place of handles."""
    takes, gives = _TYPES.get(op.traits.calls, ("", ""))
    if takes:
        types = op.input_types[op.traits.chooses_function :]
        node.attr[takes].list.type[:] = types_of_values(types, taken)
    if gives:
        node.attr[gives].list.type[:] = types_of_values(op.output_types, given)
    shapes = node.attr["output_shapes"].list.shape if "output_shapes" in node.attr else ()
    for shape, value in zip(shapes, given, strict=False):
        if value is not None:
            shape.CopyFrom(value.shape.to_proto())


def types_of_values(
    types: Sequence[DataType], values: Sequence[HeldValue | None]
) -> list[DataType]:
    """The types of tensors, some of which become values."""
    return [
        dtype.base if value is None else value.dtype
        for dtype, value in zip(types, values, strict=True)
    ]


def _check_all(op: Operation, values: Sequence[HeldValue | None]) -> None:
    """Raise UnimplementedError where only some are handles of variables, or their types differ."""
    known = [value for value in values if value is not None]
    if not known or op.type == "IdentityN":
        return
    if len(known) < len(values) or len({value.dtype for value in known}) > 1:
        raise op.error(
            f"Variable {known[0].variable!r} cannot become a constant: node {op.name!r} ({op.type}) "
            f"has its handle, or that of something else, which is no variable of its type",
            UnimplementedError,
        )


def _like(op: Operation, op_type: str, **attrs: AttrValue) -> NodeDef:
    """A node with the name, the device and the internal attrs of another."""
    own = {k: v for k, v in op.attr.items() if k.startswith("_") and k not in _OF_HANDLES}
    return NodeDef(name=op.name, op=op_type, device=op.message.device, attr=own | attrs)


# What takes the place of a node that reads a variable of a type.


def _shape(op: Operation, dtype: DataType) -> Counterpart:
    attrs = {"T": AttrValue(type=dtype), "out_type": op.attr["out_type"]}
    return Counterpart(_like(op, "Shape", **attrs))


def _gather(op: Operation, _: DataType) -> Counterpart:
    attrs = {name: op.attr[name] for name in ("Tindices", "batch_dims")}
    attrs |= {"Tparams": op.attr["dtype"], "Taxis": AttrValue(type=DataType.DT_INT32)}
    return Counterpart(_like(op, "GatherV2", **attrs), axis=op.attr["batch_dims"].i)


def _gather_nd(op: Operation, _: DataType) -> Counterpart:
    attrs = {"Tparams": op.attr["dtype"], "Tindices": op.attr["Tindices"]}
    return Counterpart(_like(op, "GatherNd", **attrs))


def _is_initialized(op: Operation, _: DataType) -> Counterpart:
    yes = AttrValue(tensor=TensorProto(dtype=DataType.DT_BOOL, bool_val=[True]))
    node = _like(op, "Const", dtype=AttrValue(type=DataType.DT_BOOL), value=yes)
    return Counterpart(node, takes_inputs=False)


_READINGS: dict[str, Callable[[Operation, DataType], Counterpart]] = {
    "DisableCopyOnRead": lambda op, _: Counterpart(_like(op, "NoOp"), takes_inputs=False),
    "IsVariableInitialized": _is_initialized,
    "ReadVariableOp": lambda op, _: Counterpart(_like(op, "Identity", T=op.attr["dtype"])),
    "ResourceGather": _gather,
    "ResourceGatherNd": _gather_nd,
    "VarIsInitializedOp": _is_initialized,
    "VariableShape": _shape,
    "_ReadVariablesOp": lambda op, _: Counterpart(_like(op, "IdentityN", T=op.attr["dtypes"])),
}

READING = frozenset(_READINGS)
"""The ops that simply read a variable."""
