"""PendingCompletions: the nodes of a run that others than its own thread compute.

Kernels that wait, and kernels on threads, report to one queue when they are done. The thread that
runs the step looks there between nodes, and sleeps on it where nothing else is left to do. Errors name the
nodes for which a late, cancelled or stuck step waits.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from opkernel.errors import CancelledError, DeadlineExceededError, OpError
from opkernel.graph import Operation
from opkernel.graph.core.edges import is_head_of_loop
from opkernel.graph.core.structural_ops import NEXT_ITERATION_OPS
from opkernel.kernel import OpKernelContext, Step
from opkernel.runtime.dataflow.computing import call
from opkernel.runtime.dataflow.frames import Iteration, SuspendedPlan
from opkernel.runtime.dataflow.node_item import Kind, NodeItem, RootInfo
from opkernel.runtime.program.inter_op_pool import InterOpPool

_MAX_SHOWN = 5


def describe_next(item: NodeItem, iteration: Iteration) -> str:
    """The node that would have been computed next: `it had come to AddV2 (node 'sum')`."""
    return f"it had come to {_described(item, iteration)}"


def missing_inputs(iterations: Iterable[Iteration]) -> str:
    """The nodes that did not run: what each lacks, and in which turn of which loop.

    Nodes that wait only for other such nodes are left out.
    """
    found = [text for iteration in iterations for text in _stuck(iteration)]
    return _listed(found, "; ")


def _described(item: NodeItem, iteration: Iteration) -> str:
    return f"{_named(item.op, iteration)}{_place(iteration)}"


def _named(op: Operation, iteration: Iteration) -> str:
    if op.type:
        return f"{op.type} (node {op.name!r})"
    return "the fetches" if iteration.frame.outer is None else "the results"


def _stuck(iteration: Iteration) -> list[str]:
    """The nodes that are stuck in an iteration."""
    info = iteration.frame.info
    waiting = [item for item in info.items if iteration.pending[item.id] > 0]
    waiting = [item for item in waiting if not _has_run(item, iteration)]
    stuck = {op.name for item in waiting for op in item.operations}
    found = []
    for item in waiting:
        if not item.inputs:
            continue
        lacks = _lacks(item, iteration)
        # What a head of a loop lacks was to come from the turn before.
        is_head = item.kind == Kind.MERGE and is_head_of_loop(item.op)
        if lacks and (is_head or not all(name.partition(":")[0] in stuck for name in lacks)):
            waits = "waits" if item.op.type else "wait"
            op = item.op if item.part is None else item.part.reader(lacks)
            named, place = _named(op, iteration), _place(iteration)
            found.append(f"{named} {waits} for {', '.join(lacks)}{place}")
    return found


def _has_run(item: NodeItem, iteration: Iteration) -> bool:
    """Whether a node that is not waiting for all its inputs was ready nevertheless: a dead Merge."""
    return item.kind == Kind.MERGE and bool(iteration.dead.get(item.id))


def _lacks(item: NodeItem, iteration: Iteration) -> list[str]:
    """The inputs that have not arrived; of the head of a loop those that may still do so."""
    slots = iteration.slots[item.start : item.stop]
    found = [t for t, value in zip(item.inputs, slots, strict=True) if value is None]
    if item.kind == Kind.MERGE and is_head_of_loop(item.op):
        is_first = iteration.number == 0
        found = [t for t in found if (t.op.type in NEXT_ITERATION_OPS) is not is_first]
    return [tensor.name for tensor in found]


def _place(iteration: Iteration) -> str:
    """Where an iteration is: ` in turn 3 of the loop 'l' in the function 'f' (node 'call')`."""
    found = []
    info, call = iteration.frame.info, iteration.frame.call
    if not isinstance(info, RootInfo):
        found.append(f" in turn {iteration.number} of the loop {info.name!r}")
    while call is not None and len(found) < _MAX_SHOWN:
        found.append(f" in the function {call.function!r} (node {call.item.name!r})")
        call = call.iteration.frame.call
    return "".join(found)


def _listed(texts: list[str], separator: str = ", ") -> str:
    shown = separator.join(texts[:_MAX_SHOWN])
    more = len(texts) - _MAX_SHOWN
    return f"{shown}{separator}and {more} more" if more > 0 else shown


_GRACE_S = 1.0
"""How long kernels that wait are waited for once they were told that the step has failed."""


_WORTH_A_THREAD_S = 50e-6  # several times what handing a kernel to a thread takes
_WEIGHT = 0.1  # of the newest measurement

_Task = tuple[int, NodeItem, Callable[[], Sequence[Any]]]

Report = tuple[int, Any]
"""The number of a computation, and its outputs or its error."""


def is_worth_a_thread(item: NodeItem) -> bool:
    """Whether a node has been found to take long, or was never measured."""
    return item.expensive and item.seconds >= _WORTH_A_THREAD_S


class Offload:
    """The expensive kernels of one run, computed by any free thread.

    A thread of the pool that is free takes a kernel at once. The others stand in a queue for the next
    thread that is free, or for the thread that runs the step where it has nothing else to do. So a run
    comes to its end even where all threads are busy, or wait for runs of functions within it.

    Args:
        pool: The threads.
        reports: Takes the outcomes.
    """

    def __init__(self, pool: InterOpPool, reports: SimpleQueue[Report | None]) -> None:
        self._pool = pool
        self._reports = reports
        self._taken: deque[_Task] = deque()  # a thread is on its way to each of these
        self._waiting: deque[_Task] = deque()

    def start(self, number: int, item: NodeItem, compute: Callable[[], Sequence[Any]]) -> None:
        """Have a node computed, and reported under a number."""
        task = number, item, compute
        # Threads of a pool lack the context variables of this one: NumPy's errstate is one.
        context = copy_context()
        self._taken.append(task)
        take = partial(context.run, self._run_next, self._taken)
        if not self._pool.submit(take, partial(context.run, self.run_one)):
            self._taken.remove(task)
            self._waiting.append(task)

    def run_one(self) -> bool:
        """Compute the next node that no thread is on its way to; False if there is none."""
        return self._run_next(self._waiting)

    def drop(self) -> list[int]:
        """Forget the computations that have not begun; return their numbers."""
        dropped = []
        for tasks in (self._taken, self._waiting):
            while tasks:
                try:
                    dropped.append(tasks.popleft()[0])
                except IndexError:
                    break
        return dropped

    def _run_next(self, tasks: deque[_Task]) -> bool:
        try:
            number, item, compute = tasks.popleft()
        except IndexError:
            return False
        outcome: Any
        start = time.perf_counter()
        try:
            outcome = compute()
        except Exception as error:  # whatever a kernel raises belongs to the step
            outcome = error
        seconds = time.perf_counter() - start
        if item.seconds < math.inf:
            seconds = (1 - _WEIGHT) * item.seconds + _WEIGHT * seconds
        item.seconds = seconds
        self._reports.put((number, outcome))
        return True


class Started(NamedTuple):
    """A node that is being computed.

    Attributes:
        item: The node.
        iteration: Where it is.
        inputs: Its inputs.
        ctx: The context of an asynchronous kernel.
        plan: The plan that waits for it, if its node is in a part.
        is_on_pool: Whether it is in the hands of the pool, which will come to it for sure.
    """

    item: NodeItem
    iteration: Iteration
    inputs: Sequence[Any]
    ctx: OpKernelContext | None = None
    plan: SuspendedPlan | None = None
    is_on_pool: bool = False


class PendingCompletions:
    """The computations elsewhere, for the thread that runs the step.

    Args:
        step: The step, which may have a pool of threads for expensive kernels.

    Attributes:
        started: The computations that were started and not taken back, by number.
        reports: The numbers of finished computations, each with its outputs or its error; None
            wakes the sleeping thread.
        has_pool: Whether there are threads for expensive kernels.
    """

    def __init__(self, step: Step) -> None:
        self.started: dict[int, Started] = {}
        self.reports: SimpleQueue[Report | None] = SimpleQueue()
        self._step = step
        pool = None if step.run_all_kernels_inline else step.inter_op_pool
        self.has_pool = pool is not None
        self._offload = None if pool is None else Offload(pool, self.reports)
        self._last_number = 0
        self._wake_up_token: int | None = None

    def start(
        self,
        item: NodeItem,
        iteration: Iteration,
        ctx: OpKernelContext,
        plan: SuspendedPlan | None = None,
    ) -> Started | None:
        """Start an asynchronous kernel; what was started if it is done already, and so reports nothing."""
        started = Started(item, iteration, ctx.inputs, ctx, plan)
        number = self._add(started)
        is_open = [True]  # taken once: by the kernel when it is done, or here when its call is over

        def done() -> None:
            if not _take(is_open):
                self.reports.put((number, None))

        try:
            item.function(ctx, done)
        finally:
            is_done = not _take(is_open)
            if is_done:
                del self.started[number]
        return started if is_done else None

    def start_on_pool(self, item: NodeItem, iteration: Iteration, inputs: Sequence[Any]) -> None:
        """Have a thread of the pool compute a node."""
        assert self._offload is not None
        number = self._add(Started(item, iteration, inputs, is_on_pool=True))
        self._offload.start(number, item, partial(call, item, iteration, inputs))

    def take(self) -> tuple[Started, Any] | None:
        """The next finished computation, with its outputs or its error; waits for it if need be.

        Of an asynchronous kernel the outcome is in its context. None: the sleeping thread was woken
        up, since the step was cancelled or its time is over.
        """
        reported = self._next_report()
        if reported is None:
            return None
        number, outcome = reported
        return self.started.pop(number), outcome

    def check(self, *cancelled: Started) -> None:
        """Raise where the step is to stop, and cancel the computations that it waits for.

        Args:
            *cancelled: What was waited for, too, until it was told of the cancellation.
        """
        try:
            self._step.check()
        except (CancelledError, DeadlineExceededError) as error:
            waiting = _describe([*cancelled, *self.started.values()])
            raise type(error)(f"{error.message}; {waiting}" if waiting else error.message) from None

    def stop(self, error: BaseException) -> None:
        """Tell running computations that the step has failed, and wait for their end."""
        for number in self._offload.drop() if self._offload is not None else ():
            del self.started[number]
        if not self.started:
            return
        if not isinstance(error, Exception):
            waiting = _describe(self.started.values())
            error.add_note(f"the step was {waiting}")  # an interrupt from the keyboard
        reason = error if isinstance(error, OpError) else CancelledError(f"{error!r}")
        if self._step.rendezvous is not None:
            self._step.rendezvous.start_abort(reason)
        if self._step.cancellation_manager is not None:
            self._step.cancellation_manager.start_cancel(reason)
        self._wait_for_end(time.monotonic() + _GRACE_S)

    def forget(self) -> None:
        """Cancel the wake-up of a thread that does not sleep any more."""
        if self._wake_up_token is not None and self._step.cancellation_manager is not None:
            self._step.cancellation_manager.try_deregister_callback(self._wake_up_token)

    def _add(self, started: Started) -> int:
        self._last_number += 1
        self.started[self._last_number] = started
        return self._last_number

    def _next_report(self) -> Report | None:
        if self.reports.empty() and self._offload is not None:
            self._offload.run_one()  # no thread of the pool has come to it
        self._register_wake_up()
        if self._step.rendezvous is not None and self.reports.empty():
            self._step.rendezvous.flush()
        deadline = self._step.deadline
        left = None if deadline is None else max(deadline - time.monotonic(), 0)
        try:
            return self.reports.get(timeout=left)
        except Empty:
            return None

    def _register_wake_up(self) -> None:
        """Have a cancellation end the wait for reports."""
        manager = self._step.cancellation_manager
        if self._wake_up_token is None and manager is not None:
            token = self._wake_up_token = manager.get_cancellation_token()
            if not manager.register_callback(token, partial(self.reports.put, None)):
                self.reports.put(None)

    def _wait_for_end(self, until: float) -> None:
        """Wait for the running work of the pool however long it takes, and for other work until `until`."""
        while self.started:
            on_pool = any(one.is_on_pool for one in self.started.values())
            left = None if on_pool else max(until - time.monotonic(), 0)
            try:
                reported = self.reports.get(timeout=left)
            except Empty:
                return  # kernels that take no notice of a cancellation are left to themselves
            if reported is not None:
                del self.started[reported[0]]


def _take(items: list[bool]) -> bool:
    """Take the item of a list; False where another thread was faster."""
    try:
        return items.pop()
    except IndexError:
        return False


def _describe(started: Iterable[Started]) -> str:
    """The nodes whose kernels were started and are not done: `waiting for _Recv (node 'r')`."""
    names = dict.fromkeys(_described(one.item, one.iteration) for one in started)
    return f"waiting for {_listed(list(names))}" if names else ""
