"""The frames of WebP files, decoded by Pillow.

Source: TensorFlow core/kernels/image/decode_image_op.cc (DecodeWebP), RFC 9649.
"""

import io
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, WorkClock, in_time
from opkernel.errors import DeadlineExceededError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.libraries import library
from opkernel.types import DataType

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
    if channels not in (0, depth):
        raise InvalidArgumentError("Number of channels requested does not match input")
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
    if not frames:
        raise InvalidArgumentError("Failed to decode WebP header.")
    return frames
