"""`register_xla_kernel`: the verb that makes a function or a class the kernel with which XLA compiles an op.

    @register_xla_kernel("ReverseV2", compile_time_constants=["axis"])
    def reverse(tensor, axis, *, xp):
        return xp.flip(tensor, tuple(axis))

Source: TensorFlow's REGISTER_XLA_OP, compiler/tf2xla/xla_op_registry.h.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.function_kernel import FunctionKernelFactory
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.kernel_def import KernelDefBuilder
from opkernel.opdef import OpHandle, global_op_registry
from opkernel.proto import KernelDef
from opkernel.registrations import declaring_site
from opkernel.types import DataType
from opkernel.xla.op_registry import (
    XLA_CPU_JIT,
    XlaKernelRegistration,
    XlaOpRegistry,
    global_xla_op_registry,
)

_K = TypeVar("_K", bound="Callable[..., Any]")


def register_xla_kernel(
    op: str | OpHandle | Sequence[str],
    *,
    types: Mapping[str, Sequence[DataType]] | None = None,
    compile_time_constants: Iterable[str] = (),
    resources: bool = False,
    variants: bool = False,
    strings: bool = False,
    metadata: bool = False,
    devices: Iterable[str] | None = None,
    factory: bool = False,
    registry: XlaOpRegistry | None = None,
) -> Callable[[_K], _K]:
    """Register the decorated function or XlaOpKernel class as the kernel with which XLA compiles `op`.

    A function takes the op's inputs in order and the attrs that it names as keywords, as kernels of a device
    do. `xp` is `jax.numpy`. Tensors are values of the program that is compiled, so that Python sees their types and
    shapes and not their elements. Compile-time constants are NumPy arrays.

    Args:
        op: The op, or several that the kernel serves alike.
        types: For attrs of type `type` or `list(type)`, the types that the kernel takes.
        compile_time_constants: The input arguments whose values the compiler must know.
        resources: Whether the kernel takes or gives resources.
        variants: Whether it takes or gives variants.
        strings: Whether it takes or gives strings.
        metadata: Whether it looks only at the shapes and types of its inputs.
        devices: The compilation devices that it serves; all if None.
        factory: The function takes only attrs and returns the function of the inputs.
        registry: Where to register; the global registry by default.

    Raises:
        InvalidArgumentError: a compile-time constant is no input of the op, the function does not fit the op, or
            another kernel of the op differs in what it needs.
    """
    site = declaring_site(sys._getframe(1))
    target = global_xla_op_registry() if registry is None else registry
    names = [op] if isinstance(op, str) else [op.name] if isinstance(op, OpHandle) else list(op)

    def register(kernel: _K) -> _K:
        is_class = isinstance(kernel, type) and issubclass(kernel, OpKernel)
        make = kernel if is_class else FunctionKernelFactory(kernel, is_maker=factory)
        served = None if devices is None else frozenset(devices)
        flags = resources, variants, strings, metadata
        rest = frozenset(compile_time_constants), served, *flags, kernel, site
        for name in names:
            _check_constants(name, compile_time_constants)
            target.register(XlaKernelRegistration(_kernel_def(name, types), make, *rest))
        return kernel

    return register


def _kernel_def(op: str, types: Mapping[str, Sequence[DataType]] | None) -> KernelDef:
    """The declaration of a kernel for any compilation device, which goes before portable ones."""
    builder = KernelDefBuilder(op).device(XLA_CPU_JIT).priority(1)
    for attr, allowed in (types or {}).items():
        builder.type_constraint(attr, allowed)
    return builder.build()


def _check_constants(op: str, names: Iterable[str]) -> None:
    op_def = global_op_registry().look_up_op_def(op)
    inputs = [arg.name for arg in op_def.input_arg]
    for name in names:
        if name not in inputs:
            raise InvalidArgumentError(
                f"{op} has no input {name!r} that could be a compile-time constant; it has "
                f"{', '.join(inputs) or 'none'}"
            )
