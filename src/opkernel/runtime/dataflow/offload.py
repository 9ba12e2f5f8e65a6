"""Offload: the expensive kernels of one run, computed by any free thread.

A thread of the pool that is free takes a kernel at once. The others stand in a queue for the next
thread that is free, or for the thread that runs the step where it has nothing else to do. So a run
comes to its end even where all threads are busy, or wait for runs of functions within it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any

from opkernel.runtime.dataflow.node_item import NodeItem
from opkernel.runtime.step.inter_op_pool import InterOpPool

_WORTH_A_THREAD_S = 50e-6  # several times what handing a kernel to a thread takes
_WEIGHT = 0.1  # of the newest measurement

_Task = tuple[int, NodeItem, Callable[[], Sequence[Any]]]

Report = tuple[int, Any]
"""The number of a computation, and its outputs or its error."""


def is_worth_a_thread(item: NodeItem) -> bool:
    """Whether a node has been found to take long, or was never measured."""
    return item.expensive and item.seconds >= _WORTH_A_THREAD_S


class Offload:
    """The queue of one run.

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
