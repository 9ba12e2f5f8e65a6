"""`register_kernel`: the verb that makes a function or a class the kernel of an op."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from opkernel.device.device_factory import check_device_type
from opkernel.errors import NotFoundError
from opkernel.kernel.context.construction import OpKernelConstruction
from opkernel.kernel.contract import UNCLAIMED, KernelContract, Kind
from opkernel.kernel.function_kernel import FunctionKernelFactory, callable_name
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.kernel_def import KernelDefBuilder
from opkernel.kernel.registry.kernel_registry import (
    KernelRegistration,
    KernelRegistry,
    global_kernel_registry,
)
from opkernel.opdef import OpHandle, OpRegistry, global_op_registry
from opkernel.proto import KernelDef, OpDef
from opkernel.registrations import DeclaringSite, declaring_site
from opkernel.types import DataType

__all__ = ["OpKernelFactory", "register_kernel"]

_K = TypeVar("_K", bound="Callable[..., Any] | OpKernelFactory")


@runtime_checkable
class OpKernelFactory(Protocol):
    """Makes kernels. It may load what it needs when the first kernel is asked for."""

    def create(self, construction: OpKernelConstruction) -> OpKernel:
        """The kernel for a node."""


def register_kernel(
    op: str | OpHandle | KernelDefBuilder,
    *,
    device: str = "",
    types: Mapping[str, DataType | Sequence[DataType]] | None = None,
    attrs: Mapping[str, str | int | bool | Sequence[str] | Sequence[int]] | None = None,
    host_memory: Sequence[str] = (),
    label: str = "",
    priority: int = 0,
    contract: KernelContract = UNCLAIMED,
    kind: Kind = "opaque",
    factory: bool = False,
    system: bool = False,
    registry: KernelRegistry | None = None,
    op_registry: OpRegistry | None = None,
) -> Callable[[_K], _K]:
    """Register the decorated function, OpKernel class or OpKernelFactory as a kernel of `op`.

    The kernel's declaration is given by keywords, or by a chain of calls as in TensorFlow:
    `register_kernel(Name("Cast").device("GPU").type_constraint("SrcT", float32))`.

    Args:
        op: the op, as `register_op` returned it or by name; or the chain.
        device: the device type, such as `CPU`.
        types: for attrs of type `type` or `list(type)`, the types that the kernel takes; an attr
            that is not named is not constrained.
        attrs: for attrs of type `string`, `int` or `bool`, the values that the kernel takes.
        host_memory: the arguments that live in host memory on every device.
        label: the kernel is taken only by nodes whose attr `_kernel` is this label.
        priority: of several kernels that fit a node, the one of the highest priority is taken.
        contract: the claims of the kernel; executors check all that it does not claim.
        kind: a claim of the contract in one word.
        factory: the function takes only attrs and returns the function of the inputs.
        system: graphs get the op from the runtime itself; every selection keeps the kernel.
        registry: where to register; the global registry by default.
        op_registry: where `op` is looked up to check the function; the global one by default.

    Raises:
        InvalidArgumentError: no factory makes devices of the type; the op lacks an attr of `types` or
            `attrs`, or allows it none of the values; `host_memory` names no input or output; or the
            function's parameters do not fit the op's inputs and attrs. If the op is not registered yet,
            the declaration is checked when the op is registered, and the function when a kernel is
            constructed.
        TypeError: the kernel's declaration lacks a device, or is given both ways; or the decorated
            object is no kernel.

    Source: TensorFlow's REGISTER_KERNEL_BUILDER, core/framework/op_kernel.h.
    """
    if isinstance(op, KernelDefBuilder):
        if device or types or attrs or host_memory or label or priority:
            raise TypeError(
                "register_kernel takes a KernelDefBuilder or the keywords of a declaration, not both"
            )
        kernel_def = op.build()
    else:
        kernel_def = _kernel_def(_name_of(op), device, types, attrs, host_memory, label, priority)
    if not kernel_def.device_type:
        raise TypeError(f"the kernel of {kernel_def.op} lacks a device, such as device='CPU'")
    check_device_type(kernel_def.device_type, f"the kernel of {kernel_def.op}")
    target = global_kernel_registry() if registry is None else registry
    claims = contract.of_kind(kind)
    site = declaring_site(sys._getframe(1))
    op_def = _op_def_to_check(op if isinstance(op, OpHandle) else kernel_def.op, site, op_registry)
    if op_def is not None:
        from opkernel.kernel.registry.validate_registrations import check_kernels

        check_kernels([kernel_def], op_def)

    def register(kernel: _K) -> _K:
        make = _maker(kernel, kernel_def.op, factory, claims)
        if op_def is not None and isinstance(make, FunctionKernelFactory):
            make.check(op_def)
        named: Any = type(kernel) if isinstance(make, partial) else kernel
        target.register(
            KernelRegistration(
                kernel_def=kernel_def,
                class_name=callable_name(named),
                factory=make,
                owner=site.owner,
                is_system=system,
                contract=claims,
                site=site,
                kernel=kernel,
                op_def=op_def,
            )
        )
        return kernel

    return register


def _name_of(op: object) -> str:
    if not isinstance(op, str | OpHandle):
        example = '@register_kernel("Twice", device="CPU")'
        raise TypeError(f"register_kernel takes an op or its name, not {op!r}; write {example}")
    return op if isinstance(op, str) else op.name


def _maker(
    kernel: Any, op: str, is_factory: bool, claims: KernelContract
) -> Callable[[OpKernelConstruction], OpKernel]:
    """The factory of the kernels of a registered function, class or factory."""
    fix = "a class derived from opkernel.OpKernel"
    if isinstance(kernel, type) and issubclass(kernel, OpKernel):
        return _runnable(kernel)
    if isinstance(kernel, OpKernelFactory) and not isinstance(kernel, type):
        return partial(_create, kernel)
    if not callable(kernel):
        raise TypeError(
            f"a kernel of {op} must be callable, not {kernel!r}: a function of the inputs, or {fix}"
        )
    if isinstance(kernel, type) and hasattr(kernel, "compute"):
        raise TypeError(f"{kernel.__qualname__}, the kernel of {op}, must be {fix}")
    return FunctionKernelFactory(kernel, is_factory, claims.takes_out)


def _runnable(kernel: type[OpKernel]) -> type[OpKernel]:
    """The class, or one that runs its `async def compute` as a coroutine."""
    if not inspect.iscoroutinefunction(kernel.compute):
        return kernel
    from opkernel.kernel.async_op_kernel import as_coroutine_kernel  # few kernels wait

    return as_coroutine_kernel(kernel)


def _create(factory: OpKernelFactory, construction: OpKernelConstruction) -> OpKernel:
    """The kernel that a factory makes; one with an `async def compute` runs as a coroutine."""
    kernel = factory.create(construction)
    if isinstance(kernel, OpKernel):
        kernel.__class__ = _runnable(type(kernel))
    return kernel


def _kernel_def(
    op: str,
    device: str,
    types: Mapping[str, DataType | Sequence[DataType]] | None,
    attrs: Mapping[str, str | int | bool | Sequence[str] | Sequence[int]] | None,
    host_memory: Sequence[str],
    label: str,
    priority: int,
) -> KernelDef:
    for what, given in (("types", types), ("attrs", attrs)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(
                f"{op}: {what} must be a dict by attr, such as {{'T': ...}}, not {given!r}"
            )
    if isinstance(host_memory, str):
        raise TypeError(
            f"{op}: host_memory must be a list of arguments, not the string {host_memory!r}; write "
            f"[{host_memory!r}]"
        )
    builder = KernelDefBuilder(op).device(device).label(label).priority(priority)
    for attr, allowed in (types or {}).items():
        builder.type_constraint(attr, allowed)
    for attr, values in (attrs or {}).items():
        builder.attr_constraint(attr, values)
    for argument in host_memory:
        builder.host_memory(argument)
    return builder.build()


def _op_def_to_check(
    op: str | OpHandle, site: DeclaringSite, op_registry: OpRegistry | None
) -> OpDef | None:
    """The op that a kernel is checked against; None where that waits until a kernel is constructed.

    The check waits for ops that are not registered yet. It waits, too, for the catalogue's own kernels of
    its ops: they are tested, and the op need not be built.
    """
    registry = op_registry or global_op_registry()
    if registry.is_brought(op if isinstance(op, str) else op.name, site.owner):
        return None
    if isinstance(op, OpHandle):
        return op.op_def
    try:
        return registry.look_up_op_def(op)
    except NotFoundError:
        return None
