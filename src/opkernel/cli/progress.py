"""The line that is shown while a command works."""

import sys
import threading
import time
from collections.abc import Callable, Iterator

from opkernel.cli.output import echo, one_line, rewrite_line
from opkernel.interrupts import contextmanager

Stand = Callable[[int | None], str]
"""Tells how far the work is, on a line with room for so many characters; None for a line of a log."""

_TICK_S = 0.5
_TICK_OF_LOGS_S = 30.0


@contextmanager
def progress(what: str, stand: Stand | None = None) -> Iterator[None]:
    """Show the work under way on a terminal's standard error; quick work is silent.

    Args:
        what: The work.
        stand: Tells how far it is, in place of its duration. Files and pipes get such a line now and then, too.
    """
    is_terminal = sys.stderr.isatty()
    if not is_terminal and stand is None:
        yield
        return
    done = threading.Event()
    show = _rewrite if is_terminal else _log
    ticker = threading.Thread(target=show, args=(what, stand or _duration(), done), daemon=True)
    try:
        ticker.start()
        yield
    finally:
        done.set()
        ticker.join()


def _duration() -> Stand:
    started = time.monotonic()
    return lambda room: f" ... {time.monotonic() - started:.0f} s"


def _rewrite(what: str, stand: Stand, done: threading.Event) -> None:
    shown = ""
    while not done.wait(_TICK_S):
        width = _terminal_width()
        line = one_line(f"{what}{stand(width - len(what))}")[:width]
        rewrite_line(line.ljust(len(shown)))
        shown = line
    if shown:
        rewrite_line(" " * len(shown))
        rewrite_line("")


def _terminal_width() -> int:
    """The characters that fit on a line; one more would begin the next."""
    import shutil  # slow to import

    return shutil.get_terminal_size().columns - 1


def _log(what: str, stand: Stand, done: threading.Event) -> None:
    while not done.wait(_TICK_OF_LOGS_S):
        echo(one_line(f"{what}{stand(None)}"), err=True)
