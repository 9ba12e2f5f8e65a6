"""The builder of programs: from a request to the program that computes it.

    prune -> PRE_PLACEMENT passes -> placement -> POST_PLACEMENT and POST_REWRITE_FOR_EXEC passes
        -> partition -> POST_PARTITIONING passes -> kernels -> executor

Sessions, functions of libraries, traced functions and partial runs differ in nothing but what they
ask for (`ProgramRequest`).

Source: TensorFlow core/common_runtime/graph_execution_state.cc, direct_session.cc
(CreateExecutors), process_function_library_runtime.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opkernel.device.budget import Budget, current_budget
from opkernel.device.work_clock import in_time
from opkernel.errors import DeadlineExceededError, InvalidArgumentError, OpError
from opkernel.graph import Operation
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.logs import logger
from opkernel.records import dataclass, replace
from opkernel.runtime.placement.placer import Assignment, place
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS, FunctionLibrary, calls_functions
from opkernel.runtime.program.executors import Executor, new_executor
from opkernel.runtime.program.graph_passes import GraphPasses, PassFailedError
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.request import (
    ExecutorArgs,
    Partition,
    Passes,
    ProgramRequest,
    Subgraph,
)

if TYPE_CHECKING:
    from opkernel.kernel.bounded import KnownOutputs
    from opkernel.runtime.adaptive.adaptive import Adaptive
    from opkernel.runtime.watch.kernel_watcher import KernelWatcher


_OF_OUTPUT = 1 << 14
"""The work that finding the shape of an output is."""


def check_known_sizes(budget: Budget, order: Sequence[Operation], kernels: KernelCache) -> None:
    """Refuse a program if one of its nodes is known to give more than the memory holds.

    Control flow of TensorFlow 1 may leave nodes out, so that graphs with it are never refused.

    Raises:
        ResourceExhaustedError: a node gives too much, whatever is fed.
    """
    if not LOW_LEVEL_CONTROL_FLOW.isdisjoint({op.type for op in order}):
        return
    for op in order:
        known = _known(op, kernels)
        if known is not None and known.num_bytes:
            try:
                budget.check_memory(known.num_bytes, known.what)
            except OpError as error:
                error.add_node(op.name, op.type)
                raise


def _known(op: Operation, kernels: KernelCache) -> KnownOutputs | None:
    """The known facts about a node's outputs; None where a function or an error gives them."""
    if op.type in RUN_BY_EXECUTORS or calls_functions(op):
        return None
    from opkernel.kernel.bounded import known_outputs  # where memory is limited

    try:
        shapes = [tensor.shape for tensor in in_time(op.outputs, _OF_OUTPUT)]
        return known_outputs(
            kernels.kernel(op),
            [tuple(s.as_tensor_shape()) if s.is_fully_defined() else None for s in shapes],
        )
    except DeadlineExceededError:
        raise
    except OpError:  # the step that runs the node will tell the error
        return None


Shapes = Sequence[Sequence[int]]
"""The shapes of all feeds, in order."""


@dataclass(frozen=True)
class StepProgram:
    """A graph that is ready to be run for certain feeds, fetches and targets.

    Attributes:
        request: What it was built for.
        part: What it runs, as the passes have left it.
        partitions: What each device runs of it, the caller's first.
        args: What the executor of each partition is made from.
        executors: What runs each partition.
        executor: What runs them all.
        adaptive: Finds out how steps are fastest, where there are several ways to run them.
        specialized: Gives the executor for feeds of some shapes, where these may have their own.
    """

    request: ProgramRequest
    part: Subgraph
    partitions: Sequence[Partition]
    args: Sequence[ExecutorArgs]
    executors: Sequence[Executor]
    executor: Executor
    adaptive: Adaptive | None = None
    specialized: Callable[[Shapes], Executor] | None = None

    @property
    def run(self) -> Callable[..., Sequence[Any]]:
        """Runs one step: `run(step, *feeds)` gives the fetches."""
        return self.executor.run if self.adaptive is None else self.adaptive.run

    def running(self, values: Sequence[Any]) -> StepProgram:
        """The program that runs steps which are fed these values, as far as that was found out."""
        return (self.adaptive and self.adaptive.program_for(values)) or self

    def is_settled(self, values: Sequence[Any]) -> bool:
        """Whether no trial is under way, or to come, for steps that are fed these values."""
        return self.adaptive is None or self.adaptive.is_settled(values)

    def is_trying(self, values: Sequence[Any]) -> bool:
        """Whether a trial is under way for steps that are fed these values."""
        return self.adaptive is not None and self.adaptive.is_trying(values)

    @property
    def uses_step(self) -> bool:
        """Whether any kernel looks at the step: those of engines that are tried may."""
        return self.executor.uses_step or self.request.tries_engines

    def executor_for(self, shapes: Shapes | None) -> Executor:
        """The executor for feeds of these shapes, once they have come a few times.

        Args:
            shapes: The shapes; None for those that were decided about last.
        """
        adaptive = self.adaptive
        chosen: StepProgram | None = adaptive.program_of_shapes(shapes) if adaptive else None
        if chosen is not None:
            return chosen.executor
        if shapes is None or self.specialized is None:
            return self.executor
        return self.specialized(shapes)


def build_program(request: ProgramRequest) -> StepProgram:
    """Build a program; from the graph as it is, where a pass fails.

    Raises:
        NotFoundError: there is no pass or executor of a name given; or a needed node has no kernel.
        InvalidArgumentError: a needed node is invalid, or lacks its device; or the graph has a cycle.
        UnimplementedError, FailedPreconditionError: the graph needs what the executor cannot do.
        ResourceExhaustedError, DeadlineExceededError: there is no memory for a node, or no time left.
    """
    with paused_garbage_collection():
        part, assignment = prepare(request)
        partitions = [_finished(one, request) for one in partition(part, assignment)]
        program = _assembled(request, part, partitions)
    return _adaptive(program)


def watched_program(
    program: StepProgram, library: FunctionLibrary, watcher: KernelWatcher | None
) -> StepProgram:
    """A program that runs the same kernels of the same optimised graph under another watch.

    Args:
        program: The program.
        library: The functions that its nodes call, under the same watch.
        watcher: Watches the kernels.
    """
    request = replace(program.request, library=library, watcher=watcher)
    with paused_garbage_collection():
        return _assembled(request, program.part, program.partitions)


def _assembled(
    request: ProgramRequest, part: Subgraph, partitions: Sequence[Partition]
) -> StepProgram:
    """The program of partitions on which all passes have run."""
    args = [_with_kernels(one, request) for one in partitions]
    budget = current_budget()
    if budget is not None and budget.memory_limit_bytes is not None:
        for one in args:
            check_known_sizes(budget, one.order, one.kernels)
    executors = [new_executor(request.executor_type, one) for one in args]
    executor = _joined({p.device.name: e for p, e in zip(partitions, executors, strict=True)})
    return StepProgram(request, part, partitions, args, executors, executor)


def _adaptive(program: StepProgram) -> StepProgram:
    """The program with what finds out how its steps are fastest, where there are several ways to run them."""
    request, part = program.request, program.part
    if request.follows_shapes and not part.knows_shapes and part.reads_shapes:
        from opkernel.runtime.adaptive.shapes import ShapeSpecializer  # for some graphs

        shapes = ShapeSpecializer(program, build_program)
        program = replace(program, adaptive=shapes, specialized=shapes.executor_for)
    if request.tries_engines:
        from opkernel.runtime.adaptive.shapes import EngineTrial  # where a session asks for it

        program = replace(program, adaptive=EngineTrial(program, build_program))
    return program


def prepare(request: ProgramRequest) -> tuple[Subgraph, Assignment]:
    """The partitions: a graph for each device, after the passes before partitioning.

    Raises:
        NotFoundError: there is no pass of a name given.
        InvalidArgumentError: a node lacks its device, or the graph has a cycle.
    """
    if not request.placed:
        for op in request.part.operations:  # also what no pass will leave needs a device
            request.devices.candidates(op)
    try:
        return _placed(request, request.passes)
    except PassFailedError as error:
        logger("opkernel.optimization").info("The graph is not optimized: %s", error)
        return _placed(request, False)


def _placed(request: ProgramRequest, chosen: Passes) -> tuple[Subgraph, Assignment]:
    """The placement, with the passes before and after it."""
    passes = GraphPasses(
        request.part,
        chosen,
        request.library,
        request.feed_facts,
        request.placed,
        request.jit_options(),
        keeps_bits=request.keeps_bits,
    )
    passes.run("PRE_PLACEMENT")
    is_logged = request.logs_placement and not request.placed
    try:
        assignment = place(passes.operations, request.devices, request.placed, is_logged=is_logged)
    except InvalidArgumentError as error:
        if chosen is False:  # it is an error of the graph, not of what passes made of it
            raise
        raise PassFailedError(str(error)) from error
    passes.assign(assignment)
    passes.run("POST_PLACEMENT", "POST_REWRITE_FOR_EXEC")
    return passes.part, assignment


def _finished(one: Partition, request: ProgramRequest) -> Partition:
    """A partition after the passes that run on each by itself."""
    strange = one.part.operations if one.device.has_own_memory else ()
    places = {op.name: one.device for op in strange}
    passes = GraphPasses(
        one.part, request.passes, request.library, placed=places, keeps_bits=request.keeps_bits
    )
    try:
        passes.run("POST_PARTITIONING")
    except PassFailedError as error:
        logger("opkernel.optimization").info("A partition is not optimized: %s", error)
        return one
    return replace(one, part=passes.part)


def _with_kernels(one: Partition, request: ProgramRequest) -> ExecutorArgs:
    """The arguments for the executor of a partition."""
    part, watcher = one.part, request.watcher
    if watcher is not None and watcher.reads_arrays and one.device.has_own_memory:
        watcher = None
    return ExecutorArgs(
        part,
        kernels=request.kernels.on(one.device),
        library=_library(request, part),
        watcher=watcher,
        pool=request.pool,
        findings=request.findings,
    )


def _library(request: ProgramRequest, part: Subgraph) -> FunctionLibrary:
    """The functions that a part calls, each for the known facts of its arguments if there are any."""
    if request.feed_facts is not None:
        knows = not all(facts.are_empty for facts in request.feed_facts)
    else:
        knows = request.follows_shapes and part.knows_shapes and part.reads_shapes
    if not knows:
        return request.library
    from opkernel.runtime.adaptive.shapes import ShapedFunctions  # for some graphs

    return ShapedFunctions(request.library, part.operations)


def _joined(executors: Mapping[str, Executor]) -> Executor:
    """The executor of the partitions of all devices; the first has the feeds and fetches."""
    if len(executors) == 1:
        return next(iter(executors.values()))
    from opkernel.runtime.placement.partitioning import ParallelPartitions  # most have one

    return ParallelPartitions(executors)


def partition(whole: Subgraph, assignment: Assignment) -> list[Partition]:
    """Cut what a program needs into a part for each device that runs any of it.

    The first part runs on the client's device; it is given all feeds and gives all fetches.

    Args:
        whole: The operations that the program needs; its graph stays as it is.
        assignment: Where each operation runs.
    """
    if not assignment.elsewhere:
        return [Partition.of_all(assignment.client_device, whole)]
    from opkernel.runtime.placement.partitioning import Partitioning  # for several devices

    return Partitioning(whole, assignment).partitions()
