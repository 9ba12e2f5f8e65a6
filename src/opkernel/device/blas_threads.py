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
from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["MATRIX_PRODUCTS", "one_blas_thread", "openblas_functions"]

MATRIX_PRODUCTS = frozenset(
    {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "MatMul", "_FusedMatMul"}
)
"""Ops that, if small, spend a good part of their time on holding BLAS, unless it is held already."""

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
    """While anyone is within the block, products are computed by the threads that ask for them.

    It holds for the whole process. Where NumPy has another BLAS than OpenBLAS nothing happens.

    Attributes:
        users: How many blocks there are at this moment.
    """

    def __init__(self) -> None:
        self.users = 0
        self._lock = threading.Lock()
        self._before = 1
        self._set_threads: Callable[[int], object] = int

    @property
    def holds(self) -> bool:
        """Whether holding has an effect: NumPy's BLAS is a known one."""
        return _openblas() is not None

    def __enter__(self) -> None:
        with self._lock:
            if not self.users:
                self._hold()
            self.users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self.users = max(self.users - 1, 0)
            if not self.users:
                self._let_go()

    def before_fork(self) -> None:
        """No other thread may be changing the number while the process forks."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """Go on as before the fork."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Start anew: the child has none of the threads that are within a block."""
        if self.users:
            self.users = 0
            self._let_go()
        self._lock.release()

    def _let_go(self) -> None:
        if self._before != 1:
            self._set_threads(self._before)

    def _hold(self) -> None:
        functions = _openblas()
        if functions is not None:
            get, self._set_threads = functions
            self._before = get()
            if self._before != 1:
                self._set_threads(1)


one_blas_thread = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=one_blas_thread.before_fork,
        after_in_parent=one_blas_thread.after_fork,
        after_in_child=one_blas_thread.after_fork_in_child,
    )
