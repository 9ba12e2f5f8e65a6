"""Datasets of the records of CSV files: CSVDataset.

A record ends at a newline, a carriage return or both, outside of quotes. A wrong record is an error of its element: the
pass goes on with the next record. A state has the number of the file and where the next record begins in its text.

Plain lines are read many at a time, column by column. Where one of them is odd or wrong, they are read one
by one.

Source: TensorFlow core/kernels/data/experimental/csv_dataset_op.cc.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import accumulate, islice, pairwise
from typing import Any, NamedTuple, TypeVar

from opkernel.device.made_bytes import MadeBytes, making_bytes
from opkernel.device.opened_files import PIECE, open_file
from opkernel.device.work_clock import WorkClock
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.io.byte_stream import ByteStream
from opkernel.kernel import Step, check_allocation
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.input_checks import require, require_equal, require_rank_at_most
from opkernel.ops.parsing.csv import check_defaults, column_of, plain_columns
from opkernel.ops.strings.number_format import numbers
from opkernel.types import DataType, object_scalar

__all__ = ["CSVDataset"]

_COMPRESSIONS = ("", "ZLIB", "GZIP")
_OF_FIELD = 1 << 10
"""The work of finding a field."""
_NOT_OPENED = -1
_AT_ONCE = 1 << 14
"""So many bytes of lines are read at once."""

_T = TypeVar("_T")


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

    def lines(self, text: bytes, at: int) -> list[bytes]:
        """The next lines with their ends, some at once; none where a record may be more than a line."""
        end = text.rfind(b"\n", at, at + _AT_ONCE) + 1
        return text[at:end].splitlines(keepends=True) if end and self._has_plain_lines else []

    def columns(self, lines: list[bytes], made: MadeBytes) -> list[list[bytes]] | None:
        """The fields of lines, column by column; None where lines have quotes, or not as many fields."""
        records = [line.removesuffix(b"\n").removesuffix(b"\r") for line in lines]
        count = records[0].count(self._delimiter) + 1
        return plain_columns(records, self._delimiter, count, made, has_quotes=self._has_quotes)

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

    def lines(self) -> list[bytes]:
        """Lines that come next, with their ends; `pass_over` leaves them out."""
        return self._cutter.lines(self._text, self._at)

    def pass_over(self, lines: list[bytes]) -> None:
        """Go on behind lines that came next."""
        size = sum(map(len, lines))
        self._at, self.offset = self._at + size, self.offset + size

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
        self._ready: Iterator[tuple[Element, int]] = iter(())
        self._one_by_one = 0

    def restored(self, step: Step) -> None:
        if self.offset != _NOT_OPENED:
            self._opened()

    def next(self, step: Step) -> Element | None:
        while self.file < len(self.dataset.filenames):
            found = next(self._ready, None)
            if found is not None:
                element, self.offset = found
                return element
            step.check()
            if self._has_ready():
                continue
            record = self._record()
            if record is not None:
                if record.fault:
                    raise InvalidArgumentError(record.fault)
                one: Element = self.dataset.element(record.fields)
                return one
            self._next_file()
        return None

    def _has_ready(self) -> bool:
        """Have the next elements ready, with where each ends; False where the next record is to be read by itself."""
        records = self._records
        if records is None or records.offset < self._one_by_one:
            return False
        lines = records.lines()
        ends = accumulate(map(len, lines), initial=records.offset)
        elements = self.dataset.elements(lines) if lines else None
        if elements is None:
            self._one_by_one = records.offset + sum(map(len, lines))
            return False
        records.pass_over(lines)
        self._ready = zip(elements, islice(ends, 1, None), strict=True)
        return True

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
        self.file, self.offset, self._one_by_one = self.file + 1, _NOT_OPENED, 0

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
        self._defaults = [one.reshape(-1) for one in defaults]
        self._chosen = node.vector("select_cols")
        self._excluded = node.vector("exclude_cols") if node.has_input("exclude_cols") else []
        require(node.scalar("buffer_size") > 0, "buffer_size should be positive")
        delimiter = node.scalar("field_delim")
        require_equal(len(delimiter), 1, "field_delim should be only 1 char")
        self.has_header: bool = node.scalar("header")
        has_quotes = node.scalar("use_quote_delim")
        self._missing = {b"", node.scalar("na_value")}
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

    def elements(self, lines: list[bytes]) -> list[Element] | None:
        """The elements of lines; None where one of them is odd or wrong, so that all are to be read one by one."""
        with making_bytes("fields of records") as made:
            columns = self.cutter.columns(lines, made)
            if columns is None:
                return None
            columns = self._wanted(columns)
            if len(columns) != len(self.dtypes):
                return None
            try:
                return self._rows(columns)
            except InvalidArgumentError:
                return None

    def _rows(self, columns: list[list[bytes]]) -> list[Element]:
        parts = enumerate(zip(columns, self._defaults, self.dtypes, strict=True))
        values = [
            column_of(number, 0, column, default, dtype, self._missing)
            for number, (column, default, dtype) in parts
        ]
        tensors = [map(object_scalar, one) if one.dtype == object else one for one in values]
        return [*zip(*tensors, strict=True)]

    def _wanted(self, fields: list[_T]) -> list[_T]:
        """Those fields or columns that are asked for."""
        if self._chosen:
            return [fields[i] for i in self._chosen if i < len(fields)]
        if self._excluded:
            left_out = set(self._excluded)
            return [field for i, field in enumerate(fields) if i not in left_out]
        return fields

    def element(self, fields: list[bytes]) -> Element:
        """The values of the fields of a record.

        Raises:
            InvalidArgumentError: there are more or fewer, one has no value of its type, or is missing without default.
        """
        fields = self._wanted(fields)
        if len(fields) != len(self.dtypes):
            more = len(fields) > len(self.dtypes)
            raise InvalidArgumentError(
                f"Expect {len(self.dtypes)} fields but have {'more' if more else len(fields)} in record"
            )
        return tuple([self._value(number, field) for number, field in enumerate(fields)])

    def _value(self, number: int, field: bytes) -> Any:
        dtype, default = self.dtypes[number], self._defaults[number]
        if field not in self._missing:
            return _value_of(field, dtype, number)
        if not default.size:
            raise InvalidArgumentError(f"Field {number} is required but missing in record!")
        value = default[0]
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
