"""InterOpPools: the pools that the steps of one session choose from; some are shared by sessions.

Source: DirectSession::DirectSession and RunInternal in TensorFlow
core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import NamedTuple, Self

from opkernel.errors import InvalidArgumentError
from opkernel.runtime.step.inter_op_pool import InterOpPool

_IN_CALLERS_THREAD = -1

_shared: dict[int, InterOpPool] = {}
_named: dict[str, InterOpPool] = {}
_lock = threading.Lock()


class ThreadPoolOption(NamedTuple):
    """One of `session_inter_op_thread_pool` (ThreadPoolOptionProto).

    Attributes:
        num_threads: How many threads; 0 for as many as the session has otherwise.
        global_name: With a name, all sessions that give it share the pool.
    """

    num_threads: int = 0
    global_name: str = ""


def shared_inter_op_pool(threads: int) -> InterOpPool:
    """The pool of the process that has this many threads."""
    with _lock:
        pool = _shared.get(threads)
        if pool is None:
            pool = _shared[threads] = InterOpPool(threads, f"shared {threads}")
        return pool


def named_inter_op_pool(name: str, threads: int) -> InterOpPool:
    """The pool of the process that has this name.

    Raises:
        InvalidArgumentError: it has another number of threads.
    """
    with _lock:
        pool = _named.get(name)
        if pool is None:
            pool = _named[name] = InterOpPool(threads, name)
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
        self,
        threads: int,
        *,
        per_session: bool = False,
        pools: Sequence[ThreadPoolOption] = (),
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

    def __bool__(self) -> bool:
        """Whether there is any pool."""
        return self._pools != [None]

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
            return named_inter_op_pool(option.global_name, threads)
        return self._new(threads)

    def _new(self, threads: int) -> InterOpPool:
        pool = InterOpPool(threads)
        self._own.append(pool)
        return pool
