"""Ways to damage a file or message: blindly, in what it says of sizes, and where check sums or compression hide it."""

import functools
import gzip
import random
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from tools.campaigns.damage import EXTREMES, MUTATIONS
from tools.campaigns.messages import change_message

from opkernel.proto import DecodeError

__all__ = [
    "Damage",
    "blindly",
    "in_compressed",
    "in_json",
    "in_message",
    "in_png",
    "lie_about_sizes",
]

Damage = Callable[[bytes, Sequence[bytes], random.Random], bytes]
"""Makes a damaged file of one that is right, the others of its kind, and random numbers."""

_LAYOUTS = ["B", "<H", ">H", "<I", ">I", "<Q", ">Q"]
_PNG_SIGNATURE = 8


def blindly(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Flip bits, cut, insert, repeat, leave out, or go on as another file does."""
    if not data:
        return rng.randbytes(rng.choice([1, 4, 40]))
    kind = rng.randrange(6)
    if kind < 3:
        return MUTATIONS[kind](data, rng)
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    if kind == 3:
        return data[:end] + data[start:]
    if kind == 4:
        return data[:start] + data[end:]
    other = rng.choice(others)
    return data[:start] + other[rng.choice([start, rng.randrange(len(other) + 1)]) :]


def lie_about_sizes(*places: bytes) -> Damage:
    """Put an extreme number where a size may stand: near the beginning, or after one of some texts."""
    patterns = [re.compile(text, re.DOTALL) for text in places]

    def lie(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
        found = [match.end() for pattern in patterns for match in pattern.finditer(data)]
        at = rng.choice([0, *found]) + rng.randrange(16 if found else 48)
        number = _extreme(rng)
        return data[:at] + number + data[at + len(number) :]

    return lie


def _extreme(rng: random.Random) -> bytes:
    layout = rng.choice(_LAYOUTS)
    bits = 8 * struct.calcsize(layout)
    value = rng.choice([*EXTREMES, 2, 127, 255, 256, 4096, 16383, 30000, 65500, 65535, 10**6])
    return struct.pack(layout, value % (1 << bits))


def in_message(message_type: Any) -> Damage:
    """Change fields of a message, which stays one."""

    def change(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
        try:
            message = message_type.FromString(data)
        except DecodeError:  # a sample that is no message
            return blindly(data, others, rng)
        for _ in range(rng.choice([1, 1, 2, 4])):
            change_message(message, rng)
        changed: bytes = message.SerializeToString()
        return changed

    return change


def in_compressed(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Damage what is compressed, or compress very many zeros."""
    if rng.random() < 0.05:
        return _compressed_zeros(rng.choice([10, 10**6, 10**8]))
    plain = zlib.decompress(data, zlib.MAX_WBITS | 32)
    changed = blindly(plain, others, rng)
    return zlib.compress(changed) if rng.random() < 0.5 else gzip.compress(changed)


@functools.cache
def _compressed_zeros(count: int) -> bytes:
    return gzip.compress(bytes(count))


def in_json(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Exchange a word for one that the format has, too."""
    words = re.findall(rb'"[^"]*"|[-+.\w]+|[\[\]{}:,]', rng.choice(others))
    extremes = [str(value).encode() for value in EXTREMES]
    new = rng.choice([*words, *extremes, b"1e999", b"null", b"NaN", b'"\\ud800"', b"[" * 5000, b""])
    old = rng.choice(re.findall(rb'"[^"]*"|[-+.\w]+|[\[\]{}:,]', data) or [b""])
    return data.replace(old, new, rng.choice([1, -1]))


def in_png(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Damage, exchange, repeat or leave out a chunk; its check sum is right."""
    chunks = _chunks(data)
    at = rng.randrange(len(chunks))
    kind, content = chunks[at]
    change = rng.randrange(5)
    if change == 0:
        chunks.insert(rng.randrange(len(chunks)), chunks[at])
    elif change == 1:
        del chunks[at]
    elif change == 2:
        chunks.insert(at, rng.choice(_chunks(rng.choice(others)) or [(b"tRNS", b"")]))
    else:
        chunks[at] = kind, _changed_content(kind, content, others, rng)
    return data[:_PNG_SIGNATURE] + b"".join(_chunk(*one) for one in chunks)


def _changed_content(
    kind: bytes, content: bytes, others: Sequence[bytes], rng: random.Random
) -> bytes:
    if kind == b"IDAT":
        return zlib.compress(blindly(zlib.decompress(content), others, rng))
    if kind == b"IHDR" and rng.random() < 0.7:
        return lie_about_sizes()(content, others, rng)[: len(content)]
    return blindly(content, others, rng)


def _chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    """The kinds and contents of the chunks of a file that is right; none of one that is no PNG."""
    found, at = [], _PNG_SIGNATURE
    while data.startswith(b"\x89PNG") and at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        found.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    return found


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
