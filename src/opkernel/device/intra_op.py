"""Intra-op threads: one kernel's work shared out among threads.

The calling thread and the helpers of the process take the parts of a kernel's work one after the other,
as each becomes free. The caller never waits for a helper that has not begun: where all are busy,
or asleep, it does the work alone. So kernels on threads of their own cannot lock each other out, and
a processor that is busy with something else costs no more than the part it had taken.

NumPy's functions let go of the interpreter lock while they compute on arrays; parts should be calls of
them on some ten thousand elements or more.

NumPy's BLAS starts threads, too. OpenBLAS waits for them by spinning. If something else runs on one of the
processors, a product on all of them takes 5 to 20 times as long as on one. Kernels therefore share matrix products
out among the threads of this module, and hold BLAS to the calling thread meanwhile (`one_blas_thread`).

Source: TensorFlow core/util/work_sharder.h (Shard).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from opkernel.device.allocation import under_budget
from opkernel.device.budget import Budget, current_budget
from opkernel.device.ownership import forget_recycled
from opkernel.interrupts import contextmanager, setting

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


_PREFIXES = ("scipy_openblas", "openblas")
_SUFFIXES = ("64_", "_64", "")


@cache
def openblas_functions(*names: str) -> tuple[Any, ...] | None:
    """Functions of OpenBLAS, such as `get_num_threads`, if NumPy uses one that has them all."""
    module = sys.modules.get("numpy._core._multiarray_umath")
    try:
        library = ctypes.CDLL(getattr(module, "__file__", ""))  # finds the symbols of its BLAS, too
    except (TypeError, OSError):
        return None
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            found = [getattr(library, f"{prefix}_{name}{suffix}", None) for name in names]
            if None not in found:
                return tuple(found)
    return None


def _openblas() -> tuple[Any, ...] | None:
    """The functions to get and to set the number of threads."""
    return openblas_functions("get_num_threads", "set_num_threads")


class _OneBlasThread:
    """While anyone is within a block, products are computed by the threads that ask for them.

    It holds for the whole process. Where NumPy has another BLAS than OpenBLAS nothing happens.

    Attributes:
        blocks: A token for each block that there is at this moment.
    """

    def __init__(self) -> None:
        self.blocks: set[object] = set()
        self.lock = threading.Lock()
        self._before: int | None = None  # the number of threads, where BLAS is held
        self._set_threads: Callable[[int], object] = int

    @property
    def holds(self) -> bool:
        """Whether holding has an effect: NumPy's BLAS is a known one."""
        return _openblas() is not None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """A block."""
        block = object()
        try:
            self.hold(block)
            yield
        finally:
            with self.lock:
                self.blocks -= {block}
                if not self.blocks and self._before is not None:
                    self._set_threads(self._before)
                    self._before = None

    def hold(self, block: object) -> None:
        """Hold BLAS as for a block, for good."""
        with self.lock:
            self.blocks.add(block)
            functions = _openblas()
            if functions is not None and self._before is None:
                get, self._set_threads = functions
                self._before = get()
                self._set_threads(1)

    def after_fork_in_child(self) -> None:
        """Start anew: the child has none of the threads that are within a block."""
        self.blocks.clear()
        if self._before is not None:
            self._set_threads(self._before)
            self._before = None
        self.lock.release()


one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=one_blas_thread.lock.acquire,
        after_in_parent=one_blas_thread.lock.release,
        after_in_child=one_blas_thread.after_fork_in_child,
    )


_Part = TypeVar("_Part")

_IDLE_S = 5
"""After so long without work, helpers have the process let go of memory that it keeps for results."""


def _default_threads() -> int:
    """OPKERNEL_NUM_THREADS, or as many as the processors that this process may use."""
    asked = os.environ.get("OPKERNEL_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on all systems
        return os.cpu_count() or 1


_DEFAULT_THREADS = _default_threads()
_threads: ContextVar[int] = ContextVar("intra_op_threads", default=_DEFAULT_THREADS)

intra_op_threads = _threads.get
"""The number of threads that a kernel of this thread may spread its work over."""


def intra_op_parallelism(threads: int) -> AbstractContextManager[None]:
    """Within the block, kernels of this thread spread their work over so many threads."""
    return setting({_threads: max(threads, 1)})


def cut(size: int, parts: int, multiple: int = 1) -> list[slice]:
    """`range(size)` in about that many parts of about one size, which begin at multiples."""
    step = max(1, -(-size // (parts * multiple))) * multiple
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def shard(work: Callable[[_Part], object], parts: Sequence[_Part]) -> None:
    """Call `work` with each part, on several threads; BLAS is held to the thread that calls it.

    Args:
        work: Computes one part; its error is raised here, and parts not begun are left out.
        parts: Independent parts of the work.
    """
    budget = current_budget()
    if budget is not None:
        work = _within(budget, work)
    helpers = min(_threads.get(), len(parts)) - 1
    with one_blas_thread():
        if helpers <= 0:
            for part in parts:
                work(part)
        else:
            _Shared(work, parts).run(helpers)


def _within(budget: Budget, work: Callable[[_Part], object]) -> Callable[[_Part], object]:
    """The work under a budget, on whichever thread, with a look at the clock before each part."""

    def bounded(part: _Part) -> None:
        budget.check_time("computing a part of a kernel's work")
        if current_budget() is budget:
            work(part)
        else:
            with under_budget(budget):
                work(part)

    return bounded


class _Shared(Generic[_Part]):
    """Work that several threads take parts of."""

    def __init__(self, work: Callable[[_Part], object], parts: Sequence[_Part]) -> None:
        self._work = work
        self._parts = iter(parts)  # of a list: taking the next one is atomic
        self._lock = threading.Lock()
        self._helping = 0
        self._is_over = False
        self._all_done = threading.Lock()
        self._error: BaseException | None = None

    def run(self, helpers: int) -> None:
        """Do the work, with this many helpers at most."""
        _helpers.call(self, helpers)
        self._take_parts()
        with self._lock:
            self._is_over = True
            must_wait = self._helping > 0
            if must_wait:
                self._all_done.acquire()
        if must_wait:
            self._all_done.acquire()
        if self._error is not None:
            raise self._error

    def help(self) -> None:
        """Take part in the work, unless it is over."""
        with self._lock:
            begins = not self._is_over
            self._helping += begins
        if begins:
            self._take_parts()
            with self._lock:
                self._helping -= 1
                if self._is_over and not self._helping:
                    self._all_done.release()

    def _take_parts(self) -> None:
        try:
            for part in self._parts:
                self._work(part)
        except BaseException as error:  # to be raised by the thread that asked for the work
            self._error = error
            for _ in self._parts:
                pass


class _Helpers:
    """The threads of the process that help; they are started when there is work for them."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Shared[Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0

    def call(self, work: _Shared[Any], count: int) -> None:
        """Ask helpers to take part."""
        if self._started < count:
            with self._lock:
                while self._started < count:
                    name = f"opkernel intra-op {self._started + 1}"
                    threading.Thread(target=self._serve, name=name, daemon=True).start()
                    self._started += 1
        for _ in range(count):
            self._calls.put(work)

    def _serve(self) -> None:
        np.seterr(all="ignore")  # as for all kernels
        while True:
            try:
                work = self._calls.get(timeout=_IDLE_S)
            except Empty:
                forget_recycled()
                work = self._calls.get()
            work.help()
            del work

    def forget(self) -> None:
        """Forget the threads, none of which a child has after a fork."""
        self.__init__()  # type: ignore[misc]  # nothing of the parent's may stay


_helpers = _Helpers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.forget)
