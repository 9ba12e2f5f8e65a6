"""`Plugin`: one kernel library, and how loading it went; and the plugins that can be found.

Finding them runs none of their code. The fault of a plugin is kept as its error.
"""

import importlib
import importlib.metadata
import os
import re
import tomllib
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from opkernel.errors import InvalidArgumentError, NotFoundError

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
        told = f"{type(self.error).__name__}: {_text_of(self.error)}"
        frames = traceback.extract_tb(self.error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(_NOT_OWN)]
        return f"{told} ({own[-1].filename}, line {own[-1].lineno})" if own else told


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:  # the class may be the plugin's own, too
        return f"its text raises {type(other).__name__}"


_NOT_OWN = ("<frozen importlib", str(importlib.__file__), str(Path(__file__).parents[1]))


ENTRY_POINT_GROUP = "opkernel.plugins"
_PATH = "OPKERNEL_PLUGIN_PATH"
_FILE = "plugin.toml"
_NAME = re.compile(r"[A-Za-z]\w*(-\w+)*", re.ASCII)
_API_KEYWORD = re.compile(r"opkernel-api=([^\s,]+)")


def find_plugins() -> list[Plugin]:
    """The plugins in the order in which they are loaded.

    First come the folders of `OPKERNEL_PLUGIN_PATH` in their order, the plugins of each by the
    names of their sub-folders; then the installed plugins, by name.
    """
    folders = filter(None, os.environ.get(_PATH, "").split(os.pathsep))
    return [
        *(plugin for folder in folders for plugin in _plugins_on_path(Path(folder))),
        *plugins_installed(),
    ]


def plugins_in_folder(folder: Path) -> list[Plugin]:
    """The plugin that a folder is, or else the plugins that its sub-folders are."""
    folder = folder.resolve()
    if (folder / _FILE).exists():
        return [_plugin_of_folder(folder)]
    return [_plugin_of_folder(one) for one in sorted(folder.iterdir()) if (one / _FILE).exists()]


def plugin_of_file(file: Path, api: str) -> Plugin:
    """A single Python file as a plugin."""
    file = file.resolve()
    modules = _module_names(file.stem, [file.stem])
    return Plugin(file.stem, str(file), modules, api=api, folder=file.parent)


def plugins_installed() -> list[Plugin]:
    """The plugins that installed distributions have as entry points."""
    try:
        found = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    except Exception as error:  # the metadata of any distribution may be broken
        return [Plugin("entry points", "installed distributions", error=error)]
    return [_plugin_of_entry_point(one) for one in sorted(found, key=lambda e: (e.name, e.value))]


def _plugins_on_path(folder: Path) -> Iterable[Plugin]:
    try:
        return plugins_in_folder(folder)
    except OSError as error:
        cannot_read = NotFoundError(f"{_PATH} names '{folder}': {error.strerror}")
        return [Plugin(folder.name, str(folder), error=cannot_read)]


def _plugin_of_folder(folder: Path) -> Plugin:
    try:
        stated = tomllib.loads((folder / _FILE).read_text(encoding="utf-8"))
        name = _text(stated, "name")
        modules = _module_names(name, stated.get("modules"))
        version = _text(stated, "version")
        api = _text(stated, "api") if "api" in stated else ""  # not safe, but not broken
    except (OSError, ValueError, RecursionError) as error:  # no TOML, and InvalidArgumentError too
        wrong = InvalidArgumentError(f"'{folder / _FILE}': {error}")
        return Plugin(folder.name, str(folder), error=wrong)
    return Plugin(name, str(folder), modules, version, api, folder)


def _text(stated: dict[str, Any], key: str) -> str:
    value = stated.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(f"'{key}' must be a string that is not empty, not {value!r}")
    return value


def _module_names(plugin: str, modules: object) -> tuple[str, ...]:
    """The names by which the modules of a folder are imported."""
    if not _NAME.fullmatch(plugin):
        raise InvalidArgumentError(
            f"'{plugin}' is no name for a plugin, which consists of letters, digits, _ and -"
        )
    if not isinstance(modules, list) or not modules:
        raise InvalidArgumentError(f"'modules' must be a list of modules, not {modules!r}")
    for module in modules:
        if not isinstance(module, str) or not all(p.isidentifier() for p in module.split(".")):
            raise InvalidArgumentError(f"'modules' must name modules; {module!r} is none")
    return tuple(f"{FOLDERS_PACKAGE}.{plugin}.{module}" for module in modules)


def _plugin_of_entry_point(entry_point: EntryPoint) -> Plugin:
    name, distribution = entry_point.name, entry_point.dist
    if distribution is None:  # entry points found by `entry_points` have one
        return Plugin(name, "installed", (entry_point.value,))
    try:
        found = f"{distribution.name} {distribution.version}"
        if entry_point.attr or not entry_point.module:
            raise InvalidArgumentError(f"entry point '{name}' must name a module, not an object")
        keywords = distribution.metadata.get_all("Keywords") or []
        stated = _API_KEYWORD.search(",".join(map(str, keywords)))
    except Exception as error:  # the metadata may be broken in many ways
        return Plugin(name, entry_point.value, error=error)
    api = stated[1] if stated else ""
    return Plugin(name, found, (entry_point.module,), distribution.version, api)
