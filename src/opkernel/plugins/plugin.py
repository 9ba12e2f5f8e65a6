"""`Plugin`: one kernel library, and how loading it went."""

import importlib
import traceback
from dataclasses import dataclass
from pathlib import Path

FOLDERS_PACKAGE = "opkernel_plugins"
"""Modules of a folder are imported as `opkernel_plugins.<plugin>.<module>`: folders may have modules
of the same name, and none of them is in the way of a module that is installed."""


@dataclass(eq=False)
class Plugin:
    """A kernel library: modules that register ops and kernels when they are imported.

    Attributes:
        name: Its name.
        found: Where it was found: a folder or file, or the distribution that has the entry point.
        modules: The modules to import, by the names that they are imported by.
        version: Its own version; empty if that is not known.
        api: The version of opkernel's API that it was built for; empty where it does not say.
        folder: The folder that its modules are in; None where they are installed.
        was_tried: Whether loading it is over, well or not.
        error: Why it could not be loaded; None where it could.
        seconds: How long loading took.
    """

    name: str
    found: str
    modules: tuple[str, ...] = ()
    version: str = ""
    api: str = ""
    folder: Path | None = None
    was_tried: bool = False
    error: BaseException | None = None
    seconds: float = 0.0

    def is_same(self, other: "Plugin") -> bool:
        """Whether both are the same modules in the same place."""
        return (self.found, self.modules) == (other.found, other.modules)

    @property
    def problem(self) -> str:
        """The error in words, with the line of the plugin's that raised it; empty without one."""
        if self.error is None:
            return ""
        told = f"{type(self.error).__name__}: {_text(self.error)}"
        frames = traceback.extract_tb(self.error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(_NOT_OWN)]
        return f"{told} ({own[-1].filename}, line {own[-1].lineno})" if own else told


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:  # the class may be the plugin's own, too
        return f"its text raises {type(other).__name__}"


_NOT_OWN = ("<frozen importlib", str(importlib.__file__), str(Path(__file__).parents[1]))
