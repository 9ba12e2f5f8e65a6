"""Typing stubs of ops: `opkernel.raw_ops` for type checkers and editors.

The output of an op is an array, or a tensor of a graph where the call adds a node. A union of both
would have to be taken apart at every use, so outputs are typed `Any`.
"""

import keyword
import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from opkernel.escaping import docstring
from opkernel.opdef.api.call_parameters import CallParameter, call_parameters, python_name
from opkernel.opdef.core.declarations import is_list_arg
from opkernel.proto import ApiDef, OpDef
from opkernel.types import DataType

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


def _is_free(op: str) -> bool:
    """Whether a function may have the name of an op, in Python and in a stub."""
    return op[0].isalpha() and not keyword.iskeyword(op) and _OWN_NAMES.isdisjoint([op])


def _has_names_of_python(op_def: OpDef) -> bool:
    """Whether parameters and outputs are called by names of Python, each by its own."""
    declared = [*(arg.name for arg in op_def.input_arg), *(attr.name for attr in op_def.attr)]
    parameters = [*map(python_name, declared)]
    is_one = len(op_def.output_arg) == 1  # its name stands nowhere
    fields = [] if is_one else [python_name(arg.name) for arg in op_def.output_arg]
    names = (op_def.name, *parameters, *fields)
    is_named_tuple = not any(name.startswith("_") for name in fields)
    return (
        is_named_tuple
        and all(map(_is_name, names))
        and all(
            len({*names}) == len(names) and not own.intersection(names)
            for names, own in ((parameters, {"name"}), (fields, _OWN_NAMES))
        )
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
        yield from (f"    {_field(arg)}" for arg in outputs)
        yield ""
    yield f"def {op_def.name}("
    yield "    *,"
    yield from (f"    {_parameter(p)}," for p in call_parameters(op_def, api_def))
    yield "    name: str | None = None,"
    yield f") -> {result}:{'' if op_def.summary else ' ...'}"
    if op_def.summary:
        yield f"    {docstring(op_def.summary)}"
    yield ""


def _field(arg: OpDef.ArgDef) -> str:
    is_method = arg.name in _TUPLE_METHODS  # which no list may override
    return f"{python_name(arg.name)}: {'_Tensor' if is_method else _output_type(arg)}"


def _output_type(arg: OpDef.ArgDef) -> str:
    return "list[_Tensor]" if is_list_arg(arg) else "_Tensor"


def _parameter(parameter: CallParameter) -> str:
    default = "" if parameter.is_required else f" = {_default(parameter.default)}"
    return f"{parameter.name}: {_parameter_type(parameter.declared)}{default}"


def _parameter_type(declared: OpDef.ArgDef | OpDef.AttrDef) -> str:
    if isinstance(declared, OpDef.ArgDef):
        return _sequence("_Input") if is_list_arg(declared) else "_Input"
    kind = declared.type.removeprefix("list(").removesuffix(")")
    texts = [text.decode("utf-8", "surrogateescape") for text in declared.allowed_values.list.s]
    element = f"typing.Literal[{', '.join(map(repr, texts))}]" if texts else _TYPES[kind]
    return element if kind == declared.type else _sequence(element)


def _sequence(element: str) -> str:
    return f"collections.abc.Sequence[{element}]"


def _default(value: Any) -> str:
    """The default where it is a plain literal."""
    is_literal = value is None or isinstance(value, bool | int | str)
    is_literal = is_literal or (isinstance(value, float) and math.isfinite(value))
    return repr(value) if is_literal and not isinstance(value, DataType) else "..."
