"""TFRecord files from Python.

Source: TensorFlow python/lib/io/tf_record.py.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import BinaryIO, Self

from opkernel.device.opened_files import open_file
from opkernel.device.permissions import OWN_CODE
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OpError
from opkernel.file_errors import checked_path, file_errors
from opkernel.io.byte_stream import ByteStream
from opkernel.io.record_format import RecordReader, RecordWriter, TFRecordOptions
from opkernel.messages import short_repr
from opkernel.tracebacks import entrances

_Options = TFRecordOptions | str | None


def _path_of(path: str | bytes | os.PathLike[str]) -> str:
    if not isinstance(path, str | bytes | os.PathLike):
        raise InvalidArgumentError(f"A path is a string, not {short_repr(path)}")
    return checked_path(os.fsdecode(path))


@entrances
class TFRecordWriter:
    """Writes a TFRecord file; a file of that name is replaced. Threads may share a writer.

        with opkernel.io.TFRecordWriter("numbers.tfrecord") as writer:
            writer.write(b"one")

    Args:
        path: The file.
        options: TFRecordOptions, or their `compression_type`.

    Raises:
        InvalidArgumentError: the compression does not exist.
        OpError: the file cannot be made.
    """

    def __init__(self, path: str | bytes | os.PathLike[str], options: _Options = None) -> None:
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(options)
        name = _path_of(path)
        with file_errors(name):
            file: BinaryIO = open(name, "wb")  # noqa: SIM115  # `close` closes it
        self._lock = threading.Lock()
        self._writer: RecordWriter | None = RecordWriter(file, name, options)

    def write(self, record: bytes | bytearray | memoryview | str) -> None:
        """Write a record; a str is written as UTF-8.

        Raises:
            FailedPreconditionError: the writer is closed.
            InvalidArgumentError: the record is neither bytes nor str.
            OpError: the file cannot be written.
        """
        if isinstance(record, str):
            record = record.encode("utf-8", "surrogatepass")
        if not isinstance(record, bytes | bytearray | memoryview):
            raise InvalidArgumentError(f"A record is bytes, not {short_repr(record)}")
        with self._lock:
            self._open_writer().write(record)

    def flush(self) -> None:
        """Hand the written records to the system.

        Raises:
            FailedPreconditionError: the writer is closed.
            OpError: the file cannot be written.
        """
        with self._lock:
            self._open_writer().flush()

    def close(self) -> None:
        """End the file. A second call does nothing.

        Raises:
            OpError: the file cannot be written.
        """
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.close()

    def _open_writer(self) -> RecordWriter:
        if self._writer is None:
            raise FailedPreconditionError("Writer is closed.")
        return self._writer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_writer", None) is not None:
            with suppress(OpError):
                self.close()


@entrances
class RecordIterator:
    """The records of a TFRecord file, as bytes; it closes the file at the end, and when it is collected."""

    def __init__(self, path: str, compression: str) -> None:
        self._stream: ByteStream | None = None
        self._stream = ByteStream(open_file(OWN_CODE, path), path, compression)
        self._reader = RecordReader(self._stream, path)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        found = None if self._stream is None else self._reader.next()
        if found is None:
            self.close()
            raise StopIteration
        return found[1]

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def __del__(self) -> None:
        self.close()


def tf_record_iterator(
    path: str | bytes | os.PathLike[str], options: _Options = None
) -> RecordIterator:
    """Iterate over the records of a TFRecord file, as bytes.

    Args:
        path: The file.
        options: TFRecordOptions, or their `compression_type`.

    Raises:
        InvalidArgumentError: the compression does not exist.
        NotFoundError: the file does not exist.
        DataLossError: from `next`; a record is damaged or cut short, at the offset that the message tells.
    """
    compression = TFRecordOptions.get_compression_type_string(options)
    return RecordIterator(_path_of(path), compression)
