"""The pixels of BMP files without compression, of 8, 24 or 32 bits a pixel.

Source: TensorFlow core/kernels/image/decode_image_op.cc (DecodeBmpV2).
"""

import struct
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.types import DataType

_HEADER_BYTES = 32
_START, _SIZE, _BITS = (struct.Struct(f"<{code}") for code in ("i", "ii", "h"))


def bmp_pixels(data: bytes, channels: int) -> Any:
    """The pixels [height, width, channels] of a file, uint8.

    As in TensorFlow, a file of 8 bits a pixel is gray, whatever its palette says.

    Args:
        data: The file.
        channels: 3 or 4; 0 for as many as the file has.

    Raises:
        InvalidArgumentError: the file is damaged, cut, or of another kind.
        ResourceExhaustedError: the image would be larger than the allocation limit.
    """
    if len(data) < _HEADER_BYTES:
        raise InvalidArgumentError(
            f"Incomplete bmp content, requires at least {_HEADER_BYTES} bytes to find the header "
            f"size, width, height, and bpp, got {len(data)} bytes"
        )
    (start,), (width, height) = _START.unpack_from(data, 10), _SIZE.unpack_from(data, 18)
    depth = int(_BITS.unpack_from(data, 28)[0] / 8)
    if start < 0 or width <= 0 or height == 0:
        raise InvalidArgumentError(
            f"BMP header says: pixels at {start}, width {width}, height {height}"
        )
    if depth not in (1, 3, 4):
        raise InvalidArgumentError(
            f"Number of channels inherent in the image must be 1, 3 or 4, was {depth}"
        )
    row_size = -(-depth * width // 4) * 4
    missing = len(data) - start - row_size * abs(height)
    if missing:
        raise InvalidArgumentError(
            f"Input size should match (header_size + row_size * abs_height) but they differ by {missing}"
        )
    shape = (abs(height), width, channels or depth)
    stored = np.frombuffer(data, np.uint8, offset=start).reshape(abs(height), row_size)
    pixels = stored[:, : width * depth].reshape(abs(height), width, depth)
    return _as_rgb(
        pixels if height < 0 else pixels[::-1], check_allocation(shape, DataType.DT_UINT8)
    )


def _as_rgb(stored: Any, shape: tuple[int, ...]) -> Any:
    """Blue, green, red and alpha in the order of the tensors."""
    pixels = np.full(shape, 255, np.uint8)
    colors = min(3, shape[2])
    pixels[..., :colors] = stored[..., :3][..., ::-1]
    if shape[2] == stored.shape[2] == 4:
        pixels[..., 3] = stored[..., 3]
    return pixels
