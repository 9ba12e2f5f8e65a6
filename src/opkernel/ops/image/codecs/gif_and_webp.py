"""The frames of GIF and of WebP files, which Pillow decodes.

Of GIF files Pillow undoes the compression only, and the frames are put together as TensorFlow does: it draws
each frame over the one before, whatever the file says of disposal, on a canvas as large as the largest frame.

Source: TensorFlow core/lib/gif/gif_io.cc, core/kernels/image/decode_image_op.cc (DecodeWebP), RFC 9649;
giflib's reading of files.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, WorkClock, in_time
from opkernel.errors import DeadlineExceededError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.libraries import library
from opkernel.ops.image.codecs import FileFormat, invalid_data
from opkernel.ops.input_checks import require
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


_OF_CHUNK = 1 << 10
"""The work of finding a chunk."""
_ALPHA, _ANIMATION = 0x10, 0x02


def webp_frames(data: bytes, channels: int, need: str) -> Any:
    """The frames [frames, height, width, channels] of a file, uint8.

    Args:
        data: The file.
        channels: 3 or 4; 0 for as many as the file has.
        need: The op, for the error where Pillow is not installed.

    Raises:
        InvalidArgumentError: the file is damaged or cut, or has another number of channels.
        ResourceExhaustedError: the frames would be larger than the allocation limit.
        UnimplementedError: Pillow is not installed.
    """
    height, width, alpha, frames = _header(data)
    depth = 4 if alpha else 3
    require(channels in (0, depth), "Number of channels requested does not match input")
    if frames is not None and not alpha:
        raise InvalidArgumentError("WebP Animation must be 4 channel RGBA")
    shape = (1 if frames is None else frames, height, width, depth)
    pixels = np.empty(check_allocation(shape, DataType.DT_UINT8), np.uint8)
    images = library("PIL.Image", need)
    try:
        image = images.open(io.BytesIO(data))
        for number in in_time(range(len(pixels)), SLOW):
            image.seek(number)
            pixels[number] = np.asarray(image.convert("RGBA" if alpha else "RGB"))
    except DeadlineExceededError:  # an OSError
        raise
    except (images.DecompressionBombError, OSError, ValueError, EOFError, SyntaxError) as error:
        raise InvalidArgumentError(f"Failed to decode WebP image. ({error})") from None
    return pixels


def _header(data: bytes) -> tuple[int, int, bool, int | None]:
    """The height, the width, whether there is alpha, and the number of frames of an animation."""
    kind, body = data[12:16], data[20:]
    if kind == b"VP8X" and len(body) >= 10:
        width, height = (int.from_bytes(body[at : at + 3], "little") + 1 for at in (4, 7))
        moves = bool(body[0] & _ANIMATION)
        return height, width, bool(body[0] & _ALPHA), _count_frames(data) if moves else None
    if kind == b"VP8L" and len(body) >= 5 and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1, bool(bits >> 28 & 1), None
    if kind == b"VP8 " and len(body) >= 10 and body[3:6] == b"\x9d\x01\x2a":
        width, height = (int.from_bytes(body[at : at + 2], "little") & 0x3FFF for at in (6, 8))
        if width and height:
            return height, width, False, None
    raise InvalidArgumentError("Failed to decode WebP header.")


def _count_frames(data: bytes) -> int:
    at, frames, clock = 12, 0, WorkClock("counting frames of a WebP file")
    while at + 8 <= len(data):
        clock.spend(_OF_CHUNK)
        frames += data[at : at + 4] == b"ANMF"
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    require(frames, "Failed to decode WebP header.")
    return frames
