"""DataflowExecutor: runs a graph by dataflow; DataflowRun: one execution of the graph.

One thread decides the order: it takes a ready node, computes it, and hands its outputs on. Kernels that
wait, and kernels on threads of a pool, report to this thread (`elsewhere`).

A function that dataflow executes, too, runs as a frame of its own: nodes in it that wait, or that are
computed elsewhere, hold up nothing outside. All other functions are called. In a PartialDataflowRun feeds
come one after the other.

Source: ExecutorState in TensorFlow core/common_runtime/executor.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

from opkernel.errors import CancelledError, DeadlineExceededError, InvalidArgumentError, OpError
from opkernel.graph import Operation, Tensor
from opkernel.kernel import OpKernelContext, Step
from opkernel.runtime.dataflow.computing import (
    call,
    check_number,
    context_of,
    inputs_of,
    outputs_of,
)
from opkernel.runtime.dataflow.frames import Iteration, PendingCall, StepFrames, SuspendedPlan
from opkernel.runtime.dataflow.graph_view import GraphView
from opkernel.runtime.dataflow.node_item import Kind, NodeItem, RootInfo, node_of_kernel
from opkernel.runtime.dataflow.pending_completions import (
    Offload,
    PendingCompletions,
    Started,
    describe_next,
    is_worth_a_thread,
    missing_inputs,
)
from opkernel.runtime.plan.functional_ops import LibraryFunction
from opkernel.runtime.plan.services import DEAD, check_alive
from opkernel.runtime.program.call_frame import CallStep
from opkernel.runtime.program.error_report import describe_value, of_network_only, report

_CALL, _STEP, _CONSTANT = map(int, (Kind.CALL, Kind.STEP, Kind.CONSTANT))  # faster than the members
_MERGE, _SWITCH, _CALLER = int(Kind.MERGE), int(Kind.SWITCH), int(Kind.CALLER)
_ASYNC, _RETURN = int(Kind.ASYNC), int(Kind.RETURN)
_SUSPENDED = int(Kind.SUSPENDED)


class DataflowRun(StepFrames):
    """The state of one execution.

    Args:
        root: The graph.
        step: The step, which may have a pool of threads for expensive kernels.
        counts: Takes the number of computations of each node, by name. A node of a function has the name
            `function:node`.
    """

    def __init__(self, root: RootInfo, step: Step, counts: dict[str, int] | None = None) -> None:
        super().__init__(root, step)
        self._step = step
        self._counts = counts
        self._elsewhere = PendingCompletions(step)
        self._has_pool = self._elsewhere.has_pool

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        """Run to the end; the fetched values.

        Raises:
            OpError: the first that a node raised, once nothing is running any more.
        """
        elsewhere = self._elsewhere
        self.begin(self.root, feeds)
        try:
            self._compute_ready()
            while elsewhere.started:
                self._take_report()
                self._compute_ready()
        except BaseException as error:
            self.drop()
            elsewhere.stop(error)
            raise
        finally:
            elsewhere.forget()
        self._check_functions()
        return self._results(self.root)

    def _compute_ready(self) -> None:
        """Compute ready nodes until none is ready."""
        ready, check, counts = self.ready, self._step.check, self._counts
        started, reports = self._elsewhere.started, self._elsewhere.reports
        while ready:
            try:
                check()
            except (CancelledError, DeadlineExceededError) as error:
                raise type(error)(f"{error.message}; {describe_next(*ready[-1])}") from None
            if started and not reports.empty():
                self._take_report()
            item, iteration = ready.pop()
            if iteration.dead and self._is_dead(item, iteration):
                iteration.slots[item.start : item.stop] = item.cleared
                self.hand_on(item, (DEAD,) * len(item.edges), iteration, is_dead=True)
                continue
            if counts is not None:
                _count(item, iteration, counts)
            if item.kind <= _STEP:
                outputs = self._call(item, iteration)
            elif item.kind == _CONSTANT:
                outputs = item.function
            else:
                outputs = self._compute_special(item, iteration)
            if outputs is None:
                continue  # they come later
            if item.is_simple:
                self.hand_on_simply(item, outputs, iteration)
            else:
                self.hand_on(item, outputs, iteration)
            outputs = None  # a kernel may take over arrays that only its inputs hold

    def _call(self, item: NodeItem, iteration: Iteration) -> Sequence[Any] | None:
        """The outputs of a node that is computed by a function; None: a thread computes them."""
        slots = iteration.slots
        inputs = slots[item.start : item.stop]
        slots[item.start : item.stop] = item.cleared
        if self._has_pool and (self.ready or self._elsewhere.started) and is_worth_a_thread(item):
            self._elsewhere.start_on_pool(item, iteration, inputs)
            return None
        try:
            if item.kind == _CALL:
                return (item.function(*inputs),)
            return call(item, iteration, inputs)
        except Exception as error:
            _raise_at_node(error, item, inputs)

    def _is_dead(self, item: NodeItem, iteration: Iteration) -> bool:
        """Whether a node is passed over: an input is dead, or all of a Merge are."""
        if item.kind == _MERGE:
            return iteration.slots[item.start] is None
        return (
            item.id in iteration.dead and not item.is_transfer and item.kind != Kind.CONTROL_TRIGGER
        )

    def _compute_special(self, item: NodeItem, iteration: Iteration) -> Sequence[Any] | None:
        """The outputs of a node that is not computed by a function; None: they come later."""
        kind, slots = item.kind, iteration.slots
        if kind == _MERGE:
            merged, slots[item.start] = slots[item.start], None
            return merged  # type: ignore[no-any-return]  # the first alive, and its index
        if kind == _RETURN:
            self._return(iteration)
            return None
        inputs: Sequence[Any] = slots[item.start : item.stop]
        slots[item.start : item.stop] = item.cleared
        if kind == _CALLER:
            outer, requests = iteration.frame.call, item.function(inputs)
            depth = 1 if outer is None else outer.depth + 1
            return self._advance(PendingCall(item, iteration, inputs, requests, depth), None)
        if kind == _ASYNC:
            return self._start(item, iteration, inputs)
        if kind == _SUSPENDED:
            steps = item.function(iteration.frame.step, inputs)
            return self._resume(SuspendedPlan(item, iteration, steps), None)
        try:
            if item.refs or item.is_transfer:
                inputs = inputs_of(item, inputs)
            if kind == _SWITCH:
                return item.function(*inputs)  # type: ignore[no-any-return]  # the outputs
            if item.kernel is None:
                return inputs
            ctx = context_of(item, inputs, iteration)
            item.function(ctx)
            return outputs_of(item, ctx)
        except Exception as error:
            _raise_at_node(error, item, inputs)

    def _advance(self, under_way: PendingCall, results: Any) -> Sequence[Any] | None:
        """Go on with a node that calls functions: its outputs, or None where they come later.

        Args:
            under_way: The node.
            results: Those of the function that it called before; None at the beginning.
        """
        item = under_way.item
        try:
            while True:
                self._step.check()
                try:
                    function, arguments = under_way.requests.send(results)
                except StopIteration as end:
                    return check_number(item, end.value)
                under_way.function = function.name
                body = _body(function, self._step)
                if body is not None:
                    steps, step = function.call_steps, under_way.iteration.frame.step
                    if steps is not None:
                        step = CallStep(step, steps, arguments)
                    self.enter_function(under_way, body, step, arguments)
                    return None
                results = function(self._step, *arguments)
        except Exception as error:
            _raise_at_node(error, item, under_way.inputs)

    def _return(self, iteration: Iteration) -> None:
        """Take a function that is over out of the iteration that it was called in; go on there."""
        under_way = iteration.frame.call
        assert under_way is not None
        item = under_way.item
        try:
            results = self._results(iteration)
        except OpError as error:
            _raise_at_node(error, item, under_way.inputs)
        del under_way.iteration.children[under_way]
        outputs = self._advance(under_way, results)
        if outputs is not None:
            self.hand_on(item, outputs, under_way.iteration)

    def _take_report(self) -> None:
        """Hand on outputs computed elsewhere; wait for them if need be."""
        taken = self._elsewhere.take()
        if taken is None:
            self._elsewhere.check()
            return
        self._finish(*taken)

    def _start(
        self, item: NodeItem, iteration: Iteration, inputs: Sequence[Any]
    ) -> Sequence[Any] | None:
        """The outputs of an asynchronous kernel that need not wait; None: it was started."""
        try:
            if item.attempt is not None:
                assert item.kernel is not None
                ctx = OpKernelContext(item.kernel, inputs, iteration.frame.step, item.params)
                if item.attempt(ctx):
                    return ctx.finish()
            ctx = context_of(item, inputs_of(item, inputs), iteration)
            started = self._elsewhere.start(item, iteration, ctx)
        except Exception as error:
            _raise_at_node(error, item, inputs)
        if started is not None:
            self._finish(started, None)
        return None

    def _resume(self, plan: SuspendedPlan, outputs: Any) -> Sequence[Any] | None:
        """Go on with a plan until it has to wait: its outputs, or None where it waits.

        Args:
            plan: The plan.
            outputs: Those of the kernel that it waited for; None at the beginning.
        """
        item, iteration = plan.item, plan.iteration
        while True:
            try:
                awaited, inputs = plan.steps.send(outputs)
            except StopIteration as end:
                return check_number(item, end.value)
            except Exception as error:
                _raise_at_node(error, item, ())
            node = node_of_kernel(awaited.op, awaited.kernel)
            ctx = awaited.context(iteration.frame.step, inputs)
            try:
                started = self._elsewhere.start(node, iteration, ctx, plan)
            except Exception as error:
                _raise_at_node(error, node, inputs)
            if started is None:
                return None
            outputs = self._outputs_of(started, None)

    def _finish(self, started: Started, outcome: Any) -> None:
        """Hand on the outputs of a node that was computed elsewhere."""
        item, iteration, plan = started.item, started.iteration, started.plan
        outputs: Sequence[Any] | None = self._outputs_of(started, outcome)
        if plan is not None:
            item, outputs = plan.item, self._resume(plan, outputs)
        if outputs is not None:
            # The receiver of a tensor that was sent dead is dead, too.
            is_dead = item.is_transfer and any(output is DEAD for output in outputs)
            self.hand_on(item, outputs, iteration, is_dead)

    def _outputs_of(self, started: Started, outcome: Any) -> Sequence[Any]:
        """The outputs of a node that was computed elsewhere."""
        error = outcome if started.ctx is None else started.ctx.status
        if isinstance(error, CancelledError):
            self._elsewhere.check(started)  # the step was cancelled, or is late
        try:
            if isinstance(error, Exception):
                raise error
            return outcome if started.ctx is None else outputs_of(started.item, started.ctx)
        except Exception as error:
            _raise_at_node(error, started.item, started.inputs)

    def _check_functions(self) -> None:
        """Raise where the step is at its end and a function in it is not."""
        if not any(root.children for root in self.roots):
            return
        for iteration in self.iterations():
            for under_way in iteration.children:
                if isinstance(under_way, PendingCall):
                    error = InvalidArgumentError(
                        f"The function {under_way.function!r} did not end: {self._missing()}"
                    )
                    _raise_at_node(error, under_way.item, under_way.inputs)

    def _results(self, iteration: Iteration) -> Sequence[Any]:
        """The fetches, or the results of a function, at the end.

        Raises:
            InvalidArgumentError: one is dead, or the end came without it.
        """
        info = iteration.frame.info
        assert isinstance(info, RootInfo)
        values = iteration.slots[info.sink.start : info.sink.stop]
        for index, value in enumerate(values):
            if value is None or value is DEAD:
                self._refuse(info.sink.op.inputs[index], value)
        iteration.slots[info.sink.start : info.sink.stop] = info.sink.cleared
        return values

    def _refuse(self, tensor: Tensor, value: Any) -> None:
        """Raise the error for a fetch that is dead, or was not computed."""
        try:
            if value is None:
                raise InvalidArgumentError(
                    f"The step ended without a value for {tensor.name}: {self._missing()}"
                )
            check_alive(value, tensor.name)
        except OpError as error:
            error.add_node(tensor.op.name, tensor.op.type)
            raise

    def _missing(self) -> str:
        return missing_inputs([*self.unfinished, *self.iterations()])


class DataflowExecutor:
    """Runs a graph node by node; used from any thread.

    Args:
        view: The graph.

    Attributes:
        view: The graph.
        uses_step: Whether any node looks at the step: one may.
    """

    uses_step = True

    def __init__(self, view: GraphView) -> None:
        self.view = view

    def run(self, step: Step, *feeds: Any) -> Sequence[Any]:
        """Run one step; the fetched values.

        Raises:
            OpError: the first that a node raised.
            InvalidArgumentError: a fetch is dead.
        """
        run = DataflowRun(self.view.root, step)
        if step.stats_collector is None:
            return run.run(feeds)
        from opkernel.runtime.traces.tracing_watcher import run_traced  # rarely needed

        traced: Sequence[Any] = run_traced(run, step.stats_collector, feeds)
        return traced

    def run_counting(self, step: Step, *feeds: Any) -> tuple[Sequence[Any], dict[str, int]]:
        """Run one step; the fetched values, and how many times each node was computed, by name.

        The nodes of functions that are executed by dataflow, too, count as `function:node`. Constants
        outside loops are not computed: steps begin with them. Dead nodes do not count. The nodes of a part
        count once each time that its plan is run.
        """
        counts: dict[str, int] = {}
        return DataflowRun(self.view.root, step, counts).run(feeds), counts

    def __repr__(self) -> str:
        loops = len(self.view.frames) - 1
        return f"<opkernel.DataflowExecutor of {loops:,} loops; `.source` lists its operations>"

    @property
    def source(self) -> str:
        """The nodes as text, loop by loop, each with the nodes that it waits for."""
        lines = ["# Run by the dataflow executor, node by node as inputs arrive."]
        for frame in self.view.frames.values():
            lines.append(f"loop {frame.name!r}:" if frame.name else "graph:")
            lines += [
                f"    {line}" for item in frame.items if item.op.type for line in _lines(item)
            ]
        return "\n".join(lines) + "\n"


def _lines(item: NodeItem) -> list[str]:
    if item.part is None:
        return [_described(item.op)]
    return ["a plan:", *[f"    {line}" for line in item.part.plan.source.splitlines()]]


def _described(op: Operation) -> str:
    inputs = [tensor.name for tensor in op.inputs]
    inputs += [f"^{control.name}" for control in op.control_inputs]
    return f"{op.name!r} = {op.type}({', '.join(map(repr, inputs))})"


_COMPUTING = frozenset(
    function.__code__
    for function in (DataflowRun._call, DataflowRun._compute_special, Offload._run_next)
)


def node_of_frame(frame: FrameType) -> Operation | None:
    """The node that a frame of the dataflow executor computes; None for all other frames."""
    item = frame.f_locals.get("item") if frame.f_code in _COMPUTING else None
    return None if item is None else item.op


def _body(function: LibraryFunction, step: Step) -> RootInfo | None:
    """The body of a function that is executed by dataflow, and in the step itself; None for others."""
    view = getattr(function.plan, "view", None)
    runtime = function.runtime
    if not isinstance(view, GraphView):
        return None
    return None if runtime.origin and step.function_library is not runtime else view.root


def _count(item: NodeItem, iteration: Iteration, counts: dict[str, int]) -> None:
    """Count a node, or those of a part; the ends of functions are none."""
    if item.kind != Kind.RETURN:
        under_way = iteration.frame.call
        for op in item.operations:
            name = op.name if under_way is None else f"{under_way.function}:{op.name}"
            counts[name] = counts.get(name, 0) + 1


def _raise_at_node(error: Exception, item: NodeItem, inputs: Sequence[Any]) -> NoReturn:
    """Raise an error told with the node that raised it, or the one in the function that it called."""
    told = of_network_only(report(error), item.name, item.op.op_def)
    told.add_node(item.name, item.op.type, [describe_value(value) for value in inputs])
    raise told from (error.__cause__ if told is error else error)
