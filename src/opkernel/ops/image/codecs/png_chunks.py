"""What a PNG file says before its pixels, and its compressed data.

Source: the PNG specification; libpng's limits.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from opkernel.device.work_clock import WorkClock
from opkernel.errors import InvalidArgumentError
from opkernel.ops.image.codecs.file_format import FileFormat, invalid_data

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_OF_CHUNK = 1 << 11
"""The work of reading a chunk."""
_IHDR = struct.Struct(">IIBBBBB")
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""How many samples a pixel of each type of color has."""
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PALETTE, _ALPHA = 3, 4
_NEEDED = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_MAY_BE_LEFT_OUT = 0x20
"""The bit of the first letter of a kind of chunk that says so."""
_MAX_SIDE = 1_000_000
_MOST_COMPRESSED = 1032
"""No byte of deflated data stands for more bytes than this."""


@dataclass
class PngFile:
    """The parts of a PNG file that matter for its pixels."""

    width: int
    height: int
    depth: int
    color_type: int
    interlaced: bool
    palette: bytes = b""
    transparency: bytes | None = None
    gamma: float | None = None
    """The exponent that linear light is stored with, None where it is unknown or nearly 1."""
    data: list[bytes] = field(default_factory=list)

    @property
    def samples(self) -> int:
        """How many samples a pixel has."""
        return _SAMPLES[self.color_type]

    @property
    def has_palette(self) -> bool:
        """Whether a sample is an index of the palette."""
        return self.color_type == _PALETTE

    @property
    def has_alpha(self) -> bool:
        """Whether the last sample of a pixel is its opacity."""
        return bool(self.color_type & _ALPHA)

    def inflated(self, size: int) -> bytes:
        """The first `size` bytes of the data.

        Raises:
            InvalidArgumentError: the data is damaged or less.
        """
        data = b"".join(self.data)
        if size > _MOST_COMPRESSED * (len(data) + 1):
            raise invalid_data(
                FileFormat.PNG, data, f"it cannot hold the {size} bytes it announces"
            )
        try:
            found = zlib.decompressobj().decompress(data, size)
        except zlib.error as error:
            raise invalid_data(FileFormat.PNG, data, str(error)) from None
        if len(found) < size:
            raise invalid_data(FileFormat.PNG, data, f"it holds {len(found)} bytes of {size}")
        return found


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_file(data: bytes) -> PngFile:
    """The parts of a file.

    Raises:
        InvalidArgumentError: the file is damaged or cut before its data.
    """
    chunks = _chunks(data)
    kind, first = next(chunks, (b"", b""))
    if kind != b"IHDR" or len(first) != _IHDR.size:
        raise InvalidArgumentError("Invalid PNG. Failed to initialize decoder.")
    file = _header(first)
    for kind, content in chunks:
        if kind == b"IEND":
            break
        if kind == b"IHDR" or (kind == b"PLTE" and file.palette):
            raise invalid_data(FileFormat.PNG, data, f"it has two chunks {kind.decode()}")
        if kind == b"IDAT":
            file.data.append(content)
        elif not file.data:
            _note(file, kind, content)
    else:
        raise invalid_data(FileFormat.PNG, data, "the file ends early")
    if not file.data or (file.has_palette and not file.palette):
        raise InvalidArgumentError("Invalid PNG. Failed to initialize decoder.")
    return file


def _note(file: PngFile, kind: bytes, content: bytes) -> None:
    """Take what a chunk before the data says."""
    if kind == b"PLTE":
        file.palette = _palette(content, file)
    elif kind == b"tRNS" and file.transparency is None and _fits(content, file):
        file.transparency = content
    elif kind in (b"gAMA", b"sRGB"):
        file.gamma = _gamma(kind, content) or file.gamma


def _header(content: bytes) -> PngFile:
    width, height, depth, color_type, compression, filtering, interlacing = _IHDR.unpack(content)
    if (
        not 0 < width <= _MAX_SIDE
        or not 0 < height <= _MAX_SIDE
        or depth not in _DEPTHS.get(color_type, ())
        or compression
        or filtering
        or interlacing > 1
    ):
        raise InvalidArgumentError("Invalid PNG. Failed to initialize decoder.")
    return PngFile(width, height, depth, color_type, bool(interlacing))


def _palette(content: bytes, file: PngFile) -> bytes:
    """The colors; those that no index reaches are left out, as in libpng."""
    if file.has_palette and (not content or len(content) % 3 or len(content) > 768):
        raise InvalidArgumentError("Invalid PNG. Failed to initialize decoder.")
    return content[: 3 << file.depth] if file.has_palette else b""


def _gamma(kind: bytes, content: bytes) -> float | None:
    """The exponent, where the chunk is valid and the exponent matters."""
    hundred_thousandths = 45455 if kind == b"sRGB" else int.from_bytes(content, "big")
    gamma = hundred_thousandths / 100_000
    right = (
        len(content) == (1 if kind == b"sRGB" else 4) and 16 <= hundred_thousandths <= 625_000_000
    )
    return gamma if right and abs(gamma - 1) >= 0.05 else None


def _fits(content: bytes, file: PngFile) -> bool:
    """Whether a chunk about transparency has the form that the type of color asks for."""
    if file.has_palette:
        return 0 < len(content) <= len(file.palette) // 3
    return not file.has_alpha and len(content) == 2 * file.samples


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks that are whole; those that may be left out and are damaged are left out.

    Raises:
        InvalidArgumentError: a chunk that must be there is damaged.
    """
    at, clock = len(SIGNATURE), WorkClock("reading chunks of a PNG file")
    while at + 12 <= len(data):
        clock.spend(_OF_CHUNK)
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        if not kind.isalpha() or (not kind[0] & _MAY_BE_LEFT_OUT and kind not in _NEEDED):
            raise invalid_data(FileFormat.PNG, data, f"chunk {kind!r} is unknown")
        check = data[at + 8 + size : at + 12 + size]
        if len(check) < 4 and kind != b"IDAT":
            return
        if len(check) == 4 and zlib.crc32(kind + content) != int.from_bytes(check, "big"):
            if kind in _NEEDED:
                raise invalid_data(
                    FileFormat.PNG, data, f"the check sum of a chunk {kind!r} is wrong"
                )
        else:
            yield kind, content
        at += 12 + size
