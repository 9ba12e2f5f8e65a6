"""The documentation of an op as the docstring of a Python function.

Source: TensorFlow python/framework/python_op_gen.cc, for the content; not for the layout.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from opkernel.opdef.api.api_def import api_def_from_op_def
from opkernel.opdef.api.call_parameters import CallParameter, call_parameters, python_name
from opkernel.opdef.core.declarations import find_attr, is_list_arg
from opkernel.proto import ApiDef, OpDef
from opkernel.types import DataType

_NOUNS = {
    "string": "string",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor value",
    "func": "function",
}


def python_text(value: Any) -> str:
    """The default of an attr as Python spells it, types by their names."""
    if isinstance(value, DataType):
        return value.tf_name
    if isinstance(value, list):
        return f"[{', '.join(map(python_text, value))}]"
    return repr(value)


def op_docstring(op_def: OpDef, api_def: ApiDef | None = None) -> str:
    """The docstring of the function that calls an op.

    Args:
        op_def: the op.
        api_def: names of parameters, and texts that replace the OpDef's.
    """
    own = api_def_from_op_def(op_def)
    given = ApiDef() if api_def is None else api_def
    inputs = _texts(own.in_arg, given.in_arg) | _texts(own.attr, given.attr)
    sections = [
        given.summary or own.summary or f"The op `{op_def.name}`.",
        given.description or own.description,
        "\n".join(["Args:", *_entries(_arguments(op_def, given, inputs))]),
        _returns(op_def, _texts(own.out_arg, given.out_arg)),
    ]
    return "\n\n".join(section.strip("\n") for section in sections if section) + "\n"


def _texts(*parts: Iterable[ApiDef.Arg | ApiDef.Attr]) -> dict[str, str]:
    """The description of each part by its name; later ones count more."""
    return {part.name: part.description for part in chain(*parts) if part.description}


def _arguments(op_def: OpDef, api_def: ApiDef, texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    for parameter in call_parameters(op_def, api_def):
        part = parameter.declared
        if isinstance(part, OpDef.ArgDef):
            fact = _tensor_fact(op_def, part)
        else:
            fact = _attr_fact(part, parameter)
        yield parameter.name, _sentences(fact, texts.get(part.name, ""))
    yield "name", "A name for the node in a graph."


def _returns(op_def: OpDef, texts: dict[str, str]) -> str:
    outputs = [
        (python_name(arg.name), _sentences(_tensor_fact(op_def, arg), texts.get(arg.name, "")))
        for arg in op_def.output_arg
    ]
    if not outputs:
        return "Returns:\n    Nothing; in a graph, the operation."
    if len(outputs) == 1:
        return "\n".join(["Returns:", *_indented(outputs[0][1])])
    return "\n".join(["Returns:", "    A named tuple.", "", *_entries(outputs)])


def _entries(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in entries:
        first, *more = _indented(f"{name}: {text}")
        yield first
        yield from (f"    {line}" if line else line for line in more)


def _indented(text: str) -> list[str]:
    return [f"    {line}" if line.strip() else "" for line in text.split("\n")]


def _sentences(fact: str, text: str) -> str:
    return f"{fact}. {text}".rstrip()


def _tensor_fact(op_def: OpDef, arg: OpDef.ArgDef) -> str:
    """A sentence on an input or output; a type of several inputs is told at the first."""
    attr = _type_attr(arg)
    if not attr:
        return _tensors(arg, f"`{DataType(arg.type).tf_name}` ")
    first = next((user for user in op_def.input_arg if _type_attr(user) == attr), None)
    if first is not None and first.name == arg.name:
        return f"{_tensors(arg)} of {_allowed_types(op_def, attr)}"
    types = "types" if arg.type_list_attr else "type"
    if first is None:
        return f"{_tensors(arg)} of the {types} `{python_name(attr)}`"
    return f"{_tensors(arg)} of the {types} of `{python_name(first.name)}`"


def _type_attr(arg: OpDef.ArgDef) -> str:
    return arg.type_attr or arg.type_list_attr


def _tensors(arg: OpDef.ArgDef, dtype: str = "") -> str:
    """`A float32 tensor`, `A list of tensors`."""
    kind = f"mutable {dtype}" if arg.is_ref else dtype
    if is_list_arg(arg):
        return f"A list of {kind}tensors"
    return f"{'An' if kind.startswith('`int') else 'A'} {kind}tensor"


def _allowed_types(op_def: OpDef, attr: str) -> str:
    declared = find_attr(op_def, attr)
    allowed = declared.allowed_values.list.type if declared is not None else ()
    if not allowed:
        return "any types" if declared is not None and "list" in declared.type else "any type"
    return f"one of the types {', '.join(f'`{DataType(t).tf_name}`' for t in allowed)}"


def _attr_fact(attr: OpDef.AttrDef, parameter: CallParameter) -> str:
    is_list = attr.type.startswith("list(")
    noun = _NOUNS.get(attr.type.removeprefix("list(").removesuffix(")"), attr.type)
    fact = f"A list of {noun}s" if is_list else f"{'An' if noun[0] in 'aeiou' else 'A'} {noun}"
    allowed = [
        *(f"`{DataType(number).tf_name}`" for number in attr.allowed_values.list.type),
        *(f'"{text.decode("utf-8", "backslashreplace")}"' for text in attr.allowed_values.list.s),
    ]
    if allowed:
        fact += f", one of {', '.join(allowed)}"
    if attr.has_minimum:
        fact += f" of length {attr.minimum} or more" if is_list else f", {attr.minimum} or more"
    if not parameter.is_required:
        fact += f". Defaults to {python_text(parameter.default)}"
    return fact
