"""Servers of models as ASGI applications, and at sockets. The libraries of the extra are imported here, at the first use."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

from opkernel.libraries import check_installed
from opkernel.serving.model_server import ModelServer

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from opkernel.serving.grpc_server import GrpcServer

_POLL_S = 1.0


def application(
    server: ModelServer, *, poll_s: float = _POLL_S, beside: GrpcServer | None = None
) -> Starlette:
    """The ASGI application of a server; it loads the models when it starts.

    Args:
        server: The models.
        poll_s: How often the directory is looked at; 0 for at the start alone.
        beside: Answers by gRPC as long as the application runs.

    Raises:
        UnimplementedError: the libraries of `opkernel[serve]` are not installed.
    """
    _check_libraries()
    from opkernel.serving.asgi_application import AsgiApplication

    return AsgiApplication(server, poll_s, beside).starlette()


def serve(
    server: ModelServer,
    listener: socket.socket,
    seconds: float | None = None,
    beside: GrpcServer | None = None,
) -> None:
    """Serve models at a socket that listens, until the process is told to end.

    Args:
        server: The models.
        listener: The socket.
        seconds: After so long it ends by itself, when the requests under way are done; None for never.
        beside: Answers by gRPC meanwhile.

    Raises:
        UnimplementedError: the libraries of `opkernel[serve]` are not installed.
    """
    _check_libraries()
    import uvicorn

    # Connections inherit it. asyncio sets it for sockets of an explicit protocol alone, and without it
    # the second part of an answer waits 40 ms for the acknowledgement of the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        application(server, beside=beside), log_level="warning", access_log=False
    )
    running = uvicorn.Server(config)
    timer = threading.Timer(seconds or 0, setattr, (running, "should_exit", True))
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        running.run(sockets=[listener])
    finally:
        timer.cancel()


def _check_libraries() -> None:
    for module in ("prometheus_client", "starlette", "uvicorn"):
        check_installed(module, "Serving models")
