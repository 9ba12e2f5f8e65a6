"""EncodePng: tensors to PNG files, byte by byte those of libpng.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/encode_png_op.cc; libpng's choice of filters.
"""

import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.image.codecs.file_format import MAX_VALUES
from opkernel.ops.image.codecs.png_chunks import SIGNATURE, chunk
from opkernel.ops.input_checks import require_rank_at_least
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""The types of color by the number of channels."""
_CHUNK_BYTES = 8192
_DEFLATED_AT_ONCE = 1 << 18
_FILTERED = 20
"""So many bytes the filters of a byte take."""
_TILE_BYTES = 1 << 18
"""As much of an image as stays in a processor's cache while its filters are tried."""
_SMALLEST_WINDOW, _LARGEST_WINDOW = 9, 15
"""Of zlib, as powers of two."""
_SMALLEST_HEADER = 8
"""The smallest window that a file may tell, which is enough to read a small one."""
_DEFLATE_LOOKAHEAD = 262
_NONE, _SUB, _UP = range(3)


ENCODE_PNG = register_op(
    "EncodePng",
    inputs=["image: T"],
    outputs=["contents: string"],
    attrs=["compression: int = -1", "T: {uint8, uint16} = DT_UINT8"],
    shape_fn=shape_rule("[..., height, width, channels] -> [...]"),
    doc="PNG files of images [..., height, width, channels].",
)


@register_kernel(ENCODE_PNG, factory=True)
def encode_png(*, compression: int, T: DataType) -> Callable[[Any], Any]:
    if not -1 <= compression <= 9:
        raise InvalidArgumentError(f"compression should be in [-1,9], got {compression}")

    def encode(image: Any) -> Any:
        require_rank_at_least(image, 3, "images must be at least rank 3{}")
        height, width, channels = image.shape[-3:]
        if height * width * channels >= MAX_VALUES or 0 in image.shape[-3:-1]:
            raise InvalidArgumentError(f"PNG files have no size {height} x {width}")
        if channels not in _TYPES:
            raise InvalidArgumentError(f"image must have 1, 2, 3, or 4 channels, got {channels}")
        batch = image.shape[:-3]
        return string_tensor(batch, (_file(image[at], compression) for at in np.ndindex(batch)))

    return encode


def _file(image: Any, compression: int) -> bytes:
    height, width, channels = image.shape
    depth = 8 * image.itemsize
    header = struct.pack(">IIBBBBB", width, height, depth, _TYPES[channels], 0, 0, 0)
    rows = np.ascontiguousarray(image, f">u{image.itemsize}").view(np.uint8).reshape(height, -1)
    data = _deflated(_filtered(rows, channels * image.itemsize), compression)
    parts = [data[at : at + _CHUNK_BYTES] for at in range(0, len(data), _CHUNK_BYTES)]
    return b"".join(
        [
            SIGNATURE,
            chunk(b"IHDR", header),
            *(chunk(b"IDAT", part) for part in parts),
            chunk(b"IEND", b""),
        ]
    )


def _deflated(data: memoryview, compression: int) -> bytes:
    """Deflated with libpng's settings: a small image gets a window that is just large enough."""
    bits = _LARGEST_WINDOW
    while bits > _SMALLEST_WINDOW and len(data) + _DEFLATE_LOOKAHEAD <= 1 << (bits - 1):
        bits -= 1
    packer = zlib.compressobj(compression, zlib.DEFLATED, bits, 9, zlib.Z_FILTERED)
    # What is only stored is cut where pieces are.
    step = _DEFLATED_AT_ONCE if compression else len(data)
    pieces = in_time((data[at : at + step] for at in range(0, len(data), step)), SLOW)
    packed = bytearray(b"".join(map(packer.compress, pieces)) + packer.flush())
    while bits > _SMALLEST_HEADER and len(data) <= 1 << (bits - 1):
        bits -= 1
    first, level = (bits - 8) << 4 | zlib.DEFLATED, packed[1] & 0xE0
    packed[:2] = first, level + 31 - (256 * first + level) % 31
    return bytes(packed)


def _filtered(rows: Any, pixel_bytes: int) -> memoryview:
    """Each row after the filter whose differences have the least sum, with the filter's number before."""
    height, size = rows.shape
    output = np.empty((height, 1 + size), np.uint8)
    padded = np.zeros((height + 1, size + pixel_bytes), np.uint8)
    padded[1:, pixel_bytes:] = rows
    allowed = _allowed_filters(height, size // pixel_bytes)
    step = max(1, _TILE_BYTES // (size or 1))
    with making_bytes("filtered rows", _FILTERED * min(step, height) * size):
        for top in in_time(range(0, height, step), SLOW):
            tile = slice(top, top + step)
            _filter_tile(padded[top : top + step + 1], pixel_bytes, allowed, output[tile])
    return output.reshape(-1).data


def _allowed_filters(height: int, columns: int) -> list[int]:
    """Libpng leaves out filters that look at neighbours which no pixel of the image has."""
    if height == 1:
        return [_NONE] if columns == 1 else [_NONE, _SUB]
    return [_NONE, _UP] if columns == 1 else [*range(5)]


def _filter_tile(padded: Any, pixel_bytes: int, allowed: list[int], output: Any) -> None:
    here, up = padded[1:, pixel_bytes:], padded[:-1, pixel_bytes:]
    left, corner = padded[1:, :-pixel_bytes], padded[:-1, :-pixel_bytes]
    average = (left & up) + ((left ^ up) >> 1)
    tries = (here, here - left, here - up, here - average, here - _paeth(left, up, corner))
    sums = np.stack([np.minimum(tried, -tried).sum(1, dtype=np.int64) for tried in tries])
    best = np.asarray(allowed)[sums[allowed].argmin(0)]
    output[:, 0] = best
    for number, tried in enumerate(tries):
        chosen = best == number
        output[chosen, 1:] = tried[chosen]


def _paeth(left: Any, up: Any, corner: Any) -> Any:
    a, b, c = (part.astype(np.int16) for part in (left, up, corner))
    to_left, to_up = b - c, a - c
    to_corner = np.abs(to_left + to_up)
    np.abs(to_left, out=to_left)
    np.abs(to_up, out=to_up)
    by_up = np.where(to_up <= to_corner, up, corner)
    return np.where((to_left <= to_up) & (to_left <= to_corner), left, by_up)
