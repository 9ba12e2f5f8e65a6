"""The counterpart of a node of a body in the graph in which values take the place of handles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from opkernel.errors import FailedPreconditionError, UnimplementedError
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import ARG_OPS, RETVAL_OPS
from opkernel.graph.freezing.body import Body
from opkernel.graph.freezing.calls import call_functions, first_argument, set_call_types
from opkernel.graph.freezing.held_values import PASS_ON, HeldValue, is_handle
from opkernel.graph.freezing.reads import reading
from opkernel.proto import AttrValue, NodeDef, TensorProto
from opkernel.types import DataType

Constants = Callable[[Operation, HeldValue], TensorProto]
"""Gives the value of a variable of a body."""

_SHAPES = "_output_shapes"
_OF_HANDLES = (_SHAPES, "_handle_dtypes", "_handle_shapes", "_resource_arg_unique_id")
"""Internal attrs that tell of a handle what is not true of its value."""


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
        return Counterpart(_constant(op, body.variables[op], constants))
    if op in body.calls:
        return Counterpart(_call(body, op, names))
    if op.type in ARG_OPS:
        value = body.arguments[op.attr["index"].i]
        return None if value is None else Counterpart(_argument(op, value))
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
    _check_all(op, [*handles, *(_given_on(body, op) if op.type in PASS_ON else ())])
    if op.type in PASS_ON or op.type in RETVAL_OPS:
        return Counterpart(_passing_on(op, inputs))
    return _reading(op, inputs.index(values[0]), values[0])


def _given_on(body: Body, op: Operation) -> list[HeldValue | None]:
    """What a node that passes handles on gives."""
    return body.taken([tensor for tensor in op.outputs if is_handle(tensor.dtype)])


def _constant(op: Operation, value: HeldValue, constants: Constants) -> NodeDef:
    node = _like(op, "Const")
    node.attr["dtype"].type = value.dtype
    node.attr["value"].tensor.CopyFrom(constants(op, value))
    return node


def _argument(op: Operation, value: HeldValue) -> NodeDef:
    node = _like(op, op.type)
    node.attr["index"].CopyFrom(op.attr["index"])
    node.attr["T"].type = value.dtype
    node.attr[_SHAPES].list.shape.append(value.shape.to_proto())
    return node


def _passing_on(op: Operation, values: Sequence[HeldValue | None]) -> NodeDef:
    """A node that passes values on as `op` does handles or references."""
    node = NodeDef()
    node.CopyFrom(op.message)
    node.op = op.type.removeprefix("Ref")
    node.ClearField("experimental_type")
    for name in _OF_HANDLES:
        node.attr.pop(name, None)
    if op.type == "IdentityN":
        pairs = zip(op.input_types, values, strict=True)
        types = [dtype if value is None else value.dtype for dtype, value in pairs]
        node.attr["T"].list.type[:] = types
    else:
        node.attr["T"].type = next(value.dtype for value in values if value is not None)
    return node


def _call(body: Body, op: Operation, names: Mapping[Body, str]) -> NodeDef:
    callees = body.calls[op]
    taken = body.taken(op.inputs)[first_argument(op) :]
    given = body.taken(op.outputs)
    is_loop = op.traits.calls == "while"
    results = [callee.results for callee in callees[is_loop:]]
    for several in [*results, taken] if is_loop else results:
        for value, output in zip(several, given, strict=True):
            _check_all(op, [value, output])
    node = NodeDef()
    node.CopyFrom(op.message)
    node.attr.pop(_SHAPES, None)
    node.ClearField("experimental_type")
    is_stateful = any(callee.is_stateful for callee in callees)
    call_functions(op, node, [names[callee] for callee in callees], is_stateful=is_stateful)
    set_call_types(op, node, taken, given)
    return node


def _reading(op: Operation, index: int, value: HeldValue) -> Counterpart:
    read = reading(op, value.dtype)
    if read is None:
        raise FailedPreconditionError(
            f"Variable {value.variable!r} cannot become a constant: node {op.name!r} ({op.type}) takes "
            f"it as input {index}, and does not simply read it. Choose outputs that do not need that "
            f"node",
            node=op.name,
            op=op.type,
        )
    node = _like(op, read.op_type)
    for name, attr in read.attrs.items():
        node.attr[name].CopyFrom(attr)
    return Counterpart(node, read.takes_inputs, read.axis)


def _check_all(op: Operation, values: Sequence[HeldValue | None]) -> None:
    """Raise UnimplementedError where only some are handles of variables, or their types differ."""
    known = [value for value in values if value is not None]
    if not known or op.type == "IdentityN":
        return
    if len(known) < len(values) or len({value.dtype for value in known}) > 1:
        raise UnimplementedError(
            f"Variable {known[0].variable!r} cannot become a constant: node {op.name!r} ({op.type}) "
            f"has its handle, or that of something else, which is no variable of its type",
            node=op.name,
            op=op.type,
        )


def _like(op: Operation, op_type: str) -> NodeDef:
    """A node with the name, the device and the internal attrs of another."""
    node = NodeDef(name=op.name, op=op_type, device=op.message.device)
    attrs: Mapping[str, AttrValue] = op.attr
    for name, attr in attrs.items():
        if name.startswith("_") and name not in _OF_HANDLES:
            node.attr[name].CopyFrom(attr)
    return node
