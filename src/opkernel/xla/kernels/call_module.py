"""Calls of StableHLO modules, as JAX writes them into SavedModels: the module becomes part of the program.

Source: TensorFlow compiler/tf2xla/kernels/xla_call_module_op.cc, xla_call_module_loader.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.kernel import OpKernelConstruction
from opkernel.types import as_dtype
from opkernel.xla.context import XlaOpKernel, XlaOpKernelContext
from opkernel.xla.jax_internals import call
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.module_types import StaticModule
from opkernel.xla.op_registry import XLA_CPU_JIT
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.stablehlo_module import PreparedModule, prepared

_VERSIONS = range(4, 11)


@register_xla_kernel("XlaCallModule")
class XlaCallModuleOp(XlaOpKernel):
    """Calls a module."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        attrs = self.node_def.attr
        version = attrs["version"].i
        if version not in _VERSIONS:
            rule = f">= {_VERSIONS[0]}" if version < _VERSIONS[0] else f"<= {_VERSIONS[-1]}"
            raise InvalidArgumentError(
                f"XlaCallModule of version {version} is not supported: it must be {rule}"
            )
        self._artifact = attrs["module"].s
        self._functions = list(attrs["function_list"].list.func)
        self._disabled = [one.decode() for one in attrs["disabled_checks"].list.s]
        if attrs["dim_args_spec"].list.s:
            raise UnimplementedError("XlaCallModule with dim_args_spec is not supported")
        self._platforms = [one.decode() for one in attrs["platforms"].list.s]
        if not self._platforms:
            raise InvalidArgumentError(
                "XlaCallModule must name the platforms that its module is for"
            )
        self._own = "CPU" if construction.device_type == XLA_CPU_JIT else "CUDA"

    def _platform_index(self) -> int | None:
        """The number of the platform that the module is compiled for; None where it is for one platform.

        Raises:
            NotFoundError: the module is for others.
        """
        own, platforms = self._own, self._platforms
        if own in platforms or "platform" in self._disabled:
            index = platforms.index(own) if own in platforms else 0
            return index if len(platforms) > 1 else None
        raise NotFoundError(
            f"The current platform {own} is not among the platforms required by the module: [{', '.join(platforms)}]"
        )

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Prepare the module for the shapes of the arguments, and call it."""
        operands = [ctx.input(place) for place in range(ctx.num_inputs)]
        arguments = [(tuple(one.shape), np.dtype(one.dtype)) for one in operands]
        checks_shapes = "shape_assertions" not in self._disabled
        module = prepared(
            self._artifact, arguments, self._platform_index(), checks_shapes=checks_shapes
        )
        self._check(module)

        def function(index: int, *inputs: Any) -> list[Any]:
            results = ctx.call_function(self._functions[index], inputs)
            return [jnp().asarray(one) for one in results]

        ctx.outputs[:] = call(StaticModule(module.bytecode, module.results, function), operands)

    def _check(self, module: PreparedModule) -> None:
        """Raise InvalidArgumentError where the module gives or calls something else than the node says."""
        given = [as_dtype(dtype) for _, dtype in module.results]
        if given != list(self.output_types):
            raise InvalidArgumentError(
                f"The module gives {', '.join(one.string for one in given) or 'nothing'}, and the node declares "
                f"{', '.join(one.string for one in self.output_types) or 'nothing'}"
            )
        if module.num_functions > len(self._functions):
            raise InvalidArgumentError(
                f"The module calls function {module.num_functions - 1}, and function_list has {len(self._functions)}"
            )
