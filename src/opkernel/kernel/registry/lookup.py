"""Finding the kernel of a node.

A kernel fits a node if it is for the node's op, the device's type and the node's label (attr `_kernel`),
and if the node's attrs satisfy its constraints. The kernel of the highest priority is taken. Where no
kernel for the device type fits, the kernels for `DEFAULT` are tried.

Functions take the registry to look in; None stands for the global one.
Source: TensorFlow core/framework/op_kernel.cc.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.kernel.registry.kernel_def import (
    kernel_label,
    summarize_kernel_def,
    violated_constraint,
)
from opkernel.kernel.registry.kernel_registry import (
    KernelRegistration,
    KernelRegistry,
    global_kernel_registry,
)
from opkernel.logs import logger
from opkernel.opdef import OpRegistryInterface, global_op_registry, validate_node_def
from opkernel.opdef import text as summaries
from opkernel.proto import KernelDef, KernelList, NodeDef
from opkernel.types import DEVICE_DEFAULT

__all__ = [
    "DEFAULT_DEVICE_TYPE",
    "SYMBOLIC_DEVICE_TYPES",
    "find_kernel_def",
    "find_kernel_registration",
    "get_all_registered_kernels",
    "get_filtered_registered_kernels",
    "get_registered_kernels_for_op",
    "kernel_def_available",
    "kernel_def_if_available",
    "kernels_registered_for_op",
    "log_all_registered_kernels",
    "match_kernel",
    "no_supported_device_error",
    "supported_device_types_for_node",
]

DEFAULT_DEVICE_TYPE = DEVICE_DEFAULT
"""Kernels registered for this device type serve every device type that has no kernel itself."""

SYMBOLIC_DEVICE_TYPES = frozenset({"XLA_CPU_JIT", "XLA_GPU_JIT", "XLA_TPU_JIT"})
"""Devices that only trace: their kernels are translations, and no other kernel will do."""


class _Mismatch(NamedTuple):
    """A kernel of the right device and label, and the first of its constraints that fails."""

    kernel_def: KernelDef
    constraint: int


def find_kernel_registration(
    device_type: str, node_def: NodeDef, *, registry: KernelRegistry | None = None
) -> KernelRegistration:
    """The registration of the kernel for a node on a device of a type.

    The node must have a value for every attr of its op (`add_defaults_to_node_def`).

    Raises:
        NotFoundError: no kernel is registered for the op, the device and these attrs.
        InvalidArgumentError: two kernels fit equally well, or the node lacks an attr that a
            kernel has a constraint on.
    """
    kernels = _registry(registry)
    found, mismatches = _match(kernels, device_type, node_def)
    if found is None:
        raise _not_found(kernels, device_type, node_def, mismatches)
    return found


def find_kernel_def(
    device_type: str, node_def: NodeDef, *, registry: KernelRegistry | None = None
) -> KernelDef:
    """The KernelDef of the kernel for a node; raises as `find_kernel_registration` does."""
    return find_kernel_registration(device_type, node_def, registry=registry).kernel_def


def kernel_def_if_available(
    device_type: str, node_def: NodeDef, *, registry: KernelRegistry | None = None
) -> KernelDef | None:
    """The KernelDef for a node, or None where `find_kernel_def` would raise."""
    try:
        found, _ = _match(_registry(registry), device_type, node_def)
    except OpError:
        return None
    return None if found is None else found.kernel_def


def match_kernel(
    registry: KernelRegistry, device_type: str, node_def: NodeDef
) -> KernelRegistration | None:
    """The registration of the kernel for a node in a registry; None where it has none.

    Raises:
        InvalidArgumentError: two kernels fit equally well.
    """
    if not registry.candidates(node_def.op, device_type, kernel_label(node_def)):
        return None
    return _match(registry, device_type, node_def)[0]


def kernel_def_available(
    device_type: str, node_def: NodeDef, *, registry: KernelRegistry | None = None
) -> bool:
    """Whether there is one kernel for a node on a device of a type."""
    return kernel_def_if_available(device_type, node_def, registry=registry) is not None


def supported_device_types_for_node(
    prioritized_types: Sequence[str],
    node_def: NodeDef,
    *,
    op_registry: OpRegistryInterface | None = None,
    registry: KernelRegistry | None = None,
) -> list[tuple[str, int]]:
    """The device types that have a kernel for a node, each with that kernel's priority.

    They come by falling priority, and among equals in the order of `prioritized_types`. An op
    that is not registered is taken for a function call, which every device type supports.

    Raises:
        InvalidArgumentError: two kernels fit equally well, or no device type has a kernel and
            the node does not even fit its op.
    """
    ops = global_op_registry() if op_registry is None else op_registry
    try:
        op_def = ops.look_up_op_def(node_def.op)
    except NotFoundError:
        return [(device_type, 0) for device_type in prioritized_types]
    kernels = _registry(registry)
    supported = []
    for device_type in prioritized_types:
        found, _ = _match(kernels, device_type, node_def)
        if found is not None:
            supported.append((device_type, found.kernel_def.priority))
    if not supported:
        validate_node_def(node_def, op_def)
    return sorted(supported, key=lambda entry: -entry[1])


def kernels_registered_for_op(op: str, *, registry: KernelRegistry | None = None) -> str:
    """The kernels of an op as text, a line for each: `  device='CPU'; T in [DT_FLOAT]`."""
    lines = [
        f"  {_described(one.kernel_def)}\n" for one in _registry(registry).registrations_for(op)
    ]
    return "".join(lines) or "  <no registered kernels>\n"


def get_all_registered_kernels(*, registry: KernelRegistry | None = None) -> KernelList:
    """The KernelDefs registered so far; kernels of op modules not imported yet are missing."""
    return get_filtered_registered_kernels(lambda kernel_def: True, registry=registry)


def get_filtered_registered_kernels(
    predicate: Callable[[KernelDef], bool], *, registry: KernelRegistry | None = None
) -> KernelList:
    """The KernelDefs registered so far for which `predicate` holds."""
    every = (one.kernel_def for one in _registry(registry).registrations())
    return KernelList(kernel=filter(predicate, every))


def get_registered_kernels_for_op(op: str, *, registry: KernelRegistry | None = None) -> KernelList:
    """The KernelDefs of an op."""
    kernels = _registry(registry).registrations_for(op)
    return KernelList(kernel=[one.kernel_def for one in kernels])


def log_all_registered_kernels(*, registry: KernelRegistry | None = None) -> None:
    """Write every KernelDef registered so far to the log, at level INFO."""
    for one in _registry(registry).registrations():
        logger(__name__).info("OpKernel ('%s')", summarize_kernel_def(one.kernel_def))


def no_supported_device_error(
    node_def: NodeDef, device_types: Sequence[str], *, registry: KernelRegistry | None = None
) -> InvalidArgumentError:
    """The error for a node that no device of a system has a kernel for."""
    return InvalidArgumentError(
        f"No OpKernel was registered to support Op '{node_def.op}' used by "
        f"{summaries.format_node_def_for_error(node_def)} with these attrs: [{summaries.summarize_attrs(node_def)}]\n"
        f"Registered devices: [{', '.join(device_types)}]\n"
        f"Registered kernels:\n{kernels_registered_for_op(node_def.op, registry=registry)}"
        f"{_ways_out(node_def, device_types)}",
        node=node_def.name,
        op=node_def.op,
    )


def _registry(registry: KernelRegistry | None) -> KernelRegistry:
    return global_kernel_registry() if registry is None else registry


def _match(
    kernels: KernelRegistry, device_type: str, node_def: NodeDef
) -> tuple[KernelRegistration | None, list[_Mismatch]]:
    """The kernel for a node, or None, and the kernels that its attrs ruled out.

    A kernel that was found before is found again without a look at the constraints.
    """
    choices = kernels.choices(node_def.op)
    key = choices.key(device_type, node_def)
    known = choices.get(key)
    if known is not None:
        return known, []
    found, mismatches = _choose(kernels, device_type, node_def)
    if found is not None:
        choices.keep(key, found)
        return found, mismatches
    kernels.load_last()
    if kernels.choices(node_def.op) is not choices:  # more kernels than before
        return _match(kernels, device_type, node_def)
    return None, mismatches


def _choose(
    kernels: KernelRegistry, device_type: str, node_def: NodeDef
) -> tuple[KernelRegistration | None, list[_Mismatch]]:
    """The kernel for a node by the rules, or None, and the kernels that its attrs ruled out."""
    label = kernel_label(node_def)
    mismatches: list[_Mismatch] = []
    candidates = kernels.candidates(node_def.op, device_type, label)
    best: KernelRegistration | None = None
    for one in _fitting(candidates, node_def, mismatches):
        if best is not None and best.kernel_def.priority == one.kernel_def.priority:
            raise _ambiguous("", " at the same priority", node_def, best, one)
        if best is None or best.kernel_def.priority < one.kernel_def.priority:
            best = one
    if best is not None or device_type in SYMBOLIC_DEVICE_TYPES:
        return best, mismatches
    defaults = kernels.candidates(node_def.op, DEFAULT_DEVICE_TYPE, label)
    for one in _fitting(defaults, node_def, mismatches):
        if best is not None:  # priorities do not count among these
            raise _ambiguous("Default ", "", node_def, best, one)
        best = one
    return best, mismatches


def _fitting(
    candidates: Iterable[KernelRegistration], node_def: NodeDef, mismatches: list[_Mismatch]
) -> Iterator[KernelRegistration]:
    """The kernels whose constraints hold; the others go to `mismatches`."""
    for one in candidates:
        violated = violated_constraint(one.kernel_def, node_def)
        if violated is None:
            yield one
        else:
            mismatches.append(_Mismatch(one.kernel_def, violated))


def _ambiguous(
    kind: str, how: str, node_def: NodeDef, first: KernelRegistration, second: KernelRegistration
) -> InvalidArgumentError:
    fix = "other types= or a label=" if kind else "a higher priority=, other types= or a label="
    return InvalidArgumentError(
        f"Multiple {kind}OpKernel registrations match NodeDef{how} "
        f"'{summaries.format_node_def_for_error(node_def)}': '{summarize_kernel_def(first.kernel_def)}' and "
        f"'{summarize_kernel_def(second.kernel_def)}'; they are {first.described} and "
        f"{second.described}; give one of them {fix}",
        node=node_def.name,
        op=node_def.op,
    )


def _not_found(
    kernels: KernelRegistry, device_type: str, node_def: NodeDef, mismatches: Sequence[_Mismatch]
) -> NotFoundError:
    message = (
        f"No registered '{node_def.op}' OpKernel for {device_type} devices compatible with node "
        f"{summaries.format_node_def_for_error(node_def)}\n"
    )
    if mismatches:
        nearest = max(mismatches, key=lambda one: one.constraint)
        attr = nearest.kernel_def.constraint[nearest.constraint].name
        message += (
            "(OpKernel was found, but attributes didn't match) "
            f"Requested Attributes: {summaries.summarize_attrs(node_def)}; "
            f"{_described(nearest.kernel_def)} fails at "
            f"{attr}={summaries.summarize_attr_value(node_def.attr[attr])}\n"
        )
    message += f"Registered:\n{kernels_registered_for_op(node_def.op, registry=kernels)}"
    message += _ways_out(node_def, [device_type])
    return NotFoundError(message, node=node_def.name, op=node_def.op)


def _ways_out(node_def: NodeDef, device_types: Iterable[str]) -> str:
    """A sentence with the remedy for a node without a kernel; why it has none, as far as that is known."""
    types = [
        f"{name}={summaries.summarize_attr_value(value)}"
        for name, value in sorted(node_def.attr.items())
        if value.WhichOneof("value") == "type" or value.list.type
    ]
    wanted = " or ".join(device_types) + (f" with {', '.join(types)}" if types else "")
    why = global_op_registry().traits(node_def.op).why_no_kernel
    reason = f"{node_def.op} has no kernel: {why}. " if why else ""
    return (
        f"{reason}Feed what {node_def.name!r} gives, register a kernel for {wanted} (opkernel.register_kernel; "
        "`--library` of the commands imports the module that does), or install a plugin that has one "
        "(`opkernel doctor` lists those installed)."
    )


def _described(kernel_def: KernelDef) -> str:
    """Device, label and constraints: `device='CPU'; label='x'; T in [DT_FLOAT]`."""
    parts = [f"device='{kernel_def.device_type}'"]
    if kernel_def.label:
        parts.append(f"label='{kernel_def.label}'")
    parts += [
        f"{constraint.name} in {summaries.summarize_attr_value(constraint.allowed_values)}"
        for constraint in kernel_def.constraint
    ]
    return "; ".join(parts)
