"""The kernels of the devices that JAX has: those with which XLA compiles, one operation at a time.

The registry of kernels derives them from the others, op by op, once such a device was made. What is read on the host
stays there: shapes, what must be known when an operation is compiled, and integers of 32 bits as far as TensorFlow
keeps them there.

Source: TensorFlow compiler/jit/xla_device.cc (RegisterXlaDeviceKernels), xla_device_ops.h, core/kernels/resource_variable_ops.cc.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from opkernel.device.local_device import CPU
from opkernel.errors import NotFoundError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    global_kernel_registry,
    handle_from_input,
    lookup_or_create_resource,
)
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import FunctionKernelFactory, callable_name, forward_input
from opkernel.kernel.node_properties import MemoryTypes
from opkernel.kernel.registry.kernel_def import constraints_overlap
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.opdef import global_op_registry
from opkernel.ops.variables import handles, read_and_assign
from opkernel.ops.variables.var import Var
from opkernel.proto import KernelDef, OpDef
from opkernel.records import dataclass, replace
from opkernel.types import DEVICE_DEFAULT, DataType
from opkernel.xla.device_programs import ResourceOnDemandOp, compile_on_demand
from opkernel.xla.op_registry import SUPPORTED_TYPES, global_xla_op_registry

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


def without(rest: KernelDef | None, others: Iterable[KernelDef]) -> KernelDef | None:
    """A kernel, if there is one, for nodes that the others do not serve; None where there may be none."""
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


_WITH_RESOURCES = SUPPORTED_TYPES | {DataType.DT_RESOURCE}
_INT32 = (DataType.DT_INT32,)
_NEVER_READ = (*_INT32, DataType.DT_STRING, DataType.DT_VARIANT)

_LEFT_TO_CPU = frozenset(
    {"CheckNumerics", "CheckNumericsV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4"}
)
"""Ops that check values, which no compiled code does, and ops whose outputs' sizes depend on values."""

_PASSING = frozenset({"Identity", "PlaceholderWithDefault", "PreventGradient", "StopGradient"})
_HANDED_ON = (DataType.DT_RESOURCE, DataType.DT_STRING, DataType.DT_VARIANT)


class AssignVariableOp(read_and_assign.AssignVariableOp):
    """Takes the array over: no array of JAX ever changes."""

    forwards_inputs = False

    def compute(self, ctx: OpKernelContext) -> None:
        """Assign it."""
        value, handle = ctx.input(1), handle_from_input(ctx.input(0))
        with lookup_or_create_resource(
            ctx, handle, Var, lambda: Var(self.dtype, value)
        ) as variable:
            variable.assign(value, self.dtype, validate_shape=self.validate_shape)


_VARIABLE_KERNELS: dict[str, tuple[type[OpKernel], list[str]]] = {
    "AssignVariableOp": (AssignVariableOp, ["resource"]),
    "DestroyResourceOp": (handles.DestroyResourceOp, ["resource"]),
    "DisableCopyOnRead": (handles.DisableCopyOnRead, ["resource"]),
    "ReadVariableOp": (read_and_assign.ReadVariableOp, ["resource"]),
    "VarHandleOp": (handles.VarHandleOp, ["resource"]),
    "VarIsInitializedOp": (handles.VarIsInitializedOp, ["resource", "is_initialized"]),
    "VariableShape": (handles.VariableShape, ["input", "output"]),
    "_ReadVariablesOp": (read_and_assign.ReadVariablesOp, ["resources"]),
    "_VarHandlesOp": (handles.VarHandlesOp, ["resources"]),
}
"""The kernels of variables, whose handles are on the host while their values stay on the device, with their arguments there.

They are those of the CPU where these only look at arrays.
"""

_CLAIMS = KernelContract(outputs_as_declared=True, ignores_call=True)
_VIEW = replace(_CLAIMS, may_alias=True)
_Factory = Callable[[OpKernelConstruction], OpKernel]


@functools.cache
def derive_kernels_for(device_type: str) -> None:
    """Have the registry of kernels derive those of a type."""
    registry, kernels = global_xla_op_registry(), global_kernel_registry()
    registry.registrations("NoOp")  # imports kernels, outside of all look-ups
    kernels.derive(device_type, functools.partial(kernels_of, device_type=device_type))
    registry.watch(kernels.note_change)


def kernels_of(op: str, device_type: str) -> list[KernelRegistration]:
    """The kernels of an op for devices of a type: no two of them serve one node."""
    try:
        op_def = global_op_registry().look_up_op_def(op)
    except NotFoundError:
        return []
    chosen: list[KernelDef] = []
    found = []
    for candidate in _candidates(op_def):
        whole = restricted(candidate.kernel_def, op_def, candidate.types)
        kernel_def = without(whole, chosen)
        if kernel_def is None:
            continue
        kernel_def.device_type, kernel_def.priority = device_type, 0
        del kernel_def.host_memory_arg[:]
        kernel_def.host_memory_arg.extend(candidate.on_host)
        chosen.append(kernel_def)
        name = f"{candidate.described} on {device_type}"
        found.append(
            KernelRegistration(
                kernel_def, name, candidate.factory, owner=__name__, contract=candidate.contract
            )
        )
    return found


@dataclass(frozen=True)
class _Candidate:
    """A kernel as it would be if there were no other.

    Attributes:
        kernel_def: Its constraints.
        described: Its name, for messages.
        factory: Makes it.
        types: The types of tensors that it may take and give.
        on_host: The arguments in host memory.
        contract: Its claims.
    """

    kernel_def: KernelDef
    described: str
    factory: _Factory
    types: Collection[DataType] = SUPPORTED_TYPES
    on_host: Sequence[str] = ()
    contract: KernelContract = _CLAIMS


def _candidates(op_def: OpDef) -> Iterator[_Candidate]:
    """The kernels of an op, the preferred ones first; none for ops with kernels for every device type."""
    if op_def.name in _LEFT_TO_CPU or _has_default(op_def.name):
        return
    op, names = op_def.name, [arg.name for arg in (*op_def.input_arg, *op_def.output_arg)]
    plain = KernelDef(op=op)
    if op in _VARIABLE_KERNELS:
        kernel, on_host = _VARIABLE_KERNELS[op]
        yield _Candidate(plain, kernel.__name__, kernel, _WITH_RESOURCES, on_host)
        return
    traits = global_op_registry().traits(op)
    if traits.int32_on_host:
        yield from _of_cpu(op, _INT32, names)
    if traits.reads_shapes_only:  # and the outputs are on the host
        yield from _of_cpu(op, _NEVER_READ, names)
        yield from _of_cpu(op, SUPPORTED_TYPES, [arg.name for arg in op_def.output_arg])
    elif op == "Const":
        yield _Candidate(plain, "constant", FunctionKernelFactory(_constant, is_maker=True))
    elif op in _PASSING:
        passing = FunctionKernelFactory(forward_input)
        yield _Candidate(plain, op, passing, SUPPORTED_TYPES, (), _VIEW)
        yield _Candidate(plain, op, passing, _HANDED_ON, names, _VIEW)
    elif _is_of_constants(op_def):
        yield from _of_cpu(op, SUPPORTED_TYPES, names)
    else:
        yield from _compiled(op_def)


_NOT_ALONE = frozenset({"dynamic", "stack", "stateful_random", "tensor_array"})
"""The kinds of ops (`OpTraits.clustering`) that a program of one operation cannot have: it has no state of its own."""


def _has_default(op: str) -> bool:
    registered = global_kernel_registry().registrations_for(op)
    return any(one.kernel_def.device_type == DEVICE_DEFAULT for one in registered)


def _is_of_constants(op_def: OpDef) -> bool:
    """Whether all inputs must be known at compile time, so that nothing is left to a program."""
    found = global_xla_op_registry().registrations(op_def.name)
    inputs = {arg.name for arg in op_def.input_arg}
    return bool(found) and found[0].compile_time_constants >= inputs


def _of_cpu(op: str, types: Collection[DataType], on_host: Sequence[str]) -> Iterator[_Candidate]:
    """The kernels of the CPU, which compute with arrays of NumPy."""
    for one in global_kernel_registry().registrations_for(op):
        if one.kernel_def.device_type == "CPU":
            make = _on_cpu(one.factory)
            yield _Candidate(one.kernel_def, one.class_name, make, types, on_host, one.contract)


def _on_cpu(factory: _Factory) -> _Factory:
    """A factory whose kernels are those of the CPU, for arrays of NumPy."""

    def make(construction: OpKernelConstruction) -> OpKernel:
        there = OpKernelConstruction(
            CPU,
            construction.properties,
            MemoryTypes(construction.input_memory_types, construction.output_memory_types),
            construction.graph_def_version,
            construction.function_library,
            contract=construction.contract,
        )
        return factory(there)

    return make


def _constant(*, value: Any, construction: OpKernelConstruction) -> Callable[[], Any]:
    """The kernel of Const, whose value comes to the device once."""
    tensor = construction.device.to_device(value)
    return lambda: tensor


def _compiled(op_def: OpDef) -> Iterator[_Candidate]:
    """The kernels with which XLA compiles the op; none for ops that call functions, or cannot be alone."""
    calls = any(attr.type in ("func", "list(func)") for attr in op_def.attr)
    if calls or global_op_registry().traits(op_def.name).clustering in _NOT_ALONE:
        return
    for one in global_xla_op_registry().registrations(op_def.name):
        inputs = {arg.name for arg in op_def.input_arg}
        on_host = inputs & {*one.kernel_def.host_memory_arg, *one.compile_time_constants}
        name = callable_name(one.kernel)
        make: _Factory = ResourceOnDemandOp
        if not one.allows_resources:
            make = FunctionKernelFactory(compile_on_demand, is_maker=True)
        types = _WITH_RESOURCES if one.allows_resources else SUPPORTED_TYPES
        yield _Candidate(one.kernel_def, name, make, types, sorted(on_host))
