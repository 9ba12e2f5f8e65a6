"""InterOpPool: the threads that compute expensive kernels of steps side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = ["InterOpPool"]


class InterOpPool:
    """Threads that are started when there is work for them.

    Args:
        threads: How many there are at most.
    """

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, got {threads}")
        self._threads = threads
        self._lock = threading.Lock()
        self._is_open = True
        self._busy = 0  # of work that was given and is not done

    def submit(self, work: Callable[[], object], otherwise: Callable[[], object]) -> bool:
        """Have a thread do `work` at once; where none is free, `otherwise` when one is.

        Returns:
            Whether a thread does `work`.
        """
        with self._lock:
            if not self._is_open:
                return False
            is_free = self._busy < self._threads
            self._busy += 1
            self._pool.submit(self._run, work if is_free else otherwise)
            return is_free

    def shutdown(self) -> None:
        """End the threads once they have done what they were given; wait for that."""
        with self._lock:
            was_open, self._is_open = self._is_open, False
        if was_open and "_pool" in self.__dict__:
            self._pool.shutdown()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        finally:
            with self._lock:
                self._busy -= 1

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        return ThreadPoolExecutor(self._threads, thread_name_prefix="opkernel inter-op")
