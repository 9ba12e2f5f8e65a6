"""AsgiApplication: TensorFlow Serving's REST interface over HTTP, metrics, and a page.

Requests are read and answered by the event loop, and computed by threads. A body is no larger than allowed, comes in
time, and may be compressed. What is wrong with it is an HTTPException, for these statuses have no status code of
their own.

Source: TensorFlow Serving util/net_http/server/internal/evhttp_request.cc.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from opkernel.device.budget import Budget, current_budget
from opkernel.errors import (
    Code,
    DeadlineExceededError,
    OpError,
)
from opkernel.escaping import json_text
from opkernel.kernel import under_budget
from opkernel.logs import logger
from opkernel.serving.bounded_work import bounded
from opkernel.serving.model_server import ModelServer
from opkernel.serving.overview import Metrics, overview
from opkernel.serving.requests import HTTP_STATUS, ModelRequest, answer, model_request

if TYPE_CHECKING:
    from opkernel.serving.grpc_server import GrpcServer

_GZIP = 31  # for zlib: a gzip header, and the largest window
_ENCODINGS = ("", "identity", "gzip")


async def received_body(request: Request, most: int, timeout_s: float) -> bytes:
    """The body as it comes.

    Args:
        request: The request.
        most: The most bytes.
        timeout_s: How long the client may take to send it.

    Raises:
        HTTPException: it is too large, comes too late or not whole, or is compressed in a way that is not known.
    """
    if _encoding(request) not in _ENCODINGS:
        raise HTTPException(415, f"Unsupported Content-Encoding: {_encoding(request)}")
    try:
        async with asyncio.timeout(timeout_s):
            return await _read(request, most)
    except TimeoutError:
        raise HTTPException(408, f"The request did not come within {timeout_s:g} s") from None
    except ClientDisconnect:  # nobody will read the answer
        raise HTTPException(400, "The client went away") from None


def decompressed(body: bytes, most: int) -> bytes:
    """The content of a body that is compressed by gzip.

    Raises:
        HTTPException: it is damaged, or larger than `most` bytes.
    """
    decompressor = zlib.decompressobj(_GZIP)
    try:
        content = decompressor.decompress(body, most + 1)
    except zlib.error as error:
        raise HTTPException(400, f"The request is not compressed by gzip: {error}") from None
    if len(content) > most:
        raise _too_large(most)
    if not decompressor.eof or decompressor.unused_data:
        raise HTTPException(400, "The compressed request does not end where its content does")
    return content


async def _read(request: Request, most: int) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _encoding(request: Request) -> str:
    return request.headers.get("content-encoding", "").strip().lower()


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"The request is larger than {most} bytes")


_LOG = "opkernel.serving"
_THREADS = 8
"""Those that compute, besides the requests of a batch, which wait for it."""
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_PAGE_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"  # fmt: skip


class AsgiApplication:
    """What answers the requests to a server; `starlette` gives the application itself."""

    def __init__(self, server: ModelServer, poll_s: float, beside: GrpcServer | None) -> None:
        self._server = server
        self._poll_s = poll_s
        self._beside = beside
        self._metrics = Metrics()
        self._budget = current_budget()  # of the command
        self._threads = ThreadPoolExecutor(_THREADS + server.options.max_batch, "opkernel-serving")
        server.observe = self._metrics.note_batch
        if beside is not None:
            beside.observe = self._note_call

    def starlette(self) -> Starlette:
        """The application itself."""
        routes = [
            Route("/v1/{path:path}", self._model, methods=_METHODS),
            Route("/", self._page),
            Route("/healthz", self._health),
            Route("/metrics", self._metrics_text),
            Route("/overview", self._overview),
        ]
        handlers: Any = {HTTPException: _http_error}
        return Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        await self._in_thread(self._poll)
        if self._beside is not None:
            self._beside.start()
        polling = asyncio.create_task(self._keep_polling())
        try:
            yield
        finally:
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await polling
            if self._beside is not None:
                await self._in_thread(self._beside.stop)
            self._server.close()
            self._threads.shutdown(wait=False)

    async def _keep_polling(self) -> None:
        while self._poll_s:
            await asyncio.sleep(self._poll_s)
            await self._in_thread(self._poll)

    def _poll(self) -> None:
        try:
            with under_budget(Budget(outer=self._budget)):
                self._server.poll()
        except OpError as error:  # what is served stays
            logger(_LOG).warning("%s", error)
        except Exception:  # such as files that have gone meanwhile; the next look may do better
            logger(_LOG).exception("The directory cannot be looked at")

    async def _model(self, request: Request) -> Response:
        """Answer a request to a model."""
        start = time.monotonic()
        asked: ModelRequest | None = None
        try:
            asked = model_request(request.method, f"/v1/{request.path_params['path']}")
            options = self._server.options
            deadline = start + options.timeout_s
            body = await received_body(request, options.max_request_bytes, options.timeout_s)
            answering = partial(self._answer, asked, body, _encoding(request) == "gzip")
            work = partial(bounded, answering, deadline, self._budget, HTTPException)
            text = await self._in_time(work, deadline)
            response = _json(text)
        except HTTPException as error:
            response = _error(error.status_code, error.detail)
        except OpError as error:
            response = _error(HTTP_STATUS[error.code], error.message)
        self._note(asked, response.status_code, time.monotonic() - start)
        return response

    async def _in_time(self, work: Callable[[], str], deadline: float) -> str:
        """The answer to a request, which a thread computes.

        Raises:
            OpError: there is none.
        """
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                return str(await self._in_thread(work))
        except DeadlineExceededError:
            raise
        except TimeoutError:
            seconds = self._server.options.timeout_s
            raise DeadlineExceededError(f"Timed out after {seconds:g} s") from None

    def _answer(self, asked: ModelRequest, body: bytes, is_gzip: bool) -> str:
        if is_gzip:
            body = decompressed(body, self._server.options.max_request_bytes)
        return json_text(answer(self._server, asked, body))

    async def _in_thread(self, function: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)

    def _note(self, asked: ModelRequest | None, status: int, seconds: float) -> None:
        name = "" if asked is None or asked.name not in self._server.names else asked.name
        self._metrics.note_request(name, "" if asked is None else asked.what, status, seconds)

    def _note_call(self, model: str, method: str, code: Code, seconds: float) -> None:
        self._metrics.note_request(model, method, HTTP_STATUS[code], seconds)

    async def _page(self, request: Request) -> Response:
        text = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        headers = {"Content-Security-Policy": _PAGE_POLICY}
        return Response(text, media_type="text/html", headers=headers)

    async def _health(self, request: Request) -> Response:
        """Whether any model answers, and which do not."""
        names = self._server.names
        waiting = [name for name in names if not self._server.versions(name)]
        if len(waiting) == len(names):
            return _error(503, "No model is served")
        return _json(json_text({"status": "ok", "not_served": waiting}))

    async def _metrics_text(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4")

    async def _overview(self, request: Request) -> Response:
        return _json(json_text(overview(self._server, self._metrics)))


def _json(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="application/json")


def _error(status: int, message: str) -> Response:
    return _json(json_text({"error": message}), status)


async def _http_error(request: Request, error: HTTPException) -> Response:
    return _error(error.status_code, f"{error.detail}: {request.method} {request.url.path}")
