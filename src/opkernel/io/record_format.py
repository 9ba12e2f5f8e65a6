"""TFRecords: the format of a file of records, read and written.

A record is its length, the checksum of the length, the data, and the checksum of the data. A file may be compressed as
a whole.

Source: TensorFlow tsl/lib/io/record_reader.cc, record_writer.cc, zlib_outputbuffer.cc, zlib_compression_options.cc,
python/lib/io/tf_record.py.
"""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

from opkernel.checkpoint.crc32c import Buffer, masked_crc32c
from opkernel.errors import DataLossError, InvalidArgumentError
from opkernel.file_errors import file_errors
from opkernel.io.byte_stream import WINDOW_BITS, ByteStream
from opkernel.messages import short_repr

_LENGTH_BYTES, _SUM_BYTES = 8, 4
_HEADER_BYTES = _LENGTH_BYTES + _SUM_BYTES
_MOST_MEMORY = 9
_SMALL = 1 << 16
"""Parts of records that are no larger are joined before they are written."""

COMPRESSIONS = ("", *WINDOW_BITS)
"""The values of `compression_type`."""


class TFRecordOptions:
    """How a TFRecord file is compressed.

    Args:
        compression_type: "ZLIB", "GZIP", or "" or None for a file as it is.
        flush_mode: zlib's flush mode after each record; 0 for none.
        input_buffer_size: Ignored.
        output_buffer_size: Ignored.
        window_bits: The logarithm of zlib's window; negative for a stream without header, with 16 more for GZIP.
        compression_level: From 0, which only stores, to 9; -1 for zlib's default.
        compression_method: zlib's method; only 8 exists.
        mem_level: How much memory zlib takes, from 1 to 9.
        compression_strategy: zlib's strategy.

    Raises:
        InvalidArgumentError: zlib does not support these settings.
    """

    def __init__(
        self,
        compression_type: str | TFRecordOptions | None = None,
        *,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.compression_type = self.get_compression_type_string(compression_type)
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy
        self.packer()

    @staticmethod
    def get_compression_type_string(options: str | TFRecordOptions | None) -> str:
        """The compression of options: "ZLIB", "GZIP" or "".

        Raises:
            InvalidArgumentError: the compression does not exist.
        """
        found = options.compression_type if isinstance(options, TFRecordOptions) else options or ""
        if found not in COMPRESSIONS:
            raise InvalidArgumentError(f"Not a valid compression_type: {short_repr(found)}")
        return found

    def packer(self) -> Any:
        """A new stream of zlib's that compresses as the options say; None for a file as it is.

        Raises:
            InvalidArgumentError: zlib does not support these settings.
        """
        if not self.compression_type:
            return None
        try:
            return zlib.compressobj(
                _or(self.compression_level, zlib.Z_DEFAULT_COMPRESSION),
                _or(self.compression_method, zlib.DEFLATED),
                _or(self.window_bits, WINDOW_BITS[self.compression_type]),
                _or(self.mem_level, _MOST_MEMORY),
                _or(self.compression_strategy, zlib.Z_DEFAULT_STRATEGY),
            )
        except (ValueError, OverflowError, TypeError) as error:
            raise InvalidArgumentError(f"zlib does not take {self!r}: {error}") from None

    def __repr__(self) -> str:
        given = [f"{name}={short_repr(value)}" for name, value in vars(self).items() if value]
        return f"TFRecordOptions({', '.join(given)})"


def _or(given: int | None, default: int) -> int:
    return default if given is None else given


class RecordReader:
    """Reads records one after the other.

    Args:
        stream: The bytes of the file.
        path: The name of the file, for messages.
    """

    def __init__(self, stream: ByteStream, path: str | bytes) -> None:
        self._stream, self._path = stream, path
        self._offset = 0

    def next(self) -> tuple[int, bytes] | None:
        """The next record, and where it begins; None at the end.

        Fewer bytes than the beginning of a record has are the end.

        Raises:
            DataLossError: a record is damaged or cut short.
            ResourceExhaustedError: a record is larger than the memory limit.
        """
        start = self._offset
        header = self._stream.read(_HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            return None
        if not _is_sum(header[:_LENGTH_BYTES], header[_LENGTH_BYTES:]):
            hint = "" if start else " (Is this even a TFRecord file?)"
            raise DataLossError(f"corrupted record at {start}{hint} in {self._path!r}")
        length = int.from_bytes(header[:_LENGTH_BYTES], "little")
        data, checksum = self._stream.read(length), self._stream.read(_SUM_BYTES)
        if len(checksum) < _SUM_BYTES:
            raise DataLossError(f"truncated record at {start} in {self._path!r}")
        if not _is_sum(data, checksum):
            raise DataLossError(f"corrupted record at {start + _HEADER_BYTES} in {self._path!r}")
        self._offset = start + _HEADER_BYTES + length + _SUM_BYTES
        return start, data


def _is_sum(data: bytes, checksum: bytes) -> bool:
    return masked_crc32c(data) == int.from_bytes(checksum, "little")


def _sum(data: Buffer) -> bytes:
    return masked_crc32c(data).to_bytes(_SUM_BYTES, "little")


def record_parts(data: Buffer) -> list[Buffer]:
    """The bytes of a record of data, in parts."""
    view = memoryview(data).cast("B")
    length = len(view).to_bytes(_LENGTH_BYTES, "little")
    parts: list[Buffer] = [length + _sum(length), view, _sum(view)]
    return [b"".join(parts)] if len(view) <= _SMALL else parts


class RecordWriter:
    """Writes records one after the other.

    Args:
        file: The file, which the writer closes.
        path: The name of the file, for messages.
        options: How the file is compressed.
    """

    def __init__(self, file: BinaryIO, path: str, options: TFRecordOptions) -> None:
        self._file, self._path = file, path
        self._packer = options.packer()
        self._flush_mode = options.flush_mode or zlib.Z_NO_FLUSH

    def write(self, data: Buffer) -> None:
        """Write a record.

        Raises:
            OpError: the file cannot be written.
        """
        self._put(record_parts(data))
        if self._packer is not None and self._flush_mode:
            self._put_packed(self._flush_mode)

    def flush(self) -> None:
        """Hand the written records to the system.

        Raises:
            OpError: the file cannot be written.
        """
        if self._packer is not None:
            self._put_packed(zlib.Z_PARTIAL_FLUSH)
        with file_errors(self._path):
            self._file.flush()

    def close(self) -> None:
        """End the file.

        Raises:
            OpError: the file cannot be written.
        """
        with file_errors(self._path), self._file:
            if self._packer is not None:
                self._file.write(self._packer.flush())

    def _put(self, parts: list[Buffer]) -> None:
        with file_errors(self._path):
            for part in parts:
                self._file.write(part if self._packer is None else self._packer.compress(part))

    def _put_packed(self, mode: int) -> None:
        with file_errors(self._path):
            self._file.write(self._packer.flush(mode))
