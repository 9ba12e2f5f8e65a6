"""Where an op, a kernel or a provider is declared: the module, the line, and the run of the module's code."""

import weakref
from types import CodeType, FrameType
from typing import NamedTuple

__all__ = ["DeclaringSite", "declaring_site"]


class DeclaringSite(NamedTuple):
    """A place in a module that registers something.

    Attributes:
        owner: The module's name.
        file: Its file.
        line: The line.
        run: The code that ran there: of the module while it is imported, of a notebook's cell, or of the
            function that was called later. Code that is loaded or executed again is compiled anew.
    """

    owner: str
    file: str
    line: int
    run: weakref.ref[CodeType]

    def is_of_same_run(self, other: "DeclaringSite") -> bool:
        """Whether one run of the module's code comes to both places."""
        run = self.run()
        return run is not None and run is other.run()


def declaring_site(caller: FrameType) -> DeclaringSite:
    """The place in the module that is being imported, or else the caller's.

    A module may declare a family of its ops or kernels through a function of another module. A module
    that declares for others alone says so: `__declares_for_its_caller__`.
    """
    while "__declares_for_its_caller__" in caller.f_globals and caller.f_back is not None:
        caller = caller.f_back
    frame = _importing(caller) or caller
    code = frame.f_code
    return DeclaringSite(
        str(frame.f_globals.get("__name__", "")),
        code.co_filename,
        frame.f_lineno,
        weakref.ref(_outermost(frame).f_code),
    )


def _importing(caller: FrameType) -> FrameType | None:
    """The frame of the module that is being imported, if any."""
    frame: FrameType | None = caller
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            spec = frame.f_globals.get("__spec__")
            if getattr(spec, "_initializing", False):
                return frame
        frame = frame.f_back
    return None


def _outermost(frame: FrameType) -> FrameType:
    """The frame through which the module of a frame is run or was called."""
    found, above = frame, frame.f_back
    while found.f_code.co_name != "<module>" and above is not None:
        if above.f_globals is frame.f_globals:
            found = above
        above = above.f_back
    return found
