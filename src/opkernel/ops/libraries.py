"""Libraries that some kernels need besides NumPy: each comes with an extra, and is imported at its first use."""

import functools
import importlib
from types import ModuleType

from opkernel.errors import UnimplementedError
from opkernel.logs import logger

_EXTRA_OF = {
    "PIL": ("Pillow", "image"),
    "re2": ("google-re2", "strings"),
    "scipy": ("scipy", "scipy"),
    "simplejpeg": ("simplejpeg", "image"),
}
"""The name by which pip knows a package, and the extra of opkernel that brings it."""


def library(module: str, need: str) -> ModuleType:
    """A module of an optional library.

    Args:
        module: The name to import, such as `scipy.fft`.
        need: What needs the library: the subject of the error.

    Raises:
        UnimplementedError: the library is not installed.
    """
    found = library_or_none(module)
    if found is None:
        package, extra = _EXTRA_OF[module.partition(".")[0]]
        raise UnimplementedError(
            f"{need} needs the library {package}: pip install 'opkernel[{extra}]'"
        )
    return found


def library_or_none(module: str) -> ModuleType | None:
    """A module of an optional library, for kernels that have a way without it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def missing_packages(extra: str) -> list[str]:
    """The packages of an extra that are not installed, of those that kernels use."""
    modules = {module: name for module, (name, one) in _EXTRA_OF.items() if one == extra}
    return [name for module, name in modules.items() if library_or_none(module) is None]


@functools.cache
def warn_of_fallback(module: str, consequence: str) -> None:
    """Warn once that a kernel works without a library, and with what consequence."""
    package, extra = _EXTRA_OF[module.partition(".")[0]]
    logger("opkernel.ops").warning(
        "%s is not installed (pip install 'opkernel[%s]'): %s", package, extra, consequence
    )
