"""The line that is shown while a command works."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from opkernel.cli.output import one_line, rewrite_line

__all__ = ["progress"]

_TICK_S = 0.5


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show the work under way and its duration on a terminal's standard error; quick work is silent."""
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
        line = one_line(f"{what} ... {time.monotonic() - started:.0f} s")
        rewrite_line(line)
    if line:
        rewrite_line(" " * len(line))
        rewrite_line("")
