"""What is shown, and what is bounded, while a command works."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from opkernel.errors import DeadlineExceededError

__all__ = ["progress", "time_limit"]

_TICK_S = 0.5
_AGAIN_S = 1.0


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Say on a terminal's standard error what is being done and since when; quick work is silent."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    ticker = threading.Thread(target=_tick, args=(what, done), daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


def _tick(what: str, done: threading.Event) -> None:
    started = time.monotonic()
    line = ""
    while not done.wait(_TICK_S):
        line = f"{what} ... {time.monotonic() - started:.0f} s"
        click.echo(f"\r{line}", nl=False, err=True)
    click.echo(f"\r{' ' * len(line)}\r" if line else "", nl=False, err=True)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise DeadlineExceededError in the block after so many seconds, between two nodes of a graph.

    It interrupts graphs without loops, too, which a step's own timeout does not. Where there are
    no interval timers (Windows) it does nothing.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise DeadlineExceededError(f"Timed out after {seconds:g} s")

    earlier = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)  # the first may go unheard
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
