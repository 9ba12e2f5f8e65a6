"""Work of an engine within limits of time and memory: compiling a cluster, running its program.

Nothing interrupts a library. So a thread does the work while the step waits for it, no longer than it may. Then the work
is abandoned: it goes on, and nobody takes its results. The thread holds the inputs until the work is over, so that their memory
serves nothing else.

A process that ends does not wait for such work. A thread that comes out of C++ while Python ends is ended there, which
C++ takes for a fault. Where there is the GNU C library, such a thread is stopped, and the process leaves with its own status before
libraries are torn down beneath it.

State: `_under_way` has the work that nobody waits for; `_turns` counts the work in short turns, and keeps the process' own
switch interval.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from opkernel.device.budget import Budget, current_budget
from opkernel.errors import DeadlineExceededError, ResourceExhaustedError
from opkernel.graph import Operation
from opkernel.interrupts import contextmanager
from opkernel.kernel import under_budget
from opkernel.opdef import infer_call
from opkernel.runtime.program.inter_op_pool import InterOpPool

_T = TypeVar("_T")

_MOST_ABANDONED = 8
"""While so much work is abandoned and under way, no more is begun within deadlines."""
_MOST_S = 300.0
"""A graph may make compiling in the background take for ever: the part that is Python is given up after so long."""
_LOOK_S = 0.05
"""A step that waits looks so often whether it was cancelled."""

_SHORT_TURN_S = 1e-4
"""A thread that lets the interpreter's lock go for each file that it imports waits for the lock so long, each time."""

_threads = InterOpPool(1 << 16, "engine")
BACKGROUND_THREADS = max(2, min(os.cpu_count() or 1, 8))
"""So many clusters are compiled at once: part of that is Python, which one thread runs at a time."""
_background = InterOpPool(BACKGROUND_THREADS, "compile")
_under_way: set[object] = set()
_lock = threading.Lock()
_turns = [0, sys.getswitchinterval()]


class LateWork:
    """The work of one cluster, within deadlines.

    Attributes:
        abandoned: The work that was abandoned; some of it may be over since.
    """

    def __init__(self) -> None:
        self.abandoned: list[_LateTask[Any]] = []

    @property
    def is_under_way(self) -> bool:
        """Whether work of the cluster was abandoned and is not over."""
        self.abandoned = [one for one in self.abandoned if not one.is_over]
        return bool(self.abandoned)

    def do(
        self,
        work: Callable[[], _T],
        deadline: float,
        what: str,
        check: Callable[[], None] = lambda: None,
    ) -> _T:
        """The result of some work, or its error.

        Args:
            work: The work.
            deadline: When it is abandoned, by `time.monotonic()`.
            what: The work in words, for the error.
            check: Is called now and then, and raises where the caller is to stop waiting.

        Raises:
            DeadlineExceededError: the work is not done in time.
            ResourceExhaustedError: too much work is abandoned and under way.
        """
        if len(_under_way) >= _MOST_ABANDONED:
            raise ResourceExhaustedError(
                f"{len(_under_way)} programs of engines that were too slow for their steps are still running: no "
                "more are begun with a deadline"
            )
        task = _LateTask(work)
        with under_budget(Budget(deadline=deadline, outer=current_budget())):
            _threads.schedule(task.run)
        try:
            while not task.wait(min(deadline - time.monotonic(), _LOOK_S)):
                if time.monotonic() >= deadline:
                    raise DeadlineExceededError(f"Timed out while {what}")
                check()
        except BaseException:
            self.abandoned.append(task)
            task.abandon()
            raise
        return task.result()


class _LateTask(Generic[_T]):
    """Some work, its end, and its result."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self._work: Callable[[], _T] | None = work
        self._result: list[_T] = []
        self._error: BaseException | None = None
        self._stop: Callable[[], object] | None = None
        self._end = threading.Lock()
        self._end.acquire()
        self.is_over = False

    def run(self) -> None:
        """Do the work; on another thread than the one that waits."""
        assert self._work is not None
        _current.set(self)
        try:
            self._result.append(self._work())
        except BaseException as error:  # belongs to the one that waits
            self._error = error
        self._work = self._stop = None  # and its inputs
        with _lock:
            self.is_over = True
            if self in _under_way:
                _under_way.remove(self)
                self._result, self._error = [], None
        self._end.release()

    def wait(self, seconds: float) -> bool:
        """Whether the work is over, after so many seconds at the most."""
        return self._end.acquire(timeout=max(seconds, 0))

    def result(self) -> _T:
        """The result, or the error raised."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def stop_by(self, stop: Callable[[], object]) -> None:
        """See `StoppableWork.stop_by`."""
        self._stop = stop

    def abandon(self) -> None:
        """Note that nobody waits any more."""
        with _lock:
            if not self.is_over:
                _under_way.add(self)
            stop = self._stop
        if stop is not None:
            with suppress(RuntimeError):  # it has just ended
                stop()


_current: ContextVar[_LateTask[Any] | None] = ContextVar("late_work", default=None)


class StoppableWork(Protocol):
    """Work within a deadline, as the work itself sees it."""

    def stop_by(self, stop: Callable[[], object]) -> None:
        """State what ends the work early; it is called on another thread when nobody waits for the work any more."""


def current_work() -> StoppableWork | None:
    """The work within a deadline that this thread does; None without a deadline."""
    return _current.get()


def in_background(work: Callable[[], None]) -> Future[None]:
    """Have a thread compile clusters, say, while steps go on. The work sees to its own errors.

    Nobody waits for it, not even the end of the process.
    """
    done: Future[None] = Future()
    token = object()

    def do() -> None:
        with _lock:
            _under_way.add(token)
        try:
            with _short_turns(), under_budget(Budget(deadline=time.monotonic() + _MOST_S)):
                work()
        finally:
            with _lock:
                _under_way.discard(token)
            done.set_result(None)

    _background.schedule(do)
    return done


@contextmanager
def _short_turns() -> Iterator[None]:
    """Have threads take short turns. With Python's own, steps that read files leave imports beside them a sixth of the time."""
    with _lock:
        if not _turns[0]:
            _turns[1] = sys.getswitchinterval()
            sys.setswitchinterval(min(_SHORT_TURN_S, _turns[1]))
        _turns[0] += 1
    try:
        yield
    finally:
        with _lock:
            _turns[0] -= 1
            if not _turns[0]:
                sys.setswitchinterval(_turns[1])


def _leave() -> None:
    """Have the process end although threads are in C++."""
    if not _under_way:
        return
    with suppress(OSError, AttributeError):  # another C library
        libc, libstdcxx = ctypes.CDLL(None), ctypes.CDLL("libstdc++.so.6")
        leave, stop = (ctypes.cast(one, ctypes.c_void_p) for one in (libc._exit, libc.pause))
        # Called with the status, before all that was registered earlier.
        libc.on_exit(leave, None)
        libstdcxx._ZSt13set_terminatePFvvE(stop)


def _after_fork() -> None:
    """A child has none of the threads."""
    global _lock
    _lock = threading.Lock()
    _under_way.clear()
    if _turns[0]:
        sys.setswitchinterval(_turns[1])
        _turns[0] = 0


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class CompileLimits:
    """Keeps the compilation of one cluster to the budget of the thread.

    Args:
        of_each: Each tensor may take what the budget has left; otherwise all of the cluster together may.
    """

    def __init__(self, *, of_each: bool = False) -> None:
        self._of_each, self._taken = of_each, 0

    def check_node(self, name: str, outputs: Iterable[Any]) -> None:
        """Check the time, and the memory for the outputs of a node that was added to a program.

        Args:
            name: The node.
            outputs: Values with a shape and a type, which need no memory yet; others are not counted.

        Raises:
            DeadlineExceededError: time is up.
            ResourceExhaustedError: there is not so much memory.
        """
        budget = current_budget()
        if budget is None:
            return
        budget.check_time("compiling", name)
        if budget.memory_limit_bytes is None:
            return
        for one in outputs:
            if hasattr(one, "shape") and hasattr(one, "dtype"):
                size = math.prod(one.shape) * one.dtype.itemsize
                self._taken = size + (0 if self._of_each else self._taken)
                what = f"a tensor with shape{list(one.shape)} and type {one.dtype}"
                budget.check_memory(self._taken, what)


def output_shapes(op: Operation, inputs: Sequence[Any]) -> list[tuple[int, ...] | None]:
    """The shapes of the outputs; None where the inputs' shapes and the constants among them do not tell it."""
    registration = op.graph.function_library.look_up(op.type)
    known = [value if isinstance(value, np.ndarray) else None for value in inputs]
    shapes = [tuple(value.shape) for value in inputs]
    version = op.graph.graph_def_versions.producer
    context = infer_call(registration, op.node_def, shapes, known, version)
    return [
        tuple(dim.value for dim in shape.dims or ())
        if shape is not None and context.fully_defined(shape)
        else None
        for shape in context.reliable_outputs()
    ]
