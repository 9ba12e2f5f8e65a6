"""ClusterKernel: what the kernels that run, or compile, clusters have in common.

The variables that a cluster takes are read before its program runs, and assigned to afterwards. Nobody else
writes to them meanwhile.

Source: XlaLocalLaunchBase in TensorFlow compiler/jit/kernels/xla_ops.cc; VariableInfo, LockVariables in
compiler/jit/xla_launch_util.cc.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property, partial
from typing import Any

from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
    as_op_error,
)
from opkernel.graph import FunctionBody, instantiate_function
from opkernel.interrupts import holding
from opkernel.kernel import (
    KernelContract,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    lookup_resource,
)
from opkernel.logs import logger
from opkernel.optimization.clusters.encapsulate_subgraphs import ENGINE, NUM_LASTING_ARGS
from opkernel.runtime.engines.cluster import EngineCluster, Uninitialized
from opkernel.runtime.engines.compiling import compiling
from opkernel.runtime.engines.engine import (
    ClusterArgument,
    CompiledCluster,
    Engine,
    ResourceUpdate,
    engine_named,
    warn_of_missing_engine,
)
from opkernel.runtime.engines.late_work import LateWork
from opkernel.runtime.program.request import is_compiling_forbidden
from opkernel.state.resource_handle import handle_from_input


class Variables:
    """The arguments of a cluster of which the last are variables.

    Args:
        tensors: The other arguments.
        resources: The variables.

    Raises:
        UnimplementedError: one is another resource.
    """

    def __init__(self, tensors: Sequence[Any], resources: Sequence[Any]) -> None:
        for one in resources:
            if not hasattr(one, "tensor_ref"):
                raise UnimplementedError(
                    f"A compiled function can take variables, and no {type(one).__name__}"
                )
        self._tensors, self._resources = tensors, resources

    def locked(self) -> AbstractContextManager[None]:
        """A scope in which nobody else writes to them."""
        # In one order, so that no two calls wait for each other.
        return holding([one.tensor_ref.mutex for one in sorted(set(self._resources), key=id)])

    def inputs(self) -> list[Any]:
        """All arguments; of a variable its value now, `Uninitialized` where it has none."""
        values = [
            one.tensor_ref.tensor if one.is_initialized else Uninitialized(one.dtype)
            for one in self._resources
        ]
        return [*self._tensors, *values]

    def assign(self, updates: Sequence[ResourceUpdate], values: Sequence[Any]) -> None:
        """Give variables the values that a program computed."""
        for update, value in zip(updates, values, strict=True):
            variable = self._resources[update.input_index - len(self._tensors)]
            variable.assign(value, update.dtype)


CLUSTER_CONTRACT = KernelContract(outputs_as_declared=True, may_alias=True, ignores_call=True)


class ClusterKernel(OpKernel):
    """A kernel with a cluster. The cluster's inputs are constants, other tensors, and resources.

    Attributes:
        library: Knows the functions.
        num_constants, num_resources: How many inputs are known at compile time, and how many are resources.
        late: The work of the engine that was abandoned.
        share_of_compiling: Of the time that a step has left, so much may be waited for a program.
    """

    num_constants = num_resources = num_lasting = 0
    share_of_compiling = 1.0

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        attrs = self.node_def.attr
        self.library = construction.function_library
        self.lock = threading.RLock()
        self._engine = attrs[ENGINE].s.decode() if ENGINE in attrs else "xla"
        self.late = LateWork()

    @cached_property
    def engine(self) -> Engine:
        """What compiles the cluster.

        Raises:
            NotFoundError: there is no engine of that name.
            UnimplementedError: what it needs is not installed.
        """
        engine = engine_named(self._engine)
        engine.check_installed()
        return engine

    @cached_property
    def body(self) -> FunctionBody:
        """The function that the cluster is."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its cluster is")

    @cached_property
    def cluster(self) -> EngineCluster:
        """The programs of the cluster."""
        with self.lock:
            known: EngineCluster | None = vars(self).get("cluster")
            if known is not None:
                return known
            count, lasting, body = self.num_constants, self.num_lasting, self.body
            return EngineCluster(self._compile, body.inputs, count, lasting, body)

    def _compile(self, arguments: Sequence[ClusterArgument]) -> CompiledCluster:
        """The program for some arguments."""
        engine, body = self.engine, self.body
        with compiling(engine.name, self.node_def.name, len(body.graph.get_operations())):
            return engine.compile(body, arguments)

    def program(self, ctx: OpKernelContext, inputs: Sequence[Any]) -> CompiledCluster | None:
        """The program for some inputs, compiled if there is none; None where that takes too much of the step's time.

        Raises:
            OpError: the engine cannot compile it.
        """
        cluster, deadline = self.cluster, ctx.step.deadline
        if deadline is None:
            return cluster.program(inputs)
        program = cluster.compiled(inputs)
        if program is not None:
            return program
        now = time.monotonic()
        until = now + self.share_of_compiling * (deadline - now)
        what = f"compiling {self.node_def.name} with {self._engine}"
        try:
            return self.late.do(partial(cluster.program, inputs), until, what, ctx.step.check)
        except DeadlineExceededError as error:
            ctx.step.check()
            self.note_slow_compiling(error)
            return None

    def note_slow_compiling(self, error: DeadlineExceededError) -> None:
        """Note that there was no time to compile; raises where nothing takes the program's place."""
        raise error

    def run_program(
        self, ctx: OpKernelContext, program: CompiledCluster, inputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any]] | None:
        """The results of a program and the values of variables; None where the engine fails to run it.

        Raises:
            DeadlineExceededError: it takes longer than the step may. It goes on, and nobody takes what it gives.
        """
        deadline = ctx.step.deadline
        try:
            run = self._runner(ctx, program)
            if deadline is None:
                return run(inputs)
            what = f"{self._engine} ran the program of {self.node_def.name}"
            return self.late.do(partial(run, inputs), deadline, what, ctx.step.check)
        except Exception as error:
            self.note_failure(inputs, error)
            return None

    def _runner(
        self, ctx: OpKernelContext, program: CompiledCluster
    ) -> Callable[[Sequence[Any]], tuple[list[Any], list[Any]]]:
        """The function that runs a program; it records what it does where the step is traced."""
        collector = ctx.step.stats_collector
        if collector is None:
            return program.run
        from opkernel.runtime.engines.traced_run import traced_run  # few steps are traced

        device, engine = self.device.name, self.engine.name
        return traced_run(collector, self.node_def, device, engine, self.body, program)

    def run_and_assign(
        self,
        ctx: OpKernelContext,
        program: CompiledCluster,
        variables: Variables,
        inputs: Sequence[Any],
        given: Sequence[Any],
    ) -> Sequence[Any] | None:
        """The results of a program that assigns to variables; None where the engine fails to run it.

        `given` are the inputs with the handles of variables, in the place of their values.
        """
        ran = self.run_program(ctx, program, inputs)
        if ran is None:
            return None
        variables.assign(program.resource_updates, ran[1])
        return [given[one] if isinstance(one, int) else one for one in ran[0]]

    def note_failure(self, inputs: Sequence[Any], error: Exception) -> None:
        """Note that a program failed for some inputs; raises where nothing takes its place."""
        raise error

    def variables(
        self, ctx: OpKernelContext, inputs: Sequence[Any], held: ExitStack
    ) -> Variables | None:
        """The inputs with their variables, which `held` gives up.

        None where one does not exist yet, or is given twice: a program takes two handles for two variables.
        """
        count, resources = len(inputs) - self.num_resources, []
        for handle in inputs[count:]:
            try:
                resource = lookup_resource(ctx, handle_from_input(handle))
            except NotFoundError:
                return None
            held.callback(resource.unref)
            if resource in resources:
                return None
            resources.append(resource)
        return Variables(inputs[:count], resources)


class FunctionCluster(ClusterKernel):
    """A kernel with a cluster that became a function: the CPU's kernels compute what the engine does not.

    Attributes:
        function: The function.
    """

    share_of_compiling = 0.5

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        attrs = self.node_def.attr
        self.function = attrs["function"].func
        self.num_lasting = attrs[NUM_LASTING_ARGS].i if NUM_LASTING_ARGS in attrs else 0
        self.num_constants, self.num_resources = self.count_arguments()
        self._is_told = False

    def count_arguments(self) -> tuple[int, int]:
        """How many inputs are known at compile time, and how many are resources."""
        attrs = self.node_def.attr
        return len(attrs["Tconstants"].list.type), attrs["Nresources"].i

    @cached_property
    def body(self) -> FunctionBody:
        """The function as a graph."""
        return instantiate_function(self.library.known_functions(), self.function)

    @cached_property
    def compiles(self) -> bool:
        """Whether the engine may compile the function; a warning says where it is not installed.

        Raises:
            NotFoundError: there is no engine of that name.
        """
        if is_compiling_forbidden():
            return False
        try:
            engine_named(self._engine).check_installed()
        except UnimplementedError as error:
            warn_of_missing_engine(str(error))
            return False
        return True

    def note_slow_compiling(self, error: DeadlineExceededError) -> None:
        """Log it: kernels have the rest of the time."""
        self.tell(error)

    def note_failure(self, inputs: Sequence[Any], error: Exception) -> None:
        """Drop the program that failed for some inputs; kernels compute them.

        Raises:
            DeadlineExceededError, CancelledError: the failure is the step's end.
        """
        if isinstance(error, DeadlineExceededError | CancelledError):
            raise error
        failure = as_op_error(error)
        if not isinstance(failure, ResourceExhaustedError):  # there may be more memory later
            self.cluster.drop(inputs, failure)
        self.tell(failure, "fails to run")

    def run_uncompiled(self, ctx: OpKernelContext, inputs: Sequence[Any]) -> Sequence[Any]:
        """The results of the function by the kernels of the CPU."""
        results: Sequence[Any]
        if ctx.step.stats_collector is not None:
            from opkernel.runtime.traces.step_stats_collector import in_call  # few steps are traced

            with in_call(self.node_def.name):
                results = self._traced_function(ctx.step, *inputs)
        else:
            results = self._function(ctx.step, *inputs)
        return results

    @cached_property
    def _function(self) -> Any:
        """The function, which kernels compute."""
        with self.lock:
            return self.library.instantiate(self.function.name, self.function.attr)

    @cached_property
    def _traced_function(self) -> Any:
        """The function, whose kernels tell what they take."""
        with self.lock:
            library = self.library.for_steps("traced")
            return library.instantiate(self.function.name, self.function.attr)

    def tell(self, error: OpError, what: str = "does not compile") -> None:
        """Log, once, that the cluster runs uncompiled, and what the engine does not do."""
        if not self._is_told:
            self._is_told = True
            logger("opkernel.engines").warning(
                "%s %s %s, which the CPU's kernels compute: %s",
                *(self._engine, what, self.node_def.name, error),
            )
