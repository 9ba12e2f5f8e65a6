"""One execution of a graph: its number, its deadline, its cancellation."""

import itertools
import time

from opkernel.errors import CancelledError, DeadlineExceededError

__all__ = ["RunStep"]

_step_ids = itertools.count(1)


class RunStep:
    """The state of one step (fulfils `opkernel.kernel.Step`).

    A step stops at the next `check` after `cancel` was called or its time ran out. Loops check at
    every iteration; straight graphs are not interrupted.
    """

    __slots__ = ("_cancelled", "_deadline", "step_id")

    def __init__(self, timeout_s: float | None = None) -> None:
        self.step_id = next(_step_ids)
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._cancelled = False

    def cancel(self) -> None:
        """Stop the step at its next check; may be called from any thread."""
        self._cancelled = True

    def check(self) -> None:
        """Raise CancelledError or DeadlineExceededError where the step is to stop."""
        if self._cancelled:
            raise CancelledError("Step was cancelled")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise DeadlineExceededError("Timed out: the step ran longer than its timeout")
