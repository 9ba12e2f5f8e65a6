"""DeferredOps: counts kernels whose work goes on after their `compute` has returned.

Source: inc_num_deferred_ops_function in TensorFlow core/framework/op_kernel.h.
"""

import threading

from opkernel.errors import DeadlineExceededError, InternalError


class DeferredOps:
    """The deferred work of one step. Each `inc` pairs with one `dec`, from any thread."""

    def __init__(self) -> None:
        self._running = 0
        self._changed = threading.Condition()

    def inc(self) -> None:
        """Say that work begins."""
        with self._changed:
            self._running += 1

    def dec(self) -> None:
        """Say that work is done.

        Raises:
            InternalError: no work is running.
        """
        with self._changed:
            if self._running == 0:
                raise InternalError("A deferred kernel ended work that had not begun")
            self._running -= 1
            self._changed.notify_all()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until no work is running.

        Raises:
            DeadlineExceededError: it was still running after the timeout.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._running == 0, timeout_s):
                raise DeadlineExceededError(
                    f"Timed out: the work of {self._running} deferred kernels is not done"
                )
