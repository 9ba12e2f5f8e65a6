"""Ways to interrupt this thread, as Ctrl-C does, at a chosen moment.

SIGINT is set pending, from within the interpreter's hooks or by another process. The interpreter raises
KeyboardInterrupt where it looks for signals next: at the beginning of a Python function, at the end of a call
of a C function, or at the end of a loop's turn. So it comes at no place where Ctrl-C could not come.
"""

import _thread
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["HOOKS", "IMPORTING", "Hook", "count_events", "each_interrupted", "interrupt_at"]

IMPORTING = "<frozen importlib._bootstrap>"
"""The file of Python's import system. It has places where an interrupt leaves its lock held for ever."""

Hook = Callable[[Callable[[], bool]], None]
"""Has a function called at each event from now on, until the function returns True."""


def _at_calls(tick: Callable[[], bool]) -> None:
    """At the beginning and end of each call, of Python's and of C's functions, but for Python's import system."""

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename != IMPORTING and tick():
            sys.setprofile(None)
            _trip()

    sys.setprofile(profile)


def _at_instructions(tick: Callable[[], bool]) -> None:
    """Before each instruction of opkernel's functions."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if "/opkernel/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return at_instruction

    def at_instruction(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and tick():
            sys.settrace(None)
            frame.f_trace = None
            _trip()
            return None
        return at_instruction

    sys.settrace(trace)


def _trip() -> None:
    """Set SIGINT pending; a loop calls the function, since the end of a plain call looks for signals."""
    for _ in map(_thread.interrupt_main, (signal.SIGINT,)):
        return


HOOKS: dict[str, Hook] = {"calls": _at_calls, "instructions": _at_instructions}


def count_events(hook: Hook, use: Callable[[], object]) -> int:
    """How many events of a hook a call has."""
    count = 0

    def tick() -> bool:
        nonlocal count
        count += 1
        return False

    _hooked(hook, tick, use)
    return count


def interrupt_at(hook: Hook, number: int, use: Callable[[], object]) -> None:
    """Call a function, and interrupt it at its event of this number."""
    left = number

    def tick() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    _hooked(hook, tick, use)


def each_interrupted(
    hook: Hook, use: Callable[[], object], prepare: Callable[[], object] = int, step: int = 1
) -> Iterator[BaseException | None]:
    """Call a function for each of its events, or every `step`th, and interrupt it there.

    Another function prepares each call. Gives the interrupt after each call; None if it was dropped.
    """
    prepare()
    for number in range(1, count_events(hook, use) + 1, step):
        prepare()
        try:
            interrupt_at(hook, number, use)
        except KeyboardInterrupt as error:
            yield error
        else:
            yield None


def _hooked(hook: Hook, tick: Callable[[], bool], use: Callable[[], object]) -> None:
    """Call a function, with a hook.

    There are no collections meanwhile: Python 3.11 crashes in one if a generator was begun under a hook and interrupted.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(0)
    try:
        hook(tick)
        use()
    finally:
        sys.setprofile(None)
        sys.settrace(None)
        gc.set_threshold(*thresholds)
