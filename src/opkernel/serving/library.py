"""The libraries of the extra `opkernel[serve]`. They are imported when a server is made."""

from __future__ import annotations

import importlib.util

from opkernel.errors import UnimplementedError

__all__ = ["check_libraries"]

_LIBRARIES = {
    "prometheus_client": "prometheus-client",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
}
"""The names by which Python and pip know them."""


def check_libraries() -> None:
    """Raise UnimplementedError where a library is not installed; the message names the extra."""
    for module, package in _LIBRARIES.items():
        if importlib.util.find_spec(module) is None:
            raise UnimplementedError(
                f"Serving models needs the library {package}: pip install 'opkernel[serve]'"
            )
