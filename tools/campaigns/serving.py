"""Malformed HTTP requests to `opkernel serve`: each is refused by a 4xx, and good requests between are answered.

Two servers run, where uvicorn can read HTTP in two ways: one by `httptools`, if it is installed, and one by `h11`.
Requests go over sockets as bytes, so that nothing makes them better than they are.
"""

import contextlib
import functools
import http.client
import importlib.util
import json
import random
import select
import socket
import tempfile
from pathlib import Path

from tests.serving.conftest import save
from tools.campaigns.campaign import Finding
from tools.campaigns.malformed_requests import UNFINISHED, WAYS
from tools.campaigns.served_models import at_end, serving_process

__all__ = ["case"]

_CLOSED = "closed"
_PATIENCE_S = 10.0
_GOOD = b'{"instances": [1.0, 2.0]}', {"predictions": [3.5, 4.0]}


def case(rng: random.Random) -> str:
    """Send one malformed request, and a good one after it."""
    port = _port(not importlib.util.find_spec("httptools") or rng.random() < 0.5)
    name = rng.choice([*WAYS])
    request, is_wrong = WAYS[name](rng)
    # Those that have no end are given up; some only after the server has lost its patience.
    patience_s = rng.choice([*[0.03] * 30, 3.0]) if name in UNFINISHED else _PATIENCE_S
    outcome = _outcome(port, request, patience_s)
    allowed = ("4", _CLOSED) if name in UNFINISHED else "4"
    if not outcome.startswith(allowed) and (is_wrong or outcome[0] != "2"):
        raise Finding(f"{name} was answered by {outcome}: {request[:2000]!r}")
    _check_good(port)
    return outcome


def _outcome(port: int, request: bytes, patience_s: float) -> str:
    """The status of the answer; `closed` where there is none, for the request has no end.

    Args:
        port: The server.
        request: The bytes.
        patience_s: How long the client waits before it says that no more will come.
    """
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as connection:
        with contextlib.suppress(ConnectionError):  # it has refused what came so far
            connection.sendall(request)
        is_answered, _, _ = select.select([connection], [], [], patience_s)
        if not is_answered and patience_s >= _PATIENCE_S:
            raise Finding(f"no answer within {_PATIENCE_S:g} s: {request[:2000]!r}")
        if not is_answered:
            connection.shutdown(socket.SHUT_WR)
        answer = http.client.HTTPResponse(connection, method=request[:4].decode("latin-1"))
        try:
            answer.begin()
            body = answer.read()
        except (ConnectionError, http.client.HTTPException):
            return _CLOSED
    if answer.status >= 400 and answer.headers.get_content_type() == "application/json":
        assert not body or json.loads(body).keys() == {"error"}
    return str(answer.status)


def _check_good(port: int) -> None:
    body, expected = _GOOD
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        connection.request("POST", "/v1/models/half:predict", body)
        answer = connection.getresponse()
        found = answer.read()
        if (answer.status, json.loads(found)) != (200, expected):
            raise Finding(f"a good request was answered by {answer.status}: {found!r}")
    finally:
        connection.close()


@functools.cache
def _port(is_plain: bool) -> int:
    """The port of a server, which bounds time, size and memory."""
    options = [
        "--timeout-s=1",
        "--max-request-bytes=100000",
        "--memory-limit=1G",
        "--label=stable=1",
    ]
    return serving_process(_models(), *options, is_plain=is_plain)[0]


@functools.cache
def _models() -> Path:
    folder = Path(at_end.enter_context(tempfile.TemporaryDirectory()))
    save(folder / "half" / "1")
    return folder
