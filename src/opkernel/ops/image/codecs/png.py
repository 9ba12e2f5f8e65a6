"""PNG files: their chunks, their rows, and their pixels.

Each row is stored as differences from its neighbours. Pillow undoes the differences where a pixel has at most
four bytes, NumPy where it has more or Pillow is missing.

Source: the PNG specification; libpng's limits, and its rules for the changes that TensorFlow asks for;
TensorFlow core/lib/png/png_io.cc.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, WorkClock, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.libraries import library_or_none
from opkernel.ops.image.codecs import MAX_VALUES, FileFormat, invalid_data
from opkernel.ops.input_checks import require
from opkernel.types import DataType

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_OF_CHUNK = 1 << 11
"""The work of reading a chunk."""
_IHDR = struct.Struct(">IIBBBBB")
TYPES_OF_COLOR = {1: 0, 2: 4, 3: 2, 4: 6}
"""By how many samples a pixel has."""
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
_BAD_HEADER = "Invalid PNG. Failed to initialize decoder."
_invalid = partial(invalid_data, FileFormat.PNG)


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
            raise _invalid(data, f"it cannot hold the {size} bytes it announces")
        try:
            found = zlib.decompressobj().decompress(data, size)
        except zlib.error as error:
            raise _invalid(data, str(error)) from None
        if len(found) < size:
            raise _invalid(data, f"it holds {len(found)} bytes of {size}")
        return found


def png_of_rows(
    width: int, height: int, depth: int, samples: int, pieces: Iterable[bytes]
) -> bytes:
    """A PNG file of `depth` bits a sample and so many samples a pixel; the pieces are its compressed rows."""
    header = _IHDR.pack(width, height, depth, TYPES_OF_COLOR[samples], 0, 0, 0)
    chunks = [(b"IHDR", header), *((b"IDAT", piece) for piece in pieces), (b"IEND", b"")]
    return _SIGNATURE + b"".join([_chunk(*one) for one in chunks])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_file(data: bytes) -> PngFile:
    """The parts of a file.

    Raises:
        InvalidArgumentError: the file is damaged or cut before its data.
    """
    chunks = _chunks(data)
    kind, first = next(chunks, (b"", b""))
    require(kind == b"IHDR" and len(first) == _IHDR.size, _BAD_HEADER)
    file = _header(first)
    for kind, content in chunks:
        if kind == b"IEND":
            break
        if kind == b"IHDR" or (kind == b"PLTE" and file.palette):
            raise _invalid(data, f"it has two chunks {kind.decode()}")
        if kind == b"IDAT":
            file.data.append(content)
        elif not file.data:
            _note(file, kind, content)
    else:
        raise _invalid(data, "the file ends early")
    require(file.data and (file.palette or not file.has_palette), _BAD_HEADER)
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
    require(0 < width <= _MAX_SIDE and 0 < height <= _MAX_SIDE, _BAD_HEADER)
    require(depth in _DEPTHS.get(color_type, ()), _BAD_HEADER)
    require(not compression and not filtering and interlacing <= 1, _BAD_HEADER)
    return PngFile(width, height, depth, color_type, bool(interlacing))


def _palette(content: bytes, file: PngFile) -> bytes:
    """The colors; those that no index reaches are left out, as in libpng."""
    require(not file.has_palette or len(content) in range(3, 769, 3), _BAD_HEADER)
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
    at, clock = len(_SIGNATURE), WorkClock("reading chunks of a PNG file")
    while at + 12 <= len(data):
        clock.spend(_OF_CHUNK)
        (size,) = struct.unpack_from(">I", data, at)
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        if not kind.isalpha() or (not kind[0] & _MAY_BE_LEFT_OUT and kind not in _NEEDED):
            raise _invalid(data, f"chunk {kind!r} is unknown")
        check = data[at + 8 + size : at + 12 + size]
        if len(check) < 4 and kind != b"IDAT":
            return
        if len(check) == 4 and zlib.crc32(kind + content) != int.from_bytes(check, "big"):
            if kind in _NEEDED:
                raise _invalid(data, f"the check sum of a chunk {kind!r} is wrong")
        else:
            yield kind, content
        at += 12 + size


_FILTERS = 5
_LARGEST_OF_PILLOW = 1 << 26
"""Pillow warns of images that are larger than some 89 million pixels."""


def unfiltered(data: bytes, height: int, row_bytes: int, pixel_bytes: int) -> Any:
    """The bytes [height, row_bytes] of rows that are stored with their filters.

    Raises:
        InvalidArgumentError: a row names a filter that does not exist.
    """
    rows = np.frombuffer(data, np.uint8).reshape(height, 1 + row_bytes)
    filters = rows[:, 0]
    require(filters.max() < _FILTERS, "Invalid PNG data: a row has a filter that does not exist")
    if not filters.any():
        return rows[:, 1:]
    images = library_or_none("PIL.Image")
    small = rows.size < _LARGEST_OF_PILLOW
    if images is None or pixel_bytes not in TYPES_OF_COLOR or not small:
        return _along_diagonals(rows, pixel_bytes)
    file = png_of_rows(row_bytes // pixel_bytes, height, 8, pixel_bytes, [zlib.compress(data, 0)])
    return np.asarray(images.open(io.BytesIO(file))).reshape(height, row_bytes)


def _along_diagonals(rows: Any, pixel_bytes: int) -> Any:
    """All pixels of a diagonal at once: they depend on those of the two diagonals before."""
    height, width = len(rows), (rows.shape[1] - 1) // pixel_bytes
    pixels = np.zeros((height + 1, width + 1, pixel_bytes), np.uint8)
    pixels[1:, 1:] = rows[:, 1:].reshape(height, width, pixel_bytes)
    flat, step = pixels.reshape(-1, pixel_bytes), width
    for diagonal in in_time(range(height + width - 1), SLOW):
        top, bottom = max(0, diagonal - width + 1), min(height - 1, diagonal)
        first = (top + 1) * (width + 1) + diagonal - top + 1
        last = first + (bottom - top) * step
        here, left, up, corner = (
            flat[first - back : last - back + 1 : step] for back in (0, 1, width + 1, width + 2)
        )
        here += _predicted(rows[top : bottom + 1, :1], left, up, corner)
    return pixels[1:, 1:].reshape(height, -1)


def _predicted(filters: Any, left: Any, up: Any, corner: Any) -> Any:
    nothing = np.zeros_like(left)
    return np.choose(filters, [nothing, left, up, mean(left, up), paeth(left, up, corner)])


def mean(left: Any, up: Any) -> Any:
    """Of bytes, rounded down."""
    return (left & up) + ((left ^ up) >> 1)


def paeth(left: Any, up: Any, corner: Any) -> Any:
    """Of three bytes the one that is nearest to `left + up - corner`."""
    a, b, c = (part.astype(np.int16) for part in (left, up, corner))
    to_left, to_up = b - c, a - c
    to_corner = np.abs(to_left + to_up)
    np.abs(to_left, out=to_left)
    np.abs(to_up, out=to_up)
    by_up = np.where(to_up <= to_corner, up, corner)
    return np.where((to_left <= to_up) & (to_left <= to_corner), left, by_up)


_PASSES = (
    (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1),
)  # fmt: skip
_RED, _GREEN, _BLUE = 9797, 19234, 3737
"""The shares of gray, in 2**15ths."""


def png_pixels(data: bytes, channels: int, sixteen: bool) -> Any:
    """The pixels [height, width, channels] of a file.

    Args:
        data: The file.
        channels: 1, 3 or 4; 0 for as many as the file has.
        sixteen: Whether values of 16 bits are wanted; of 8 bits otherwise.

    Raises:
        InvalidArgumentError: the file is damaged or cut.
        ResourceExhaustedError: the image would be larger than the allocation limit.
    """
    file = png_file(data)
    depth = channels or _channels_of(file)
    shape = (file.height, file.width, depth)
    if np.prod(shape, dtype=np.int64) >= MAX_VALUES:
        raise InvalidArgumentError(f"PNG size too large for int: {file.width} by {file.height}")
    check_allocation(shape, DataType.DT_UINT16 if sixteen else DataType.DT_UINT8)
    colors, alpha = _colors(file, _stored(file))
    if depth <= 2 and colors.shape[-1] == 3:
        colors = _gray(colors, file.gamma)
    pixels = _with_channels(colors, alpha, depth, (1 << file.depth) - 1)
    if sixteen:
        return pixels if file.depth == 16 else pixels.astype(np.uint16) * 257
    return (pixels >> 8).astype(np.uint8) if file.depth == 16 else pixels


def _channels_of(file: PngFile) -> int:
    if file.has_palette:
        return 3 if file.transparency is None else 4
    return file.samples


def _stored(file: PngFile) -> Any:
    """The samples [height, width, samples] as they stand in the file."""
    whole = np.empty(
        (file.height, file.width, file.samples), np.uint16 if file.depth == 16 else np.uint8
    )
    parts = [whole]
    if file.interlaced:
        parts = [whole[y::down, x::right] for y, x, down, right in _PASSES]
    parts = [part for part in parts if part.size]
    row_bytes = [-(-part.shape[1] * file.samples * file.depth // 8) for part in parts]
    sizes = [len(part) * (1 + row) for part, row in zip(parts, row_bytes, strict=True)]
    data, at = file.inflated(sum(sizes)), 0
    pixel_bytes = max(1, file.samples * file.depth // 8)
    for part, row, size in zip(parts, row_bytes, sizes, strict=True):
        rows = unfiltered(data[at : at + size], len(part), row, pixel_bytes)
        part[...] = _samples(rows, file.depth, part.shape)
        at += size
    return whole


def _samples(rows: Any, depth: int, shape: tuple[int, ...]) -> Any:
    """The samples that rows of bytes hold."""
    if depth == 8:
        return rows.reshape(shape)
    if depth == 16:
        return np.ascontiguousarray(rows).view(">u2").reshape(shape)
    shifts = np.arange(8 - depth, -1, -depth, dtype=np.uint8)
    parts = (rows[..., None] >> shifts) & ((1 << depth) - 1)
    return parts.reshape(len(rows), -1)[:, : shape[1], None]


def _colors(file: PngFile, stored: Any) -> tuple[Any, Any]:
    """The colors, gray or not, of 8 or 16 bits, and the opacity, None where the file has none."""
    if file.has_palette:
        return _of_palette(file, stored)
    if file.has_alpha:
        return stored[..., :-1], stored[..., -1:]
    alpha = None
    if file.transparency is not None:
        clear = np.frombuffer(file.transparency, ">u2") & ((1 << file.depth) - 1)
        top = np.array(65535 if file.depth == 16 else 255, stored.dtype)
        alpha = np.where((stored == clear).all(-1, keepdims=True), 0, top).astype(stored.dtype)
    if file.depth < 8:
        stored = stored * np.uint8(255 // ((1 << file.depth) - 1))
    return stored, alpha


def _of_palette(file: PngFile, stored: Any) -> tuple[Any, Any]:
    """Indices beyond the palette are black, as libpng has it."""
    colors = np.zeros((256, 3), np.uint8)
    known = np.frombuffer(file.palette, np.uint8).reshape(-1, 3)
    colors[: len(known)] = known
    indices = stored[..., 0]
    if file.transparency is None:
        return colors[indices], None
    opacity = np.full((256, 1), 255, np.uint8)
    opacity[: len(file.transparency), 0] = np.frombuffer(file.transparency, np.uint8)
    return colors[indices], opacity[indices]


def _with_channels(colors: Any, alpha: Any, depth: int, opaque: int) -> Any:
    """Gray for 1 and 2 channels, colors for 3 and 4; opacity for 2 and 4.

    Where the file has no opacity, libpng takes the largest value of the file's own depth, even below 8 bits.
    """
    if depth > 2 and colors.shape[-1] == 1:
        colors = np.repeat(colors, 3, -1)
    if depth % 2:
        return colors
    if alpha is None:
        alpha = np.full_like(colors[..., :1], opaque)
    return np.concatenate([colors, alpha], -1)


def _gray(colors: Any, gamma: float | None) -> Any:
    """The brightness of colors: of linear ones where the file tells its gamma, as libpng has it."""
    top = np.iinfo(colors.dtype).max
    values, half = colors.astype(np.int64), 1 << 14
    if gamma is None:
        return _weighted(values, half if top > 255 else 0).astype(colors.dtype)
    scale = np.arange(top + 1) / top
    linear, back = (
        np.floor(top * scale**power + 0.5).astype(np.int64) for power in (1 / gamma, gamma)
    )
    mixed = back[_weighted(linear[values], half)]
    same = (values == values[..., :1]).all(-1, keepdims=True)
    return np.where(same, values[..., :1], mixed).astype(colors.dtype)


def _weighted(values: Any, half: int) -> Any:
    red, green, blue = (values[..., index, None] for index in range(3))
    return (_RED * red + _GREEN * green + _BLUE * blue + half) >> 15
