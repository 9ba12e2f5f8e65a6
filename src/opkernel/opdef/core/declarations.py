"""The parts of an OpDef: kinds of attrs, attrs by name, arguments that are lists, the GraphDef versions that have the op.

Source: TensorFlow core/framework/op_def_util.cc.
"""

from __future__ import annotations

import warnings

from opkernel.errors import UnimplementedError
from opkernel.proto import AttrValue, OpDef

FIELD_OF_KIND = {"string": "s", "int": "i", "float": "f", "bool": "b"}
FIELD_OF_KIND |= {kind: kind for kind in ("type", "shape", "tensor", "func")}
"""The kinds of attrs, and the field of AttrValue, and of its list, that holds each."""

_KIND_OF_FIELD = {field: kind for kind, field in FIELD_OF_KIND.items()}


def find_attr(op_def: OpDef, name: str) -> OpDef.AttrDef | None:
    """The first attr of that name, or None."""
    return next((attr for attr in op_def.attr if attr.name == name), None)


def is_list_arg(arg: OpDef.ArgDef) -> bool:
    """Whether an argument stands for a list of tensors (`N * T` or a type list)."""
    return bool(arg.number_attr or arg.type_list_attr)


def split_attr_type(attr_type: str) -> tuple[str, bool]:
    """The kind of a valid attr type, and whether it is a list: "list(int)" is ("int", True)."""
    return attr_type.removeprefix("list(").removesuffix(")"), attr_type.startswith("list(")


def attr_type_of(value: AttrValue) -> str:
    """The attr type that a value shows by itself; for attrs that the op does not declare.

    A value that is not set counts as a string, an empty list as a list of strings.
    """
    field = value.WhichOneof("value") or "s"
    if field != "list":
        return _KIND_OF_FIELD.get(field, "string")
    fields = [descriptor.name for descriptor, _ in value.list.ListFields()] or ["s"]
    return f"list({_KIND_OF_FIELD[fields[0]]})"


GRAPH_DEF_VERSION = 2474
"""The producer version written into graphs: TensorFlow 2.21's (TF_GRAPH_DEF_VERSION)."""

GRAPH_DEF_VERSION_MIN_PRODUCER = 0
"""The oldest producer whose graphs can be read."""

GRAPH_DEF_VERSION_MIN_CONSUMER = 0
"""The oldest consumer that may read the graphs written here."""


def check_op_deprecation(op_def: OpDef, graph_def_version: int) -> None:
    """Warn of an op that later graphs may not use; refuse it in such a graph.

    Args:
        op_def: The op.
        graph_def_version: The producer version of the graph that uses it.

    Raises:
        UnimplementedError: graphs of this version may not use the op.
    """
    if not op_def.HasField("deprecation"):
        return
    deprecation = op_def.deprecation
    if graph_def_version >= deprecation.version:
        raise UnimplementedError(
            f"Op {op_def.name} is not available in GraphDef version {graph_def_version}. It has "
            f"been removed in version {deprecation.version}. {deprecation.explanation}."
        )
    warnings.warn(
        f"Op {op_def.name} is deprecated. It will cease to work in GraphDef version "
        f"{deprecation.version}. {deprecation.explanation}.",
        DeprecationWarning,
        stacklevel=2,
    )
