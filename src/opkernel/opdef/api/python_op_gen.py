"""Python of ops: the documentation of an op as a docstring, and typing stubs for type checkers and editors.

The output of an op is an array, or a tensor of a graph where the call adds a node. A union of both
would have to be taken apart at every use, so stubs type outputs as `Any`.

Source: TensorFlow python/framework/python_op_gen.cc, for the content; not for the layout.
"""

from __future__ import annotations

import inspect
import keyword
import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from opkernel.escaping import docstring
from opkernel.opdef.api.api_def import api_def_from_op_def
from opkernel.opdef.api.call_parameters import (
    CallParameter,
    Declared,
    call_parameters,
    python_name,
)
from opkernel.opdef.core.declarations import find_attr, is_list_arg, split_attr_type
from opkernel.proto import ApiDef, OpDef
from opkernel.types import DataType

_NOUNS = {"tensor": "tensor value", "func": "function"}
"""What kinds of attrs are called where it is not their name."""


def python_text(value: Any) -> str:
    """The default of an attr as Python spells it, types by their names."""
    if isinstance(value, DataType):
        return value.tf_name
    if isinstance(value, list):
        return f"[{', '.join(map(python_text, value))}]"
    return repr(value)


def op_docstring(
    op_def: OpDef, api_def: ApiDef | None = None, names: Mapping[str, str] | None = None
) -> str:
    """The docstring of the function that calls an op.

    Args:
        op_def: the op.
        api_def: names of parameters, and texts that replace the OpDef's.
        names: the parameters of a function that has not all, or others: their names by those of the
            OpDef, in their order.
    """
    own = api_def_from_op_def(op_def)
    given = ApiDef() if api_def is None else api_def
    inputs = _texts(own.in_arg, given.in_arg) | _texts(own.attr, given.attr)
    sections = [
        given.summary or own.summary or f"The op `{op_def.name}`.",
        given.description or own.description,
        "\n".join(["Args:", *_entries(_arguments(op_def, given, inputs, names))]),
        _returns(op_def, _texts(own.out_arg, given.out_arg)),
    ]
    return "\n\n".join(section.strip("\n") for section in sections if section) + "\n"


def _texts(*parts: Iterable[ApiDef.Arg | ApiDef.Attr]) -> dict[str, str]:
    """The description of each part by its name; later ones count more."""
    return {part.name: part.description for part in chain(*parts) if part.description}


def _arguments(
    op_def: OpDef, api_def: ApiDef, texts: dict[str, str], names: Mapping[str, str] | None
) -> Iterator[tuple[str, str]]:
    parameters = call_parameters(op_def, api_def)
    if names is not None:
        by_name = {parameter.declared.name: parameter for parameter in parameters}
        parameters = [
            by_name[declared]._replace(name=name)
            for declared, name in names.items()
            if declared in by_name
        ]
    for parameter in parameters:
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
    kind, is_list = split_attr_type(attr.type)
    noun = _NOUNS.get(kind, kind)
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


# Ops have names of all kinds (`Any` is one), so nothing is imported under a name of its own.
_HEADER = """{title}

import collections.abc
import typing

import numpy.typing as npt

import opkernel.graph
import opkernel.proto
import opkernel.types

_Tensor: typing.TypeAlias = typing.Any  # an array; in a graph, an opkernel.Tensor
_Input: typing.TypeAlias = (
    npt.ArrayLike
    | opkernel.graph.Tensor
    | opkernel.types.ResourceHandle
    | opkernel.types.Variant
)
_Type: typing.TypeAlias = opkernel.types.DataType | npt.DTypeLike
_Shape: typing.TypeAlias = (
    opkernel.types.TensorShape
    | opkernel.types.PartialTensorShape
    | collections.abc.Sequence[int | None]
    | None
)
_Func: typing.TypeAlias = str | opkernel.proto.NameAttrList
"""

_MORE = """
# What else the module has.
def __getattr__(name: str) -> typing.Any: ...
"""

_TYPES = {
    "string": "str | bytes",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "type": "_Type",
    "shape": "_Shape",
    "tensor": "npt.ArrayLike | opkernel.proto.TensorProto",
    "func": "_Func",
}
_NO_OUTPUT = "opkernel.graph.Operation | None"
_OWN_NAMES = frozenset(
    {"bool", "bytes", "collections", "float", "int", "list", "npt", "opkernel", "str", "typing"}
)
"""The names of a stub that ops and fields of outputs must not take."""
_TUPLE_METHODS = ("count", "index")


def stub_text(
    op_defs: Iterable[OpDef],
    title: str,
    api_def_of: Callable[[str], ApiDef | None] = lambda op: None,
    *,
    is_all: bool = False,
) -> str:
    """A stub with a function for each op, by name.

    The stub leaves out ops whose names begin with an `_`, mean something in the stub itself, or are no
    names in Python. It also leaves out ops with two names that are the same in Python.

    Args:
        op_defs: the ops.
        title: the text of the first line, a sentence without its full stop.
        api_def_of: gives the ApiDef of an op that renames parameters.
        is_all: the module has nothing else, so that type checkers find names that no op has. Without
            `is_all`, a `__getattr__` stands for all else in the module.
    """
    ops = {op.name: op for op in op_defs if _has_names_of_python(op) and _is_free(op.name)}
    names = sorted(ops)
    lines = [line for name in names for line in _op_lines(ops[name], api_def_of(name))]
    header = _HEADER.format(title=docstring(f"{title}; do not edit."))
    return "\n".join([header, *lines]) + ("" if is_all else _MORE)


def endpoint_stub(
    title: str,
    imports: Iterable[str],
    functions: Iterable[tuple[str, Sequence[tuple[str, Declared | None, Any]], OpDef]],
) -> str:
    """A stub with functions that call ops under other names.

    Args:
        title: the text of the first line, a sentence without its full stop.
        imports: lines that export what stands elsewhere.
        functions: for each its name, its parameters and its op. A parameter is its name, the input or attr,
            None for the node's name, and its default as in `inspect`.
    """
    body: list[str] = []
    for name, parameters, op_def in functions:
        outputs = op_def.output_arg
        result = _output_type(outputs[0]) if len(outputs) == 1 else "_Tensor"
        body.append(f"def {name}(")
        for parameter, declared, default in parameters:
            hint = "str | None" if declared is None else _parameter_type(declared)
            if default is None and not hint.endswith("None"):
                hint += " | None"
            shown = "" if default is inspect.Parameter.empty else f" = {_default(default)}"
            body.append(f"    {parameter}: {hint}{shown},")
        body += [f") -> {result}:", f"    {docstring(op_def.summary)}", ""]
    return "\n".join([_HEADER.format(title=docstring(title)), *imports, "", *body])


def _is_free(op: str) -> bool:
    """Whether a function may have the name of an op, in Python and in a stub."""
    return op[0].isalpha() and not keyword.iskeyword(op) and _OWN_NAMES.isdisjoint([op])


def _has_names_of_python(op_def: OpDef) -> bool:
    """Whether parameters and outputs are called by names of Python, each by its own."""
    declared = [*(arg.name for arg in op_def.input_arg), *(attr.name for attr in op_def.attr)]
    parameters = [*map(python_name, declared)]
    is_one = len(op_def.output_arg) == 1  # its name stands nowhere
    fields = [] if is_one else [python_name(arg.name) for arg in op_def.output_arg]
    return (
        all(map(_is_name, (op_def.name, *parameters, *fields)))
        and not any(name.startswith("_") for name in fields)  # which no named tuple has
        and len({"name", *parameters}) == len(parameters) + 1
        and len({*fields}) == len(fields)
        and _OWN_NAMES.isdisjoint(fields)
    )


def _is_name(name: str) -> bool:
    """Whether something may have the name, and no other has it in another spelling."""
    is_own = name == unicodedata.normalize("NFKC", name)
    return is_own and name.isidentifier() and name != "__debug__"


def _op_lines(op_def: OpDef, api_def: ApiDef | None) -> Iterator[str]:
    outputs = op_def.output_arg
    result = _output_type(outputs[0]) if outputs else _NO_OUTPUT
    if len(outputs) > 1:
        result = f"_{op_def.name}Outputs"
        yield f"class {result}(typing.NamedTuple):"
        for arg in outputs:
            is_method = arg.name in _TUPLE_METHODS  # which no list may override
            yield f"    {python_name(arg.name)}: {'_Tensor' if is_method else _output_type(arg)}"
        yield ""
    yield f"def {op_def.name}("
    yield "    *,"
    for parameter in call_parameters(op_def, api_def):
        default = "" if parameter.is_required else f" = {_default(parameter.default)}"
        yield f"    {parameter.name}: {_parameter_type(parameter.declared)}{default},"
    yield "    name: str | None = None,"
    yield f") -> {result}:{'' if op_def.summary else ' ...'}"
    if op_def.summary:
        yield f"    {docstring(op_def.summary)}"
    yield ""


def _output_type(arg: OpDef.ArgDef) -> str:
    return "list[_Tensor]" if is_list_arg(arg) else "_Tensor"


def _parameter_type(declared: OpDef.ArgDef | OpDef.AttrDef) -> str:
    if isinstance(declared, OpDef.ArgDef):
        return _sequence("_Input") if is_list_arg(declared) else "_Input"
    kind, is_list = split_attr_type(declared.type)
    texts = [text.decode("utf-8", "surrogateescape") for text in declared.allowed_values.list.s]
    element = f"typing.Literal[{', '.join(map(repr, texts))}]" if texts else _TYPES[kind]
    return _sequence(element) if is_list else element


def _sequence(element: str) -> str:
    return f"collections.abc.Sequence[{element}]"


def _default(value: Any) -> str:
    """The default where it is a plain literal."""
    is_literal = value is None or isinstance(value, bool | int | str)
    is_literal = is_literal or (isinstance(value, float) and math.isfinite(value))
    return repr(value) if is_literal and not isinstance(value, DataType) else "..."
