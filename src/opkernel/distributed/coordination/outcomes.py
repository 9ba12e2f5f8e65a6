"""Outcomes: futures that are completed once the lock of their owner is free, since others may run then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from opkernel.errors import OpError
from opkernel.interrupts import contextmanager


class Outcomes:
    """A lock, and the futures that are to be completed after it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ready: list[tuple[Future[Any], OpError | None, Any]] = []

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock; then complete what has become ready."""
        try:
            with self._lock:
                yield
        finally:
            with self._lock:
                ready, self._ready = self._ready, []
            for future, error, result in ready:
                with suppress(InvalidStateError):  # who waits has given up
                    if error is None:
                        future.set_result(result)
                    else:
                        future.set_exception(error)

    def complete(self, future: Future[Any], error: OpError | None, result: Any = None) -> None:
        """Have a future completed; to be called under the lock."""
        self._ready.append((future, error, result))
