"""_XlaCompile and _XlaRun: a cluster is compiled by one node and run by another.

_XlaCompile gives the key of what it compiled, and whether it could; where it could not, a call of the function takes the
place of _XlaRun.

State: `_closures` has what was compiled and not yet run, by its key.

Source: XlaCompileOp, XlaRunOp in TensorFlow compiler/jit/kernels/xla_ops.cc.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from opkernel.device.local_device import CPU
from opkernel.errors import DeadlineExceededError, InternalError, OpError
from opkernel.kernel import OpKernel, OpKernelContext, register_kernel
from opkernel.records import dataclass
from opkernel.runtime.engines.cluster_kernel import CLUSTER_CONTRACT, ClusterKernel
from opkernel.types import object_scalar


@dataclass(frozen=True)
class _Closure:
    """What was compiled, with the inputs that are known at compile time."""

    kernel: ClusterKernel
    constants: Sequence[Any]


_closures: dict[bytes, _Closure] = {}
_numbers = itertools.count()


@register_kernel("_XlaCompile", device=CPU.device_type, contract=CLUSTER_CONTRACT)
class XlaCompileOp(ClusterKernel):
    """Compiles a cluster for its inputs."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Give a key, and whether there is a program."""
        is_compiled = False
        try:
            with ExitStack() as held:
                variables = self.variables(ctx, ctx.inputs, held)
                if variables is not None and not self.late.is_under_way:
                    held.enter_context(variables.locked())
                    is_compiled = self.program(ctx, variables.inputs()) is not None
        except DeadlineExceededError:
            raise
        except OpError as error:
            if self.node_def.attr["must_compile"].b:
                raise
            self.tell(error)
        key = b""
        if is_compiled:
            key = f"{self.function.name}/{next(_numbers)}".encode()
            _closures[key] = _Closure(self, ctx.inputs[: self.num_constants])
        ctx.outputs[:] = object_scalar(key), np.bool_(is_compiled)


@register_kernel("_XlaRun", device=CPU.device_type, contract=CLUSTER_CONTRACT)
class XlaRunOp(OpKernel):
    """Runs what _XlaCompile has compiled."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program of a key, once.

        Raises:
            InternalError: nothing was compiled under the key, or it was run before.
        """
        *given, key = ctx.inputs
        closure = _closures.pop(key.item(), None)
        if closure is None:
            raise InternalError(f"Nothing was compiled under the key {key.item()!r}")
        kernel, inputs = closure.kernel, [*closure.constants, *given]
        with ExitStack() as held:
            variables = kernel.variables(ctx, inputs, held)
            if variables is None:
                raise InternalError("A variable is gone since the cluster was compiled")
            with variables.locked():
                tensors = variables.inputs()
                program = kernel.program(ctx, tensors)
                results = None
                if program is not None:
                    results = kernel.run_and_assign(ctx, program, variables, tensors, inputs)
        ctx.outputs[:] = kernel.run_uncompiled(ctx, inputs) if results is None else results
