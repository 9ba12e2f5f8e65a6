"""Registered kernels: the one of a node, those of an op, those that there are; and the form that a node has with its kernel.

Functions take the registry to look in; None stands for the global one. `registration.py` has the rules by
which a kernel is chosen for a node.

Most nodes of a graph are like another one. All that follows from the op, the attrs and the number of
inputs is worked out once, as a `NodeForm`: that the node is valid, its kernel's registration, types, arguments and
memory types. Of tensors, only that they are tensors counts. Forms stand beside the kernels that were found for the op
(`Choices`), and are dropped with them.

Source: TensorFlow core/framework/op_kernel.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.kernel.node_properties import (
    Arg,
    MemoryType,
    MemoryTypes,
    NodeProperties,
    args_in_ranges,
    memory_types,
)
from opkernel.kernel.registry.kernel_def import summarize_kernel_def
from opkernel.kernel.registry.kernel_registry import KernelRegistry, global_kernel_registry
from opkernel.kernel.registry.registration import Found, KernelRegistration, Mismatch
from opkernel.logs import logger
from opkernel.opdef import (
    OpRegistry,
    OpRegistryInterface,
    UnregisteredOpError,
    count_data_inputs,
    global_op_registry,
    in_out_types_for_node,
    name_ranges_for_node,
    validate_node_def,
)
from opkernel.opdef import text as summaries
from opkernel.proto import AttrValue, KernelDef, KernelList, NodeDef, OpDef
from opkernel.records import dataclass, field
from opkernel.types import DataType


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
    found, mismatches = kernels.choices(node_def.op).match(device_type, node_def)
    if found is None:
        raise no_kernel_error(kernels, device_type, node_def, mismatches)
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
        found, _ = _registry(registry).choices(node_def.op).match(device_type, node_def)
    except OpError:
        return None
    return None if found is None else found.kernel_def


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
        found, _ = kernels.choices(node_def.op).match(device_type, node_def)
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
        f"{_ways_out(_registry(registry), node_def, device_types)}",
        node=node_def.name,
        op=node_def.op,
    )


def _registry(registry: KernelRegistry | None) -> KernelRegistry:
    return global_kernel_registry() if registry is None else registry


def no_kernel_error(
    kernels: KernelRegistry, device_type: str, node_def: NodeDef, mismatches: Sequence[Mismatch]
) -> NotFoundError:
    """The error for a node that a registry has no kernel for, with the kernels that its attrs ruled out."""
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
    message += _ways_out(kernels, node_def, [device_type])
    return NotFoundError(message, node=node_def.name, op=node_def.op)


def _ways_out(kernels: KernelRegistry, node_def: NodeDef, device_types: Iterable[str]) -> str:
    """The remedy for a node that a registry has no kernel for; first why opkernel's own has none, if that is known."""
    types = [
        f"{name}={summaries.summarize_attr_value(value)}"
        for name, value in sorted(node_def.attr.items())
        if value.WhichOneof("value") == "type" or value.list.type
    ]
    wanted = " or ".join(device_types) + (f" with {', '.join(types)}" if types else "")
    is_own = kernels is global_kernel_registry()
    why = global_op_registry().traits(node_def.op).why_no_kernel if is_own else ""
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


@dataclass(frozen=True, slots=True, eq=False)
class NodeForm:
    """The kernel registration of nodes of an op with certain attrs, and the facts that follow.

    `types_and_args` completes the NodeProperties of such a node. `attrs` holds the numbers, strings and
    types that kernels have asked for so far. `provided` holds the kernels of the providers asked so far, by
    provider.
    """

    op_def: OpDef
    registration: KernelRegistration
    types_and_args: tuple[
        tuple[DataType, ...], tuple[DataType, ...], tuple[Arg, ...], tuple[Arg, ...]
    ]
    memory_types: MemoryTypes
    attrs: dict[str, Any] = field(default_factory=dict)
    provided: dict[str, KernelRegistration | None] = field(default_factory=dict)


def form_of_node(
    op_registry: OpRegistry,
    device_type: str,
    node_def: NodeDef,
    registry: KernelRegistry,
    signature: Hashable | None = None,
) -> NodeForm:
    """The form of a node.

    The node must have a value for every attr of its op (`add_defaults_to_node_def`). Where there is
    a `signature`, nodes that have the same one have the same form.

    Raises:
        NotFoundError: the op is not registered, or has no kernel for this device and these attrs.
        InvalidArgumentError: the node does not fit its op, or two kernels fit it equally well.
    """
    try:
        op_def = op_registry.look_up_op_def(node_def.op)
    except UnregisteredOpError as error:
        error.add_context(f"In {summaries.format_node_def_for_error(node_def)}")
        raise
    choices = registry.choices(node_def.op)
    forms: Found[NodeForm] = choices.forms
    form = None if signature is None else forms.get((device_type, signature))
    if form is not None and form.op_def is op_def:
        return form
    attrs = node_def.attr
    values = frozenset([(name, _value_key(attrs[name])) for name in attrs])
    key = device_type, count_data_inputs(node_def), values
    form = forms.get(key)
    if form is None or form.op_def is not op_def:
        inputs, outputs = validate_node_def(node_def, op_def)
        args = args_in_ranges(op_def, *name_ranges_for_node(node_def, op_def))
        types_and_args = tuple(inputs), tuple(outputs), *args
        registration, mismatches = choices.match(device_type, node_def)
        if registration is None:
            raise no_kernel_error(registry, device_type, node_def, mismatches)
        node = NodeProperties(op_def, node_def, *types_and_args)
        memory = memory_types(node, device_type, registration.kernel_def)
        form = NodeForm(op_def, registration, types_and_args, memory)
        forms.keep(key, form)
    if signature is not None:
        forms.keep((device_type, signature), form)
    return form


def _value_key(value: AttrValue) -> str | bytes:
    return "tensor" if value.HasField("tensor") else value.SerializeToString()


def memory_types_for_node(
    op_registry: OpRegistryInterface,
    device_type: str,
    node_def: NodeDef,
    *,
    registry: KernelRegistry | None = None,
) -> tuple[list[MemoryType], list[MemoryType]]:
    """The memory types of the flat lists of a node's inputs and outputs.

    `memory_types` has the rules. The node need not be valid, nor have a kernel.

    Raises:
        NotFoundError: the op is not registered, or the node lacks an attr.
        InvalidArgumentError: the kernel names HostMemory arguments that the op does not have.
    """
    op_def = op_registry.look_up_op_def(node_def.op)
    node = NodeProperties.of(node_def, op_def, *in_out_types_for_node(node_def, op_def))
    kernel_def = kernel_def_if_available(device_type, node_def, registry=registry)
    inputs, outputs = memory_types(node, device_type, kernel_def)
    return list(inputs), list(outputs)
