"""What a JPEG file says of itself before its pixels, and whether the file is whole.

Source: ITU-T T.81, annex B; TensorFlow core/lib/jpeg/jpeg_mem.cc (GetImageInfo).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opkernel.device.work_clock import WorkClock
from opkernel.ops.image.codecs.file_format import FileFormat, invalid_data

__all__ = ["JpegHeader", "is_whole", "jpeg_header", "without_garbage"]

_SOI, _EOI, _SOS, _DHT, _APP14 = 0xD8, 0xD9, 0xDA, 0xC4, 0xEE
_FRAMES = frozenset({0xC0, 0xC1, 0xC2, 0xC9, 0xCA})
"""Frames of Huffman or arithmetic coding, sequential or progressive."""
_UNSUPPORTED_FRAMES = frozenset({0xC3, 0xC5, 0xC6, 0xC7, 0xC8, 0xCB, 0xCD, 0xCE, 0xCF})
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
"""Markers without a segment."""
_MARKER = re.compile(rb"\xff+([^\x00\xff])", re.DOTALL)
_MARKER_IN_SCAN = re.compile(rb"\xff+([^\x00\xff\xd0-\xd7])", re.DOTALL)
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
            parts.append(data[at + len(segment) :])
            break
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
