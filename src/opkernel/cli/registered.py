"""What is registered: ops by names that need not be exact, values in the words of specs, types with kernels."""

import functools
import os
from collections.abc import Iterable

from opkernel.cli.nodes import has_wildcards, is_match
from opkernel.errors import NotFoundError
from opkernel.kernel.registry.registration import DEFAULT_DEVICE_TYPE, SYMBOLIC_DEVICE_TYPES
from opkernel.messages import did_you_mean
from opkernel.opdef import UnregisteredOpError, global_op_registry, summarize_attr_value
from opkernel.proto import AttrValue, KernelDef, OpDef
from opkernel.types import ALL_TYPES, DataType


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
    known = global_op_registry().export(pattern.startswith("_")).op
    if has_wildcards(pattern):
        return [op for op in known if is_match(op.name, pattern)]
    return [op for op in known if pattern.lower() in op.name.lower()]


def value_text(value: AttrValue) -> str:
    """The value of an attr, types as specs name them: `float`."""
    is_type = value.WhichOneof("value") == "type"
    return DataType(value.type).string if is_type else summarize_attr_value(value)


def listed_values(values: AttrValue.ListValue) -> list[str | int]:
    """The values that a constraint allows: types as specs name them, ints, bools or strings."""
    types = [DataType(number).string for number in values.type]
    strings = [text.decode("utf-8", "backslashreplace") for text in values.s]
    return [*types, *strings, *values.i, *values.b]


def type_attrs(op_def: OpDef) -> list[OpDef.AttrDef]:
    """The attrs of an op that are types or lists of types."""
    return [attr for attr in op_def.attr if attr.type in ("type", "list(type)")]


def allowed_types(attr: OpDef.AttrDef) -> list[DataType]:
    """The types that an op allows for an attr; all that there are where it does not say."""
    if attr.HasField("allowed_values"):
        return [DataType(number) for number in attr.allowed_values.list.type]
    return sorted(ALL_TYPES)


def served_by(found: Iterable[KernelDef], device: str, attr: str, dtype: DataType) -> str:
    """How a type of an attr is served on a device, with the right types of the other attrs."""
    fitting = [
        kernel
        for kernel in found
        if all(dtype in c.allowed_values.list.type for c in kernel.constraint if c.name == attr)
    ]
    own = [kernel for kernel in fitting if kernel.device_type == device]
    if any(not kernel.label for kernel in own):
        return "yes"
    default = [kernel for kernel in fitting if kernel.device_type == DEFAULT_DEVICE_TYPE]
    if device not in SYMBOLIC_DEVICE_TYPES and any(not kernel.label for kernel in default):
        return "default"
    return "label" if own else "-"


@functools.cache
def recorded_vectors() -> dict[str, tuple[int, int]]:
    """How many of the calls recorded from TensorFlow each op answers right, and how many there are.

    `tools/record_vectors.py` writes `vectors.txt`: an op and the two numbers a line.
    """
    file = os.path.join(os.path.dirname(__file__), "vectors.txt")
    with open(file, encoding="utf-8") as stored:
        rows = [line.split() for line in stored]
    return {op: (int(right), int(total)) for op, right, total in rows}
