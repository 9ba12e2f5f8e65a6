"""Servers of models as ASGI applications, and at sockets. The libraries of the extra are imported here, at the first use."""

from __future__ import annotations

import importlib.util
import socket
from typing import TYPE_CHECKING

from opkernel.errors import UnimplementedError
from opkernel.serving.model_server import ModelServer

if TYPE_CHECKING:
    from starlette.applications import Starlette

_POLL_S = 1.0
_LIBRARIES = {
    "prometheus_client": "prometheus-client",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
}
"""The names by which Python and pip know them."""


def application(server: ModelServer, *, poll_s: float = _POLL_S) -> Starlette:
    """The ASGI application of a server; it loads the models when it starts.

    Args:
        server: The models.
        poll_s: How often the directory is looked at; 0 for at the start alone.

    Raises:
        UnimplementedError: the libraries of `opkernel[serve]` are not installed.
    """
    _check_libraries()
    from opkernel.serving.asgi_application import AsgiApplication

    return AsgiApplication(server, poll_s).starlette()


def serve(server: ModelServer, listener: socket.socket) -> None:
    """Serve models at a socket that listens, until the process is told to end.

    Raises:
        UnimplementedError: the libraries of `opkernel[serve]` are not installed.
    """
    _check_libraries()
    import uvicorn

    # Connections inherit it. asyncio sets it for sockets of an explicit protocol alone, and without it
    # the second part of an answer waits 40 ms for the acknowledgement of the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(application(server), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


def _check_libraries() -> None:
    for module, package in _LIBRARIES.items():
        if importlib.util.find_spec(module) is None:
            raise UnimplementedError(
                f"Serving models needs the library {package}: pip install 'opkernel[serve]'"
            )
