"""The rows of PNG files: each is stored as differences from its neighbours.

Pillow undoes the differences where a pixel has at most four bytes, NumPy where it has more or Pillow is missing.

Source: the PNG specification, chapter 9.
"""

import io
import struct
import zlib
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.ops.image.codecs.png_chunks import SIGNATURE, chunk
from opkernel.ops.libraries import library_or_none

__all__ = ["unfiltered"]

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
