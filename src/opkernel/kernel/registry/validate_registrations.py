"""Checks the registered kernels against their ops and against each other.

TensorFlow has its op registry do it at the first look-up. Here the kernels of an op are checked when the
later of the two is registered (`check_kernels`), and all that are registered on demand.

Source: ValidateKernelRegistrations in TensorFlow core/framework/op_kernel.cc, which checks the
HostMemory arguments alone.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel.registry.kernel_def import constraints_overlap, summarize_kernel_def
from opkernel.kernel.registry.kernel_registry import KernelRegistry, global_kernel_registry
from opkernel.kernel.registry.registration import DEFAULT_DEVICE_TYPE, KernelRegistration
from opkernel.opdef import (
    OpRegistryInterface,
    find_attr,
    summarize_attr_value,
    summarize_op_def,
)
from opkernel.proto import KernelDef, OpDef

_log = logging.getLogger(__name__)

_CONSTRAINED_TYPES = {
    "type": ("type", "list(type)"),
    "s": ("string",),
    "i": ("int",),
    "b": ("bool",),
}
"""The types that an attr may have, by the field of the list that holds its allowed values."""


def validate_kernel_registrations(
    op_registry: OpRegistryInterface, *, registry: KernelRegistry | None = None
) -> None:
    """Check the kernels registered so far against the ops and against each other.

    Kernels of unknown ops are only warned of in the log: their ops may be registered yet.

    Raises:
        InvalidArgumentError: a HostMemory argument is not in its OpDef; a constraint is on an attr
            that the op does not have, or that is of another type, or for which the op allows none
            of the constraint's values; or two kernels of equal priority can fit the same node. The
            message names all of them.
    """
    kernels = global_kernel_registry() if registry is None else registry
    problems: list[str] = []
    for op in dict.fromkeys(one.kernel_def.op for one in kernels.registrations()):
        registrations = kernels.registrations_for(op)
        problems += _ambiguities(registrations)
        try:
            op_def = op_registry.look_up_op_def(op)
        except NotFoundError:
            for one in registrations:
                text = summarize_kernel_def(one.kernel_def)
                _log.warning("OpKernel ('%s') for unknown op: %s", text, op)
            continue
        problems += _misfits([one.kernel_def for one in registrations], op_def)
    if problems:
        raise InvalidArgumentError("\n".join(problems))


def check_kernels(kernel_defs: Sequence[KernelDef], op_def: OpDef) -> None:
    """Raise InvalidArgumentError unless kernels fit their op, as `validate_kernel_registrations` does."""
    problems = list(_misfits(kernel_defs, op_def))
    if problems:
        raise InvalidArgumentError("\n".join(problems))


def _misfits(kernel_defs: Iterable[KernelDef], op_def: OpDef) -> Iterator[str]:
    """A sentence for each argument and each constraint of kernels that does not fit their op."""
    for kernel_def in kernel_defs:
        yield from _unknown_host_memory_args(kernel_def, op_def)
        yield from _unfit_constraints(kernel_def, op_def)


def _ambiguities(registrations: Sequence[KernelRegistration]) -> Iterator[str]:
    """A sentence for each two kernels of an op that some node could not choose between."""
    for first, second in combinations(registrations, 2):
        a, b = first.kernel_def, second.kernel_def
        is_default = a.device_type == DEFAULT_DEVICE_TYPE  # priorities do not count among these
        is_level = is_default or a.priority == b.priority
        if first.key == second.key and is_level and constraints_overlap(a, b):
            how = "" if is_default else " at the same priority"
            yield (
                f"Multiple OpKernel registrations of '{a.op}'{how} match the same "
                f"nodes: '{summarize_kernel_def(a)}', {first.described}, and "
                f"'{summarize_kernel_def(b)}', {second.described}"
            )


def _unknown_host_memory_args(kernel_def: KernelDef, op_def: OpDef) -> Iterator[str]:
    """A sentence for each HostMemory argument that the op does not have."""
    known = {arg.name for arg in (*op_def.input_arg, *op_def.output_arg)}
    for name in kernel_def.host_memory_arg:
        if name not in known:
            yield (
                f"HostMemory arg '{name}' not found in OpDef: {summarize_op_def(op_def)}; "
                f"host_memory takes inputs and outputs: {', '.join(sorted(known)) or 'none'}"
            )


def _unfit_constraints(kernel_def: KernelDef, op_def: OpDef) -> Iterator[str]:
    """A sentence for each constraint that no node of the op satisfies."""
    for constraint in kernel_def.constraint:
        fault = _fault(constraint, op_def)
        if fault is not None:
            text = summarize_kernel_def(kernel_def)
            yield f"OpKernel ('{text}') has a constraint on attr '{constraint.name}' {fault}"


def _fault(constraint: KernelDef.AttrConstraint, op_def: OpDef) -> str | None:
    """Why no node of the op satisfies a constraint; None where some may."""
    attr = find_attr(op_def, constraint.name)
    if attr is None:
        attrs = ", ".join(one.name for one in op_def.attr) or "none"
        return f"not in OpDef: {summarize_op_def(op_def)}; the op has the attrs: {attrs}"
    fields = [
        descriptor.name
        for descriptor, values in constraint.allowed_values.list.ListFields()
        if len(values)
    ]
    if len(fields) != 1 or attr.type not in _CONSTRAINED_TYPES.get(fields[0], ()):
        allowed = summarize_attr_value(constraint.allowed_values)
        return f"of type '{attr.type}' with the values {allowed}"
    values = getattr(constraint.allowed_values.list, fields[0])
    if not any(_is_allowed(fields[0], value, attr) for value in values):
        is_number = fields[0] == "i"
        rule = (
            f"values of at least {attr.minimum}"
            if is_number
            else summarize_attr_value(attr.allowed_values)
        )
        return (
            f"with the values {summarize_attr_value(constraint.allowed_values)}, none of which the op "
            f"allows; it allows {rule}"
        )
    return None


def _is_allowed(field: str, value: Any, attr: OpDef.AttrDef) -> bool:
    """Whether the op allows an attr, or each element of it where it is a list, to be `value`."""
    if field == "i":
        return not attr.has_minimum or value >= attr.minimum
    return not attr.HasField("allowed_values") or value in getattr(attr.allowed_values.list, field)
