"""An ASGI application that sends requests back, served as `opkernel serve` serves its own."""

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn


async def echo(
    scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Answer a request by its body."""
    body, is_more = b"", True
    while is_more:
        message = await receive()
        body += message.get("body", b"")
        is_more = message.get("more_body", False)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"serving at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(echo, log_level="warning", access_log=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[listener])
