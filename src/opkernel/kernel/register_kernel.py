"""`register_kernel`: the verb that makes a function or a class the kernel of an op."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from opkernel.errors import NotFoundError
from opkernel.kernel.function_kernel import FunctionKernelFactory, Kind, callable_name
from opkernel.kernel.kernel_def import KernelDefBuilder
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry import KernelRegistration, KernelRegistry, global_kernel_registry
from opkernel.opdef import OpHandle, OpRegistry, global_op_registry
from opkernel.types import DataType

__all__ = ["register_kernel"]

_K = TypeVar("_K", bound=Callable[..., Any])


def register_kernel(
    op: str | OpHandle,
    *,
    device: str,
    types: Mapping[str, DataType | Sequence[DataType]] | None = None,
    attrs: Mapping[str, str | int | bool | Sequence[str] | Sequence[int]] | None = None,
    host_memory: Sequence[str] = (),
    label: str = "",
    priority: int = 0,
    kind: Kind = "opaque",
    factory: bool = False,
    registry: KernelRegistry | None = None,
    op_registry: OpRegistry | None = None,
) -> Callable[[_K], _K]:
    """Register the decorated function or OpKernel class as a kernel of `op` on `device`.

    Args:
        op: the op, as `register_op` returned it or by name.
        device: the device type, such as `CPU`.
        types: for attrs of type `type` or `list(type)`, the types that the kernel takes; an attr
            that is not named is not constrained.
        attrs: for attrs of type `string`, `int` or `bool`, the values that the kernel takes.
        host_memory: the arguments that live in host memory whatever the device.
        label: the kernel is taken only by nodes whose attr `_kernel` is this label.
        priority: of several kernels that fit a node, the one of the highest priority is taken.
        kind: what the runtime may assume of a function (`Kind`).
        factory: the function takes only attrs and returns the function of the inputs.
        registry: where to register; the global registry by default.
        op_registry: where `op` is looked up to check the function; the global one by default.

    Raises:
        InvalidArgumentError: the function's parameters do not fit the op's inputs and attrs. For
            an op that is not registered yet the check is made when a kernel is constructed.

    Source: TensorFlow's REGISTER_KERNEL_BUILDER, core/framework/op_kernel.h.
    """
    op_name = op if isinstance(op, str) else op.name
    builder = KernelDefBuilder(op_name).device(device).label(label).priority(priority)
    for attr, allowed in (types or {}).items():
        builder.type_constraint(attr, allowed)
    for attr, values in (attrs or {}).items():
        builder.attr_constraint(attr, values)
    for argument in host_memory:
        builder.host_memory(argument)
    kernel_def = builder.build()
    target = global_kernel_registry() if registry is None else registry

    def register(kernel: _K) -> _K:
        if isinstance(kernel, type) and issubclass(kernel, OpKernel):
            make: Callable[..., OpKernel] = kernel
        else:
            make = FunctionKernelFactory(kernel, kind, factory)
            _check(make, op, op_registry)
        owner = getattr(kernel, "__module__", None) or ""
        target.register(KernelRegistration(kernel_def, callable_name(kernel), make, owner))
        return kernel

    return register


def _check(
    factory: FunctionKernelFactory, op: str | OpHandle, op_registry: OpRegistry | None
) -> None:
    """Check a function against its op, where the op is known by now."""
    if isinstance(op, OpHandle):
        factory.check(op.op_def)
        return
    try:
        op_def = (op_registry or global_op_registry()).look_up_op_def(op)
    except NotFoundError:
        return
    factory.check(op_def)
