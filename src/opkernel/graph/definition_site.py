"""Where in the user's code a node was made."""

import sys
from traceback import FrameSummary, StackSummary
from types import CodeType, FrameType

__all__ = ["DefinitionSite", "capture_site", "format_site"]

DefinitionSite = tuple[tuple[CodeType, int], ...]
"""Code and line number of each frame, outermost first."""

_PACKAGE = __name__.partition(".")[0]
_MAX_FRAMES = 16


def capture_site() -> DefinitionSite:
    """The innermost frames of the caller that are not opkernel's own.

    Costs a microsecond or two: no text is made and no source file is read here.
    """
    frames: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(frames) < _MAX_FRAMES:
        module = frame.f_globals.get("__name__") or ""
        if module.partition(".")[0] != _PACKAGE:
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    frames.reverse()
    return tuple(frames)


def format_site(site: DefinitionSite) -> StackSummary:
    """The site as the standard library shows stacks; source lines are read when printed."""
    return StackSummary.from_list(
        [
            FrameSummary(code.co_filename, line, code.co_name, lookup_line=False)
            for code, line in site
        ]
    )
