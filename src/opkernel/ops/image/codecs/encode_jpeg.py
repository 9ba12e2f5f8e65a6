"""Tensors to JPEG files: EncodeJpeg, EncodeJpegVariableQuality.

Pillow writes the bytes that TensorFlow writes.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/encode_jpeg_op.cc, core/lib/jpeg/jpeg_mem.cc.
"""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.libraries import library
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.image.codecs.file_format import MAX_VALUES
from opkernel.ops.input_checks import require_rank, require_scalar
from opkernel.ops.registration import register_kernel

_DEFAULT_QUALITY = 95
_MAX_SIDE = 65500
_DENSITY_AT = 13
"""Where the header holds the unit of the density, 1 for an inch and 2 for a centimetre, and the densities."""
_CHANNELS = {"grayscale": 1, "rgb": 3}

ENCODE_JPEG = register_op(
    "EncodeJpeg",
    inputs=["image: uint8"],
    outputs=["contents: string"],
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
    "EncodeJpegVariableQuality",
    inputs=["images: uint8", "quality: int32"],
    outputs=["contents: string"],
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
    found = np.empty((), object)
    found[()] = bytes(contents)
    return found


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
    options = _Options(
        progressive,
        optimize_size,
        chroma_downsampling,
        struct.pack(
            ">BHH", 2 if density_unit == "cm" else 1, x_density & 0xFFFF, y_density & 0xFFFF
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
