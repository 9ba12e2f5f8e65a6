"""counted_loops: loops in the form that TensorFlow's gradient of loops wants.

It takes the first variable of a loop for the number of the turn, and the second for the most turns, of which -1 stands
for any number.

Source: TensorFlow python/ops/while_v2.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel.graph.building.definitions import node_def
from opkernel.graph.core.node import copied
from opkernel.proto import FunctionDef, Message, NodeDef, OpDef, TensorShapeProto
from opkernel.types import DataType

_LOOPS = ("While", "StatelessWhile")
_COUNTER, _LIMIT = "while_loop_counter", "while_maximum_iterations"
_ANY = -1


def counted_loops(functions: Mapping[str, FunctionDef]) -> dict[str, FunctionDef]:
    """The functions, and those of their loops in that form beside them."""
    found = dict(functions)
    waiting = [*functions]
    while waiting:
        function = found[waiting.pop()]
        loops = [node for node in function.node_def if _is_uncounted(node, found)]
        if not loops:
            continue
        changed = found[function.signature.name] = copied(function)
        for node in [node for node in changed.node_def if _is_uncounted(node, found)]:
            for part in ("cond", "body"):
                name = node.attr[part].func.name
                counted = _counted(found[name], is_body=part == "body")
                if counted.signature.name not in found:
                    found[counted.signature.name] = counted
                    waiting.append(counted.signature.name)
            _count(node, changed)
    return found


def _is_uncounted(node: NodeDef, functions: Mapping[str, FunctionDef]) -> bool:
    if node.op not in _LOOPS:
        return False
    arguments = functions[node.attr["body"].func.name].signature.input_arg
    return not (arguments and "loop_counter" in arguments[0].name)


def _counted(function: FunctionDef, is_body: bool) -> FunctionDef:
    """The function of a loop that takes the counter and the limit, and as a body gives the next ones."""
    made = copied(function)
    signature = made.signature
    signature.name += "_counted"
    _put_first(signature.input_arg, _argument(_COUNTER), _argument(_LIMIT))
    made.arg_attr.clear()
    for index, attrs in function.arg_attr.items():
        made.arg_attr[index + 2].CopyFrom(attrs)
    if is_body:
        given = _argument(f"{_COUNTER}_next"), _argument(f"{_LIMIT}_kept")
        _put_first(signature.output_arg, *given)
        made.node_def.append(_constant("while_one", 1))
        add = made.node_def.add(name="while_next", op="AddV2")
        add.input.extend([_COUNTER, "while_one:output:0"])
        add.attr["T"].type = DataType.DT_INT32
        made.ret[f"{_COUNTER}_next"] = "while_next:z:0"
        made.ret[f"{_LIMIT}_kept"] = _LIMIT
    return made


def _count(node: NodeDef, function: FunctionDef) -> None:
    """Give a loop the counter and the limit as first variables."""
    start, limit = f"{node.name}/loop_counter", f"{node.name}/maximum_iterations"
    function.node_def.extend([_constant(start, 0), _constant(limit, _ANY)])
    node.input[:] = [f"{start}:output:0", f"{limit}:output:0", *node.input]
    types, shapes = node.attr["T"].list.type, node.attr["output_shapes"].list.shape
    types[:] = [DataType.DT_INT32, DataType.DT_INT32, *types]
    if shapes:
        _put_first(shapes, TensorShapeProto(), TensorShapeProto())
    for part in ("cond", "body"):
        node.attr[part].func.name += "_counted"
    _shift_outputs(node.name, function)


def _shift_outputs(name: str, function: FunctionDef) -> None:
    output = re.compile(rf"{re.escape(name)}:output:(\d+)")

    def shifted(reference: str) -> str:
        match = output.fullmatch(reference)
        return f"{name}:output:{int(match[1]) + 2}" if match else reference

    for node in function.node_def:
        node.input[:] = [shifted(reference) for reference in node.input]
    for key, reference in [*function.ret.items()]:
        function.ret[key] = shifted(reference)


def _put_first(field: Any, *messages: Message) -> None:
    """Put messages before the others of a repeated field."""
    for message in reversed(messages):
        field.insert(0, message)


def _argument(name: str) -> OpDef.ArgDef:
    return OpDef.ArgDef(name=name, type=DataType.DT_INT32)


def _constant(name: str, value: int) -> NodeDef:
    return node_def(name, "Const", dtype=DataType.DT_INT32, value=np.array(value, np.int32))
