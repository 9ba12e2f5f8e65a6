"""Answers about nodes: building them, checking them, and what their ops make of them."""

import re
from typing import Any

from answer_opdef import OK, one_line, op_builder, read, refusal, status_of
from opkernel.errors import OpError
from opkernel.opdef import (
    FakeInput,
    NodeDefBuilder,
    OpListOpRegistry,
    add_defaults_to_node_def,
    fake_input,
    format_node_def_for_error,
    in_out_types_for_node,
    name_ranges_for_node,
    strip_defaults_from_node_def,
    summarize_node_def,
    validate_external_node_def_syntax,
    validate_node_def,
)
from opkernel.proto import AttrValue, NodeDef, OpDef, OpList
from opkernel.types import DataType


def _op_def(request: dict[str, Any]) -> OpDef:
    op = request["op"]
    return read(op, OpDef()) if isinstance(op, str) else op_builder(op).finalize().op_def


def node_build(request: dict[str, Any]) -> Any:
    """What a builder makes of its calls."""
    op_def = _op_def(request)
    builder = NodeDefBuilder("n", op_def.name, OpListOpRegistry(OpList(op=[op_def])))
    for method, *args in request["calls"]:
        _call(builder, method, args)
    answer: dict[str, Any] = {"op_def": one_line(op_def)}
    try:
        node = builder.finalize()
    except OpError as error:
        return {**answer, "finalize": refusal(error)}
    return {**answer, "finalize": OK, "node_def": one_line(node), **_inspect(node, op_def)}


def _call(builder: NodeDefBuilder, method: str, args: list[Any]) -> None:
    match method:
        case "Input":
            node, index, dtype = args
            builder.input(node, index, DataType.from_string(dtype))
        case "InputList":
            builder.input_list([(n, i, DataType.from_string(d)) for n, i, d in args[0]])
        case "FakeInput":
            builder.input(_fake_input(**(args[0] if args else {})))
        case "Attr":
            builder.attr(args[0], read(args[1], AttrValue()))
        case _:
            getattr(builder, re.sub(r"(?<!^)([A-Z])", r"_\1", method).lower())(*args)


def _fake_input(
    dtype: str | None = None, n: int | None = None, types: list[str] | None = None
) -> FakeInput:
    if types is not None:
        return fake_input([*map(DataType.from_string, types)])
    each = None if dtype is None else DataType.from_string(dtype)
    return fake_input(each) if n is None else fake_input(n, each)


def node_validate(request: dict[str, Any]) -> Any:
    """Everything that can be asked of a node and its op."""
    op_def = _op_def(request)
    node = read(request["node_def"], NodeDef())
    with_defaults = NodeDef.FromString(node.SerializeToString())
    add_defaults_to_node_def(with_defaults, op_def)
    stripped = NodeDef.FromString(node.SerializeToString())
    strip_defaults_from_node_def(stripped, op_def)
    return {
        "op_def": one_line(op_def),
        "external_syntax": status_of(validate_external_node_def_syntax, node),
        **_inspect(node, op_def),
        "with_defaults": one_line(with_defaults),
        "validate_with_defaults": status_of(validate_node_def, with_defaults, op_def),
        "stripped": one_line(stripped),
        "format_for_error": format_node_def_for_error(node),
    }


def _inspect(node: NodeDef, op_def: OpDef) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "validate": status_of(validate_node_def, node, op_def),
        "in_out_types": status_of(in_out_types_for_node, node, op_def),
        "name_ranges": status_of(name_ranges_for_node, node, op_def),
        "summary": summarize_node_def(node),
    }
    if answer["in_out_types"] is OK:
        inputs, outputs = in_out_types_for_node(node, op_def)
        answer["input_types"] = [dtype.string for dtype in inputs]
        answer["output_types"] = [dtype.string for dtype in outputs]
    if answer["name_ranges"] is OK:
        ranges = name_ranges_for_node(node, op_def)
        answer["input_ranges"], answer["output_ranges"] = (
            {name: list(span) for name, span in part.items()} for part in ranges
        )
    return answer
