"""Why a node has its kernel: each kernel of the op is compared with the node."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opkernel.cli.registered import listed_values, value_text
from opkernel.errors import OpError
from opkernel.kernel import (
    KernelRegistration,
    KernelRegistry,
    MemoryType,
    find_kernel_registration,
    global_kernel_registry,
    memory_types_for_node,
)
from opkernel.kernel.registry.registration import (
    DEFAULT_DEVICE_TYPE,
    SYMBOLIC_DEVICE_TYPES,
    constraint_holds,
    kernel_label,
)
from opkernel.opdef import OpRegistryInterface, in_out_types_for_node, name_ranges_for_node
from opkernel.proto import KernelDef, NodeDef
from opkernel.types import DataType

_USUAL_TYPES = ("float", "int32", "int64", "string", "bool")
"""The types to cast to where a kernel takes them, the most usual first."""


@dataclass(frozen=True)
class Condition:
    """One thing that a kernel asks of a node.

    Attributes:
        subject: `device`, `label`, or the name of an attr.
        allowed: the values that the kernel takes.
        value: the node's own value.
        holds: whether they agree.
        error: why they cannot be compared; empty where they can.
    """

    subject: str
    allowed: Sequence[str | int]
    value: str
    holds: bool
    error: str = ""


@dataclass(frozen=True)
class Candidate:
    """A kernel of the node's op, and its conditions on the node."""

    registration: KernelRegistration
    conditions: Sequence[Condition]
    is_chosen: bool

    @property
    def kernel_def(self) -> KernelDef:
        """The declaration of the kernel."""
        return self.registration.kernel_def

    @property
    def failing(self) -> list[Condition]:
        """The conditions that the node does not meet."""
        return [condition for condition in self.conditions if not condition.holds]


@dataclass(frozen=True)
class Port:
    """An input or output of the node, the memory that it lives in, and why."""

    name: str
    dtype: DataType
    memory: MemoryType
    reason: str


class KernelChoice:
    """The kernels that a node could have on devices of a type, and the one that it has.

    Attributes:
        node_def: the node, with a value for every attr.
        op_def: its op.
        device_type: the type of the device.
        candidates: the kernels of the op: first the chosen one, then kernels that nearly fit.
        chosen: the one that the node gets; None where there is none.
        error: why there is none.
        inputs: the node's inputs.
        outputs: its outputs.
    """

    def __init__(self, node_def: NodeDef, ops: OpRegistryInterface, device_type: str) -> None:
        self.node_def = node_def
        self.op_def = ops.look_up_op_def(node_def.op)
        self.device_type = device_type
        self.error = ""
        found: KernelRegistration | None = None
        try:
            found = find_kernel_registration(device_type, node_def)
        except OpError as error:
            self.error = error.message
        self.candidates = sorted(
            self.candidates_of(global_kernel_registry(), found),
            key=lambda one: (not one.is_chosen, len(one.failing), one.registration.key),
        )
        self.chosen = next((one for one in self.candidates if one.is_chosen), None)
        self.inputs, self.outputs = self._ports(ops)

    def candidates_of(
        self, registry: KernelRegistry, chosen: KernelRegistration | None = None
    ) -> list[Candidate]:
        """The kernels of the op in a registry, and their conditions on the node."""
        return [
            Candidate(one, list(self._conditions(one.kernel_def)), one is chosen)
            for one in registry.registrations_for(self.node_def.op)
        ]

    def verdict(self, one: Candidate) -> str:
        """The outcome of the choice for one kernel."""
        if one.is_chosen:
            return "chosen"
        if one.failing:
            return "does not fit"
        if self.chosen is None:
            return "fits, and so does another"
        if one.kernel_def.device_type != self.chosen.kernel_def.device_type:
            return f"fits, but the kernel for {self.device_type} goes before"
        return f"fits, but {self.chosen.registration.class_name} has a higher priority"

    def changes(self) -> list[str]:
        """The changes that would give the node another kernel, or any: a sentence each."""
        found = map(self._change, self.candidates)
        return list(dict.fromkeys(change for change in found if change is not None))

    def _change(self, one: Candidate) -> str | None:
        """The change that would give the node this kernel; None where nothing does, or it has its like."""
        name = one.registration.class_name
        if self.chosen is not None:
            if name == self.chosen.registration.class_name:
                return None
            if (
                DEFAULT_DEVICE_TYPE
                == one.kernel_def.device_type
                != self.chosen.kernel_def.device_type
            ):
                return None
        if not one.failing:
            if self.chosen is None:
                return f"Unregister {name}, or register it at another priority."
            return f"Register {name} at a priority above {self.chosen.kernel_def.priority}."
        steps = [self._step(condition) for condition in one.failing]
        if None in steps:
            return None
        text = " and ".join(filter(None, steps))
        return f"{text[0].upper()}{text[1:]}: it gets {name}."

    def _step(self, condition: Condition) -> str | None:
        """The change that makes the node meet a condition; None where nothing does."""
        if condition.error:
            return None
        if condition.subject == "device":
            device = condition.allowed[0]
            return None if device == DEFAULT_DEVICE_TYPE else f"run it on {device}"
        if condition.subject == "label":
            label = condition.allowed[0]
            return f"set the attr _kernel to '{label}'" if label else "drop the attr _kernel"
        takers = [
            arg.name
            for arg in self.op_def.input_arg
            if condition.subject in (arg.type_attr, arg.type_list_attr)
        ]
        what = f"cast {', '.join(takers)}" if takers else f"set {condition.subject}"
        best = next((t for t in _USUAL_TYPES if t in condition.allowed), condition.allowed[0])
        kind = "type" if takers else "value"
        more = f" or another {kind} that it takes" if len(condition.allowed) > 1 else ""
        return f"{what} to {best}{more}"

    def _conditions(self, kernel: KernelDef) -> Iterator[Condition]:
        yield Condition("device", [kernel.device_type], self.device_type, self._serves(kernel))
        label = kernel_label(self.node_def)
        if kernel.label or label:
            yield Condition("label", [kernel.label], label, kernel.label == label)
        for constraint in kernel.constraint:
            allowed = listed_values(constraint.allowed_values.list)
            value = _value_text(self.node_def, constraint.name)
            try:
                holds = constraint_holds(kernel, constraint, self.node_def)
            except OpError as error:
                yield Condition(constraint.name, allowed, value, False, error.message)
            else:
                yield Condition(constraint.name, allowed, value, holds)

    def _serves(self, kernel: KernelDef) -> bool:
        """Whether a kernel serves the device, by its type or as the default for all devices."""
        if kernel.device_type == DEFAULT_DEVICE_TYPE:
            return self.device_type not in SYMBOLIC_DEVICE_TYPES
        return kernel.device_type == self.device_type

    def _ports(self, ops: OpRegistryInterface) -> tuple[list[Port], list[Port]]:
        """The inputs and outputs; none where the node does not fit its op."""
        try:
            dtypes = in_out_types_for_node(self.node_def, self.op_def)
            ranges = name_ranges_for_node(self.node_def, self.op_def)
            memory = memory_types_for_node(ops, self.device_type, self.node_def)
        except OpError:
            return [], []
        inputs, outputs = (
            [
                self._port(
                    arg,
                    f"{arg}[{index - start}]" if stop - start > 1 else arg,
                    dtypes[side][index],
                    memory[side][index],
                )
                for arg, (start, stop) in ranges[side].items()
                for index in range(start, stop)
            ]
            for side in (0, 1)
        )
        return inputs, outputs

    def _port(self, arg: str, name: str, dtype: DataType, memory: MemoryType) -> Port:
        reason = ""
        if memory == MemoryType.HOST_MEMORY:
            kernel = None if self.chosen is None else self.chosen.kernel_def
            if kernel is not None and arg in kernel.host_memory_arg:
                reason = "the kernel asks for it"
            elif dtype.always_on_host:
                reason = f"as every {dtype.base.string}"
            elif dtype == DataType.DT_INT32:
                reason = "as every int32 without a kernel"
            else:
                reason = "the node asks for it"
        return Port(name, dtype, memory, reason)


def _value_text(node_def: NodeDef, attr: str) -> str:
    if attr not in node_def.attr:
        return "missing"
    value = node_def.attr[attr]
    if value.WhichOneof("value") == "placeholder":
        return f"{value.placeholder} of the function"
    if value.WhichOneof("value") == "list" and value.list.type:
        return ", ".join(DataType(number).string for number in value.list.type)
    return value_text(value)
