"""The readers: lines, TFRecords, records of fixed length, whole files, and names of files.

`ByteStream` has the bytes of a file, as they are or decompressed, in pieces that the step's budget allows.

Source: TensorFlow core/kernels/text_line_reader_op.cc, tf_record_reader_op.cc,
fixed_length_record_reader_op.cc, whole_file_read_ops.cc, identity_reader_op.cc, tsl/lib/io/record_reader.cc,
tsl/lib/io/zlib_inputstream.cc, buffered_inputstream.cc, inputbuffer.cc.
"""

import io
import os
from functools import partial
from typing import BinaryIO

from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.device.budget import check_time
from opkernel.device.opened_files import PIECE, open_file, read_whole
from opkernel.device.permissions import Permissions
from opkernel.errors import (
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
    OutOfRangeError,
)
from opkernel.file_errors import file_errors
from opkernel.kernel import OpKernelContext, check_allocation
from opkernel.ops.files.reader_base import ReaderBase, Record
from opkernel.ops.parsing.tensors import WINDOW_BITS, Inflated
from opkernel.types import DataType

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]


class ByteStream:
    """A file that is read from its beginning to its end.

    Args:
        file: The file, which it closes.
        path: The name of the file, for messages.
        encoding: ZLIB or GZIP; anything else is a file as it is.
    """

    def __init__(self, file: BinaryIO, path: str, encoding: str = "") -> None:
        self._path = path
        if encoding in WINDOW_BITS:
            file = io.BufferedReader(Inflated(file, path, WINDOW_BITS[encoding]), PIECE)
        self._file = file

    def read(self, size: int) -> bytes:
        """The next bytes: fewer than `size` at the end alone.

        Raises:
            ResourceExhaustedError: there are too many.
            DataLossError: the file cannot be decompressed.
        """
        if size <= PIECE:
            return self._piece(size)
        pieces, found = [], 0
        while found < size and (piece := self._piece(min(size - found, PIECE))):
            pieces.append(piece)
            found = self._checked(found + len(piece))
        return b"".join(pieces)

    def skip(self, size: int) -> bool:
        """Leave out the next bytes; False if there are not as many."""
        while size and (piece := self._piece(min(size, PIECE))):
            size -= len(piece)
            check_time("reading", self._path)
        return not size

    def read_line(self) -> bytes | None:
        """The next line without its end: newline, or carriage return and newline; None at the end."""
        line = self._piece(PIECE, is_line=True)
        if len(line) == PIECE and not line.endswith(b"\n"):
            line = self._whole_line(line)
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        return text if text or line.endswith(b"\n") else None

    def _whole_line(self, begin: bytes) -> bytes:
        pieces, found = [begin], len(begin)
        while piece := self._piece(PIECE, is_line=True):
            pieces.append(piece)
            found = self._checked(found + len(piece))
            if piece.endswith(b"\n"):
                break
        return b"".join(pieces)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _piece(self, size: int, *, is_line: bool = False) -> bytes:
        with file_errors(self._path):
            return self._file.readline(size) if is_line else self._file.read(size)

    def _checked(self, size: int) -> int:
        """A number of bytes that may be held, while there is time."""
        check_time("reading", self._path)
        return check_allocation((size,), DataType.DT_UINT8)[0]


class IdentityReader(ReaderBase):
    """Gives the names in the queue themselves."""

    type_name = "IdentityReader"
    has_one_record = True
    takes_no_time = True

    def read_record(self, ctx: OpKernelContext) -> Record:
        return Record(self.state.current_work, self.state.current_work)


class WholeFileReader(ReaderBase):
    """Gives the content of each file."""

    type_name = "WholeFileReader"
    has_one_record = True

    def read_record(self, ctx: OpKernelContext) -> Record:
        name = self.state.current_work
        return Record(name, read_whole(ctx.permissions, name))


class FileReader(ReaderBase):
    """Reads records from a stream of bytes. After an error it gives that error until it is reset.

    Args:
        encoding: How the files are compressed.
        name: The name, for messages.
    """

    def __init__(self, encoding: str, name: str) -> None:
        super().__init__(name)
        self._encoding = encoding
        self._stream: ByteStream | None = None
        self._failure: partial[OpError] | None = None

    def begin(self, stream: ByteStream) -> None:
        """Leave out what comes before the records."""

    def next_record(self, stream: ByteStream) -> tuple[int, bytes] | None:
        """The next record, and the number in its key; None at the end."""
        raise NotImplementedError(f"{type(self).__name__} does not override next_record")

    def start_work(self, ctx: OpKernelContext) -> None:
        self.open(ctx.permissions, self.state.current_work)

    def open(self, permissions: Permissions, name: bytes) -> None:
        """Begin with a file.

        Raises:
            PermissionDeniedError: it may not be read.
            OpError: it cannot be opened, or is too short.
        """
        self.state.current_work = name
        file = open_file(permissions, name)
        self._stream = ByteStream(file, os.fsdecode(name), self._encoding)
        try:
            self.begin(self._stream)
        except BaseException:
            self.finish_work()
            raise

    def finish_work(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._failure = None

    def read_record(self, ctx: OpKernelContext) -> Record | None:
        found = self.next()
        if found is None:
            return None
        number, value = found
        return Record(b"%b:%d" % (self.state.current_work, number), value)

    def skip(self, size: int) -> bool:
        """Leave out the next bytes of the file that was opened; False if there are not as many."""
        assert self._stream is not None
        return self._stream.skip(size)

    def next(self) -> tuple[int, bytes] | None:
        """The next record of the file that was opened, and the number in its key; None at the end."""
        if self._failure is not None:
            raise self._failure()
        assert self._stream is not None  # work has started
        try:
            return self.next_record(self._stream)
        except OpError as error:
            self._failure = _repeated(error)
            raise


def _repeated(error: OpError) -> partial[OpError]:
    """The error of the next reads of a file, after this one."""
    if isinstance(error, DeadlineExceededError):  # it was another step's
        error = FailedPreconditionError(
            f"An earlier read ended within a record, so the reader has to be reset: {error.message}"
        )
    return partial(type(error), error.message)


class TextLineReader(FileReader):
    """Gives lines without their ends, and their numbers from 1 on.

    Args:
        skip_header_lines: How many lines of each file are left out, and counted.
        name: The name, for messages.
        encoding: How the files are compressed.
        strips_returns: Whether carriage returns within a line are left out, as datasets do.
    """

    type_name = "TextLineReader"

    def __init__(
        self,
        skip_header_lines: int,
        name: str,
        encoding: str = "",
        *,
        strips_returns: bool = False,
    ) -> None:
        super().__init__(encoding, name)
        self._skip_header_lines = skip_header_lines
        self._strips_returns = strips_returns
        self._line_number = 0

    def begin(self, stream: ByteStream) -> None:
        self._line_number = 0
        while self._line_number < self._skip_header_lines and stream.read_line() is not None:
            self._line_number += 1
            check_time("skipping lines")

    def next_record(self, stream: ByteStream) -> tuple[int, bytes] | None:
        line = stream.read_line()
        self._line_number += 1
        if line is not None and self._strips_returns:
            line = line.replace(b"\r", b"")
        return None if line is None else (self._line_number, line)


class FixedLengthRecordReader(FileReader):
    """Gives records of one length, and their numbers from 0 on.

    Args:
        header_bytes: How many bytes of each file come before the first record.
        record_bytes: The length of a record.
        footer_bytes: How many bytes come after the last record.
        hop_bytes: From the begin of a record to the next; 0 for `record_bytes`.
        encoding: ZLIB, GZIP, or anything else for none.
        name: The name, for messages.
    """

    type_name = "FixedLengthRecordReader"

    def __init__(
        self,
        header_bytes: int,
        record_bytes: int,
        footer_bytes: int,
        hop_bytes: int,
        encoding: str,
        name: str,
    ) -> None:
        super().__init__(encoding, name)
        self._header_bytes = header_bytes
        self._record_bytes = record_bytes
        self._hop_bytes = hop_bytes or record_bytes
        self._window_bytes = record_bytes + footer_bytes
        self._record_number = 0
        self._window = b""

    def begin(self, stream: ByteStream) -> None:
        self._record_number, self._window = 0, b""
        if not stream.skip(self._header_bytes):
            raise OutOfRangeError(
                f"{self.state.current_work!r} ends within the header of {self._header_bytes} bytes"
            )

    def next_record(self, stream: ByteStream) -> tuple[int, bytes] | None:
        """A record is one only if there are as many bytes behind it as the footer has."""
        if self._record_number:
            gap = self._hop_bytes - len(self._window)
            self._window = self._window[self._hop_bytes :]
            if gap > 0 and not stream.skip(gap):
                return None
        self._window += stream.read(self._window_bytes - len(self._window))
        if len(self._window) < self._window_bytes:
            return None
        self._record_number += 1
        return self._record_number - 1, self._window[: self._record_bytes]

    def forget_rest(self) -> bool:
        """Whether there were bytes between the last record and the footer; they are forgotten."""
        rest = len(self._window) - (self._window_bytes - self._record_bytes)
        self._window = b""
        return rest > 0


class TFRecordReader(FileReader):
    """Gives TFRecords, and where they begin in the file.

    A record is its length, the checksum of the length, the data, and the checksum of the data.
    """

    type_name = "TFRecordReader"

    def begin(self, stream: ByteStream) -> None:
        self._offset = 0

    def next_record(self, stream: ByteStream) -> tuple[int, bytes] | None:
        """Fewer bytes than the beginning of a record has are the end."""
        start = self._offset
        header = stream.read(12)
        if len(header) < 12:
            return None
        if not _is_sum(header[:8], header[8:]):
            hint = "" if start else " (Is this even a TFRecord file?)"
            raise DataLossError(f"corrupted record at {start}{hint} in {self.state.current_work!r}")
        length = int.from_bytes(header[:8], "little")
        data, checksum = stream.read(length), stream.read(4)
        if len(checksum) < 4:
            raise DataLossError(f"truncated record at {start} in {self.state.current_work!r}")
        if not _is_sum(data, checksum):
            raise DataLossError(f"corrupted record at {start + 12} in {self.state.current_work!r}")
        self._offset = start + 16 + length
        return start, data


def _is_sum(data: bytes, checksum: bytes) -> bool:
    return masked_crc32c(data) == int.from_bytes(checksum, "little")
