"""DataflowRun: one execution of a graph by the dataflow executor.

One thread decides what is computed when: it takes a ready node, computes it, and hands its outputs
on. Kernels that wait, and those that threads of a pool compute, report to a queue; the thread looks
there between nodes, and sleeps on it where nothing else is left to do.

Source: ExecutorState in TensorFlow core/common_runtime/executor.cc.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from opkernel.errors import CancelledError, DeadlineExceededError, InvalidArgumentError, OpError
from opkernel.graph import Operation
from opkernel.kernel import AsyncOpKernel, OpKernelContext, Step
from opkernel.runtime.dataflow.frames import Frames, Iteration
from opkernel.runtime.dataflow.graph_view import GraphView
from opkernel.runtime.dataflow.node_functions import call, context_of, inputs_of, outputs_of
from opkernel.runtime.dataflow.node_item import Kind, NodeItem
from opkernel.runtime.dataflow.offload import Offload, is_worth_a_thread
from opkernel.runtime.dataflow.stuck import describe_waiting, missing_inputs
from opkernel.runtime.error_report import describe_value, report
from opkernel.runtime.inter_op_pool import InterOpPool
from opkernel.runtime.plan_writer import DEAD, check_alive

__all__ = ["DataflowRun", "node_of_frame"]

_GRACE_S = 1.0
"""How long kernels that wait are waited for once they were told that the step has failed."""

_STEP, _CONSTANT = int(Kind.STEP), int(Kind.CONSTANT)  # faster than the members


class _Started(NamedTuple):
    """A node that is being computed elsewhere; without a context, by a thread of the pool."""

    item: NodeItem
    iteration: Iteration
    inputs: Sequence[Any]
    ctx: OpKernelContext | None


class DataflowRun(Frames):
    """What is under way in one execution.

    Args:
        view: The graph.
        step: The step.
        pool: Threads for expensive kernels; the calling thread computes all if None.
        counts: Takes how many times each node was computed, by name, where given.
    """

    def __init__(
        self,
        view: GraphView,
        step: Step,
        pool: InterOpPool | None = None,
        counts: dict[str, int] | None = None,
    ) -> None:
        super().__init__(view.root)
        self._view = view
        self._step = step
        self._counts = counts
        self._reports: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self._offload = None if pool is None else Offload(pool, self._reports)
        self._started: dict[int, _Started] = {}
        self._last_number = 0
        self._wake_up_token: int | None = None

    def run(self, feeds: Sequence[Any]) -> list[Any]:
        """Run to the end; the fetched values.

        Raises:
            OpError: the first that a node raised, once nothing is running any more.
        """
        self.ready += [(item, self.root) for item in self._view.roots]
        self.root.outstanding = len(self.ready)
        self.activate(self._view.source, feeds, self.root)
        try:
            self._compute_ready()
            while self._started:
                self._take_report()
                self._compute_ready()
        except BaseException as error:
            self._stop(error)
            raise
        finally:
            self._forget_wake_up()
        return self._fetched()

    def _compute_ready(self) -> None:
        """Compute what is ready until nothing is."""
        ready, check, counts = self.ready, self._step.check, self._counts
        while ready:
            check()
            if self._started and not self._reports.empty():
                self._take_report()
            item, iteration = ready.pop()
            if iteration.dead and self._is_dead(item, iteration):
                self._pass_over(item, iteration)
                continue
            if counts is not None:
                counts[item.name] = counts.get(item.name, 0) + 1
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
            outputs = None  # a kernel may take over what only its inputs hold

    def _call(self, item: NodeItem, iteration: Iteration) -> Sequence[Any] | None:
        """The outputs of a node that is computed by a function; None: a thread computes them."""
        slots = iteration.slots
        inputs = slots[item.start : item.stop]
        slots[item.start : item.stop] = item.cleared
        if self._offload is not None and (self.ready or self._started) and is_worth_a_thread(item):
            self._start_on_pool(item, iteration, inputs, self._offload)
            return None
        try:
            return call(item, self._step, inputs)
        except Exception as error:
            _raise_at_node(error, item, inputs)

    def _is_dead(self, item: NodeItem, iteration: Iteration) -> bool:
        """Whether a node is passed over: an input is dead, or all of a Merge are."""
        if item.kind == Kind.MERGE:
            return iteration.slots[item.start] is None
        return (
            item.id in iteration.dead and not item.is_transfer and item.kind != Kind.CONTROL_TRIGGER
        )

    def _pass_over(self, item: NodeItem, iteration: Iteration) -> None:
        iteration.slots[item.start : item.stop] = item.cleared
        self.hand_on(item, (DEAD,) * len(item.edges), iteration, is_dead=True)

    def _compute_special(self, item: NodeItem, iteration: Iteration) -> Sequence[Any] | None:
        """The outputs of a node that is not computed by a function; None: they come later."""
        slots = iteration.slots
        inputs: Sequence[Any] = slots[item.start : item.stop]
        slots[item.start : item.stop] = item.cleared
        if item.kind == Kind.MERGE:
            return inputs[0]  # type: ignore[no-any-return]  # the first alive, and its index
        try:
            inputs = inputs_of(item, inputs)
            if item.kind == Kind.SWITCH:
                outputs: Sequence[Any] = item.function(self._step, *inputs)
                return outputs
            if item.kernel is None:
                return inputs
            ctx = context_of(item, inputs, self._step, iteration)
            if item.kind == Kind.ASYNC:
                self._start(item, iteration, ctx)
                return None
            item.kernel.compute(ctx)
            return outputs_of(item, ctx)
        except Exception as error:
            _raise_at_node(error, item, inputs)

    def _start(self, item: NodeItem, iteration: Iteration, ctx: OpKernelContext) -> None:
        """Start an asynchronous kernel, which reports when it is done."""
        kernel = item.kernel
        assert isinstance(kernel, AsyncOpKernel)
        self._last_number += 1
        self._started[self._last_number] = _Started(item, iteration, ctx.inputs, ctx)
        kernel.start(ctx, partial(self._reports.put, (self._last_number, None)))

    def _start_on_pool(
        self, item: NodeItem, iteration: Iteration, inputs: list[Any], offload: Offload
    ) -> None:
        """Have a thread of the pool compute a node."""
        self._last_number += 1
        self._started[self._last_number] = _Started(item, iteration, inputs, None)
        offload.start(self._last_number, item, partial(call, item, self._step, inputs))

    def _take_report(self) -> None:
        """Hand on what was computed elsewhere; wait for it where it is not there yet."""
        reported = self._next_report()
        if reported is None:
            self._check_waiting()
            return
        number, outcome = reported
        started = self._started.pop(number)
        error = outcome if started.ctx is None else started.ctx.status
        if isinstance(error, CancelledError):
            self._check_waiting()  # the step was cancelled, is late, or failed in a function
        try:
            if isinstance(error, Exception):
                raise error
            outputs = outcome if started.ctx is None else outputs_of(started.item, started.ctx)
        except Exception as error:
            _raise_at_node(error, started.item, started.inputs)
        self.hand_on(started.item, outputs, started.iteration)

    def _next_report(self) -> tuple[int, Any] | None:
        """The next report; None where the step was cancelled or its time is over."""
        if self._reports.empty() and self._offload is not None:
            self._offload.run_one()  # no thread of the pool has come to it
        self._register_wake_up()
        deadline = self._step.deadline
        try:
            if deadline is None:
                return self._reports.get()
            return self._reports.get(timeout=max(deadline - time.monotonic(), 0))
        except Empty:
            return None

    def _check_waiting(self) -> None:
        """Raise where the step is to stop, and tell what it was waiting for."""
        try:
            self._step.check()
        except (CancelledError, DeadlineExceededError) as error:
            waiting = describe_waiting(started.item for started in self._started.values())
            raise type(error)(f"{error.message}; {waiting}") from None

    def _register_wake_up(self) -> None:
        """Have a cancellation end the wait for reports."""
        manager = self._step.cancellation_manager
        if self._wake_up_token is None and manager is not None:
            token = self._wake_up_token = manager.get_cancellation_token()
            if not manager.register_callback(token, partial(self._reports.put, None)):
                self._reports.put(None)

    def _forget_wake_up(self) -> None:
        if self._wake_up_token is not None and self._step.cancellation_manager is not None:
            self._step.cancellation_manager.try_deregister_callback(self._wake_up_token)

    def _stop(self, error: BaseException) -> None:
        """Tell what is running that the step has failed, and wait for its end."""
        self.ready.clear()
        for number in self._offload.drop() if self._offload is not None else ():
            del self._started[number]
        if not self._started:
            return
        reason = error if isinstance(error, OpError) else CancelledError(f"{error!r}")
        if self._step.rendezvous is not None:
            self._step.rendezvous.start_abort(reason)
        if self._step.cancellation_manager is not None:
            self._step.cancellation_manager.start_cancel(reason)
        until = time.monotonic() + _GRACE_S
        while self._started:
            on_pool = any(started.ctx is None for started in self._started.values())
            left = None if on_pool else max(until - time.monotonic(), 0)
            try:
                reported = self._reports.get(timeout=left)
            except Empty:
                return  # kernels that take no notice of a cancellation are left to themselves
            if reported is not None:
                del self._started[reported[0]]

    def _fetched(self) -> list[Any]:
        """The values of the fetches.

        Raises:
            InvalidArgumentError: one is dead, or the step came to its end without it.
        """
        sink = self._view.sink
        values = self.root.slots[sink.start : sink.stop]
        for tensor, value in zip(sink.op.inputs, values, strict=True):
            if value is None:
                raise InvalidArgumentError(
                    f"The step came to its end without a value for {tensor.name}: "
                    f"{missing_inputs([*self.unfinished, *self.iterations()])}",
                    node=tensor.op.name,
                    op=tensor.op.type,
                )
            try:
                check_alive(value, tensor.name)
            except OpError as error:
                error.add_node(tensor.op.name, tensor.op.type)
                raise
        return values


_COMPUTING = frozenset(
    function.__code__
    for function in (DataflowRun._call, DataflowRun._compute_special, Offload._run_next)
)


def node_of_frame(frame: FrameType) -> Operation | None:
    """The node that a frame of the dataflow executor computes; None for all other frames."""
    item = frame.f_locals.get("item") if frame.f_code in _COMPUTING else None
    return None if item is None else item.op


def _raise_at_node(error: Exception, item: NodeItem, inputs: Sequence[Any]) -> NoReturn:
    """Raise an error told with the node that raised it, or the one in the function that it called."""
    told = report(error)
    told.add_node(item.name, item.op.type, [describe_value(value) for value in inputs])
    raise told from (error.__cause__ if told is error else error)
