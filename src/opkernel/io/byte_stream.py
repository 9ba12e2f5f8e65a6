"""The bytes of a file, as they are or decompressed, in pieces that the step's budget allows.

Source: TensorFlow tsl/lib/io/zlib_inputstream.cc, buffered_inputstream.cc, inputbuffer.cc.
"""

import io
import os
import zlib
from typing import BinaryIO

from opkernel.device.allocation import check_allocation
from opkernel.device.budget import check_time
from opkernel.device.opened_files import PIECE
from opkernel.errors import DataLossError
from opkernel.file_errors import file_errors
from opkernel.io.snappy_stream import SNAPPY, SnappyReader
from opkernel.types import DataType

__all__ = ["WINDOW_BITS", "ByteStream", "Inflated"]

WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
"""What zlib knows each compression by."""


class ByteStream:
    """A file that is read from its beginning to its end.

    Args:
        file: The file, which it closes.
        path: The name of the file, for messages.
        encoding: ZLIB, GZIP or SNAPPY; anything else is a file as it is.
    """

    def __init__(self, file: io.BufferedReader, path: str, encoding: str = "") -> None:
        self._path = path
        if encoding in WINDOW_BITS:
            file = io.BufferedReader(Inflated(file, path, WINDOW_BITS[encoding]), PIECE)
        elif encoding == SNAPPY:
            file = io.BufferedReader(SnappyReader(file, path), PIECE)
        self._file = file
        self._buffer, self._at = b"", 0

    def read(self, size: int) -> bytes:
        """The next bytes: fewer than `size` at the end alone.

        Raises:
            ResourceExhaustedError: there are too many.
            DataLossError: the file cannot be decompressed.
        """
        if size > PIECE:
            return self._many(size)
        while self._at + size > len(self._buffer) and self._has_more():
            pass
        found = self._buffer[self._at : self._at + size]
        self._at += len(found)
        return found

    def _many(self, size: int) -> bytes:
        pieces = [self.read(min(len(self._buffer) - self._at, PIECE))]
        found = len(pieces[0])
        while found < size and (piece := self.read(min(size - found, PIECE))):
            pieces.append(piece)
            found = self._checked(found + len(piece))
        return b"".join(pieces)

    def skip(self, size: int) -> bool:
        """Leave out the next bytes; False if there are not as many."""
        while size and (piece := self.read(min(size, PIECE))):
            size -= len(piece)
            check_time("reading", self._path)
        return not size

    def read_line(self) -> bytes | None:
        """The next line without its end: newline, or carriage return and newline; None at the end."""
        end = self._buffer.find(b"\n", self._at)
        while end < 0:
            seen = len(self._buffer) - self._at
            if not self._has_more():
                self._at += seen
                return self._buffer[self._at - seen :].removesuffix(b"\r") or None
            end = self._buffer.find(b"\n", seen)
        line, self._at = self._buffer[self._at : end], end + 1
        return line.removesuffix(b"\r")

    def _has_more(self) -> bool:
        """Read on: as much again as there is, so that a long line is not copied too often. False at the end."""
        rest = self._buffer[self._at :]
        size = max(len(rest), PIECE)
        if len(rest) > PIECE:
            self._checked(len(rest) + size)
        with file_errors(self._path):
            more = self._file.read1(size)
        self._buffer, self._at = rest + more, 0
        return bool(more)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _checked(self, size: int) -> int:
        """A number of bytes that may be held, while there is time."""
        check_time("reading", self._path)
        return check_allocation((size,), DataType.DT_UINT8)[0]


class Inflated(io.RawIOBase):
    """What a compressed file holds: one stream for ZLIB, any number for GZIP.

    A stream that is cut short has what can be decompressed.
    """

    def __init__(self, file: BinaryIO, path: str, window_bits: int) -> None:
        super().__init__()
        self._file = file
        self._path = path
        self._window_bits = window_bits
        self._stream = zlib.decompressobj(window_bits)
        self._rest = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]  # bytes come in
        """Fill the beginning of a buffer; 0 at the end."""
        while True:
            if self._stream.eof and not self._begin_next():
                return 0
            packed = self._rest or self._file.read(PIECE)
            found = self._inflated(packed, len(buffer))
            if found:
                buffer[: len(found)] = found
                return len(found)
            if not packed:
                return 0

    def _begin_next(self) -> bool:
        """Begin the stream that follows; False if none may."""
        if self._window_bits == zlib.MAX_WBITS:
            return False
        self._rest = self._stream.unused_data or self._file.read(PIECE)
        self._stream = zlib.decompressobj(self._window_bits)
        return bool(self._rest)

    def _inflated(self, packed: bytes, size: int) -> bytes:
        try:
            found = self._stream.decompress(packed, size)
        except zlib.error as error:
            raise DataLossError(f"{os.fsdecode(self._path)} is damaged: {error}") from error
        self._rest = self._stream.unconsumed_tail
        return found

    def close(self) -> None:
        """Close the file, too."""
        self._file.close()
        super().close()
