"""XlaLaunch: the kernel that runs a cluster by the program that an engine made of it.

Where there is no program, the kernels of the CPU compute the function. The attr `_engine` names the engine, `_compile_mode`
says when the cluster is compiled.

Source: TensorFlow compiler/jit/kernels/xla_ops.cc.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from opkernel.device.local_device import CPU
from opkernel.errors import DeadlineExceededError, OpError, as_op_error
from opkernel.kernel import OpKernelConstruction, OpKernelContext, register_kernel
from opkernel.logs import logger
from opkernel.optimization.clusters.encapsulate_subgraphs import COMPILE_MODE
from opkernel.runtime.engines.background import in_background
from opkernel.runtime.engines.cluster import EngineCluster
from opkernel.runtime.engines.cluster_kernel import CLUSTER_CONTRACT, ClusterKernel
from opkernel.runtime.engines.comparison import difference, first_difference
from opkernel.runtime.engines.engine import CompiledCluster


@register_kernel("XlaLaunch", device=CPU.device_type, contract=CLUSTER_CONTRACT)
class XlaLaunchOp(ClusterKernel):
    """Runs a cluster by its program, or its function where there is none."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        attrs = self.node_def.attr
        mode = attrs[COMPILE_MODE].s.decode() if COMPILE_MODE in attrs else "strict"
        self._is_strict, self._is_async = mode == "strict", mode == "async"
        self._asked_for: set[Hashable] = set()
        self._compiling = 0
        self._trusted: set[int] = set()

    @property
    def is_compiling(self) -> bool:
        """Whether another thread compiles for it."""
        return self._compiling > 0

    def let_go(self) -> None:
        """Drop the programs: steps run by something else from now on."""
        vars(self).pop("cluster", None)

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program, or the function."""
        results: Sequence[Any] | None = None
        if not (self.late.abandoned and self.late.is_under_way):
            run = self._run_with_variables if self.num_resources else self._run
            results = run(ctx, self.cluster)
        ctx.outputs[:] = self.run_uncompiled(ctx, ctx.inputs) if results is None else results

    def _run(self, ctx: OpKernelContext, cluster: EngineCluster) -> Sequence[Any] | None:
        """The results of the program; None where there is none."""
        inputs = ctx.inputs
        program = self._program(ctx, cluster, inputs)
        if program is None:
            return None
        if self._is_async and id(program) not in self._trusted:
            wanted = self.run_uncompiled(ctx, inputs)
            self._judge(ctx, cluster, inputs, program, wanted)
            return wanted
        if ctx.step.deadline is not None:
            ran = self.run_program(ctx, program, inputs)
            return None if ran is None else ran[0]
        try:  # as `run_program`, without a call more
            return program.run(inputs)[0]
        except Exception as error:
            self.note_failure(inputs, error)
            return None

    def _run_with_variables(
        self, ctx: OpKernelContext, cluster: EngineCluster
    ) -> Sequence[Any] | None:
        with ExitStack() as held:
            variables = self.variables(ctx, ctx.inputs, held)
            if variables is None:
                return None
            with variables.locked():
                inputs = variables.inputs()
                program = self._program(ctx, cluster, inputs)
                if program is None:
                    return None
                if not self._is_async or id(program) in self._trusted:
                    return self.run_and_assign(ctx, program, variables, inputs, ctx.inputs)
            wanted = self.run_uncompiled(ctx, ctx.inputs)
            after = variables.inputs()
            kept = [after[one.input_index] for one in program.resource_updates]
            self._judge(ctx, cluster, inputs, program, [*wanted, *kept])
            return wanted

    def _program(
        self, ctx: OpKernelContext, cluster: EngineCluster, inputs: Sequence[Any]
    ) -> CompiledCluster | None:
        if self._is_async:
            program = cluster.compiled(inputs)
            if program is None:
                self._compile_later(inputs)
            return program
        if not self._is_strict and cluster.is_megamorphic:
            return cluster.compiled(inputs)
        try:
            return (
                cluster.program(inputs) if ctx.step.deadline is None else self.program(ctx, inputs)
            )
        except DeadlineExceededError:
            raise
        except OpError as error:
            if self._is_strict:
                raise
            self.tell(error)
            return None

    def _compile_later(self, inputs: Sequence[Any]) -> None:
        """Have another thread compile the program for some inputs, once."""
        # Others may write to these arrays meanwhile. Only the shapes and types of parameters matter.
        known = self.num_constants
        given = [*map(np.array, inputs[:known]), *map(_without_values, inputs[known:])]
        key = tuple([one.shape for one in given])
        with self.lock:
            if key in self._asked_for:
                return
            self._asked_for.add(key)
            self._compiling += 1

        in_background(partial(_compile, weakref.ref(self), given))

    def compile_now(self, inputs: Sequence[Any]) -> None:
        """Compile the program for some inputs, for which another thread waits."""
        try:
            self.cluster.program(inputs)
        except OpError as error:
            self.tell(error)
        finally:
            self._compiling -= 1

    def _judge(
        self,
        ctx: OpKernelContext,
        cluster: EngineCluster,
        inputs: Sequence[Any],
        program: CompiledCluster,
        wanted: Sequence[Any],
    ) -> None:
        """Trust a program, or drop it where its results differ from the function's.

        The function's results are wanted, and then the values that it has given to variables.
        """
        ran = self.run_program(ctx, program, inputs)
        if ran is None:
            return
        differs = difference([*ran[0], *ran[1]], wanted, self.engine.precision)
        if not differs:
            self._trusted.add(id(program))
            return
        error = as_op_error(ValueError(differs))
        cluster.drop(inputs, error)
        given = list(inputs)

        def work() -> None:
            node = first_difference(self.engine, self.body, self.num_constants, given)
            logger("opkernel.engines").warning(
                "%s computes other values than the kernels of the CPU for node '%s': %s. %s is left to the CPU",
                *(self.engine.name, node, differs, self.node_def.name),
            )

        in_background(work)


def _compile(kernel: weakref.ref[XlaLaunchOp], inputs: Sequence[Any]) -> None:
    """Compile a cluster, unless nobody can run it any more."""
    there = kernel()
    if there is not None:
        there.compile_now(inputs)


def _without_values(value: Any) -> Any:
    """A value of the same shape and type that takes no memory."""
    if not isinstance(value, np.ndarray):
        return value
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)
