"""Steps that wait, run on threads of their own."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from tests.blocked import wait_until_blocked

WAIT_S = 300.0
"""Longer than anything here takes."""


def started(function: Callable[..., Any], *args: Any, **kwargs: Any) -> "Future[Any]":
    """The outcome of a call on a thread of its own, which waits by now, or has ended."""
    future: Future[Any] = Future()

    def call() -> None:
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    wait_until_blocked(thread)
    return future


@contextmanager
def no_threads_left() -> Iterator[None]:
    """Check that the block leaves no thread behind."""
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + WAIT_S
    while left := set(threading.enumerate()) - before:
        assert time.monotonic() < until, left
        time.sleep(0.01)
