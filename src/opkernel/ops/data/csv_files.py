"""Datasets of the records of CSV files: CSVDataset.

A record ends at a newline, a carriage return or both, outside of quotes. A wrong record is an error of its element: the
pass goes on with the next record. A state has the number of the file and where the next record begins in its text.

Source: TensorFlow core/kernels/data/experimental/csv_dataset_op.cc.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import Any, NamedTuple

from opkernel.device.opened_files import PIECE, open_file
from opkernel.device.work_clock import WorkClock
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.io.byte_stream import ByteStream
from opkernel.kernel import Step, check_allocation
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.input_checks import require, require_equal, require_rank_at_most
from opkernel.ops.parsing.csv import check_defaults
from opkernel.ops.strings.number_format import numbers
from opkernel.types import DataType, object_scalar

__all__ = ["CSVDataset"]

_COMPRESSIONS = ("", "ZLIB", "GZIP")
_OF_FIELD = 1 << 10
"""The work of finding a field."""
_NOT_OPENED = -1


class Record(NamedTuple):
    """A record of a file.

    Attributes:
        fields: Its fields; further ones than are needed are left out.
        end: Where it ends in the text.
        fault: What is wrong with its quotes; empty for nothing.
    """

    fields: list[bytes]
    end: int
    fault: str


class Cutter:
    """Cuts text into records and fields.

    Args:
        delimiter: What stands between fields.
        has_quotes: Whether fields may stand in quotes.
        most: How many fields of a record are needed.
    """

    def __init__(self, delimiter: bytes, has_quotes: bool, most: int) -> None:
        self._delimiter, self._has_quotes, self._most = delimiter, has_quotes, most
        self._has_plain_lines = delimiter not in (b"\n", b"\r", b'"')
        self._end_of_field = re.compile(b"[\r\n" + re.escape(delimiter) + b"]")
        is_quote = delimiter == b'"'
        self._quoted = re.compile(rb'[^"]*+' if is_quote else rb'(?:[^"]++|"")*+')

    def record(self, text: bytes, at: int, is_whole: bool) -> Record | None:
        """The record that begins at a place; None where its end is not in the text yet.

        Args:
            text: The text.
            at: The place.
            is_whole: Whether nothing follows the text.
        """
        end = text.find(b"\n", at)
        if end < 0 or not self._has_plain_lines:
            return self._any_record(text, at, is_whole)
        line = text[at:end].removesuffix(b"\r")
        if b"\r" in line or (self._has_quotes and b'"' in line):
            return self._any_record(text, at, is_whole)
        return Record(line.split(self._delimiter, self._most), end + 1, "")

    def _any_record(self, text: bytes, at: int, is_whole: bool) -> Record | None:
        fields: list[bytes] = []
        fault, clock, size = "", WorkClock("reading fields"), len(text)
        while True:
            clock.spend(_OF_FIELD)
            found = self._field(text, at, is_whole)
            if found is None:
                return None
            field, end, fault_of_field = found
            fault = fault or fault_of_field
            if len(fields) <= self._most:
                fields.append(field)
            if end < size and text[end : end + 1] == self._delimiter:
                at = end + 1
                continue
            if text[end : end + 1] == b"\r":
                if end + 1 == size and not is_whole:
                    return None
                end += text[end + 1 : end + 2] == b"\n"
            return Record(fields, min(end + 1, size), fault)

    def _field(self, text: bytes, at: int, is_whole: bool) -> tuple[bytes, int, str] | None:
        """A field, where the sign behind it stands, and what is wrong with it; None where that sign is not there yet."""
        if self._has_quotes and text[at : at + 1] == b'"':
            return self._quoted_field(text, at + 1, is_whole)
        sign = self._end_of_field.search(text, at)
        if sign is None and not is_whole:
            return None
        end = len(text) if sign is None else sign.start()
        field = text[at:end]
        has_quote = self._has_quotes and b'"' in field
        return field, end, "Unquoted fields cannot have quotes inside" if has_quote else ""

    def _quoted_field(self, text: bytes, at: int, is_whole: bool) -> tuple[bytes, int, str] | None:
        fault = ""
        while True:
            content = self._quoted.match(text, at)
            assert content is not None  # it may be empty
            end = content.end()
            if end + 1 >= len(text) and not is_whole:
                return None
            if end == len(text):
                return b"", end, "Reached end of file without closing quoted field in record"
            if text[end + 1 : end + 2] in (b"", self._delimiter, b"\n", b"\r"):
                return content[0].replace(b'""', b'"'), end + 1, fault
            fault = "Quote inside a string has to be escaped by another quote"
            at = end + 2


class _Records:
    """The records of a file.

    Args:
        stream: The file.
        cutter: Cuts its text.
        offset: So much of the text has been read.

    Attributes:
        offset: Where the next record begins in the text of the file.
    """

    def __init__(self, stream: ByteStream, cutter: Cutter, offset: int) -> None:
        self.stream, self.offset = stream, offset
        self._cutter = cutter
        self._text, self._at, self._is_whole = b"", 0, False

    def next(self) -> Record | None:
        """The next record; None at the end."""
        while True:
            if self._at < len(self._text):
                record = self._cutter.record(self._text, self._at, self._is_whole)
                if record is not None:
                    self.offset += record.end - self._at
                    self._at = record.end
                    return record
            if self._is_whole:
                return None
            self._read_on()

    def _read_on(self) -> None:
        """Read as much again as there is, so that a long record is not looked at too often."""
        rest = self._text[self._at :]
        size = max(len(rest), PIECE)
        check_allocation((len(rest) + size,), DataType.DT_UINT8)
        more = self.stream.read(size)
        self._text, self._at, self._is_whole = rest + more, 0, not more


class _CSVIterator(DatasetIterator):
    state = ("file", "offset")

    def start(self) -> None:
        self.file, self.offset = 0, _NOT_OPENED
        self._records: _Records | None = None

    def restored(self, step: Step) -> None:
        if self.offset != _NOT_OPENED:
            self._opened()

    def next(self, step: Step) -> Element | None:
        while self.file < len(self.dataset.filenames):
            step.check()
            record = self._record()
            if record is not None:
                if record.fault:
                    raise InvalidArgumentError(record.fault)
                element: Element = self.dataset.element(record.fields)
                return element
            self._next_file()
        return None

    def _record(self) -> Record | None:
        """The next record of the file; after an error the file is read again from that record on.

        Raises:
            DataLossError: the file cannot be decompressed; the pass goes on with the next one.
            InvalidArgumentError: the file has no header; the pass goes on behind it.
        """
        try:
            records = self._opened() if self._records is None else self._records
            record = records.next()
        except DataLossError:
            self._next_file()
            raise
        except OpError:
            self.close()
            raise
        self.offset = records.offset
        return record

    def _opened(self) -> _Records:
        """Open the file whose turn it is, and go to the next record."""
        dataset = self.dataset
        name = dataset.filenames[self.file]
        file = open_file(dataset.permissions, name)
        stream = ByteStream(file, os.fsdecode(name), dataset.compression)
        offset = max(self.offset, 0)
        self._records = records = _Records(stream, dataset.cutter, offset)
        stream.skip(offset)
        if dataset.has_header and self.offset == _NOT_OPENED:
            header = records.next()
            self.offset = records.offset
            if header is None or header.fault:
                raise InvalidArgumentError(f"Can't read header of file {os.fsdecode(name)!r}")
        return records

    def _next_file(self) -> None:
        self.close()
        self.file, self.offset = self.file + 1, _NOT_OPENED

    def close(self) -> None:
        if self._records is not None:
            self._records.stream.close()
        self._records = None


@dataset_op(
    "CSVDataset",
    "CSVDatasetV2",
    "ExperimentalCSVDataset",
    doc="The records of CSV files; `record_defaults` stand for fields that are empty.",
    traits="reads_files",
)
class CSVDataset(DatasetBase):
    """The records of CSV files, with a component for each field that is asked for.

    Attributes:
        filenames: The files, in order.
        permissions: Which files may be read.
        compression: How they are compressed.
        has_header: Whether the first record of each file is left out.
        cutter: Cuts the text of a file.
    """

    iterator_type = _CSVIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node.dtypes, node.shapes)
        names = node.tensor("filenames")
        require_rank_at_most(names, 1, "`filenames` must be a scalar or a vector.")
        self.filenames: list[bytes] = [*names.reshape(-1)]
        self.permissions = node.permissions
        self.compression = node.scalar("compression_type").decode("utf-8", "replace")
        defaults = node.tensors("record_defaults")
        check_defaults(defaults)
        self._defaults = [one.reshape(-1)[0] if one.size else None for one in defaults]
        self._chosen = node.vector("select_cols")
        self._excluded = node.vector("exclude_cols") if node.has_input("exclude_cols") else []
        require(node.scalar("buffer_size") > 0, "buffer_size should be positive")
        delimiter = node.scalar("field_delim")
        require_equal(len(delimiter), 1, "field_delim should be only 1 char")
        self.has_header: bool = node.scalar("header")
        has_quotes = node.scalar("use_quote_delim")
        self._missing = (b"", node.scalar("na_value"))
        if self.compression not in _COMPRESSIONS:
            raise InvalidArgumentError(f"Unsupported compression_type: {self.compression}.")
        self._check_columns()
        width = len(self.dtypes) + len(self._excluded)
        self.cutter = Cutter(delimiter, has_quotes, 1 + max([width, *self._chosen[-1:]]))

    def _check_columns(self) -> None:
        """Raise InvalidArgumentError where the lists of columns cannot be right."""
        if self._chosen and len(self._chosen) != len(self.dtypes):
            raise InvalidArgumentError("select_cols should match output size")
        if self._chosen and self._excluded:
            raise InvalidArgumentError("Either select_cols or exclude_cols should be empty")
        for name, columns in (("select_cols", self._chosen), ("exclude_cols", self._excluded)):
            if any(a >= b for a, b in pairwise(columns)):
                raise InvalidArgumentError(f"{name} should be strictly increasing indices")
            if columns and columns[0] < 0:
                raise InvalidArgumentError(f"{name} should be non-negative indices")

    def element(self, fields: list[bytes]) -> Element:
        """The values of the fields of a record.

        Raises:
            InvalidArgumentError: there are more or fewer, one has no value of its type, or is missing without default.
        """
        if self._chosen:
            fields = [fields[i] for i in self._chosen if i < len(fields)]
        elif self._excluded:
            left_out = set(self._excluded)
            fields = [field for i, field in enumerate(fields) if i not in left_out]
        if len(fields) != len(self.dtypes):
            more = len(fields) > len(self.dtypes)
            raise InvalidArgumentError(
                f"Expect {len(self.dtypes)} fields but have {'more' if more else len(fields)} in record"
            )
        return tuple([self._value(number, field) for number, field in enumerate(fields)])

    def _value(self, number: int, field: bytes) -> Any:
        dtype, value = self.dtypes[number], self._defaults[number]
        if field not in self._missing:
            return _value_of(field, dtype, number)
        if value is None:
            raise InvalidArgumentError(f"Field {number} is required but missing in record!")
        return object_scalar(value) if dtype is DataType.DT_STRING else value


def _value_of(field: bytes, dtype: DataType, number: int) -> Any:
    if dtype is DataType.DT_STRING:
        return object_scalar(field)
    try:
        return numbers([field], dtype)[0]
    except ValueError as error:
        raise InvalidArgumentError(
            f"Field {number} in record is not a valid {dtype.string}: {error}"
        ) from None
