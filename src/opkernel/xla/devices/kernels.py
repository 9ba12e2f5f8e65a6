"""The kernels of the devices that JAX has: those with which XLA compiles, one operation at a time.

The registry of kernels derives them from the others, op by op, once such a device was made. What is read on the host
stays there: shapes, what must be known when an operation is compiled, and integers of 32 bits as far as TensorFlow
keeps them there.

Source: TensorFlow compiler/jit/xla_device.cc (RegisterXlaDeviceKernels), xla_device_ops.h.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence

from opkernel.errors import NotFoundError
from opkernel.kernel import OpKernel, OpKernelConstruction, global_kernel_registry
from opkernel.kernel.contract import KernelContract
from opkernel.kernel.function_kernel import (
    FunctionKernelFactory,
    callable_name,
    forward_input,
)
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.opdef import global_op_registry
from opkernel.proto import KernelDef, OpDef
from opkernel.records import dataclass, replace
from opkernel.types import DEVICE_DEFAULT, DataType
from opkernel.xla.devices.compile_on_demand import ResourceOnDemandOp, compile_on_demand
from opkernel.xla.devices.constraints import restricted, without
from opkernel.xla.devices.host_kernels import constant, on_cpu
from opkernel.xla.devices.variables import VARIABLE_KERNELS
from opkernel.xla.kernels.dynamic_sizes import DynamicSizeOp
from opkernel.xla.op_kernel import WholeProgramOp
from opkernel.xla.op_registry import SUPPORTED_TYPES, global_xla_op_registry

_WITH_RESOURCES = SUPPORTED_TYPES | {DataType.DT_RESOURCE}
_INT32 = (DataType.DT_INT32,)
_NEVER_READ = (*_INT32, DataType.DT_STRING, DataType.DT_VARIANT)

_LEFT_TO_CPU = frozenset(
    {"CheckNumerics", "CheckNumericsV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4"}
)
"""Ops that check values, which no compiled code does, and ops whose outputs' sizes depend on values."""

_PASSING = frozenset({"Identity", "PlaceholderWithDefault", "PreventGradient", "StopGradient"})
_HANDED_ON = (DataType.DT_RESOURCE, DataType.DT_STRING, DataType.DT_VARIANT)

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
        kernel_def = restricted(candidate.kernel_def, op_def, candidate.types)
        if kernel_def is not None:
            kernel_def = without(kernel_def, chosen)
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
    if op in VARIABLE_KERNELS:
        kernel, on_host = VARIABLE_KERNELS[op]
        yield _Candidate(plain, kernel.__name__, kernel, _WITH_RESOURCES, on_host)
        return
    traits = global_op_registry().traits(op)
    if traits.int32_on_host:
        yield from _of_cpu(op, _INT32, names)
    if traits.reads_shapes_only:  # and the outputs are on the host
        yield from _of_cpu(op, _NEVER_READ, names)
        yield from _of_cpu(op, SUPPORTED_TYPES, [arg.name for arg in op_def.output_arg])
    elif op == "Const":
        yield _Candidate(plain, "constant", FunctionKernelFactory(constant, is_maker=True))
    elif op in _PASSING:
        passing = FunctionKernelFactory(forward_input)
        yield _Candidate(plain, op, passing, SUPPORTED_TYPES, (), _VIEW)
        yield _Candidate(plain, op, passing, _HANDED_ON, names, _VIEW)
    elif _is_of_constants(op_def):
        yield from _of_cpu(op, SUPPORTED_TYPES, names)
    else:
        yield from _compiled(op_def)


_NOT_ALONE = (DynamicSizeOp, WholeProgramOp)
"""The kernels that a program of one operation cannot have."""


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
            make = on_cpu(one.factory)
            yield _Candidate(one.kernel_def, one.class_name, make, types, on_host, one.contract)


def _compiled(op_def: OpDef) -> Iterator[_Candidate]:
    """The kernels with which XLA compiles the op; none where the size of an output depends on values."""
    if any(attr.type in ("func", "list(func)") for attr in op_def.attr):
        return
    for one in global_xla_op_registry().registrations(op_def.name):
        if isinstance(one.kernel, type) and issubclass(one.kernel, _NOT_ALONE):
            continue
        inputs = {arg.name for arg in op_def.input_arg}
        on_host = inputs & {*one.kernel_def.host_memory_arg, *one.compile_time_constants}
        name = callable_name(one.kernel)
        if one.allows_resources:
            yield _Candidate(
                one.kernel_def, name, ResourceOnDemandOp, _WITH_RESOURCES, sorted(on_host)
            )
        else:
            make = FunctionKernelFactory(compile_on_demand, is_maker=True)
            yield _Candidate(one.kernel_def, name, make, SUPPORTED_TYPES, sorted(on_host))
