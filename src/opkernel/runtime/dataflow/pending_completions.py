"""PendingCompletions: the nodes of a run that others than its own thread compute.

Kernels that wait, and kernels on threads, report to one queue when they are done. The thread that
runs the step looks there between nodes, and sleeps on it where nothing else is left to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from opkernel.errors import CancelledError, DeadlineExceededError, OpError
from opkernel.kernel import OpKernelContext, Step
from opkernel.runtime.dataflow.frames import Iteration
from opkernel.runtime.dataflow.node_functions import call
from opkernel.runtime.dataflow.node_item import NodeItem
from opkernel.runtime.dataflow.offload import Offload, Report
from opkernel.runtime.dataflow.stuck import describe_waiting

_GRACE_S = 1.0
"""How long kernels that wait are waited for once they were told that the step has failed."""


class Started(NamedTuple):
    """A node that is being computed.

    Attributes:
        item: The node.
        iteration: Where it is.
        inputs: Its inputs.
        ctx: The context of an asynchronous kernel.
        is_on_pool: Whether it is in the hands of the pool, which will come to it for sure.
    """

    item: NodeItem
    iteration: Iteration
    inputs: Sequence[Any]
    ctx: OpKernelContext | None = None
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

    def start(self, item: NodeItem, iteration: Iteration, ctx: OpKernelContext) -> None:
        """Start an asynchronous kernel."""
        number = self._add(Started(item, iteration, ctx.inputs, ctx))
        item.function(ctx, partial(self.reports.put, (number, None)))

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
        try:
            if deadline is None:
                return self.reports.get()
            return self.reports.get(timeout=max(deadline - time.monotonic(), 0))
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


def _describe(started: Iterable[Started]) -> str:
    return describe_waiting((one.item, one.iteration) for one in started)
