"""The body of an HTTP request: no larger than allowed, in time, perhaps compressed.

What is wrong with it is an HTTPException, for these statuses have no status code of their own.

Source: TensorFlow Serving util/net_http/server/internal/evhttp_request.cc.
"""

from __future__ import annotations

import asyncio
import zlib

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

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


def is_compressed(request: Request) -> bool:
    """Whether the body of a request has to be decompressed."""
    return _encoding(request) == "gzip"


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
