"""Registered ops by names that need not be exact, and values in the words of specs."""

import fnmatch

from opkernel.errors import NotFoundError
from opkernel.messages import did_you_mean
from opkernel.opdef import UnregisteredOpError, global_op_registry, summarize_attr_value
from opkernel.proto import AttrValue, OpDef
from opkernel.types import DataType


def find_op(name: str) -> OpDef | None:
    """The op of a name; None if there is no such op."""
    try:
        return global_op_registry().look_up_op_def(name)
    except NotFoundError:
        return None


def no_such_op(name: str) -> UnregisteredOpError:
    """The error for a name that no op has; it tells the ops with names like it."""
    registered = [op.name for op in global_op_registry().export().op]
    return UnregisteredOpError(f"there is no op {name!r}{did_you_mean(name, registered)}")


def matching_ops(pattern: str) -> list[OpDef]:
    """The ops with a pattern, which may have shell wildcards, in their names.

    Ops whose names begin with an underscore are among them where the pattern does, too.
    """
    include_internal = pattern.startswith("_")
    known = global_op_registry().export(include_internal).op
    return [op for op in known if _matches(op.name, pattern)]


def _matches(name: str, pattern: str) -> bool:
    if any(character in pattern for character in "*?["):
        return fnmatch.fnmatchcase(name, pattern)
    return pattern.lower() in name.lower()


def value_text(value: AttrValue) -> str:
    """The value of an attr, types as specs name them: `float`."""
    is_type = value.WhichOneof("value") == "type"
    return DataType(value.type).string if is_type else summarize_attr_value(value)


def listed_values(values: AttrValue.ListValue) -> list[str | int]:
    """The values that a constraint allows: types as specs name them, ints, bools or strings."""
    types = [DataType(number).string for number in values.type]
    strings = [text.decode("utf-8", "backslashreplace") for text in values.s]
    return [*types, *strings, *values.i, *values.b]
