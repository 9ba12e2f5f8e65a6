"""XlaLaunch: the kernel that runs a cluster by the program that an engine made of it.

Where there is no program, the kernels of the CPU compute the function. The attr `_engine` names the engine, `_compile_mode`
says when the cluster is compiled.

Source: TensorFlow compiler/jit/kernels/xla_ops.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from opkernel.errors import NotFoundError, OpError
from opkernel.graph import FunctionLibraryDefinition, instantiate_function
from opkernel.kernel import (
    KernelContract,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    lookup_resource,
    register_kernel,
)
from opkernel.logs import logger
from opkernel.optimization.clusters.encapsulate_subgraphs import ENGINE
from opkernel.runtime.engines.background import in_background
from opkernel.runtime.engines.cluster import Cluster
from opkernel.runtime.engines.engine import engine_named
from opkernel.runtime.engines.variables import run_with_variables
from opkernel.state.resource_handle import handle_from_input

__all__ = ["COMPILE_MODE", "XlaLaunchOp"]

COMPILE_MODE = "_compile_mode"


@register_kernel(
    "XlaLaunch",
    device="CPU",
    contract=KernelContract(outputs_as_declared=True, may_alias=True, ignores_call=True),
)
class XlaLaunchOp(OpKernel):
    """Runs a cluster.

    Attributes:
        cluster: What it runs; None before the first step.
    """

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        attrs = self.node_def.attr
        self._function = attrs["function"].func
        self._engine = attrs[ENGINE].s.decode() if ENGINE in attrs else "xla"
        self._mode = attrs[COMPILE_MODE].s.decode() if COMPILE_MODE in attrs else "strict"
        self._num_constants = len(attrs["Tconstants"].list.type)
        self._num_resources = attrs["Nresources"].i
        self._uncompiled: Any = None
        self._compiling: set[Any] = set()
        self._lock = threading.Lock()
        self.cluster: Cluster | None = None

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program, or the function."""
        cluster, inputs = self.cluster, ctx.inputs
        if cluster is None:
            cluster = self._prepared(ctx)
        if self._num_resources:
            ctx.outputs[:] = self._with_variables(ctx, cluster)
            return
        if self._mode == "async":
            program = cluster.compiled(inputs)
            if program is None:
                self._compile_later(cluster, inputs)
                ctx.outputs[:] = self._run_uncompiled(ctx)
                return
        else:
            try:
                program = cluster.program(inputs)
            except OpError as error:
                ctx.outputs[:] = self._instead(ctx, error)
                return
        ctx.outputs[:] = program.run(inputs)[0]

    def _prepared(self, ctx: OpKernelContext) -> Cluster:
        """The cluster, from the library of the function that is running."""
        with self._lock:
            if self.cluster is None:
                library: FunctionLibraryDefinition = ctx.function_library.known_functions()
                body = instantiate_function(library, self._function)
                engine = engine_named(self._engine)
                engine.check_installed()
                self.cluster = Cluster(engine, body, self._num_constants)
            return self.cluster

    def _with_variables(self, ctx: OpKernelContext, cluster: Cluster) -> Sequence[Any]:
        inputs = ctx.inputs
        count = len(inputs) - self._num_resources
        variables: list[Any] = []
        try:
            for handle in inputs[count:]:
                variables.append(lookup_resource(ctx, handle_from_input(handle)))
            results = run_with_variables(cluster, inputs[:count], variables)
        except NotFoundError:  # a variable that the function is going to make
            return self._run_uncompiled(ctx)
        except OpError as error:
            return self._instead(ctx, error)
        finally:
            for one in variables:
                one.unref()
        return [inputs[one] if isinstance(one, int) else one for one in results]

    def _instead(self, ctx: OpKernelContext, error: OpError) -> Sequence[Any]:
        """The results without a program, where that is allowed."""
        if self._mode == "strict":
            raise error
        if not self._compiling:
            self._compiling.add(None)
            self._tell(error)
        return self._run_uncompiled(ctx)

    def _tell(self, error: OpError) -> None:
        logger("opkernel.engines").warning(
            "%s is not compiled by %s, and runs on the CPU's kernels: %s",
            self.node_def.name,
            self._engine,
            error,
        )

    def _run_uncompiled(self, ctx: OpKernelContext) -> Sequence[Any]:
        if self._uncompiled is None:
            with self._lock:
                name, attrs = self._function.name, self._function.attr
                self._uncompiled = ctx.function_library.instantiate(name, attrs)
        results: Sequence[Any] = self._uncompiled(ctx.step, *ctx.inputs)
        return results

    def _compile_later(self, cluster: Cluster, inputs: Sequence[Any]) -> None:
        """Have another thread compile the program for some inputs, once."""
        given = list(inputs)
        key = tuple([one.shape for one in given])
        with self._lock:
            if key in self._compiling:
                return
            self._compiling.add(key)

        def work() -> None:
            try:
                cluster.program(given)
            except OpError as error:
                self._tell(error)

        in_background(work)
