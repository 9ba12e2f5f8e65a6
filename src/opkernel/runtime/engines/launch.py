"""XlaLaunch: the kernel that runs a cluster by the program that an engine made of it.

Where there is no program, the kernels of the CPU compute the function. The attr `_engine` names the engine, `_compile_mode`
says when the cluster is compiled.

Source: TensorFlow compiler/jit/kernels/xla_ops.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from opkernel.device.local_device import CPU
from opkernel.errors import NotFoundError, OpError, as_op_error
from opkernel.graph import FunctionBody, instantiate_function
from opkernel.kernel import (
    KernelContract,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    lookup_resource,
    register_kernel,
)
from opkernel.logs import logger
from opkernel.optimization.clusters.encapsulate_subgraphs import COMPILE_MODE, ENGINE
from opkernel.runtime.engines.background import in_background
from opkernel.runtime.engines.cluster import Cluster
from opkernel.runtime.engines.comparison import difference, first_difference
from opkernel.runtime.engines.engine import CompiledCluster, Engine, engine_named
from opkernel.runtime.engines.variables import Variables
from opkernel.state.resource_handle import handle_from_input

__all__ = ["XlaLaunchOp"]


@register_kernel(
    "XlaLaunch",
    device=CPU.device_type,
    contract=KernelContract(outputs_as_declared=True, may_alias=True, ignores_call=True),
)
class XlaLaunchOp(OpKernel):
    """Runs a cluster.

    Attributes:
        cluster: What it runs; None before the first step.
        engine: The name of the engine.
    """

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._library = construction.function_library
        attrs = self.node_def.attr
        self.engine = attrs[ENGINE].s.decode() if ENGINE in attrs else "xla"
        self._function = attrs["function"].func
        self._mode = attrs[COMPILE_MODE].s.decode() if COMPILE_MODE in attrs else "strict"
        self._num_constants = len(attrs["Tconstants"].list.type)
        self._num_resources = attrs["Nresources"].i
        self._uncompiled: Any = None
        self._asked_for: set[Hashable] = set()
        self._compiling = 0
        self._trusted: set[int] = set()
        self._is_told = False
        self._lock = threading.Lock()
        self.cluster: Cluster | None = None
        self._compiler: tuple[Engine, FunctionBody]

    @property
    def is_compiling(self) -> bool:
        """Whether another thread compiles for it."""
        return self._compiling > 0

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program, or the function."""
        cluster = self.cluster or self._prepared()
        if self._num_resources:
            results = self._run_with_variables(ctx, cluster)
        else:
            results = self._run(ctx, cluster)
        ctx.outputs[:] = self._run_uncompiled(ctx) if results is None else results

    def _prepared(self) -> Cluster:
        """The cluster, from the library that the kernel was made with."""
        with self._lock:
            if self.cluster is None:
                body = instantiate_function(self._library.known_functions(), self._function)
                engine = engine_named(self.engine)
                engine.check_installed()
                self._compiler = engine, body
                self.cluster = Cluster(
                    partial(engine.compile, body), body.inputs, self._num_constants
                )
            return self.cluster

    def _run(self, ctx: OpKernelContext, cluster: Cluster) -> Sequence[Any] | None:
        """The results of the program; None where there is none."""
        inputs = ctx.inputs
        program = self._program(cluster, inputs)
        if program is None:
            return None
        if self._is_trusted(program):
            return program.run(inputs)[0]
        found, _ = program.run(inputs)
        wanted = self._run_uncompiled(ctx)
        self._judge(cluster, inputs, program, difference(found, wanted))
        return wanted

    def _run_with_variables(self, ctx: OpKernelContext, cluster: Cluster) -> Sequence[Any] | None:
        inputs = ctx.inputs
        count = len(inputs) - self._num_resources
        with ExitStack() as held:
            try:
                resources = _resources(ctx, inputs[count:], held)
            except NotFoundError:  # a variable that the function is going to make
                return None
            results = self._run_locked(ctx, cluster, Variables(inputs[:count], resources))
        if results is None:
            return None
        return [inputs[one] if isinstance(one, int) else one for one in results]

    def _run_locked(
        self, ctx: OpKernelContext, cluster: Cluster, variables: Variables
    ) -> Sequence[Any] | None:
        with variables.locked():
            inputs = variables.inputs()
            program = self._program(cluster, inputs)
            if program is None:
                return None
            results, written = program.run(inputs)
            if self._is_trusted(program):
                variables.assign(program.resource_updates, written)
                return results
        wanted = self._run_uncompiled(ctx)
        after = variables.inputs()
        kept = [after[one.input_index] for one in program.resource_updates]
        self._judge(cluster, inputs, program, difference([*results, *written], [*wanted, *kept]))
        return wanted

    def _program(self, cluster: Cluster, inputs: Sequence[Any]) -> CompiledCluster | None:
        if self._mode == "async":
            program = cluster.compiled(inputs)
            if program is None:
                self._compile_later(cluster, inputs)
            return program
        try:
            return cluster.program(inputs)
        except OpError as error:
            if self._mode == "strict":
                raise
            self._tell(error)
            return None

    def _compile_later(self, cluster: Cluster, inputs: Sequence[Any]) -> None:
        """Have another thread compile the program for some inputs, once."""
        given = list(inputs)
        key = tuple([one.shape for one in given])
        with self._lock:
            if key in self._asked_for:
                return
            self._asked_for.add(key)
            self._compiling += 1

        def work() -> None:
            try:
                cluster.program(given)
            except OpError as error:
                self._tell(error)
            finally:
                self._compiling -= 1

        in_background(work)

    def _is_trusted(self, program: CompiledCluster) -> bool:
        """Whether the program's results need no comparison with the function's."""
        return self._mode != "async" or id(program) in self._trusted

    def _judge(
        self, cluster: Cluster, inputs: Sequence[Any], program: CompiledCluster, differs: str
    ) -> None:
        """Trust a program, or drop it where its first results differ from the function's."""
        if not differs:
            self._trusted.add(id(program))
            return
        error = as_op_error(ValueError(differs))
        cluster.drop(inputs, error)
        given, (engine, body) = list(inputs), self._compiler

        def work() -> None:
            node = first_difference(engine, body, self._num_constants, given)
            logger("opkernel.engines").warning(
                "%s computes other values than the kernels of the CPU for node '%s': %s. %s is left to the CPU",
                *(self.engine, node, differs, self.node_def.name),
            )

        in_background(work)

    def _tell(self, error: OpError) -> None:
        if not self._is_told:
            self._is_told = True
            logger("opkernel.engines").warning(
                "%s does not compile %s, which the CPU's kernels compute: %s",
                *(self.engine, self.node_def.name, error),
            )

    def _run_uncompiled(self, ctx: OpKernelContext) -> Sequence[Any]:
        if self._uncompiled is None:
            with self._lock:
                name, attrs = self._function.name, self._function.attr
                self._uncompiled = self._library.instantiate(name, attrs)
        results: Sequence[Any] = self._uncompiled(ctx.step, *ctx.inputs)
        return results


def _resources(ctx: OpKernelContext, handles: Sequence[Any], held: ExitStack) -> list[Any]:
    """The resources of handles, to be given up by `held`; raises NotFoundError where there is none."""
    found = []
    for handle in handles:
        resource = lookup_resource(ctx, handle_from_input(handle))
        held.callback(resource.unref)
        found.append(resource)
    return found
