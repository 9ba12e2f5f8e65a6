"""KernelDef: the declaration of a kernel: its op, its device type, and the attr values it takes.

Source: TensorFlow core/framework/kernel_def_builder.h.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Self

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.messages import short_repr
from opkernel.proto import AttrValue, KernelDef
from opkernel.types import DataType, as_dtype


class KernelDefBuilder:
    """Builds a KernelDef by a chain of calls.

    `KernelDefBuilder("MatMul").device("CPU").type_constraint("T", float32).build()`
    """

    def __init__(self, op: str) -> None:
        self._def = KernelDef(op=op)

    def device(self, device_type: str) -> Self:
        """Set the device type, such as `CPU`; `DEFAULT` serves every device without another kernel."""
        self._def.device_type = device_type
        return self

    def type_constraint(self, attr: str, allowed: DataType | str | Iterable[Any]) -> Self:
        """Restrict an attr of type `type`, or every element of a `list(type)`, to some types.

        `allowed` is a value that `as_dtype` takes, or several such values. A second constraint on the
        same attr is a second condition, not a replacement.

        Raises:
            InvalidArgumentError: one of them is no type.
        """
        if isinstance(allowed, str) or not isinstance(allowed, Iterable):
            allowed = [allowed]
        try:
            types = [as_dtype(dtype) for dtype in allowed]
        except (OpError, TypeError) as error:
            raise InvalidArgumentError(
                f"{self._def.op}: the types allowed for attr '{attr}': {error}"
            ) from None
        if isinstance(allowed, AbstractSet):
            types.sort()
        self._allowed_values(attr).type.extend(types)
        return self

    def attr_constraint(
        self, attr: str, allowed: str | int | bool | Sequence[str] | Sequence[int]
    ) -> Self:
        """Restrict an attr of type `string`, `int` or `bool` to some values.

        Raises:
            InvalidArgumentError: a value is of another type, or they are of different types.
        """
        if isinstance(allowed, str) or not isinstance(allowed, Iterable):
            wanted: list[Any] = [allowed]
        else:
            wanted = list(allowed)
        values = self._allowed_values(attr)
        kinds = {type(value) for value in wanted}
        if kinds <= {bool}:
            values.b.extend(wanted)
        elif kinds <= {int}:
            values.i.extend(wanted)
        elif kinds <= {str}:
            values.s.extend(value.encode() for value in wanted)
        else:
            raise InvalidArgumentError(
                f"{self._def.op}: the values allowed for attr '{attr}' must be all str, all int or "
                f"all bool, got {short_repr(wanted)}; types go to type_constraint"
            )
        return self

    def host_memory(self, arg: str) -> Self:
        """Say that the input or output argument `arg` lives in host memory on every device."""
        self._def.host_memory_arg.append(arg)
        return self

    def label(self, label: str) -> Self:
        """Set the label: the kernel serves only nodes whose attr `_kernel` is this label.

        Raises:
            InvalidArgumentError: a label has been set before.
        """
        if self._def.label:
            raise InvalidArgumentError(
                f"Trying to set a kernel's label a second time: '{label}' in: "
                f"{summarize_kernel_def(self._def)}"
            )
        self._def.label = label
        return self

    def priority(self, priority: int) -> Self:
        """Set the priority: of the kernels that fit a node the highest is taken; 0 by default."""
        self._def.priority = priority
        return self

    def build(self) -> KernelDef:
        """The KernelDef as built so far."""
        built = KernelDef()
        built.CopyFrom(self._def)
        return built

    def _allowed_values(self, attr: str) -> AttrValue.ListValue:
        constraint = self._def.constraint.add(name=attr)
        values = constraint.allowed_values.list
        values.SetInParent()
        return values


Name = KernelDefBuilder
"""The name under which TensorFlow's REGISTER_KERNEL_BUILDER knows the builder."""


def constraints_overlap(a: KernelDef, b: KernelDef) -> bool:
    """Whether some values of the constrained attrs satisfy both kernels.

    An empty list(type) attr satisfies every constraint; kernels that meet only there do not count.
    """
    conditions: dict[str, set[object]] = {}
    for constraint in (*a.constraint, *b.constraint):
        allowed = constraint.allowed_values.list
        values: set[object] = {*allowed.type, *allowed.s, *allowed.i, *allowed.b}
        conditions[constraint.name] = conditions.get(constraint.name, values) & values
    return all(conditions.values())


def summarize_kernel_def(kernel_def: KernelDef) -> str:
    """A KernelDef in text format on one line."""
    from google.protobuf import text_format  # only for messages, and slow to import

    return text_format.MessageToString(kernel_def, as_one_line=True)
