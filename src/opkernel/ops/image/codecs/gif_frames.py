"""The frames of GIF files: Pillow undoes the compression, the frames are put together as TensorFlow does.

TensorFlow draws each frame over the one before, whatever the file says of disposal, on a canvas as large as the
largest frame.

Source: TensorFlow core/lib/gif/gif_io.cc; giflib's reading of files.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, WorkClock, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.libraries import library
from opkernel.ops.image.codecs.file_format import FileFormat, invalid_data
from opkernel.types import DataType

_TRAILER, _EXTENSION, _IMAGE = 0x3B, 0x21, 0x2C
_GRAPHIC_CONTROL = 0xF9
_INTERLACED = 0x40
_OF_PART = 1 << 10
"""The work of taking a part of the file."""
_PALETTE = b"".join(bytes((index, 255 - index, 0)) for index in range(256))
"""Colors that are no shades of gray, so that Pillow keeps the indices."""


class _EndsEarlyError(Exception):
    """The file ends, or goes on in a way that no GIF file does."""


@dataclass(frozen=True)
class _GifFrame:
    left: int
    top: int
    width: int
    height: int
    interlaced: bool
    colors: Any
    """[colors, 3], None where the file has none."""
    transparent: int
    code_size: int
    codes: bytes


class _File:
    """A GIF file, read from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._clock = WorkClock("reading a GIF file")

    def take(self, size: int) -> bytes:
        """The next bytes."""
        self._clock.spend(_OF_PART)
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise _EndsEarlyError
        self._at += size
        return found

    def blocks(self) -> list[bytes]:
        """The blocks that an extension or an image consists of."""
        found = []
        while size := self.take(1)[0]:
            found.append(self.take(size))
        return found

    def colors(self, flags: int) -> Any:
        """The table of colors that flags announce, or None."""
        if not flags & 0x80:
            return None
        count = 2 << (flags & 7)
        return np.frombuffer(self.take(3 * count), np.uint8).reshape(count, 3)


def gif_frames(data: bytes, expand_animations: bool, need: str) -> Any:
    """The frames [frames, height, width, 3] of a file, uint8.

    Args:
        data: The file.
        expand_animations: Whether all frames are wanted, not the first one only.
        need: The op, for the error where Pillow is not installed.

    Raises:
        InvalidArgumentError: the file is damaged, or ends before its first frame does.
        ResourceExhaustedError: the frames would be larger than the allocation limit.
        UnimplementedError: Pillow is not installed.
    """
    frames: list[tuple[_GifFrame, Any]] = []
    height = width = 0
    for frame in in_time(_frames(data), SLOW):
        indices = _indices(frame, need)
        if indices is None:  # giflib drops this frame, and reads no further
            break
        frames.append((frame, indices))
        height, width = max(height, len(indices)), max(width, indices.shape[1])
        shape = check_allocation((len(frames), height, width, 3), DataType.DT_UINT8)
        if not expand_animations:
            break
    if not frames:
        raise invalid_data(FileFormat.GIF, data, "the file ends before its first frame does")
    canvas = np.zeros(shape, np.uint8)
    for number, (frame, indices) in enumerate(in_time(frames, SLOW)):
        if number:
            canvas[number] = canvas[number - 1]
        _draw(canvas[number], frame, indices, data)
    return canvas


def _frames(data: bytes) -> Iterator[_GifFrame]:
    """The frames of a file, up to the first that is not whole."""
    file, transparent = _File(data), -1
    try:
        file.take(6)
        flags = struct.unpack("<HHBBB", file.take(7))[2]
        shared = file.colors(flags)
        while (record := file.take(1)[0]) != _TRAILER:
            if record == _EXTENSION:
                label, blocks = file.take(1)[0], file.blocks()
                if label == _GRAPHIC_CONTROL and blocks and len(blocks[0]) == 4:
                    transparent = blocks[0][3] if blocks[0][0] & 1 else -1
            elif record == _IMAGE:
                yield _frame(file, shared, transparent)
                transparent = -1
            else:
                return
    except _EndsEarlyError:
        return


def _frame(file: _File, shared: Any, transparent: int) -> _GifFrame:
    left, top, width, height, flags = struct.unpack("<HHHHB", file.take(9))
    own = file.colors(flags)
    code_size = file.take(1)[0]
    if not width or not height or code_size > 8:
        raise _EndsEarlyError
    colors = shared if own is None else own
    codes = b"".join(bytes([len(block)]) + block for block in file.blocks()) + b"\0"
    return _GifFrame(
        left, top, width, height, bool(flags & _INTERLACED), colors, transparent, code_size, codes
    )


def _indices(frame: _GifFrame, need: str) -> Any:
    """The number of the color of each pixel; None where the codes are damaged."""
    check_allocation((frame.height, frame.width), DataType.DT_UINT8)
    size = struct.pack("<HH", frame.width, frame.height)
    flags = bytes([_INTERLACED * frame.interlaced])
    alone = b"GIF89a" + size + b"\xf7\0\0" + _PALETTE + b",\0\0\0\0" + size + flags
    contents = alone + bytes([frame.code_size]) + frame.codes + b";"
    images = library("PIL.Image", need)
    try:
        return np.asarray(images.open(io.BytesIO(contents)))
    except (images.DecompressionBombError, OSError, ValueError, EOFError, SyntaxError, IndexError):
        return None


def _draw(canvas: Any, frame: _GifFrame, indices: Any, data: bytes) -> None:
    """Draw a frame where the canvas has room for it, except its transparent pixels."""
    if frame.colors is None:
        raise invalid_data(FileFormat.GIF, data, "a frame has no color map")
    place = canvas[frame.top :, frame.left :][: frame.height, : frame.width]
    visible = indices[: place.shape[0], : place.shape[1]]
    shown = visible != frame.transparent
    count = len(frame.colors)
    if (visible[shown] >= count).any():
        raise InvalidArgumentError(
            f"Invalid GIF data (size {len(data)}), found color index outside of color map range {count}"
        )
    np.copyto(place, frame.colors[np.minimum(visible, count - 1)], where=shown[..., None])
