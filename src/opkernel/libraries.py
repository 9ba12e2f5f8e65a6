"""Libraries that parts of opkernel need besides NumPy: each comes with an extra, and is imported at its first use."""

import functools
import importlib
import importlib.util
from types import ModuleType

from opkernel.errors import UnimplementedError
from opkernel.logs import logger

EXTRA_OF = {
    "PIL": ("Pillow", "image"),
    "grpc": ("grpcio", "grpc"),
    "hypothesis": ("hypothesis", "test"),
    "jax": ("JAX", "xla"),
    "keras": ("Keras", "keras"),
    "numba": ("Numba", "numba"),
    "openvino": ("OpenVINO", "openvino"),
    "prometheus_client": ("prometheus-client", "serve"),
    "pyarrow": ("pyarrow", "parquet"),
    "ray": ("Ray", "ray"),
    "re2": ("google-re2", "strings"),
    "scipy": ("scipy", "scipy"),
    "simplejpeg": ("simplejpeg", "image"),
    "starlette": ("starlette", "serve"),
    "uvicorn": ("uvicorn", "serve"),
}
"""What messages call a library, and the extra of opkernel that brings it."""


def library(module: str, need: str) -> ModuleType:
    """A module of an optional library.

    Args:
        module: The name to import, such as `scipy.fft`.
        need: What needs the library: the subject of the error.

    Raises:
        UnimplementedError: the library is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _not_installed(module, need) from error


def library_or_none(module: str) -> ModuleType | None:
    """A module of an optional library, for what has a way without it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def is_installed(module: str) -> bool:
    """Whether a library is there; it is not imported."""
    return importlib.util.find_spec(module) is not None


def check_installed(module: str, need: str) -> None:
    """Raise UnimplementedError, as `library` does, where a library is not there; it is not imported."""
    if not is_installed(module):
        raise _not_installed(module, need)


def missing_packages(extra: str) -> list[str]:
    """The libraries of an extra that are not installed."""
    return [
        name
        for module, (name, one) in EXTRA_OF.items()
        if one == extra and not is_installed(module)
    ]


def is_extra_missing(extra: str) -> bool:
    """Whether no library of an extra is installed; one of several is enough for most of what needs the extra."""
    modules = [module for module, (_, one) in EXTRA_OF.items() if one == extra]
    return bool(modules) and not any(map(is_installed, modules))


@functools.cache
def warn_of_fallback(module: str, consequence: str) -> None:
    """Warn once that something works without a library, and with what consequence."""
    name, extra = EXTRA_OF[module.partition(".")[0]]
    logger("opkernel.libraries").warning(
        "%s is not installed (pip install 'opkernel[%s]'): %s", name, extra, consequence
    )


def _not_installed(module: str, need: str) -> UnimplementedError:
    name, extra = EXTRA_OF[module.partition(".")[0]]
    return UnimplementedError(f"{need} needs the library {name}: pip install 'opkernel[{extra}]'")
