"""Ways to make a malformed HTTP request, and whether the result is malformed for sure."""

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

from tools.campaigns.damage import HOSTILE, MUTATIONS

__all__ = ["UNFINISHED", "WAYS"]

_URL = "/v1/models/half:predict"
_EXAMPLE_URLS = ("/v1/models/half:classify", "/v1/models/half:regress")
_SIGNATURES = ["serving_default", "pair", "echo", "finite", "twice", "total", "regress", "classify"]
_NAMES = ["x", "n", "text", "b64", "inputs", "times", "", "instances"]
_BODIES = [
    {"instances": [1.0, 2.5, -3]},
    {"inputs": {"x": [1.0, 2.0]}},
    {"signature_name": "pair", "instances": [{"x": [1, 2], "n": 7}, {"x": [3, 4], "n": 8}]},
    {"signature_name": "pair", "inputs": {"x": [[1, 2]], "n": [7]}},
    {"signature_name": "echo", "instances": ["é", {"b64": "/wA="}]},
    {"signature_name": "regress", "context": {"times": 2.0}, "examples": [{"x": 1.0}, {"x": [2.5]}]},
]  # fmt: skip
_METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"]
_SCALARS = [
    None, True, False, 0, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 0.5, -0.0, 1e300, float("nan"),
    float("inf"), float("-inf"), "", "1", "NaN", "\ud800", "\0", *HOSTILE,
]  # fmt: skip

Way = Callable[[random.Random], tuple[bytes, bool]]


def _request(
    body: bytes, path: str = _URL, method: str = "POST", length: str | None = None, headers: str = ""
) -> bytes:  # fmt: skip
    length = f"Content-Length: {len(body)}\r\n" if length is None else length
    head = f"{method} {path} HTTP/1.1\r\nHost: here\r\n{length}{headers}Connection: close\r\n\r\n"
    return head.encode("utf-8", "surrogateescape") + body


def _body(rng: random.Random) -> bytes:
    return json.dumps(rng.choice(_BODIES)).encode()


def cut_short(rng: random.Random) -> tuple[bytes, bool]:
    """The text ends before the JSON does."""
    body = _body(rng)
    return _request(body[: rng.randrange(len(body))]), True


def damaged_text(rng: random.Random) -> tuple[bytes, bool]:
    """Some bytes are others; the JSON may still be good."""
    body = bytearray(_body(rng))
    for _ in range(rng.choice([1, 1, 2, 5])):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return _request(bytes(body)), False


def bad_utf8(rng: random.Random) -> tuple[bytes, bool]:
    """A string has bytes that are no text."""
    junk = rng.choice(
        [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xe2\x82"]
    )
    body = b'{"signature_name": "echo", "instances": ["' + junk + b'"]}'
    return _request(body), True


def other_values(rng: random.Random) -> tuple[bytes, bool]:
    """Values of wrong types and shapes, under right and wrong keys."""
    keys = ["instances", "inputs", "examples", "context"]
    body = {key: _value(rng, 4) for key in rng.sample(keys, rng.choice([1, 1, 2]))}
    if rng.random() < 0.7:
        body["signature_name"] = rng.choice(_SIGNATURES) if rng.random() < 0.8 else _value(rng, 1)
    return _request(json.dumps(body).encode(), rng.choice([_URL, *_EXAMPLE_URLS])), False


def _value(rng: random.Random, depth: int) -> Any:
    if depth and rng.random() < 0.6:
        if rng.random() < 0.6:
            return [_value(rng, depth - 1) for _ in range(rng.choice([0, 1, 2, 3]))]
        return {rng.choice(_NAMES): _value(rng, depth - 1) for _ in range(rng.choice([0, 1, 2]))}
    return rng.choice(_SCALARS)


def deep(rng: random.Random) -> tuple[bytes, bool]:
    """Lists or objects in each other, deeper than tensors are."""
    depth = rng.choice([33, 65, 500, 1000, 5000, 30_000])
    opening, closing = rng.choice([("[", "]"), ('{"x":', "}"), ("[{", "}]")])
    inner = opening * depth + "1" + closing * (depth if rng.random() < 0.7 else 0)
    key = rng.choice(["instances", "inputs", "signature_name", "examples"])
    return _request(
        f'{{"{key}": {inner}}}'.encode()[:99_000], rng.choice([_URL, *_EXAMPLE_URLS])
    ), True


def large_number(rng: random.Random) -> tuple[bytes, bool]:
    """Numbers that no type has, and text that is nearly a number."""
    number = rng.choice(
        [
            *(
                "1e400",
                "-1e400",
                "1e99999999999",
                "9" * 400,
                "-" + "9" * 5000,
                "0x10",
                "1_000",
                "+1",
            ),
            *(".5", "1.", "01", "--1", "1e", "nan", "inf", "+Inf", "Infinit", "-", "NaNN"),
        ]
    )
    return _request(f'{{"instances": [{number}]}}'.encode()), True


def absurd_shape(rng: random.Random) -> tuple[bytes, bool]:
    """Lists of uneven sizes, of other ranks, or of nothing."""
    shape = [rng.choice([0, 1, 2, 3]) for _ in range(rng.randrange(7))]
    value: Any = 1
    for size in reversed(shape):
        value = [value] * size
    if rng.random() < 0.5:
        value = [value, [value], 1]
    body = {rng.choice(["instances", "inputs"]): value, "signature_name": rng.choice(_SIGNATURES)}
    return _request(json.dumps(body).encode()), False


def wrong_length(rng: random.Random) -> tuple[bytes, bool]:
    """The header says another length than the body has, or none that is a length."""
    body = b'{"instances": [1.0]}'
    size = len(body)
    too_small = f"Content-Length: {rng.randrange(1, size)}\r\n"
    length = rng.choice(
        [
            *(too_small, f"Content-Length: {size + rng.choice([1, 1000])}\r\n"),
            *("Content-Length: -1\r\n", "Content-Length: x\r\n", "Content-Length: \r\n"),
            *("Content-Length: 99999999999999999999999\r\n", ""),
            f"Content-Length: {size}\r\nContent-Length: {size + 1}\r\n",
            f"Content-Length: {size}\r\nTransfer-Encoding: gzip\r\n",
        ]
    )
    return _request(body, length=length), "gzip" not in length


def wrong_chunks(rng: random.Random) -> tuple[bytes, bool]:
    """A body in chunks whose sizes are wrong."""
    body = rng.choice(
        [b"5\r\nabc\r\n0\r\n\r\n", b"-1\r\n\r\n", b"zz\r\n", b"ffffffffffffffffff\r\n", b"3\r\nabcdef", b"\r\n\r\n"]
    )  # fmt: skip
    return _request(body, length="Transfer-Encoding: chunked\r\n"), True


def unknown_path(rng: random.Random) -> tuple[bytes, bool]:
    """A path that there is not, for any method."""
    parts = [
        *(
            "/v1",
            "/models",
            "/half",
            "/versions",
            "/2",
            "/labels",
            "/stable",
            ":explain",
            "/metadata/",
        ),
        *("%00", "%ff", "//", "..", "%2e%2e", "*", "é", "/" + "9" * 30, "a" * 5000),
    ]
    path = "/" + "".join(rng.choice(parts) for _ in range(rng.randrange(1, 8)))
    return _request(_body(rng), path, rng.choice(_METHODS)), True


def wrong_method(rng: random.Random) -> tuple[bytes, bool]:
    """A path that there is, with a method that is not for it."""
    path = rng.choice([_URL, "/v1/models/half/versions/1:predict", *_EXAMPLE_URLS])
    methods = [method for method in _METHODS if method != "POST"]
    return _request(_body(rng), path, rng.choice(methods)), True


def missing_model(rng: random.Random) -> tuple[bytes, bool]:
    """A model, a version or a label that is not there."""
    name = rng.choice(["other", "half/versions/2", "half/versions/" + "9" * 20, "half/labels/gone"])
    verb = rng.choice([":predict", ":classify", ":regress"])
    return _request(_body(rng), f"/v1/models/{name}{verb}"), True


def too_large(rng: random.Random) -> tuple[bytes, bool]:
    """More bytes than the server takes, as they are or when they are decompressed."""
    body = b'{"instances": [' + b"1," * rng.choice([50_000, 500_000]) + b"1]}"
    if rng.random() < 0.3:
        return _request(gzip.compress(body), headers="Content-Encoding: gzip\r\n"), True
    return _request(body), True


def wrong_encoding(rng: random.Random) -> tuple[bytes, bool]:
    """A body that is not compressed as its header says."""
    headers = (
        f"Content-Encoding: {rng.choice(['gzip', 'br', 'deflate', 'gzip, gzip', 'x' * 50])}\r\n"
    )
    body = gzip.compress(_body(rng))
    damaged = rng.choice([_body(rng), body[:-1], body[: len(body) // 2], body + b"x", b"\x1f\x8b"])
    return _request(damaged, headers=headers), True


def damaged_request(rng: random.Random) -> tuple[bytes, bool]:
    """Bytes of the whole request are changed, cut off or inserted."""
    request = _request(_body(rng))
    for _ in range(rng.choice([1, 1, 3])):
        request = rng.choice(MUTATIONS[:3])(request, rng) if len(request) > 1 else request
    return request, False


def no_http(rng: random.Random) -> tuple[bytes, bool]:
    """Bytes of another protocol, and heads that never end."""
    return rng.choice(
        [
            *(rng.randbytes(rng.randrange(1, 300)), b"\x16\x03\x01\x02\x00\x01", b"SSH-2.0-x\r\n", b"\r\n" * 50),
            *(b"GET\r\n\r\n", b"POST " + b"a" * 200_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            b"POST / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
            b"POST / HTTP/1.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        ]
    ), True  # fmt: skip


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        *(cut_short, damaged_text, bad_utf8, other_values, deep, large_number, absurd_shape),
        *(wrong_length, wrong_chunks, unknown_path, wrong_method, missing_model, too_large),
        *(wrong_encoding, damaged_request, no_http),
    )
}
UNFINISHED = ("wrong_length", "wrong_chunks", "damaged_request", "no_http")
"""Those after which the server may wait for more."""
