"""Tracebacks as users read them: errors show the lines of the user's program, and hide the frames of opkernel.

The entrances of opkernel (ops, functions, sessions, signatures) call `hide_frames` for an error that leaves them. An error
that nobody meant to raise, such as an IndexError from opkernel's own code, keeps its frames: they tell what is broken.

State: whether frames are hidden; at first what the environment variable OPKERNEL_TRACEBACK_FILTERING says.
Source: TensorFlow python/util/traceback_utils.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType

from opkernel.errors import OpError

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_BETWEEN = (os.path.join("numpy", "_core", "_ufunc_config.py"), f"{os.sep}contextlib.py")
"""Files of libraries whose frames stand between those of opkernel, and tell nothing."""

_is_on = os.environ.get("OPKERNEL_TRACEBACK_FILTERING", "1") not in ("", "0")


def enable_traceback_filtering() -> None:
    """Hide the frames of opkernel in the tracebacks of errors, as is done unless the environment says otherwise."""
    global _is_on
    _is_on = True


def disable_traceback_filtering() -> None:
    """Show all frames in the tracebacks of errors."""
    global _is_on
    _is_on = False


def is_traceback_filtering_enabled() -> bool:
    """Whether the tracebacks of errors hide the frames of opkernel."""
    return _is_on


def hide_frames(error: BaseException) -> None:
    """Take the frames of opkernel out of the traceback of an error and of its causes.

    To be called in `except Exception as error:`, before `raise`.
    """
    if not _is_on or not _may_hide(error):
        return
    error.__traceback__ = _of_users(error.__traceback__)
    before = error.__cause__ or error.__context__
    if before is None or (error.__cause__ is None and error.__suppress_context__):
        return
    hide_frames(before)
    if before.__traceback__ is None and isinstance(before, OpError):
        # It was raised and caught within opkernel, and the error says what it said.
        error.__context__, error.__cause__ = before, None
        error.__suppress_context__ = True


def _may_hide(error: BaseException) -> bool:
    """Whether an error says all that its frames would: it was raised on purpose, or by the user's code."""
    entries = [*_entries(error.__traceback__)]
    return isinstance(error, OpError | TypeError) or not entries or not _is_own(entries[-1])


def _of_users(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of opkernel."""
    first: TracebackType | None = None
    for entry in [one for one in _entries(traceback) if not _is_own(one)][::-1]:
        entry.tb_next = first
        first = entry
    return first


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_own(entry: TracebackType) -> bool:
    file = entry.tb_frame.f_code.co_filename
    return file.startswith((_PACKAGE, "<opkernel ")) or file.endswith(_BETWEEN)
