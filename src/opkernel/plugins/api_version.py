"""The version of opkernel's API for kernel libraries, and which plugins it is safe to load."""

import logging
import os
import re

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.plugins.plugin import Plugin

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
