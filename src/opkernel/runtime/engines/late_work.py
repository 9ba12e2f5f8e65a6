"""Work of an engine within a deadline: compiling a cluster, running its program.

Nothing interrupts a library. So a thread does the work while the step waits for it, no longer than it may. Then the work
is abandoned: it goes on, and nobody takes its results. The thread holds the inputs until the work is over, so that their memory
serves nothing else.

A process that ends does not wait for such work. A thread that comes out of C++ while Python ends is ended there, which
C++ takes for a fault. Where there is the GNU C library, such a thread is stopped, and the process leaves with its own status before
libraries are torn down beneath it.

State: `_under_way` has the work that nobody waits for.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

from opkernel.device.budget import Budget, current_budget
from opkernel.errors import DeadlineExceededError, ResourceExhaustedError
from opkernel.kernel import under_budget
from opkernel.runtime.step.inter_op_pool import InterOpPool

_T = TypeVar("_T")

_MOST_ABANDONED = 8
"""While so much work is abandoned and under way, no more is begun within deadlines."""
_LOOK_S = 0.05
"""A step that waits looks so often whether it was cancelled."""

_threads = InterOpPool(1 << 16, "engine")
_under_way: set[object] = set()
_lock = threading.Lock()


class LateWork:
    """The work of one cluster, within deadlines.

    Attributes:
        abandoned: The work that was abandoned; some of it may be over since.
    """

    def __init__(self) -> None:
        self.abandoned: list[_Task[Any]] = []

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
        task = _Task(work)
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


class _Task(Generic[_T]):
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


_current: ContextVar[_Task[Any] | None] = ContextVar("late_work", default=None)


class StoppableWork(Protocol):
    """Work within a deadline, as the work itself sees it."""

    def stop_by(self, stop: Callable[[], object]) -> None:
        """State what ends the work early; it is called on another thread when nobody waits for the work any more."""


def current_work() -> StoppableWork | None:
    """The work within a deadline that this thread does; None without a deadline."""
    return _current.get()


def unattended(work: Callable[[], None]) -> Callable[[], None]:
    """Work on a thread for which nobody waits, not even the end of the process."""

    def do() -> None:
        token = object()
        with _lock:
            _under_way.add(token)
        try:
            work()
        finally:
            with _lock:
                _under_way.discard(token)

    return do


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


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
