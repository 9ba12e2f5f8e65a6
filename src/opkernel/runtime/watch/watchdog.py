"""BlockedKernelWatchdog: names synchronous kernels that wait.

A synchronous kernel must never wait for another kernel: the threads that run kernels are few, and all of
them may end up waiting. A kernel waits if it stays at its node and its thread uses no processor time. The
watchdog samples the stacks of all threads from a thread of its own; steps pay nothing for it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Self

from opkernel.graph import Operation
from opkernel.kernel import AsyncOpKernel
from opkernel.runtime.dataflow.run import node_of_frame
from opkernel.runtime.plan.compiled_plan import CompiledPlan

_LOGGER = logging.getLogger("opkernel.watchdog")
_SAMPLES = 8  # while a kernel waits for as long as is reported
_BUSY = 0.1  # the share of a processor above which a kernel works and does not wait


@dataclass(frozen=True)
class BlockedKernel:
    """A kernel that waits.

    Attributes:
        node: The name of its node.
        op: The node's op.
        seconds: For how long it has been waiting.
        stack: The stack of its thread, as text.
    """

    node: str
    op: str
    seconds: float
    stack: str

    def __str__(self) -> str:
        return (
            f"{self.op} (node '{self.node}') has been waiting for {self.seconds:.1f} s. A kernel "
            "that waits for another must be an AsyncOpKernel, or all threads of a pool may end up "
            f"waiting. It stands here:\n{self.stack}"
        )


@dataclass
class _Seen:
    """A node that a thread was first seen at, and the thread's processor time then."""

    op: Operation
    since: float
    cpu_s: float
    is_reported: bool = False


class BlockedKernelWatchdog:
    """Watches all threads while it is entered, and reports each kernel that waits for long.

        with BlockedKernelWatchdog(after_s=5):
            session.run(...)

    Args:
        after_s: for how long a kernel may wait before it is reported.
        report: is called with each, on the watchdog's thread; logs a warning if None.

    Where the system does not tell the processor time of a thread (`time.pthread_getcpuclockid`),
    kernels that take long count as waiting.
    """

    def __init__(
        self, after_s: float = 10.0, report: Callable[[BlockedKernel], None] | None = None
    ) -> None:
        self._after_s = after_s
        self._report = report or (lambda blocked: _LOGGER.warning("%s", blocked))
        self._seen: dict[int, _Seen] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="opkernel watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(self._after_s / _SAMPLES):
            frames = sys._current_frames()
            self._seen = {
                thread: seen
                for thread, frame in frames.items()
                if thread != threading.get_ident()
                and (seen := self._sample(thread, frame)) is not None
            }

    def _sample(self, thread: int, frame: FrameType) -> _Seen | None:
        """The kernel that a thread runs; reports a kernel that waits for too long."""
        op = _node_of(frame)
        if op is None:
            return None
        now, cpu_s = time.monotonic(), _cpu_seconds(thread)
        seen = self._seen.get(thread)
        if seen is None or seen.op is not op or cpu_s - seen.cpu_s > _BUSY * (now - seen.since):
            return _Seen(op, now, cpu_s)
        if now - seen.since >= self._after_s and not seen.is_reported:
            import traceback  # slow to import

            seen.is_reported = True
            stack = "".join(traceback.format_stack(frame))
            self._report(BlockedKernel(op.name, op.type, now - seen.since, stack))
        return seen


def _node_of(frame: FrameType | None) -> Operation | None:
    """The node whose synchronous kernel a stack is in: the node of the innermost plan or executor."""
    while frame is not None:
        if frame.f_code is AsyncOpKernel.compute.__code__:
            return None
        plan = CompiledPlan.of_frame(frame)
        if plan is not None:
            at = plan.node_at(frame.f_code.co_filename, frame.f_lineno)
            return None if at is None else at[0]
        op = node_of_frame(frame)
        if op is not None:
            return op
        frame = frame.f_back
    return None


def _cpu_seconds(thread: int) -> float:
    """The processor time that a thread has used."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread))
    except (AttributeError, OSError):  # not on this system; or the thread has ended
        return 0.0
