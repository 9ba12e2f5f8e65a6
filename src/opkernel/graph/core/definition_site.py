"""Where in the user's code a node was made, or failed to be."""

from __future__ import annotations

import sys
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceback import StackSummary

DefinitionSite = tuple[tuple[CodeType, int], ...]
"""Code and line number of each frame, outermost first."""

_PACKAGE = __name__.partition(".")[0]
_PREFIX = f"{_PACKAGE}."
_MAX_FRAMES = 16
_NOTE = "while tracing "


def capture_site(frame: FrameType | None = None) -> DefinitionSite:
    """The innermost frames that are not opkernel's own, from `frame`, or else the caller's, outwards.

    Costs a microsecond or two: no text is made and no source file is read here.
    """
    frames: list[tuple[CodeType, int]] = []
    frame = sys._getframe(1) if frame is None else frame
    while frame is not None and len(frames) < _MAX_FRAMES:
        if not _is_own(frame):
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    frames.reverse()
    return tuple(frames)


def format_site(site: DefinitionSite) -> StackSummary:
    """The site as the standard library shows stacks; source lines are read when printed."""
    from traceback import FrameSummary, StackSummary  # for errors

    return StackSummary.from_list(
        [
            FrameSummary(code.co_filename, line, code.co_name, lookup_line=False)
            for code, line in site
        ]
    )


def with_start_lines(site: DefinitionSite) -> list[tuple[str, int, str, str | None, int]]:
    """The frames of a site: file, line, function, source text, and where the function begins."""
    return [
        (frame.filename, line, frame.name, frame.line, code.co_firstlineno)
        for (code, line), frame in zip(site, format_site(site), strict=True)
    ]


def note_site(error: Exception, traced: str) -> None:
    """Note on an error, where none is noted yet, the line of the user's code that it came from."""
    if any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        return
    place = ""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if not _is_own(frame):
            place = f", at {frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    error.add_note(f"{_NOTE}{traced}{place}")


def _is_own(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__") or ""
    return module == _PACKAGE or module.startswith(_PREFIX)
