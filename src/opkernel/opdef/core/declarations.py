"""The parts of an OpDef: kinds of attrs, attrs by name, arguments that are lists.

Source: TensorFlow core/framework/op_def_util.cc.
"""

from opkernel.proto import AttrValue, OpDef
from opkernel.types import DataType

FIELD_OF_KIND = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
"""The kinds of attrs, and the field of AttrValue, and of its list, that holds each."""

_KIND_OF_FIELD = {field: kind for kind, field in FIELD_OF_KIND.items()}


def find_attr(op_def: OpDef, name: str) -> OpDef.AttrDef | None:
    """The first attr of that name, or None."""
    return next((attr for attr in op_def.attr if attr.name == name), None)


def is_list_arg(arg: OpDef.ArgDef) -> bool:
    """Whether an argument stands for a list of tensors (`N * T` or a type list)."""
    return bool(arg.number_attr or arg.type_list_attr)


def find_dtype(name: str) -> DataType | None:
    """The type of a name such as "float", or None."""
    return DataType.find(name)


def attr_type_of(value: AttrValue) -> str:
    """The attr type that a value shows by itself; for attrs that the op does not declare.

    A value that is not set counts as a string, an empty list as a list of strings.
    """
    field = value.WhichOneof("value") or "s"
    if field != "list":
        return _KIND_OF_FIELD.get(field, "string")
    fields = [descriptor.name for descriptor, _ in value.list.ListFields()] or ["s"]
    return f"list({_KIND_OF_FIELD[fields[0]]})"
