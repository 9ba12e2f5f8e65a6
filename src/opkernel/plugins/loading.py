"""Loading plugins: each is checked, then imported; the failure of one leaves the others alone.

One thread loads, the others wait. A thread in the middle of an import does not wait, since the plugin
may be waiting for that import. A look-up by a plugin that is being imported loads the plugins after
it, too.
"""

import importlib
import logging
import os
import re
import sys
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType, ModuleType

from opkernel.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    TimeIsUp,
    UnavailableError,
)
from opkernel.interrupts import trying
from opkernel.opdef import global_op_registry
from opkernel.plugins.contents import contents_of, remove_contents
from opkernel.plugins.discovery import (
    FOLDERS_PACKAGE,
    Plugin,
    find_plugins,
    plugin_of_file,
    plugins_in_folder,
    plugins_installed,
)

API_VERSION = "1.0"
"""`docs/plugins.md` says what the version covers. The first number changes when a plugin that worked
may cease to work, the second when something is added that plugins can use."""

_log = logging.getLogger(__name__)
_UNSAFE = "OPKERNEL_LOAD_UNSAFE_PLUGINS"


def check_api_version(plugin: Plugin) -> None:
    """Refuse a plugin that was built for another API, unless the user takes the risk: then warn.

    Raises:
        FailedPreconditionError: this opkernel does not serve the version that the plugin was built for,
            or the plugin does not state one.
        InvalidArgumentError: the stated version is no version.
    """
    try:
        _check(plugin)
    except (FailedPreconditionError, InvalidArgumentError) as error:
        if os.environ.get(_UNSAFE) != "1":
            error.message += f" ({_UNSAFE}=1 loads it all the same)"
            raise
        _log.warning(
            "Loading UNSAFE library '%s' because %s=1 is set: %s",
            plugin.name,
            _UNSAFE,
            error.message,
        )


def _check(plugin: Plugin) -> None:
    if not plugin.api:
        problem = "does not say which version of opkernel's API it was built for"
    elif not _is_safe(plugin.api):
        problem = f"was built for version {plugin.api} of opkernel's API"
    else:
        return
    raise FailedPreconditionError(
        f"Plugin '{plugin.name}' {problem}; this opkernel has version {API_VERSION}"
    )


def _is_safe(built_for: str) -> bool:
    """Whether all that the plugin was built for is here, and still means the same."""
    major, minor = _numbers(built_for)
    own_major, own_minor = _numbers(API_VERSION)
    return major == own_major and minor <= own_minor


def _numbers(version: str) -> tuple[int, int]:
    """The two numbers of `1.2`; `1` is `1.0`."""
    found = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}))?", version, re.ASCII)
    if found is None:
        raise InvalidArgumentError(f"'{version}' is no version of an API, such as '{API_VERSION}'")
    return int(found[1]), int(found[2] or 0)


_lock = threading.RLock()  # held while a plugin is imported; guards all that follows
_found: list[Plugin] | None = None
_explicit: list[Plugin] = []  # from `load_library`, and not among the found ones
_loading: list[Plugin] = []  # the one being imported, after the ones that wait for it


def load_plugins() -> list[Plugin]:
    """Load the plugins of the process, if that was not done yet.

    A plugin that cannot be loaded is reported in the log and by `opkernel doctor`.

    Returns:
        All plugins in the order of loading, even plugins that failed to load.
    """
    global _found
    if _found is not None and all(plugin.was_tried for plugin in _found):
        return [*_found, *_explicit]
    with _turn() as is_ours:
        if not is_ours:
            return []
        if _found is None:
            _found = find_plugins()
        for plugin in _found:
            _load(plugin)
        return [*_found, *_explicit]


def load_library(location: str | os.PathLike[str]) -> list[Plugin]:
    """Load a kernel library now: a folder, a Python file, a module, or an installed plugin.

    A folder has a `plugin.toml`, or sub-folders that have one. Files, and modules of no installed
    plugin, state no API version; that they fit is up to the caller. What was loaded before is not
    loaded again.

    Args:
        location: a path, or the name of a module or a plugin.

    Returns:
        The library, or the libraries in the sub-folders of a folder.

    Raises:
        NotFoundError: there is no such library.
        OpError: it is not safe to load, or failed to load.
        UnavailableError: another thread is loading plugins, and this one importing a module.

    Source: TensorFlow's load_library and load_op_library, python/framework/load_library.py.
    """
    with _turn() as is_ours:
        if not is_ours:
            raise UnavailableError(f"Cannot load '{location}' while another thread loads plugins")
        return [_loaded(plugin) for plugin in _libraries_at(location)]


def names_of_broken_plugins() -> list[str]:
    """The names of the plugins that were tried and could not be loaded."""
    return [plugin.name for plugin in (*(_found or ()), *_explicit) if plugin.error is not None]


def _turn() -> AbstractContextManager[bool]:
    """The thread's turn to load plugins; False where it would perhaps never come."""
    return trying(_lock, blocking=not _is_importing())


def _is_importing() -> bool:
    """Whether this thread is importing a module, and so may hold that module's lock."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def _libraries_at(location: str | os.PathLike[str]) -> list[Plugin]:
    path = Path(location)
    if path.is_dir():
        found = plugins_in_folder(path)
    elif path.is_file():
        found = [plugin_of_file(path, API_VERSION)]
    else:
        found = _libraries_named(os.fspath(location))
    if not found:
        raise NotFoundError(f"There is no kernel library '{location}'")
    return found


def _libraries_named(name: str) -> list[Plugin]:
    """The installed plugins that have the name or the module; else the module."""
    found = [plugin for plugin in plugins_installed() if name in (plugin.name, *plugin.modules)]
    if not found and all(part.isidentifier() for part in name.split(".")):
        found = [Plugin(name, "module", (name,), api=API_VERSION)]
    return found


def _loaded(plugin: Plugin) -> Plugin:
    """The plugin, or the same one that was loaded before; raises its error."""
    known = [one for one in (*(_found or ()), *_explicit) if one.is_same(plugin)]
    working = [one for one in known if one.error is None]
    if working:
        plugin = working[0]
    else:
        _explicit[:] = [*(one for one in _explicit if one not in known), plugin]
    _load(plugin)
    if plugin.error is None:
        return plugin
    if isinstance(plugin.error, OpError):
        raise plugin.error
    what = f"Plugin '{plugin.name}' cannot be loaded: {plugin.problem}"
    raise FailedPreconditionError(what) from plugin.error


def _load(plugin: Plugin) -> None:
    """Load a plugin unless that was tried before, or is under way."""
    if plugin.was_tried or plugin in _loading:
        return
    start = time.perf_counter()
    try:
        _loading.append(plugin)
        if plugin.error is not None:  # it was found broken
            raise plugin.error
        check_api_version(plugin)
        _import_whole(plugin)
    except (KeyboardInterrupt, TimeIsUp):
        raise
    except BaseException as error:  # whatever it is, it is the plugin's own
        plugin.error = error
        _log.warning("Plugin '%s' is not loaded: %s", plugin.name, plugin.problem)
    finally:
        _loading.pop()
    plugin.seconds = time.perf_counter() - start
    plugin.was_tried = True


def _import_whole(plugin: Plugin) -> None:
    """Import the plugin's modules and build its ops; if that fails nothing of it stays behind."""
    before = contents_of(plugin)
    try:
        if plugin.folder is not None:
            _make_package(plugin.name, [str(plugin.folder)])
        for module in plugin.modules:
            importlib.import_module(module)
        for op in contents_of(plugin).ops:
            global_op_registry().look_up(op)
    except BaseException:
        remove_contents(plugin, but=before)
        raise


def _make_package(name: str, folders: list[str]) -> None:
    """Make the package that the folder of a plugin is imported as.

    Raises:
        AlreadyExistsError: it stands for another folder.
    """
    full_name = f"{FOLDERS_PACKAGE}.{name}"
    sys.modules.setdefault(FOLDERS_PACKAGE, _package(FOLDERS_PACKAGE, []))
    package = sys.modules.setdefault(full_name, _package(full_name, folders))
    if list(package.__path__) != folders:
        raise AlreadyExistsError(f"Plugin '{name}' is already loaded from {package.__path__[0]}")


def _package(name: str, folders: list[str]) -> ModuleType:
    package = ModuleType(name)
    package.__path__ = folders
    return package
