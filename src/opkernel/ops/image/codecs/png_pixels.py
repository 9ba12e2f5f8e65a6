"""The pixels of PNG files.

The rows of PNG files: each is stored as differences from its neighbours.

Pillow undoes the differences where a pixel has at most four bytes, NumPy where it has more or Pillow is missing.

Source: TensorFlow core/lib/png/png_io.cc, and the rules of libpng for the changes it asks for, the PNG
specification, chapter 9.
"""

import io
import struct
import zlib
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.libraries import library_or_none
from opkernel.ops.image.codecs.file_format import MAX_VALUES
from opkernel.ops.image.codecs.png_chunks import SIGNATURE, PngFile, chunk, png_file
from opkernel.types import DataType

_TYPE_OF_PIXEL_BYTES = {1: 0, 2: 4, 3: 2, 4: 6}
"""The types of color of 8 bits a sample."""
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
    if filters.max() >= _FILTERS:
        raise InvalidArgumentError("Invalid PNG data: a row has a filter that does not exist")
    if not filters.any():
        return rows[:, 1:]
    images = library_or_none("PIL.Image")
    small = rows.size < _LARGEST_OF_PILLOW
    if images is None or pixel_bytes not in _TYPE_OF_PIXEL_BYTES or not small:
        return _along_diagonals(rows, pixel_bytes)
    header = struct.pack(
        ">IIBBBBB", row_bytes // pixel_bytes, height, 8, _TYPE_OF_PIXEL_BYTES[pixel_bytes], 0, 0, 0
    )
    stored = chunk(b"IDAT", zlib.compress(data, 0))
    file = SIGNATURE + chunk(b"IHDR", header) + stored + chunk(b"IEND", b"")
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
    a, b, c = (part.astype(np.int16) for part in (left, up, corner))
    to_left, to_up, to_corner = np.abs(b - c), np.abs(a - c), np.abs(a + b - 2 * c)
    nearest = np.where(
        (to_left <= to_up) & (to_left <= to_corner), a, np.where(to_up <= to_corner, b, c)
    )
    return np.choose(filters, [0, a, b, (a + b) >> 1, nearest]).astype(np.uint8)


_PASSES = (
    (0, 0, 8, 8),
    (0, 4, 8, 8),
    (4, 0, 8, 4),
    (0, 2, 4, 4),
    (2, 0, 4, 2),
    (0, 1, 2, 2),
    (1, 0, 2, 1),
)
"""The first row and column, and the steps, of each pass of an interlaced file."""
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
