"""The readers: lines, TFRecords, records of fixed length, whole files, and names of files.

Source: TensorFlow core/kernels/text_line_reader_op.cc, tf_record_reader_op.cc,
fixed_length_record_reader_op.cc, whole_file_read_ops.cc, identity_reader_op.cc.
"""

import os
from functools import partial

from opkernel.device.budget import check_time
from opkernel.device.opened_files import open_file, read_whole
from opkernel.device.permissions import Permissions
from opkernel.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
    OutOfRangeError,
)
from opkernel.io.byte_stream import ByteStream
from opkernel.io.record_format import RecordReader
from opkernel.kernel import OpKernelContext
from opkernel.ops.files.reader_base import ReaderBase, Record

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]


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
    """Gives TFRecords, and where they begin in the file."""

    type_name = "TFRecordReader"

    def begin(self, stream: ByteStream) -> None:
        self._records = RecordReader(stream, self.state.current_work)

    def next_record(self, stream: ByteStream) -> tuple[int, bytes] | None:
        return self._records.next()
