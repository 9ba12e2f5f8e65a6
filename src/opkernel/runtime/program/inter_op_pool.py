"""InterOpPool: threads that compute expensive kernels of steps side by side; InterOpPools: those that a session chooses from.

Some pools are shared by sessions.

Source: DirectSession::DirectSession and RunInternal in TensorFlow
core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple, Self

from opkernel.errors import InvalidArgumentError
from opkernel.logs import logger

_Work = Callable[[], object]

_pools: weakref.WeakSet[InterOpPool] = weakref.WeakSet()


class InterOpPool:
    """Threads that start when there is work for them, and end when there was none for a while.

    They do not keep the process alive. May be used from any thread.

    Args:
        threads: How many there are at most.
        name: A part of the names of the threads.
        idle_s: For how long a thread waits for work before it ends.

    Attributes:
        threads: How many there are at most.
    """

    def __init__(self, threads: int, name: str = "", idle_s: float = 10.0) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, got {threads}")
        self.threads = threads
        self._name = f"opkernel inter-op {name}".rstrip()
        self._idle_s = idle_s
        self._is_open = True
        self._forget_threads()
        _pools.add(self)

    def _forget_threads(self) -> None:
        """Begin anew: without threads and without work."""
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._alive: set[threading.Thread] = set()
        self._busy = 0  # of work that was given and is not done

    def submit(self, work: _Work, otherwise: _Work) -> bool:
        """Have a thread do `work` at once; where none is free, `otherwise` when one is.

        Returns:
            Whether a thread does `work`.
        """
        with self._lock:
            is_free = self._busy < self.threads
            return self._put(work if is_free else otherwise) and is_free

    def schedule(self, work: _Work) -> None:
        """Have a thread do `work`, in the context of the caller, when one is free.

        Where there are no threads any more the caller does it.
        """
        in_context = partial(copy_context().run, work)
        with self._lock:
            is_put = self._put(in_context)
        if not is_put:
            work()

    def shutdown(self) -> None:
        """End the threads once they have done their work, and wait for the end."""
        with self._lock:
            was_open, self._is_open = self._is_open, False
            alive = list(self._alive)
        for _ in alive if was_open else ():
            self._waiting.put(None)
        for thread in alive:
            if thread is not threading.current_thread():
                thread.join()

    def _put(self, work: _Work) -> bool:
        """Give work to the threads, under the lock; False where there can be none."""
        if not self._is_open:
            return False
        if self._busy >= len(self._alive) < self.threads and not self._start_thread():
            return False
        self._busy += 1
        self._waiting.put(work)
        return True

    def _start_thread(self) -> bool:
        """Start one more thread; whether there is any."""
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system gives no more threads, or the interpreter is ending
            return bool(self._alive)
        self._alive.add(thread)
        return True

    def _work(self) -> None:
        """The work of a thread."""
        while True:
            try:
                work = self._waiting.get(timeout=self._idle_s)
            except Empty:
                if self._may_end():
                    return
                continue
            if work is None:  # the pool ends; earlier work is done, or other threads do it
                with self._lock:
                    self._alive.discard(threading.current_thread())
                return
            try:
                work()
            except BaseException:  # the thread is there for others, too
                logger("opkernel.inter_op_pool").exception("Work of the inter-op pool failed")
            del work  # and all that it holds
            with self._lock:
                self._busy -= 1

    def _may_end(self) -> bool:
        """Whether the calling thread is to end: there is still nothing to do."""
        with self._lock:
            is_idle = self._waiting.empty()
            if is_idle:
                self._alive.discard(threading.current_thread())
            return is_idle


def _after_fork() -> None:
    """A new process has none of the threads of the old one."""
    for pool in list(_pools):
        pool._forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_IN_CALLERS_THREAD = -1

_shared: dict[int | str, InterOpPool] = {}
_lock = threading.Lock()


class ThreadPoolOption(NamedTuple):
    """One of `session_inter_op_thread_pool` (ThreadPoolOptionProto).

    Attributes:
        num_threads: How many threads; 0 for as many as the session has otherwise.
        global_name: With a name, all sessions that give it share the pool.
    """

    num_threads: int = 0
    global_name: str = ""


def shared_inter_op_pool(threads: int, name: str = "") -> InterOpPool:
    """The pool of the process that has this name; without one, that which has this many threads.

    Raises:
        InvalidArgumentError: the pool of the name has another number of threads.
    """
    with _lock:
        pool = _shared.get(name or threads)
        if pool is None:
            pool = InterOpPool(threads, name or f"shared {threads}")
            _shared[name or threads] = pool
    if pool.threads != threads:
        raise InvalidArgumentError(
            f"Pool {name} configured previously with num_threads={pool.threads}; cannot "
            f"re-configure with num_threads={threads}"
        )
    return pool


class InterOpPools:
    """The pools of a session, by the index that a step gives.

    Args:
        threads: The threads of the one pool, or of those that do not say how many; 0 for one a
            core. Where it is negative steps run in the callers' threads.
        per_session: The pool is the session's own; otherwise all sessions with this number share it.
        pools: The pools, where there are to be several (`session_inter_op_thread_pool`).

    Raises:
        InvalidArgumentError: a named pool exists with another number of threads.
    """

    def __init__(
        self, threads: int, *, per_session: bool = False, pools: Sequence[ThreadPoolOption] = ()
    ) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._own: list[InterOpPool] = []
        if pools:
            self._pools: list[InterOpPool | None] = [self._of_option(one) for one in pools]
        elif self._threads < 0:
            self._pools = [None]
        elif per_session:
            self._pools = [self._new(self._threads)]
        else:
            self._pools = [shared_inter_op_pool(self._threads)]

    @classmethod
    def none(cls) -> Self:
        """No pools: all steps run in their callers' threads."""
        return cls(_IN_CALLERS_THREAD)

    def choose(self, index: int = 0) -> InterOpPool | None:
        """The pool for a step (`RunOptions.inter_op_thread_pool`); None: the caller's thread.

        Raises:
            InvalidArgumentError: there is no such pool.
        """
        if not _IN_CALLERS_THREAD <= index < len(self._pools):
            raise InvalidArgumentError(f"Invalid inter_op_thread_pool: {index}")
        return None if index == _IN_CALLERS_THREAD else self._pools[index]

    def close(self) -> None:
        """End the threads of the session's own pools."""
        for pool in self._own:
            pool.shutdown()

    def _of_option(self, option: ThreadPoolOption) -> InterOpPool:
        threads = option.num_threads or max(self._threads, 1)
        if option.num_threads < 0:
            raise InvalidArgumentError(f"A pool cannot have {threads} threads")
        if option.global_name:
            return shared_inter_op_pool(threads, option.global_name)
        return self._new(threads)

    def _new(self, threads: int) -> InterOpPool:
        pool = InterOpPool(threads)
        self._own.append(pool)
        return pool
