"""Participant: a member of this task that takes part in a collective, and what may end that early."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from opkernel.distributed.collectives.exchange import Exchange
from opkernel.errors import CancelledError, DeadlineExceededError, OpError
from opkernel.kernel import CancellationManager, CollectiveDone, CollectiveParams


class Participant:
    """A member.

    Attributes:
        params: The collective.
        tensor: What it brings; None where it only receives.
        exchange: Its exchange with the other members, once they have all come.
    """

    def __init__(self, params: CollectiveParams, tensor: Any, done: CollectiveDone) -> None:
        self.params = params
        self.tensor = tensor
        self.exchange: Exchange | None = None
        self._done = done
        self._ends: list[Callable[[], object]] = []
        self._is_over = False
        self._lock = threading.Lock()

    def wait(
        self, manager: CancellationManager | None, fail: Callable[[OpError], object]
    ) -> OpError | None:
        """Have `fail` called at its cancellation, and when it has waited too long.

        Returns:
            Why it was cancelled, where it was already.
        """
        if manager is not None:
            token = manager.get_cancellation_token()
            if not manager.register_callback(token, lambda: fail(_reason(manager))):
                return _reason(manager)
            self.add_end(partial(manager.try_deregister_callback, token))
        if self.params.timeout_seconds > 0:
            late = DeadlineExceededError("Collective has timed out waiting for other workers.")
            timer = threading.Timer(self.params.timeout_seconds, fail, (late,))
            timer.daemon = True
            timer.start()
            self.add_end(timer.cancel)
        return None

    def add_end(self, end: Callable[[], object]) -> None:
        """Have a function called when it is complete, or now if it is already."""
        with self._lock:
            if not self._is_over:
                self._ends.append(end)
                return
        end()

    def complete(self, error: OpError | None, result: Any) -> None:
        """Tell it the outcome; to be called once."""
        with self._lock:
            self._is_over = True
            ends, self._ends = self._ends, []
        for end in ends:
            end()
        self._done(error, result)


def _reason(manager: CancellationManager) -> OpError:
    return manager.status or CancelledError("op cancelled")
