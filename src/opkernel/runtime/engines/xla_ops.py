"""The kernels of XlaLaunch, which runs a cluster, and of _XlaCompile and _XlaRun, which compile and run it in two nodes.

Where there is no program, the kernels of the CPU compute the function. The attr `_engine` names the engine,
`_compile_mode` says when the cluster is compiled.

_XlaCompile gives the key of what it compiled, and whether it could; where it could not, a call of the function takes the
place of _XlaRun.

State: `_closures` has what was compiled and not yet run, by its key.

Source: TensorFlow compiler/jit/kernels/xla_ops.cc.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from typing import Any

import numpy as np

from opkernel.device.local_device import CPU
from opkernel.errors import DeadlineExceededError, InternalError, OpError, as_op_error
from opkernel.graph import FunctionBody
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, register_kernel
from opkernel.logs import logger
from opkernel.optimization.clusters.encapsulate_subgraphs import COMPILE_MODE
from opkernel.records import dataclass, replace
from opkernel.runtime.engines.cluster import EngineCluster
from opkernel.runtime.engines.cluster_kernel import CLUSTER_CONTRACT, FunctionCluster
from opkernel.runtime.engines.differences import difference, first_difference, noise_of
from opkernel.runtime.engines.engine import CompiledCluster
from opkernel.runtime.engines.late_work import in_background
from opkernel.types import DataType, object_scalar


@register_kernel("XlaLaunch", device=CPU.device_type, contract=CLUSTER_CONTRACT)
class XlaLaunchOp(FunctionCluster):
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
        if self.compiles and not (self.late.abandoned and self.late.is_under_way):
            run = self._run_with_variables if self.num_resources else self._run
            results = run(ctx, self.cluster)
        ctx.outputs[:] = self.run_uncompiled(ctx, ctx.inputs) if results is None else results

    def _run(self, ctx: OpKernelContext, cluster: EngineCluster) -> Sequence[Any] | None:
        """The results of the program; None where there is none."""
        inputs = ctx.inputs
        program = cluster.compiled(inputs)
        if program is None:
            program = self._missing_program(ctx, cluster, inputs)
            if program is None:
                return None
        if self._is_async and id(program) not in self._trusted:
            wanted = self.run_uncompiled(ctx, inputs)
            self._judge(ctx, cluster, inputs, program, wanted)
            return wanted
        if ctx.step.deadline is not None or ctx.step.stats_collector is not None:
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
                program = cluster.compiled(inputs)
                if program is None:
                    program = self._missing_program(ctx, cluster, inputs)
                    if program is None:
                        return None
                if not self._is_async or id(program) in self._trusted:
                    return self.run_and_assign(ctx, program, variables, inputs, ctx.inputs)
            wanted = self.run_uncompiled(ctx, ctx.inputs)
            after = variables.inputs()
            kept = [after[one.input_index] for one in program.resource_updates]
            self._judge(ctx, cluster, inputs, program, [*wanted, *kept])
            return wanted

    def _missing_program(
        self, ctx: OpKernelContext, cluster: EngineCluster, inputs: Sequence[Any]
    ) -> CompiledCluster | None:
        """The program for inputs that have none; None where it is not compiled in this step."""
        if not self._is_strict and cluster.is_megamorphic:
            return None
        if self._is_async:
            self._compile_later(inputs)
            return None
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
        found = [*ran[0], *ran[1]]
        differs = difference(found, wanted, self.engine.precision)
        if differs:
            noise = noise_of(partial(self.run_program, ctx, program), inputs, found)
            differs = difference(found, wanted, self.engine.precision, noise)
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


@register_kernel("XlaLaunchV2", device=CPU.device_type, contract=CLUSTER_CONTRACT)
class XlaLaunchV2Op(XlaLaunchOp):
    """XlaLaunch with the arguments in the order of the function, of which attrs number constants and resources."""

    def count_arguments(self) -> tuple[int, int]:
        """As of XlaLaunch; the cluster takes constants first and resources last."""
        attrs, places = self.node_def.attr, range(self.num_inputs)
        self._resources = [i for i in places if self.input_types[i] is DataType.DT_RESOURCE]
        numbered = set(attrs["constants"].list.i).difference(self._resources)
        constants = [i for i in places if i in numbered]
        others = [i for i in places if i not in numbered and i not in self._resources]
        self._order = [*constants, *others, *self._resources]
        return len(constants), len(self._resources)

    @cached_property
    def body(self) -> FunctionBody:
        """The function as a graph, with the arguments in the cluster's order."""
        body: FunctionBody = super().body
        nodes = tuple([body.arg_nodes[place] for place in self._order])
        types = tuple([body.arg_types[place] for place in self._order])
        return replace(body, arg_nodes=nodes, arg_types=types)

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program, or the function."""
        ctx.inputs = [ctx.inputs[place] for place in self._order]
        super().compute(ctx)

    def run_uncompiled(self, ctx: OpKernelContext, inputs: Sequence[Any]) -> Sequence[Any]:
        """The results of the function by the kernels of the CPU."""
        in_order = dict(zip(self._order, inputs, strict=True))
        return super().run_uncompiled(ctx, [in_order[place] for place in range(len(in_order))])


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


@dataclass(frozen=True)
class _Closure:
    """What was compiled, with the inputs that are known at compile time."""

    kernel: FunctionCluster
    constants: Sequence[Any]


_closures: dict[bytes, _Closure] = {}
_numbers = itertools.count()


@register_kernel("_XlaCompile", device=CPU.device_type, contract=CLUSTER_CONTRACT)
class XlaCompileOp(FunctionCluster):
    """Compiles a cluster for its inputs."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Give a key, and whether there is a program."""
        is_compiled = False
        try:
            with ExitStack() as held:
                variables = self.variables(ctx, ctx.inputs, held)
                if variables is not None and self.compiles and not self.late.is_under_way:
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
