"""Why a node has its kernel, and its provider: each kernel of the op is compared with the node."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from opkernel.cli.registered import listed_values, value_text
from opkernel.errors import OpError
from opkernel.kernel import (
    REFERENCE,
    KernelProvider,
    KernelRegistration,
    KernelRegistry,
    MemoryType,
    NodeProperties,
    find_kernel_registration,
    global_kernel_registry,
    memory_types_for_node,
    registered_providers,
)
from opkernel.kernel.registry.registration import (
    DEFAULT_DEVICE_TYPE,
    SYMBOLIC_DEVICE_TYPES,
    constraint_holds,
    kernel_label,
)
from opkernel.opdef import OpRegistryInterface, in_out_types_for_node, name_ranges_for_node
from opkernel.proto import KernelDef, NodeDef
from opkernel.types import DataType, PartialTensorShape

_USUAL_TYPES = ("float", "int32", "int64", "string", "bool")
"""The types to cast to where a kernel takes them, the most usual first."""


class Condition(NamedTuple):
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

    def as_json(self) -> dict[str, Any]:
        """All of it; the error only where there is one."""
        facts = self._asdict()
        if not self.error:
            del facts["error"]
        return facts


class Candidate(NamedTuple):
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


class Port(NamedTuple):
    """An input or output of the node, the memory that it lives in, and why."""

    name: str
    dtype: DataType
    memory: MemoryType
    reason: str

    def as_json(self) -> dict[str, str]:
        """All of it, in words."""
        memory = "host" if self.memory == MemoryType.HOST_MEMORY else "device"
        return {**self._asdict(), "dtype": self.dtype.string, "memory": memory}


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
            device_type = one.kernel_def.device_type
            if DEFAULT_DEVICE_TYPE == device_type != self.chosen.kernel_def.device_type:
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
            holds, told = False, ""
            try:
                holds = constraint_holds(kernel, constraint, self.node_def)
            except OpError as error:
                told = error.message
            allowed = listed_values(constraint.allowed_values.list)
            value = _value_text(self.node_def, constraint.name)
            yield Condition(constraint.name, allowed, value, holds, told)

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
        sides: tuple[list[Port], list[Port]] = ([], [])
        for side, ports in enumerate(sides):
            for arg, (start, stop) in ranges[side].items():
                for index in range(start, stop):
                    name = f"{arg}[{index - start}]" if stop - start > 1 else arg
                    dtype, kind = dtypes[side][index], memory[side][index]
                    ports.append(Port(name, dtype, kind, self._reason(arg, dtype, kind)))
        return sides

    def _reason(self, arg: str, dtype: DataType, memory: MemoryType) -> str:
        """Why an input or output is in the host's memory; empty where it is not."""
        if memory != MemoryType.HOST_MEMORY:
            return ""
        if self.chosen is not None and arg in self.chosen.kernel_def.host_memory_arg:
            return "the kernel asks for it"
        if dtype.always_on_host:
            return f"as every {dtype.base.string}"
        if dtype == DataType.DT_INT32:
            return "as every int32 without a kernel"
        return "the node asks for it"


def _value_text(node_def: NodeDef, attr: str) -> str:
    if attr not in node_def.attr:
        return "missing"
    value = node_def.attr[attr]
    if value.WhichOneof("value") == "placeholder":
        return f"{value.placeholder} of the function"
    if value.WhichOneof("value") == "list" and value.list.type:
        return ", ".join(DataType(number).string for number in value.list.type)
    return value_text(value)


class AskedProvider(NamedTuple):
    """A provider, and its answer for a node.

    Attributes:
        name: its name.
        priority: its priority.
        kernel: the kernel that it has for the node; empty for none.
        prepares: the inputs that this asks to be prepared where they stay from step to step.
        verdict: the answer.
        is_chosen: whether it computes the node.
    """

    name: str
    priority: int
    kernel: str
    prepares: Sequence[str]
    verdict: str
    is_chosen: bool


def asked_providers(
    choice: KernelChoice,
    providers: Sequence[KernelProvider],
    shapes: Sequence[PartialTensorShape] | None,
) -> list[AskedProvider]:
    """The answers of all providers for the kernel of a node.

    Args:
        choice: the choice among the reference kernels.
        providers: the providers to ask, in turn.
        shapes: the shapes of the node's inputs, as far as known; None for unknown ones.

    Returns:
        The providers that are asked, in turn; then all others.
    """
    if choice.chosen is None:  # without a reference kernel no provider has one
        return []
    found = []
    chosen = ""
    for provider in providers:
        registration, verdict = _kernel_of(choice, choice.chosen, provider, shapes)
        if chosen:
            verdict = f"not asked: {chosen} computes it"
        elif not verdict:
            chosen = provider.name
        name = "" if registration is None else registration.class_name
        prepares = () if registration is None else registration.contract.prepares
        answer = verdict or "chosen", not verdict
        found.append(AskedProvider(provider.name, provider.priority, name, prepares, *answer))
    for other in registered_providers():
        if other not in providers:
            why = _why_not_asked(other, choice.node_def.op)
            found.append(AskedProvider(other.name, other.priority, "", (), why, False))
    return found


def _why_not_asked(provider: KernelProvider, op: str) -> str:
    if provider.is_available():
        return "not among those to be asked"
    if provider.extra and provider.kernels.registrations_for(op):
        return f"not available here: pip install 'opkernel[{provider.extra}]'"
    return "not available here"


def _kernel_of(
    choice: KernelChoice,
    chosen: Candidate,
    provider: KernelProvider,
    shapes: Sequence[PartialTensorShape] | None,
) -> tuple[KernelRegistration | None, str]:
    """The kernel that a provider has for the node, and why it does not compute the node: or nothing."""
    if provider.name == REFERENCE:
        return chosen.registration, ""
    registration = provider.registration(choice.device_type, choice.node_def)
    if registration is None:
        candidates = choice.candidates_of(provider.kernels)
        if not candidates:
            return None, f"has no kernel of {choice.node_def.op}"
        nearest = min(candidates, key=lambda one: len(one.failing))
        told = ", ".join(f"{one.subject} = {one.value or 'none'}" for one in nearest.failing)
        return None, f"its kernel is not for {told}"
    inputs, outputs = in_out_types_for_node(choice.node_def, choice.op_def)
    node = NodeProperties.of(choice.node_def, choice.op_def, inputs, outputs)
    known = [PartialTensorShape(None)] * len(inputs) if shapes is None else shapes
    refusal = "" if provider.supports(node, known) else "does not support it"
    return registration, refusal
