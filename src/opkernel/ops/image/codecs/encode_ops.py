"""Tensors to image files: EncodeJpeg, EncodeJpegVariableQuality, EncodePng.

Pillow writes the bytes of JPEG files that TensorFlow writes. PNG files are byte by byte those of libpng.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/encode_jpeg_op.cc, encode_png_op.cc,
core/lib/jpeg/jpeg_mem.cc; libpng's choice of filters.
"""

import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.libraries import library
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.image.codecs import MAX_VALUES
from opkernel.ops.image.codecs.png import TYPES_OF_COLOR, mean, paeth, png_of_rows
from opkernel.ops.input_checks import (
    int32_attr,
    require,
    require_rank,
    require_rank_at_least,
    require_scalar,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, object_scalar

_DEFAULT_QUALITY = 95
_MAX_SIDE = 65500
_DENSITY_AT = 13
"""Where the header holds the unit of the density, 1 for an inch and 2 for a centimetre, and the densities."""
_CHANNELS = {"grayscale": 1, "rgb": 3}

ENCODE_JPEG = register_op(
    "EncodeJpeg(image: uint8) -> contents: string",
    attrs=[
        "format: {'', 'grayscale', 'rgb'} = ''",
        f"quality: int = {_DEFAULT_QUALITY}",
        "progressive: bool = false",
        "optimize_size: bool = false",
        "chroma_downsampling: bool = true",
        "density_unit: {'in', 'cm'} = 'in'",
        "x_density: int = 300",
        "y_density: int = 300",
        "xmp_metadata: string = ''",
    ],
    shape_fn=shape_rule("[?, ?, ?] -> []"),
    traits="extra=image",
    doc="A JPEG file of an image [height, width, channels].",
)
ENCODE_JPEG_VARIABLE_QUALITY = register_op(
    "EncodeJpegVariableQuality(images: uint8, quality: int32) -> contents: string",
    shape_fn=shape_rule("[?, ?, ?], [] -> []"),
    traits="extra=image",
    doc="EncodeJpeg with a quality that the graph computes.",
)


@dataclass(frozen=True)
class _Options:
    """The attrs of EncodeJpeg but for the quality."""

    progressive: bool = False
    optimize: bool = False
    downsample: bool = True
    density: bytes = struct.pack(">BHH", 1, 300, 300)
    xmp: bytes = b""


def _check_quality(quality: int) -> None:
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(f"quality must be in [0,100], got {quality}")


def _check_image(image: Any, wanted: int | None, kind: str) -> None:
    require_rank(image, 3, "image must be 3-dimensional{}")
    if image.size >= MAX_VALUES:
        raise InvalidArgumentError(f"image cannot have {MAX_VALUES} or more elements")
    channels, shape = image.shape[2], list(image.shape)
    if wanted is not None and channels != wanted:
        raise InvalidArgumentError(f"format {kind} expects {wanted} channels, got {shape}")
    if channels not in _CHANNELS.values():
        raise InvalidArgumentError(f"image must have 1 or 3 channels, got {shape}")


def _encoded(image: Any, quality: int, options: _Options) -> Any:
    height, width, channels = image.shape
    if not (0 < height <= _MAX_SIDE and 0 < width <= _MAX_SIDE):
        raise InternalError(f"JPEG encoding failed: the image has size {height} x {width}")
    pillow = library("PIL.Image", "JPEG encoding")
    pixels = np.ascontiguousarray(image[..., 0] if channels == 1 else image)
    file = io.BytesIO()
    more = {"xmp": options.xmp} if options.xmp else {}
    try:
        pillow.fromarray(pixels).save(
            file,
            "JPEG",
            quality=quality,
            subsampling=2 if options.downsample and channels == 3 else 0,
            progressive=options.progressive,
            optimize=options.optimize,
            **more,
        )
    except (ValueError, OSError) as error:
        raise InternalError(f"JPEG encoding failed: {error}") from None
    contents = bytearray(file.getvalue())
    contents[_DENSITY_AT : _DENSITY_AT + len(options.density)] = options.density
    return object_scalar(bytes(contents))


@register_kernel(ENCODE_JPEG, factory=True)
def encode_jpeg(
    *,
    format: str,
    quality: int,
    progressive: bool,
    optimize_size: bool,
    chroma_downsampling: bool,
    density_unit: str,
    x_density: int,
    y_density: int,
    xmp_metadata: str,
) -> Callable[[Any], Any]:
    _check_quality(quality)
    densities = int32_attr("x_density", x_density), int32_attr("y_density", y_density)
    options = _Options(
        progressive,
        optimize_size,
        chroma_downsampling,
        struct.pack(
            ">BHH", 2 if density_unit == "cm" else 1, *[density & 0xFFFF for density in densities]
        ),
        xmp_metadata.encode("utf-8", "surrogateescape"),
    )

    def encode(image: Any) -> Any:
        _check_image(image, _CHANNELS.get(format), format)
        return _encoded(image, quality, options)

    return encode


@register_kernel(ENCODE_JPEG_VARIABLE_QUALITY)
def encode_jpeg_variable_quality(images: Any, quality: Any) -> Any:
    _check_image(images, None, "")
    require_scalar(quality, "quality must be scalar: {}")
    _check_quality(quality.item())
    return _encoded(images, quality.item(), _Options())


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
    "EncodePng(image: T) -> contents: string",
    attrs=["compression: int = -1", "T: {uint8, uint16} = DT_UINT8"],
    shape_fn=shape_rule("[..., height, width, channels] -> [...]"),
    doc="PNG files of images [..., height, width, channels].",
)


@register_kernel(ENCODE_PNG, factory=True)
def encode_png(*, compression: int, T: DataType) -> Callable[[Any], Any]:
    require(-1 <= compression <= 9, f"compression should be in [-1,9], got {compression}")

    def encode(image: Any) -> Any:
        require_rank_at_least(image, 3, "images must be at least rank 3{}")
        height, width, channels = image.shape[-3:]
        if height * width * channels >= MAX_VALUES:
            raise InvalidArgumentError(f"PNG files have no size {height} x {width}")
        if channels not in TYPES_OF_COLOR:
            raise InvalidArgumentError(f"image must have 1, 2, 3, or 4 channels, got {channels}")
        batch = image.shape[:-3]
        if 0 in (height, width) and 0 not in batch:
            raise InternalError(f"PNG encoding failed: PNG files have no size {height} x {width}")
        return string_tensor(batch, (_file(image[at], compression) for at in np.ndindex(batch)))

    return encode


def _file(image: Any, compression: int) -> bytes:
    height, width, channels = image.shape
    rows = np.ascontiguousarray(image, f">u{image.itemsize}").view(np.uint8).reshape(height, -1)
    pixel_bytes = channels * image.itemsize
    allowed = _allowed_filters(height, rows.shape[1] // pixel_bytes)
    strategy = zlib.Z_DEFAULT_STRATEGY if allowed == [_NONE] else zlib.Z_FILTERED
    data = _deflated(_filtered(rows, pixel_bytes, allowed), compression, strategy)
    pieces = (data[at : at + _CHUNK_BYTES] for at in range(0, len(data), _CHUNK_BYTES))
    return png_of_rows(width, height, 8 * image.itemsize, channels, pieces)


def _deflated(data: memoryview, compression: int, strategy: int) -> bytes:
    """Deflated with libpng's settings: a small image gets a window that is just large enough."""
    bits = _LARGEST_WINDOW
    while bits > _SMALLEST_WINDOW and len(data) + _DEFLATE_LOOKAHEAD <= 1 << (bits - 1):
        bits -= 1
    packer = zlib.compressobj(compression, zlib.DEFLATED, bits, 9, strategy)
    # What is only stored is cut where pieces are.
    step = _DEFLATED_AT_ONCE if compression else len(data)
    pieces = in_time((data[at : at + step] for at in range(0, len(data), step)), SLOW)
    packed = bytearray(b"".join(map(packer.compress, pieces)) + packer.flush())
    while bits > _SMALLEST_HEADER and len(data) <= 1 << (bits - 1):
        bits -= 1
    first, level = (bits - 8) << 4 | zlib.DEFLATED, packed[1] & 0xE0
    packed[:2] = first, level + 31 - (256 * first + level) % 31
    return bytes(packed)


def _filtered(rows: Any, pixel_bytes: int, allowed: list[int]) -> memoryview:
    """Each row after the filter whose differences have the least sum, with the filter's number before."""
    height, size = rows.shape
    output = np.empty((height, 1 + size), np.uint8)
    padded = np.zeros((height + 1, size + pixel_bytes), np.uint8)
    padded[1:, pixel_bytes:] = rows
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
    tries = (here, here - left, here - up, here - mean(left, up), here - paeth(left, up, corner))
    sums = np.stack([np.minimum(tried, -tried).sum(1, dtype=np.int64) for tried in tries])
    best = np.asarray(allowed)[sums[allowed].argmin(0)]
    output[:, 0] = best
    for number, tried in enumerate(tries):
        chosen = best == number
        output[chosen, 1:] = tried[chosen]
