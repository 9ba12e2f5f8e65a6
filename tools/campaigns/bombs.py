"""Files of few bytes that hold much, or take long to read."""

import gzip
import io
import math
import struct
import zlib
from collections.abc import Callable

__all__ = ["bomb"]


def bomb(text: bytes, size: int) -> bytes:
    """A file of the kind of another, of about so many bytes at most; the text over and over for other kinds."""
    for magic, make in _KINDS.items():
        if text.startswith(magic):
            return make(max(size, 64))
    return text * max(size // max(len(text), 1), 1)


def _gif(size: int) -> bytes:
    """As many frames of a pixel as there is room for."""
    frame = b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\2\2D\1\0"
    colors = b"\0\0\0\xff\xff\xff"
    head = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + colors
    return head + frame * (size // len(frame)) + b";"


def _image(kind: str) -> Callable[[int], bytes]:
    def make(size: int) -> bytes:
        """A black image, which takes a thousandth of its pixels."""
        from PIL import Image  # a library that the ops use where it is there, too

        side, file = min(math.isqrt(size * 300), 16_000), io.BytesIO()
        Image.new("RGB", (side, side)).save(file, kind)
        return file.getvalue()

    return make


def _wav(size: int) -> bytes:
    """As many empty chunks as there is room for."""
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    chunks = b"fmt " + struct.pack("<I", 16) + form + b"LIST\0\0\0\0" * (size // 8)
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks + b"data\0\0\0\0"


_KINDS: dict[bytes, Callable[[int], bytes]] = {
    b"GIF8": _gif,
    b"\x89PNG": _image("PNG"),
    b"\xff\xd8": _image("JPEG"),
    b"BM": _gif,
    b"RIFF": _wav,
    b"\x1f\x8b": lambda size: gzip.compress(bytes(size * 500), 1),
    b"\x78": lambda size: zlib.compress(bytes(size * 500), 1),
}
"""What makes files, by the bytes that they begin with."""
