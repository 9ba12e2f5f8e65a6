"""The threads that NumPy's BLAS starts by itself, and how to keep it from starting any.

OpenBLAS waits for its threads by spinning. If something else runs on one of the processors, a product
on all of them takes 5 to 20 times as long as on one. Kernels therefore share matrix products out among
threads of their own (`shard`), and hold BLAS to the calling thread meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from opkernel.interrupts import contextmanager

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
        self._lock = threading.Lock()
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
            with self._lock:
                self.blocks -= {block}
                if not self.blocks and self._before is not None:
                    self._set_threads(self._before)
                    self._before = None

    def hold(self, block: object) -> None:
        """Hold BLAS as for a block, for good."""
        with self._lock:
            self.blocks.add(block)
            functions = _openblas()
            if functions is not None and self._before is None:
                get, self._set_threads = functions
                self._before = get()
                self._set_threads(1)

    def before_fork(self) -> None:
        """No other thread may be changing the number while the process forks."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """Go on as before the fork."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Start anew: the child has none of the threads that are within a block."""
        self.blocks.clear()
        if self._before is not None:
            self._set_threads(self._before)
            self._before = None
        self._lock.release()


one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=one_blas_thread.before_fork,
        after_in_parent=one_blas_thread.after_fork,
        after_in_child=one_blas_thread.after_fork_in_child,
    )
