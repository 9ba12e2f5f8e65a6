"""The pixels of JPEG files, as libjpeg-turbo computes them for TensorFlow.

simplejpeg gives TensorFlow's bits: it can use the fast DCT, TensorFlow's default. Pillow cannot, and serves as
fallback.

Source: TensorFlow core/lib/jpeg/jpeg_mem.cc (Uncompress).
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opkernel.errors import DeadlineExceededError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.image.codecs.file_format import MAX_VALUES
from opkernel.ops.image.codecs.jpeg_header import JpegHeader, is_whole, jpeg_header, without_garbage
from opkernel.ops.libraries import library, library_or_none, warn_of_fallback
from opkernel.types import DataType

__all__ = ["JpegOptions", "jpeg_pixels"]

_CMYK = 4
_BLOCK = 8
"""The height and width of the squares that are coded as one."""


@dataclass(frozen=True)
class JpegOptions:
    """How a JPEG file is decoded; the attrs of DecodeJpeg."""

    ratio: int = 1
    fancy_upscaling: bool = True
    try_recover_truncated: bool = False
    acceptable_fraction: float = 1.0
    accurate_dct: bool = False


def jpeg_pixels(
    data: bytes, channels: int, options: JpegOptions, crop: list[int] | None = None
) -> Any:
    """The pixels [height, width, channels] of a file, uint8.

    Args:
        data: The file.
        channels: 1 or 3; 0 for as many as the file has, but 3 for CMYK.
        options: How to decode.
        crop: The row, column, height and width of a part of the (reduced) image.

    Raises:
        InvalidArgumentError: the file is damaged or cut, or the crop is not within the image.
        ResourceExhaustedError: the image would be larger than the allocation limit.
    """
    try:
        data = without_garbage(data)
        header = jpeg_header(data)
        return _pixels(data, header, channels, options, crop)
    except DeadlineExceededError:  # is an OSError, too
        raise
    except (InvalidArgumentError, ValueError, OSError, SyntaxError) as error:
        raise InvalidArgumentError(
            f"jpeg::Uncompress failed. Invalid JPEG data or crop window. ({error})"
        ) from None


def _pixels(
    data: bytes, header: JpegHeader, channels: int, options: JpegOptions, crop: list[int] | None
) -> Any:
    reduced = replace(
        header, height=-(-header.height // options.ratio), width=-(-header.width // options.ratio)
    )
    depth = channels or min(header.components, 3)
    if header.components == 2 or (header.components == _CMYK and depth == 1):
        raise ValueError(f"{header.components} components cannot become {depth} channels")
    window = _window(reduced, crop)
    shape = (reduced.height, reduced.width, _CMYK if header.components == _CMYK else depth)
    if np.prod(shape, dtype=np.int64) >= MAX_VALUES:
        raise ValueError(f"an image of shape {list(shape)} is too large")
    check_allocation(shape, DataType.DT_UINT8)
    if not is_whole(data) and not (
        options.try_recover_truncated or options.acceptable_fraction < 1
    ):
        raise ValueError("the file ends before its pixels do")
    if crop is not None and _too_narrow_for_fancy_upscaling(header, crop, options.ratio):
        options = replace(options, fancy_upscaling=False)
    found = _decoded(data, reduced, depth, options)
    if found.shape != shape:
        raise ValueError(f"pixels have shape {list(found.shape)}, the header said {list(shape)}")
    part = found[window]
    return _rgb_of_cmyk(part, header.adobe) if header.components == _CMYK else part


def _window(reduced: JpegHeader, crop: list[int] | None) -> tuple[slice, slice]:
    if crop is None:
        return slice(None), slice(None)
    row, column, height, width = crop
    if (
        min(row, column) < 0
        or min(height, width) <= 0
        or row + height > reduced.height
        or column + width > reduced.width
    ):
        raise ValueError(f"crop {crop} exceeds the size {reduced.height} x {reduced.width}")
    return slice(row, row + height), slice(column, column + width)


def _too_narrow_for_fancy_upscaling(header: JpegHeader, crop: list[int], ratio: int) -> bool:
    """Whether a crop leaves one sample of a component side by side, which libjpeg just repeats.

    libjpeg starts a crop where a group of blocks does.
    """
    most = max(header.sampling)
    skipped = crop[1] % (most * 8 // ratio)
    kept = [-(-(crop[3] + skipped) * factor // most) for factor in header.sampling]
    return any(
        factor < most and width < 2 for factor, width in zip(header.sampling, kept, strict=True)
    )


def _decoded(data: bytes, reduced: JpegHeader, depth: int, options: JpegOptions) -> Any:
    """The pixels; simplejpeg refuses files whose components are sampled in an unusual way."""
    if library_or_none("simplejpeg"):
        try:
            return _with_simplejpeg(data, reduced, depth, options)
        except ValueError as error:
            if "subsampling" not in str(error):
                raise
    elif not options.accurate_dct or not options.fancy_upscaling:
        warn_of_fallback(
            "simplejpeg", "Pillow decodes JPEG files, pixels differ by up to 9 from TensorFlow's"
        )
    return _with_pillow(data, reduced, depth, options)


def _with_simplejpeg(data: bytes, reduced: JpegHeader, depth: int, options: JpegOptions) -> Any:
    """The pixels with TensorFlow's bits.

    simplejpeg asks for a size and a least factor. Images within one block, for which these do not name one ratio, are
    decoded as a whole block.
    """
    height, width = reduced.height, reduced.width
    if options.ratio > 1 and max(height, width) * options.ratio <= _BLOCK:
        data = reduced.with_size(data, _BLOCK, _BLOCK)
        height = width = _BLOCK // options.ratio
    space = {1: "GRAY", 3: "RGB"}[depth]
    return library("simplejpeg", "JPEG").decode_jpeg(
        data,
        "CMYK" if reduced.components == _CMYK else space,
        fastdct=not options.accurate_dct,
        fastupsample=not options.fancy_upscaling,
        min_height=height,
        min_width=width,
        min_factor=options.ratio,
        strict=False,
    )[: reduced.height, : reduced.width]


def _with_pillow(data: bytes, reduced: JpegHeader, depth: int, options: JpegOptions) -> Any:
    """The pixels by the accurate DCT and fancy upscaling."""
    image = library("PIL.Image", "JPEG").open(io.BytesIO(data))
    mode = {1: "L", 3: "RGB"}[depth]
    if options.ratio > 1:
        image.draft(mode, (reduced.width, reduced.height))
    if reduced.components == _CMYK:
        pixels = np.asarray(image)
        return 255 - pixels if reduced.adobe else pixels
    pixels = np.asarray(image.convert(mode))
    return pixels.reshape(*pixels.shape[:2], depth)


def _rgb_of_cmyk(pixels: Any, inverted: bool) -> Any:
    values = pixels.astype(np.uint16) if inverted else 255 - pixels.astype(np.uint16)
    return (values[..., :3] * values[..., 3:] // 255).astype(np.uint8)
