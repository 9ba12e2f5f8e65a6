"""Type constraints of kernels as sets: narrower ones, and the difference of two.

Source: TensorFlow compiler/tf2xla/xla_op_registry.cc (RegisterCompilationKernels).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from opkernel.kernel.registry.kernel_def import constraints_overlap
from opkernel.proto import KernelDef, OpDef
from opkernel.types import DataType
from opkernel.xla.op_registry import SUPPORTED_TYPES

_Types = Mapping[str, AbstractSet[int]]


def restricted(
    kernel_def: KernelDef, op_def: OpDef, types: Collection[DataType]
) -> KernelDef | None:
    """A kernel whose attrs of type `type` are among some types; None where it would serve no node.

    Tensors of a type that no attr names must be of one that XLA computes with, or among the types.
    """
    args, fixed = (*op_def.input_arg, *op_def.output_arg), SUPPORTED_TYPES.union(types)
    if any(arg.type and DataType(arg.type) not in fixed for arg in args):
        return None
    before, allowed = _types_of(kernel_def), {}
    for attr in op_def.attr:
        if attr.type not in ("type", "list(type)"):
            continue
        declared = set(attr.allowed_values.list.type) or set(types)
        allowed[attr.name] = declared & set(types) & before.get(attr.name, declared)
    return _constrained(kernel_def, allowed)


def without(kernel_def: KernelDef, others: Iterable[KernelDef]) -> KernelDef | None:
    """A kernel for nodes that the others do not serve; None where there may be none."""
    rest: KernelDef | None = kernel_def
    for other in others:
        if rest is not None and constraints_overlap(rest, other):
            rest = _difference(rest, _types_of(other))
    return rest


def _difference(kernel_def: KernelDef, taken: _Types) -> KernelDef | None:
    own = _types_of(kernel_def)
    for name, types in own.items():
        rest = types - taken.get(name, types)
        if rest:
            return _constrained(kernel_def, {**own, name: rest})
    return None


def _types_of(kernel_def: KernelDef) -> dict[str, AbstractSet[int]]:
    found: dict[str, AbstractSet[int]] = {}
    for constraint in kernel_def.constraint:
        types = frozenset(constraint.allowed_values.list.type)
        if types:
            found[constraint.name] = found.get(constraint.name, types) & types
    return found


def _constrained(kernel_def: KernelDef, allowed: _Types) -> KernelDef | None:
    """The kernel with other type constraints, and with its constraints of other kinds."""
    if not all(allowed.values()):
        return None
    made = KernelDef(op=kernel_def.op, label=kernel_def.label)
    for constraint in kernel_def.constraint:
        if not constraint.allowed_values.list.type:
            made.constraint.add().CopyFrom(constraint)
    for name, types in allowed.items():
        made.constraint.add(name=name).allowed_values.list.type.extend(sorted(types))
    return made
