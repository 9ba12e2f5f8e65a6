"""An op as a Python function: its parameters, and the result of a call.

Inputs come first, then attrs without and with a default; attrs that inputs determine are no
parameters. All are keywords, named as in the OpDef, with a `_` after a keyword of Python.

Source: TensorFlow python/framework/python_op_gen.cc, python/framework/op_def_library.py.
"""

import collections
import functools
import keyword
from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from opkernel.messages import did_you_mean
from opkernel.opdef.core.attr_value import attr_to_python
from opkernel.opdef.core.inferred_attrs import inferred_attr_names
from opkernel.proto import ApiDef, OpDef
from opkernel.types import PartialTensorShape

Declared: TypeAlias = OpDef.ArgDef | OpDef.AttrDef


class CallParameter(NamedTuple):
    """A parameter of an op: `declared` is the input or attr, `default` as in `inspect`."""

    name: str
    declared: Declared
    default: Any

    @property
    def is_input(self) -> bool:
        """Whether it is an input, not an attr."""
        return isinstance(self.declared, OpDef.ArgDef)

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is Parameter.empty


def python_name(name: str) -> str:
    """A name of an OpDef as one of Python; `name` itself is the parameter for the node's name."""
    return f"{name}_" if keyword.iskeyword(name) or name == "name" else name


def call_parameters(op_def: OpDef, api_def: ApiDef | None = None) -> list[CallParameter]:
    """The parameters of an op except the last one, `name`; with the names of an ApiDef."""
    inferred = inferred_attr_names(op_def)
    attrs = [_parameter(attr) for attr in op_def.attr if attr.name not in inferred]
    inputs = [_parameter(arg) for arg in op_def.input_arg]
    parameters = inputs + sorted(attrs, key=lambda attr: not attr.is_required)
    if api_def is None:
        return parameters
    renamed = {arg.name: arg.rename_to for arg in api_def.in_arg}
    renamed |= {attr.name: attr.rename_to for attr in api_def.attr}
    return [p._replace(name=renamed.get(p.declared.name) or p.name) for p in parameters]


def _parameter(declared: Declared) -> CallParameter:
    default: Any = Parameter.empty
    if isinstance(declared, OpDef.AttrDef) and declared.HasField("default_value"):
        default = _shown(attr_to_python(declared.default_value, declared.type))
    return CallParameter(python_name(declared.name), declared, default)


def _shown(default: Any) -> Any:
    """A default as one would write it: 0.01, not the float32 next to it; shapes as lists."""
    if isinstance(default, list):
        return [_shown(item) for item in default]
    if isinstance(default, float):
        return float(str(np.float32(default)))
    if isinstance(default, PartialTensorShape):
        return None if default.rank is None else default.as_list()
    return default


def bind_call(
    op_def: OpDef, parameters: Sequence[CallParameter], arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs and the attrs of a call by their names in the OpDef.

    An attr with a default that is given as None counts as left out. An argument may go by its name
    in the OpDef too, and have a `_` after it, as words of Python must.

    Raises:
        TypeError: an argument is missing, is none of the op, or is an attr that inputs determine.
    """
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    missing: list[CallParameter] = []
    left = dict(arguments)
    for parameter in parameters:
        name = parameter.declared.name
        key = next((key for key in (parameter.name, name, f"{name}_") if key in left), None)
        if key is not None:
            value = left.pop(key)
            if parameter.is_input:
                inputs[name] = value
            elif value is not None or parameter.is_required:
                attrs[name] = value
        elif parameter.is_required:
            missing.append(parameter)
    if left:
        raise _unexpected(op_def, parameters, left)
    if missing:
        kind = "input" if missing[0].is_input else "attr"
        name = missing[0].name
        raise TypeError(f"{op_def.name}() is missing its argument for {kind} {name!r}")
    return inputs, attrs


def _unexpected(
    op_def: OpDef, parameters: Sequence[CallParameter], names: Mapping[str, Any]
) -> TypeError:
    inferred = sorted(inferred_attr_names(op_def).intersection(names))
    if inferred:
        return TypeError(f"{op_def.name}() infers attr {inferred[0]!r}; it should not be specified")
    listed = ", ".join(sorted(names))
    taken = [parameter.name for parameter in parameters]
    return TypeError(
        f"{op_def.name}() got unexpected keyword arguments: {listed}{did_you_mean(min(names), taken)}; "
        f"it takes {', '.join(taken) or 'none'}"
    )


def call_result(op_def: OpDef, outputs: Sequence[Any]) -> Any:
    """The result type of a call: its one output, a named tuple of several, or None."""
    if len(outputs) > 1:
        return _tuple_class(op_def.name, tuple(arg.name for arg in op_def.output_arg))(*outputs)
    return outputs[0] if outputs else None


@functools.cache
def _tuple_class(op: str, outputs: tuple[str, ...]) -> Any:
    name = python_name(op.replace(">", "_"))
    fields = [python_name(output) for output in outputs]
    return collections.namedtuple(name, fields, rename=True)  # noqa: PYI024  # known only now
