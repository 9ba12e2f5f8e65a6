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
    KernelRegistry,
    global_kernel_registry,
    kernels_of_no_op,
)
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.opdef import OpHandle, OpRegistry, global_op_registry
from opkernel.proto import KernelDef, OpDef
from opkernel.records import dataclass
from opkernel.registrations import DeclaringSite, declaring_site, warn_at_exit
from opkernel.types import DataType

_K = TypeVar("_K", bound="Callable[..., Any] | OpKernelFactory")


@runtime_checkable
class OpKernelFactory(Protocol):
    """Makes kernels. It may load what it needs when the first kernel is asked for."""

    def create(self, construction: OpKernelConstruction) -> OpKernel:
        """The kernel for a node."""


def register_kernel(
    op: str | OpHandle | KernelDefBuilder,
    *more_ops: str | OpHandle | KernelDefBuilder,
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
        more_ops: other ops with the same kernel.
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
    given = _Declaration(device, types, attrs, host_memory, label, priority)
    claims = contract.of_kind(kind)
    site = declaring_site(sys._getframe(1))
    declared = []
    for one in (op, *more_ops):
        kernel_def = given.kernel_def(one)
        declared.append((kernel_def, _checked_op_def(one, kernel_def, site, op_registry)))
    target = global_kernel_registry() if registry is None else registry
    return _Registrar(declared, claims, site, target, factory, system)


@dataclass(frozen=True)
class _Declaration:
    """What the keywords of `register_kernel` declare."""

    device: str
    types: Mapping[str, DataType | Sequence[DataType]] | None
    attrs: Mapping[str, str | int | bool | Sequence[str] | Sequence[int]] | None
    host_memory: Sequence[str]
    label: str
    priority: int

    def kernel_def(self, op: str | OpHandle | KernelDefBuilder) -> KernelDef:
        """The KernelDef of a kernel of an op, or the one that a chain of calls built."""
        if not isinstance(op, KernelDefBuilder):
            kernel_def = self._built(_name_of(op))
        elif any(vars(self).values()):
            raise TypeError(
                "register_kernel takes a KernelDefBuilder or the keywords of a declaration, not both"
            )
        else:
            kernel_def = op.build()
        if not kernel_def.device_type:
            raise TypeError(f"the kernel of {kernel_def.op} lacks a device, such as device='CPU'")
        check_device_type(kernel_def.device_type, f"the kernel of {kernel_def.op}")
        return kernel_def

    def _built(self, op: str) -> KernelDef:
        for what, given in (("types", self.types), ("attrs", self.attrs)):
            if given is not None and not isinstance(given, Mapping):
                raise TypeError(
                    f"{op}: {what} must be a dict by attr, such as {{'T': ...}}, not {given!r}"
                )
        if isinstance(self.host_memory, str):
            raise TypeError(
                f"{op}: host_memory must be a list of arguments, not the string {self.host_memory!r}; "
                f"write [{self.host_memory!r}]"
            )
        builder = KernelDefBuilder(op)
        builder.device(self.device).label(self.label).priority(self.priority)
        for attr, allowed in (self.types or {}).items():
            builder.type_constraint(attr, allowed)
        for attr, values in (self.attrs or {}).items():
            builder.attr_constraint(attr, values)
        for argument in self.host_memory:
            builder.host_memory(argument)
        return builder.build()


@dataclass(frozen=True)
class _Registrar:
    """Registers what `register_kernel` decorates, for each op with its OpDef, if that is known."""

    declared: Sequence[tuple[KernelDef, OpDef | None]]
    claims: KernelContract
    site: DeclaringSite
    registry: KernelRegistry
    is_maker: bool
    is_system: bool

    def __call__(self, kernel: _K) -> _K:
        # All are checked before the first is registered.
        for registration in [self._registration(kernel, *one) for one in self.declared]:
            self.registry.register(registration)
        is_there = global_op_registry().is_there
        if not all(op_def or is_there(kernel_def.op) for kernel_def, op_def in self.declared):
            warn_at_exit(kernels_of_no_op)
        return kernel

    def _registration(
        self, kernel: Any, kernel_def: KernelDef, op_def: OpDef | None
    ) -> KernelRegistration:
        make = _maker(kernel, kernel_def.op, self.is_maker, self.claims)
        if op_def is not None and isinstance(make, FunctionKernelFactory):
            make.check(op_def)
        named: Any = type(kernel) if isinstance(make, partial) else kernel
        return KernelRegistration(
            kernel_def=kernel_def,
            class_name=callable_name(named),
            factory=make,
            owner=self.site.owner,
            is_system=self.is_system,
            contract=self.claims,
            site=self.site,
            kernel=kernel,
            op_def=op_def,
        )


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


def _checked_op_def(
    op: str | OpHandle | KernelDefBuilder,
    kernel_def: KernelDef,
    site: DeclaringSite,
    op_registry: OpRegistry | None,
) -> OpDef | None:
    """The op that a kernel was checked against; None where that waits until a kernel is constructed.

    The check waits for ops that are not registered yet. It waits, too, for the catalogue's own kernels of
    its ops: they are tested, and the op need not be built.
    """
    registry = op_registry or global_op_registry()
    if registry.is_brought(kernel_def.op, site.owner):
        return None
    try:
        op_def = op.op_def if isinstance(op, OpHandle) else registry.look_up_op_def(kernel_def.op)
    except NotFoundError:
        return None
    from opkernel.kernel.registry.validate_registrations import check_kernels

    check_kernels([kernel_def], op_def)
    return op_def
