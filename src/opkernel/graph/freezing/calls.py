"""The functions that a node calls, by name or by its attrs, and a node that calls others."""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import STATELESS_CALLS
from opkernel.graph.freezing.held_values import HeldValue
from opkernel.proto import NameAttrList, NodeDef
from opkernel.types import DataType

_ATTRS = {
    "case": ("branches",),
    "function": ("f",),
    "if": ("then_branch", "else_branch"),
    "while": ("cond", "body"),
}
"""The attrs that name the functions, by the trait `calls`."""
_TYPES = {
    "case": ("Tin", "Tout"),
    "function": ("Tin", "Tout"),
    "if": ("Tin", "Tout"),
    "while": ("T", ""),
}
"""The attrs that name the types of arguments and results."""
_SHAPES = "output_shapes"


def calls_functions(op: Operation) -> bool:
    """Whether a node hands its inputs to functions, which give its outputs."""
    return op.traits.calls in _ATTRS or op.type in op.graph.function_library


def first_argument(op: Operation) -> int:
    """The number of the first input that the functions take."""
    return int(op.traits.chooses_function)


def called_functions(op: Operation) -> list[NameAttrList]:
    """The functions that a node calls, each with the attrs to instantiate it with."""
    attrs = _ATTRS.get(op.traits.calls)
    if attrs is None:
        signature = op.graph.function_library.look_up_op_def(op.type)
        return [
            NameAttrList(
                name=op.type,
                attr={one.name: op.attr[one.name] for one in signature.attr if one.name in op.attr},
            )
        ]
    values = [op.attr[name] for name in attrs]
    return [
        function
        for value in values
        for function in ([value.func] if value.HasField("func") else value.list.func)
    ]


def call_functions(
    op: Operation, node: NodeDef, names: Sequence[str], *, is_stateful: bool
) -> None:
    """Have the node of an operation call other functions, which have no attrs, one for each of now."""
    if not is_stateful:
        node.op = STATELESS_CALLS.get(op.type, op.type)
    attrs = _ATTRS.get(op.traits.calls)
    if attrs is None:
        for one in op.op_def.attr:
            node.attr.pop(one.name, None)
        (node.op,) = names
        return
    new = iter(names)
    for attr in attrs:
        value = node.attr[attr]
        for function in [value.func] if value.HasField("func") else value.list.func:
            function.CopyFrom(NameAttrList(name=next(new)))


def set_call_types(
    op: Operation,
    node: NodeDef,
    taken: Sequence[HeldValue | None],
    given: Sequence[HeldValue | None],
) -> None:
    """Have the node of a call of functions take and give values in the place of handles."""
    takes, gives = _TYPES.get(op.traits.calls, ("", ""))
    if takes:
        _set_types(node, takes, op.input_types[first_argument(op) :], taken)
    if gives:
        _set_types(node, gives, op.output_types, given)
    shapes = node.attr[_SHAPES].list.shape if _SHAPES in node.attr else ()
    for shape, value in zip(shapes, given, strict=False):
        if value is not None:
            shape.CopyFrom(value.shape.to_proto())


def _set_types(
    node: NodeDef, attr: str, types: Sequence[DataType], values: Sequence[HeldValue | None]
) -> None:
    pairs = zip(types, values, strict=True)
    node.attr[attr].list.type[:] = [
        dtype.base if value is None else value.dtype for dtype, value in pairs
    ]
