"""The thread on which clusters are compiled in the background.

It ends with the process, which does not wait for the compilation that is under way. A graph may make compiling take for ever:
the part of it that is Python is given up after a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future

from opkernel.device.budget import Budget
from opkernel.kernel import under_budget
from opkernel.runtime.engines.late_work import unattended
from opkernel.runtime.step.inter_op_pool import InterOpPool

_MOST_S = 300.0

_thread = InterOpPool(1, "compile")


def in_background(work: Callable[[], None]) -> Future[None]:
    """Have the thread do some work, which sees to its own errors."""
    done: Future[None] = Future()

    def do() -> None:
        try:
            with under_budget(Budget(deadline=time.monotonic() + _MOST_S)):
                work()
        finally:
            done.set_result(None)

    _thread.schedule(unattended(do))
    return done
