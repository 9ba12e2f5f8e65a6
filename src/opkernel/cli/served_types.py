"""Which types of an op's attrs the kernels of a device serve."""

from collections.abc import Iterable

from opkernel.kernel.registry.registration import DEFAULT_DEVICE_TYPE, SYMBOLIC_DEVICE_TYPES
from opkernel.proto import KernelDef, OpDef
from opkernel.types import ALL_TYPES, DataType


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
    fitting = [kernel for kernel in found if _takes(kernel, attr, dtype)]
    own = [kernel for kernel in fitting if kernel.device_type == device]
    if any(not kernel.label for kernel in own):
        return "yes"
    default = [kernel for kernel in fitting if kernel.device_type == DEFAULT_DEVICE_TYPE]
    if device not in SYMBOLIC_DEVICE_TYPES and any(not kernel.label for kernel in default):
        return "default"
    return "label" if own else "-"


def _takes(kernel: KernelDef, attr: str, dtype: DataType) -> bool:
    constraints = [c for c in kernel.constraint if c.name == attr]
    return all(dtype in c.allowed_values.list.type for c in constraints)
