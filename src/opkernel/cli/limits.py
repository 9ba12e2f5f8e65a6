"""`--timeout` and `--memory-limit`: the bounds of a command, from reading the model to its answer.

Both are a budget (`device/budget.py`), which the code of a command asks. The system stands behind
the budget, for code that does not ask. A timer interrupts Python code. Where the command is a process
of its own, a second timer ends it even while C code runs that keeps Python's lock. On Linux, the data of
the process is bounded.

While a command works, a line says so.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from importlib import import_module
from itertools import chain
from types import FrameType
from typing import Any

import click

from opkernel.cli.output import WrongUse, echo, one_line, rewrite_line
from opkernel.errors import DeadlineExceededError, TimeIsUp
from opkernel.interrupts import contextmanager

Stand = Callable[[int | None], str]
"""Tells how far the work is, on a line with room for so many characters; None for a line of a log."""

_TICK_S = 0.5
_TICK_OF_LOGS_S = 30.0


@contextmanager
def progress(
    what: str, stand: Stand | None = None, note: Callable[[], str] = str
) -> Iterator[None]:
    """Show the work under way on a terminal's standard error; quick work is silent.

    Args:
        what: The work.
        stand: Tells how far it is, in place of its duration. Files and pipes get such a line now and then, too.
        note: What to show behind the duration.
    """
    is_terminal = sys.stderr.isatty()
    if not is_terminal and stand is None:
        yield
        return
    done = threading.Event()
    show = _rewrite if is_terminal else _log
    ticker = threading.Thread(target=show, args=(what, stand or _duration(note), done), daemon=True)
    try:
        ticker.start()
        yield
    finally:
        done.set()
        ticker.join()


def _duration(note: Callable[[], str]) -> Stand:
    started = time.monotonic()
    return lambda room: f" ... {time.monotonic() - started:.0f} s{note()}"


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


_DAY_S = 86400.0
_AGAIN_S = 1.0
_BEHIND_S = 0.5
"""So much later than the budget the timer rings: what asks the budget says which node took the time."""
_SIGNALS: Any = import_module("_signal")
"""The C functions behind the module `signal`, whose Python functions an interrupt can divide."""
_STANDARD_ERROR = 2
_GRACE_S = 5.0
"""After so long without an answer to the timer, a process of its own is ended."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", re.IGNORECASE)
_MOST_BYTES = 1 << 60
_SLACK_BYTES = 512 << 20
"""The memory that a process may take beside tensors: modules that it loads later, stacks, messages."""


def checked_seconds(
    ctx: click.Context, param: click.Parameter, value: float | None
) -> float | None:
    """The value of `--timeout`."""
    if value is not None and not 0 < value <= _DAY_S:
        raise WrongUse(f"--timeout {value:g}: expected more than 0 and at most {_DAY_S:g} seconds")
    return value


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """The value of `--memory-limit`."""
    if value is None:
        return None
    match = _SIZE.fullmatch(value.strip())
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if not 0 < size <= _MOST_BYTES:
        raise WrongUse(
            f"--memory-limit {value}: expected a number of bytes such as 1000000, 512M or 1.5G"
        )
    return size


def add_limits(command: click.Command) -> None:
    """Have a command take `--timeout` and `--memory-limit`; one that has a `--timeout` ends by itself."""
    ends_itself = any(param.name == "timeout" for param in command.params)
    options = [
        click.Option(
            ["--timeout"],
            type=float,
            metavar="SECONDS",
            callback=checked_seconds,
            help="Give up after this time.",
        ),
        click.Option(
            ["--memory-limit"],
            metavar="BYTES",
            callback=_bytes,
            help="Hold no more bytes of tensors at once: 1000000, 512M, 2G.",
        ),
    ]
    command.params += options[ends_itself:]
    invoke = command.invoke

    def invoke_within(ctx: click.Context) -> Any:
        seconds = None if ends_itself else ctx.params.pop("timeout", None)
        limit = ctx.params.pop("memory_limit", None)
        is_process = bool(ctx.find_root().obj)
        in_memory = nullcontext() if limit is None else _within_memory(limit)
        in_time = nullcontext() if seconds is None else _within_time(seconds, is_process)
        with in_memory, in_time:
            return invoke(ctx)

    command.invoke = invoke_within  # type: ignore[method-assign]  # of this one


@contextmanager
def _within_time(seconds: float, is_process: bool) -> Iterator[None]:
    """Within the block DEADLINE_EXCEEDED is raised after so many seconds."""
    from opkernel.device.budget import Budget, current_budget  # loads NumPy
    from opkernel.kernel import under_budget

    deadline = time.monotonic() + seconds
    budget = Budget(deadline=deadline, outer=current_budget())
    ended = _process_ended(seconds) if is_process else nullcontext()
    with under_budget(budget), time_limit(seconds, _BEHIND_S), ended:
        yield


@contextmanager
def _process_ended(seconds: float) -> Iterator[None]:
    """Within the block the process ends with status 1 and a message once it is late beyond the grace.

    A thread of the module faulthandler ends it, which needs not Python's lock. The thread first writes where
    all threads are, which says nothing to users: a shell reads that, and writes the message.
    """
    message = (
        f"Error: DEADLINE_EXCEEDED: Timed out after {seconds:g} s. The command did not stop, "
        f"so its process was ended {_GRACE_S:g} s later"
    )
    with ExitStack() as held:
        file = _STANDARD_ERROR
        with suppress(OSError, AttributeError):  # no shell
            file = held.enter_context(_told_after_first_line(message))
        try:
            faulthandler.dump_traceback_later(seconds + _GRACE_S, exit=True, file=file)
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


@contextmanager
def _told_after_first_line(message: str) -> Iterator[int]:
    """A file to write to; once a line is there, a shell writes the message to standard error.

    Raises:
        OSError, AttributeError: the system has no such shell.
    """
    reading, writing = os.pipe()
    try:
        script = 'read line && printf "%s\\n" "$0" >&2'
        words = ["sh", "-c", script, message]
        taken = [(os.POSIX_SPAWN_DUP2, reading, 0)]
        shell = os.posix_spawn("/bin/sh", words, os.environ, file_actions=taken)
    finally:
        os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)
        os.waitpid(shell, 0)


@contextmanager
def time_limit(seconds: float, behind_s: float = 0.0) -> Iterator[None]:
    """End the block after so many seconds, between two steps of Python, and raise DeadlineExceededError.

    Within the block it is TimeIsUp, which no handler of errors takes for its own. Where there are no interval timers
    (Windows), or another thread is the main one, it does nothing.

    Args:
        seconds: The limit.
        behind_s: So many seconds later the timer rings.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeIsUp

    earlier = _SIGNALS.getsignal(signal.SIGALRM)
    restoring = chain(
        map(signal.setitimer, [signal.ITIMER_REAL], [0]),
        map(_SIGNALS.signal, [signal.SIGALRM], [earlier]),
    )
    try:
        _SIGNALS.signal(signal.SIGALRM, stop)
        # The first may go unheard.
        signal.setitimer(signal.ITIMER_REAL, seconds + behind_s, _AGAIN_S)
        yield
    except TimeIsUp:
        raise DeadlineExceededError(f"Timed out after {seconds:g} s") from None
    finally:
        try:
            _ = [*restoring]  # no interrupt divides this
        finally:  # but `signal` looks for one before it does anything
            _SIGNALS.signal(signal.SIGALRM, earlier)


@contextmanager
def _within_memory(limit: int) -> Iterator[None]:
    """Within the block RESOURCE_EXHAUSTED is raised before tensors take more bytes at once."""
    from opkernel.device.budget import Budget, current_budget  # loads NumPy
    from opkernel.kernel import under_budget

    with under_budget(Budget(limit, outer=current_budget())), _bounded_data(limit):
        yield


@contextmanager
def _bounded_data(limit: int) -> Iterator[None]:
    """Within the block the system gives the process no more than so much and some slack (Linux)."""
    if sys.platform != "linux":
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _data_bytes() + limit + _SLACK_BYTES
    bounds = [wanted, *(one for one in (soft, hard) if one != resource.RLIM_INFINITY)]
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    """The bytes that the process has by now, as RLIMIT_DATA counts them."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) << 10
    return 0
