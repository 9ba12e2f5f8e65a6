"""Tracebacks as users read them: errors show the lines of the user's program, and hide the frames of opkernel.

Public functions are entrances: `lazy_exports` wraps them where it hands them to a user. Classes that users work with
say `@entrances`. Hot entrances (ops, sessions, traced functions, signatures, operators) call `hide_frames`
themselves. An error that nobody meant to raise, such as an IndexError from opkernel's own code, keeps its frames:
they tell what is broken.

State: whether frames are hidden; at first what the environment variable OPKERNEL_TRACEBACK_FILTERING says.
Source: TensorFlow python/util/traceback_utils.py.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

from opkernel.errors import OpError

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound=Callable[..., Any])

_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_BETWEEN = (os.path.join("numpy", "_core", "_ufunc_config.py"), f"{os.sep}contextlib.py")
"""Files of libraries whose frames stand between those of opkernel, and tell nothing."""

_WRONG_ARGUMENT = "the value is argument"

_RUNS_LATER = 0x20 | 0x80 | 0x200
"""Flags of code: CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR. `inspect`, which names them, is slow to import."""

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
    if before.__traceback__ is None and isinstance(before, OpError | OSError):
        # It was raised and caught within opkernel, and the error says what it said.
        error.__context__, error.__cause__ = before, None
        error.__suppress_context__ = True


@functools.cache
def entrance(function: FunctionType) -> Callable[..., Any]:
    """The function for users: its errors hide the frames of opkernel. Each function has one entrance.

    A coroutine or generator runs after the call, and is its own entrance.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if isinstance(error, AttributeError):
                _name_argument(error, function, args, kwargs)
            hide_frames(error)
            raise

    return function if function.__code__.co_flags & _RUNS_LATER else hides_frames(call)


def entrances(cls: _Class) -> _Class:
    """Make the constructor and the public methods of a class entrances; not those that hide frames themselves."""
    for name, method in list(vars(cls).items()):
        is_public = name == "__init__" or not name.startswith("_")
        if (
            is_public
            and isinstance(method, FunctionType)
            and not hasattr(method, "__hides_frames__")
        ):
            setattr(cls, name, entrance(method))
    return cls


def hides_frames(function: _Function) -> _Function:
    """Say that a function needs no entrance: it calls `hide_frames` itself, as hot ones do, or cannot fail."""
    function.__hides_frames__ = True  # type: ignore[attr-defined]  # an attribute of functions
    return function


def _name_argument(
    error: AttributeError, function: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Note which argument of a call lacks the attribute, if it is one: then the caller is at fault, not opkernel."""
    given = {**dict(zip(function.__code__.co_varnames, args, strict=False)), **kwargs}
    name = next((name for name, value in given.items() if value is error.obj), None)
    if name is not None and _was_accident(error):
        error.add_note(f"{_WRONG_ARGUMENT} {name!r} of {function.__name__}")


def past_entrances(frame: FrameType) -> FrameType:
    """The frame itself, or the nearest one around it that is not an entrance's."""
    while frame.f_code is _ENTRANCE and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _may_hide(error: BaseException) -> bool:
    """Whether an error says all that its frames would: it was raised on purpose, or by the user's code or argument."""
    if isinstance(error, OpError | TypeError | OSError) or not _was_accident(error):
        return True
    return any(note.startswith(_WRONG_ARGUMENT) for note in getattr(error, "__notes__", ()))


def _was_accident(error: BaseException) -> bool:
    """Whether a line of opkernel failed that is no `raise`."""
    from opcode import opmap  # for errors

    entries = [*_entries(error.__traceback__)]
    if not entries or not _is_own(entries[-1]):
        return False
    last = entries[-1]
    return last.tb_frame.f_code.co_code[last.tb_lasti] != opmap["RAISE_VARARGS"]


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


_ENTRANCE = entrance(_is_own).__code__
