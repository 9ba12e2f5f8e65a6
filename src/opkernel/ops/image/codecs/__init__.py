"""Image files: JPEG, PNG, GIF, BMP and WebP; which of these a file is, by its first bytes, and the error of a damaged one.

Source: TensorFlow core/kernels/image/decode_image_op.cc (ClassifyFileFormat).
"""

from enum import Enum

from opkernel.errors import InvalidArgumentError

MAX_VALUES = 1 << 29
"""TensorFlow refuses JPEG and PNG files of this many values and more."""


class FileFormat(Enum):
    """A format, named as in TensorFlow's messages."""

    JPEG = "JPEG"
    JXL = "JPEG XL"
    PNG = "PNG"
    GIF = "GIF"
    BMP = "BMP"
    WEBP = "WebP"


_MAGIC = (
    (b"\xff\xd8\xff", FileFormat.JPEG),
    (b"\xff\x0a", FileFormat.JXL),
    (b"\0\0\0\x0cJXL \r\n\x87\n", FileFormat.JXL),
    (b"\x89PNG\r\n\x1a\n", FileFormat.PNG),
    (b"GIF8", FileFormat.GIF),
    (b"BM", FileFormat.BMP),
)


def file_format(data: bytes) -> FileFormat:
    """The format of a file.

    Raises:
        InvalidArgumentError: the file begins as none of the formats does.
    """
    for magic, found in _MAGIC:
        if data.startswith(magic):
            return found
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return FileFormat.WEBP
    names = ", ".join(kind.value for kind in FileFormat)
    raise InvalidArgumentError(f"Unknown image file format. One of {names} required.")


def invalid_data(kind: FileFormat, data: bytes, why: str) -> InvalidArgumentError:
    """The error of a file that is damaged."""
    return InvalidArgumentError(f"Invalid {kind.value} data, size {len(data)}: {why}")
