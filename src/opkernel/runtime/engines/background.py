"""The thread on which clusters are compiled in the background.

It ends with the process, after the compilation that is under way; what waits then is left out.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["in_background"]


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="opkernel-compile")


def in_background(work: Callable[[], None]) -> Future[None]:
    """Have the thread do some work, which sees to its own errors."""

    def unless_ending() -> None:
        if threading.main_thread().is_alive():
            work()

    return _thread().submit(unless_ending)
