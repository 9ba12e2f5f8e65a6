"""JPEG files: their headers, whether they are whole, and their pixels; and ExtractJpegShape.

The pixels are those that libjpeg-turbo computes for TensorFlow. simplejpeg gives TensorFlow's bits: it can use the
fast DCT, TensorFlow's default. Pillow cannot, and serves as fallback.

Source: ITU-T T.81, annex B; TensorFlow core/lib/jpeg/jpeg_mem.cc (GetImageInfo, Uncompress),
core/ops/image_ops.cc, core/kernels/image/extract_jpeg_shape_op.cc.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opkernel.device.work_clock import WorkClock
from opkernel.errors import DeadlineExceededError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.libraries import library, library_or_none, warn_of_fallback
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.image.codecs import MAX_VALUES, FileFormat, invalid_data
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.types import DataType

__all__ = ["JpegOptions", "jpeg_pixels", "without_garbage"]


_SOI, _EOI, _SOS, _DHT, _APP14 = 0xD8, 0xD9, 0xDA, 0xC4, 0xEE
_FRAMES = frozenset({0xC0, 0xC1, 0xC2, 0xC9, 0xCA})
"""Frames of Huffman or arithmetic coding, sequential or progressive."""
_UNSUPPORTED_FRAMES = frozenset({0xC3, 0xC5, 0xC6, 0xC7, 0xC8, 0xCB, 0xCD, 0xCE, 0xCF})
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
"""Markers without a segment."""
# Of several 0xff the last is enough; a pattern that begins with one byte is searched ten times as fast.
_MARKER = re.compile(rb"\xff([^\x00\xff])", re.DOTALL)
_MARKER_IN_SCAN = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])", re.DOTALL)
_OF_SEGMENT = 1 << 14
"""The work of reading a segment."""
_MAX_SIDE = 65500
_MAX_SCANS = 500
"""A small file with many scans over a large image takes hours: libjpeg-turbo advises this limit."""


@dataclass(frozen=True)
class JpegHeader:
    """The size and the number of components of a JPEG file."""

    height: int
    width: int
    components: int
    sampling: tuple[int, ...]
    """How many samples of each component lie side by side in the smallest part of the file."""
    adobe: bool
    """Whether a marker of Adobe's stands in the file: values of CMYK are stored inverted then."""
    size_at: int
    """Where the height and the width stand in the file."""

    def with_size(self, data: bytes, height: int, width: int) -> bytes:
        """The file with another size in its header."""
        size = height.to_bytes(2, "big") + width.to_bytes(2, "big")
        return data[: self.size_at] + size + data[self.size_at + len(size) :]


def jpeg_header(data: bytes) -> JpegHeader:
    """The header, down to the first scan.

    Raises:
        InvalidArgumentError: the header is damaged, cut, or of a kind that libjpeg does not decode.
    """
    frame: tuple[int, int, int, tuple[int, ...]] | None = None
    adobe, size_at = False, 0
    for marker, at, segment in _segments(data):
        if marker in _FRAMES:
            if frame is not None:
                raise invalid_data(FileFormat.JPEG, data, "it has two frame headers")
            frame, size_at = _frame(data, segment), at + 1
        elif marker == _APP14:
            adobe = adobe or (segment.startswith(b"Adobe") and len(segment) >= 12)
        elif marker == _DHT and not _has_code_tables(segment):
            raise invalid_data(FileFormat.JPEG, data, "a table of codes is damaged")
        elif marker == _SOS and frame is not None:
            return JpegHeader(*frame, adobe, size_at)
        elif marker in _UNSUPPORTED_FRAMES or marker == _SOS:
            raise invalid_data(FileFormat.JPEG, data, f"marker 0x{marker:02x} is not supported")
    raise invalid_data(FileFormat.JPEG, data, "the header ends early")


def _frame(data: bytes, segment: bytes) -> tuple[int, int, int, tuple[int, ...]]:
    if len(segment) < 6 or len(segment) != 6 + 3 * segment[5]:
        raise invalid_data(FileFormat.JPEG, data, "the frame header has a wrong length")
    height, width = (int.from_bytes(segment[at : at + 2], "big") for at in (1, 3))
    if segment[0] != 8:
        raise invalid_data(FileFormat.JPEG, data, f"it has {segment[0]} bits a sample, not 8")
    if not (0 < height <= _MAX_SIDE and 0 < width <= _MAX_SIDE and 0 < segment[5] <= 10):
        raise invalid_data(FileFormat.JPEG, data, f"the image has size {width} x {height}")
    sampling = tuple(both >> 4 for both in segment[7::3])
    if not all(1 <= both >> 4 <= 4 and 1 <= both & 15 <= 4 for both in segment[7::3]):
        raise invalid_data(FileFormat.JPEG, data, "a component has a wrong sampling factor")
    return height, width, segment[5], sampling


def _has_code_tables(segment: bytes) -> bool:
    """Whether a segment consists of whole tables of Huffman codes."""
    at = 0
    while at < len(segment):
        count = sum(segment[at + 1 : at + 17])
        if len(segment) < at + 17 + count or count > 256 or segment[at] & ~0x10 > 3:
            return False
        at += 17 + count
    return True


def _segments(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The markers of the header with where and what their segments hold, while the file has them whole."""
    if not data.startswith(b"\xff\xd8"):
        return
    at, clock = 2, WorkClock("reading segments of a JPEG file")
    while found := _MARKER.search(data, at):
        clock.spend(_OF_SEGMENT)
        marker, at = found[1][0], found.end()
        if marker in _ALONE:
            continue
        size = int.from_bytes(data[at : at + 2], "big")
        if marker in (_SOI, _EOI) or size < 2 or at + size > len(data):
            return
        yield marker, at + 2, data[at + 2 : at + size]
        at += size


def without_garbage(data: bytes) -> bytes:
    """The file without bytes between its segments, which libjpeg skips."""
    parts = [data[:2]]
    for marker, at, segment in _segments(data):
        parts.append(bytes((0xFF, marker)) + data[at - 2 : at] + segment)
        if marker == _SOS:
            header = b"".join(parts)
            return data if data.startswith(header) else header + data[at + len(segment) :]
    return b"".join(parts)


def is_whole(data: bytes) -> bool:
    """Whether the scans of a JPEG file reach its end marker.

    Raises:
        InvalidArgumentError: the file has more scans than any image needs.
    """
    at, scans, clock = 2, 0, WorkClock("reading scans of a JPEG file")
    while found := (_MARKER_IN_SCAN if scans else _MARKER).search(data, at):
        clock.spend(_OF_SEGMENT)
        marker, at = found[1][0], found.end()
        if marker == _EOI:
            return True
        if marker not in _ALONE:
            at += int.from_bytes(data[at : at + 2], "big")
        scans += marker == _SOS
        if scans > _MAX_SCANS:
            raise invalid_data(FileFormat.JPEG, data, f"it has more than {_MAX_SCANS} scans")
    return False


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
    may_be_cut = options.try_recover_truncated or options.acceptable_fraction < 1
    if not is_whole(data) and not may_be_cut:
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
    is_inside = row + height <= reduced.height and column + width <= reduced.width
    if min(row, column) < 0 or min(height, width) <= 0 or not is_inside:
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
    images = library("PIL.Image", "Decoding JPEG")
    if not library_or_none("simplejpeg") and not (options.accurate_dct and options.fancy_upscaling):
        warn_of_fallback(
            "simplejpeg", "Pillow decodes JPEG files, pixels differ by up to 9 from TensorFlow's"
        )
    return _with_pillow(images, data, reduced, depth, options.ratio)


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
    return library("simplejpeg", "Decoding JPEG").decode_jpeg(
        data,
        "CMYK" if reduced.components == _CMYK else space,
        fastdct=not options.accurate_dct,
        fastupsample=not options.fancy_upscaling,
        min_height=height,
        min_width=width,
        min_factor=options.ratio,
        strict=False,
    )[: reduced.height, : reduced.width]


def _with_pillow(images: Any, data: bytes, reduced: JpegHeader, depth: int, ratio: int) -> Any:
    """The pixels by the accurate DCT and fancy upscaling."""
    image = images.open(io.BytesIO(data))
    mode = {1: "L", 3: "RGB"}[depth]
    if ratio > 1:
        image.draft(mode, (reduced.width, reduced.height))
    if reduced.components == _CMYK:
        pixels = np.asarray(image)
        return 255 - pixels if reduced.adobe else pixels
    pixels = np.asarray(image.convert(mode))
    return pixels.reshape(*pixels.shape[:2], depth)


def _rgb_of_cmyk(pixels: Any, inverted: bool) -> Any:
    values = pixels.astype(np.uint16) if inverted else 255 - pixels.astype(np.uint16)
    return (values[..., :3] * values[..., 3:] // 255).astype(np.uint8)


EXTRACT_JPEG_SHAPE = register_op(
    "ExtractJpegShape(contents: string) -> image_shape: output_type",
    attrs=["output_type: {int32, int64} = DT_INT32"],
    shape_fn=shape_rule("[] -> [3]"),
    doc="The height, width and channels of a JPEG file, without its pixels.",
)


@register_kernel(EXTRACT_JPEG_SHAPE, types={"output_type": INDEX})
def extract_jpeg_shape(contents: Any, *, output_type: DataType) -> Any:
    require_scalar(contents, "contents must be scalar, got shape {}")
    header = jpeg_header(contents.item())
    return np.array([header.height, header.width, header.components], output_type.numpy_dtype)
