"""DecodeCSV: fields of records, as columns.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/decode_csv_op.cc.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import filterfalse, pairwise
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.made_bytes import MadeBytes, making_bytes
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import WorkClock, in_time, string_work
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_csv_defaults, set_outputs
from opkernel.ops.input_checks import require_equal, require_rank_at_most
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.number_format import numbers
from opkernel.types import DataType

_AT_ONCE = 1 << 12
"""So many records are decoded at once."""
OF_FIELD = 80
"""The bytes of a field beside its content."""
_OF_TURN = 1 << 10
"""The work of finding a field."""


def decode_csv_shape(c: InferenceContext) -> None:
    """Each output has the shape of the records."""
    check_csv_defaults(c, 1, c.num_inputs())
    set_outputs(c, [c.input(0)] * c.num_outputs())


DECODE_CSV = register_op(
    "DecodeCSV(records: string, record_defaults: OUT_TYPE) -> output: OUT_TYPE",
    attrs=[
        "OUT_TYPE: list({float, double, int32, int64, string}) >= 1",
        "field_delim: string = ','",
        "use_quote_delim: bool = true",
        "na_value: string = ''",
        "select_cols: list(int) = []",
    ],
    shape_fn=decode_csv_shape,
    doc="The fields of each record, column by column; `record_defaults` stand for those that are empty.",
)


Columns = Sequence[Sequence[bytes]]
FindColumns = Callable[[list[bytes], "CsvFormat", int, MadeBytes], Columns | None]
"""A function that finds the columns of records, so many of them; None where it leaves that to the reader of records."""


class CsvFormat(NamedTuple):
    """How records are cut into fields."""

    delimiter: bytes
    """The byte between fields."""
    has_quotes: bool
    """Whether fields may stand in quotes."""
    chosen: list[int]
    """The fields that are taken, in rising order; all if there are none."""


def plain_columns_of_format(
    records: list[bytes], form: CsvFormat, count: int, made: MadeBytes
) -> Columns | None:
    """The columns of plain records; None for others."""
    if form.chosen:
        return None
    return plain_columns(records, form.delimiter, count, made, has_quotes=form.has_quotes)


def columns_of_format(
    records: list[bytes], form: CsvFormat, count: int, made: MadeBytes
) -> Columns | None:
    """The columns of plain records, and of those in whose quotes nothing is odd; None for others."""
    found = plain_columns_of_format(records, form, count, made)
    return quoted_columns(records, form, count, made) if found is None else found


def register_decode_csv(find_columns: FindColumns, registry: KernelRegistry | None = None) -> None:
    """Register the kernel of DecodeCSV with a function that finds columns."""

    def decode_csv(
        *,
        OUT_TYPE: list[DataType],
        field_delim: str,
        use_quote_delim: bool,
        na_value: str,
        select_cols: list[int],
    ) -> Callable[[Any, list[Any]], list[Any]]:
        delimiter = field_delim.encode("utf-8", "surrogateescape")
        require_equal(len(delimiter), 1, "field_delim should be only 1 char")
        if select_cols and len(select_cols) != len(OUT_TYPE):
            raise InvalidArgumentError("select_cols should match output size")
        if any(a >= b for a, b in pairwise([-1, *select_cols])):
            raise InvalidArgumentError("select_cols should be strictly increasing indices")
        missing = {b"", na_value.encode("utf-8", "surrogateescape")}
        form = CsvFormat(delimiter, use_quote_delim, select_cols)
        return _Decoder(form, find_columns, OUT_TYPE, missing).decode

    register_kernel(DECODE_CSV, factory=True, registry=registry)(decode_csv)


@dataclass(frozen=True, slots=True)
class _Decoder:
    """Makes columns of records, some records at a time."""

    form: CsvFormat
    find_columns: FindColumns
    dtypes: list[DataType]
    missing: set[bytes]

    def decode(self, records: Any, record_defaults: list[Any]) -> list[Any]:
        check_defaults(record_defaults)
        defaults, flat = [default.reshape(-1) for default in record_defaults], records.reshape(-1)
        starts = in_time(range(0, max(flat.size, 1), _AT_ONCE), _AT_ONCE << 10)
        parts = [self._part(flat[at : at + _AT_ONCE].tolist(), at, defaults) for at in starts]
        columns = [np.concatenate(some) for some in in_time(zip(*parts, strict=True))]
        return [column.reshape(records.shape) for column in columns]

    def _part(self, records: list[bytes], first: int, defaults: list[Any]) -> list[Any]:
        """The columns of some records; `first` is the number of the first."""
        with making_bytes("fields of records") as made:
            columns = self.find_columns(records, self.form, len(self.dtypes), made)
            if columns is None:
                columns = self._rows(records, first, made)
            fields = enumerate(zip(in_time(columns), defaults, self.dtypes, strict=True))
            return [
                column_of(number, first, column, default, dtype, self.missing)
                for number, (column, default, dtype) in fields
            ]

    def _rows(self, records: list[bytes], first: int, made: MadeBytes) -> list[Sequence[bytes]]:
        rows, wanted, reader = [], len(self.dtypes), _Reader(*self.form)
        for number, record in enumerate(in_time(records, string_work), first):
            fields = reader.fields(record, made)
            if len(fields) != wanted:
                raise InvalidArgumentError(
                    f"Expect {wanted} fields but have {len(fields)} in record {number}"
                )
            rows.append(fields)
        return list(zip(*rows, strict=True)) if rows else [()] * wanted


def check_defaults(defaults: list[Any]) -> None:
    for i, default in enumerate(defaults):
        require_rank_at_most(default, 1, "Each record default should be at most rank 1")
        if default.size > 1:
            raise InvalidArgumentError(
                f"There should only be 1 default per field but field {i} has {default.size}"
            )


def plain_columns(
    records: list[bytes], delimiter: bytes, count: int, made: MadeBytes, *, has_quotes: bool
) -> list[list[bytes]] | None:
    """The columns of records that have as many fields and no quotes, all at once; None for others.

    Args:
        records: The records.
        delimiter: What stands between fields.
        count: How many fields each record has.
        made: Counts the bytes of the fields.
        has_quotes: Whether fields may stand in quotes.
    """
    made.add(sum(map(len, records)) + len(records))
    text = delimiter.join(records)
    if b"\n" in text or b"\r" in text or (has_quotes and b'"' in text):
        return None
    if not (records and all(records)) or any(
        record.count(delimiter) != count - 1 for record in records
    ):
        return None
    made.add(len(text) + OF_FIELD * count * len(records))
    fields = text.split(delimiter)
    return [fields[i::count] for i in range(count)]


_MOST_AT_ONCE = 1 << 22
"""More bytes of records are read field by field, with looks at the clock."""


def quoted_columns(
    records: list[bytes], form: CsvFormat, count: int, made: MadeBytes
) -> Columns | None:
    """The columns of records that have as many fields in quotes or without, and each one line; None for others."""
    text, delimiter = b"\n".join(records), form.delimiter
    if form.chosen or not form.has_quotes or not records or not all(records):
        return None
    if delimiter in b'"\r\n' or len(text) > _MOST_AT_ONCE or text.count(b"\n") >= len(records):
        return None
    mark = next((mark for mark in _BYTES if mark not in text), None)
    if mark is None or not _records_of_fields(delimiter, count).fullmatch(text):
        return None
    made.add(3 * len(text) + OF_FIELD * count * len(records))
    parts = text.split(b'"')
    parts[2:-1:2] = [
        part or b'"' for part in parts[2:-1:2]
    ]  # nothing between two quotes: one quote
    parts[1::2] = [part.replace(delimiter, mark) for part in parts[1::2]]
    joined = b"".join(parts).replace(b"\n", delimiter)
    fields = joined.split(delimiter)
    if mark in joined:
        fields = [field.replace(mark, delimiter) if mark in field else field for field in fields]
    return [fields[i::count] for i in range(count)]


_BYTES = [bytes([byte]) for byte in range(256)]


@functools.lru_cache
def _records_of_fields(delimiter: bytes, count: int) -> re.Pattern[bytes]:
    """The pattern of lines, each a record of so many fields."""
    between = re.escape(delimiter)
    field = rb'(?:"[^"\n]*+(?:""[^"\n]*+)*+"|[^"\r\n' + between + rb"]*+)"
    record = field + b"(?:" + between + field + b"){%d}" % (count - 1)
    return re.compile(record + b"(?:\n" + record + b")*+")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Cuts records into fields, as RFC 4180 says."""

    delimiter: bytes
    has_quotes: bool
    chosen: list[int]

    def fields(self, record: bytes, made: MadeBytes) -> Sequence[bytes]:
        """The fields of a record, or the chosen ones that it has."""
        is_plain = b"\n" not in record and b"\r" not in record
        if is_plain and not (self.has_quotes and b'"' in record):
            made.add(len(record) + OF_FIELD * (record.count(self.delimiter) + 1))
            fields = record.split(self.delimiter) if record else []
        else:
            fields = self._quoted_fields(record, made)
        if not self.chosen:
            return fields
        return [fields[i] for i in self.chosen if i < len(fields)]

    def _quoted_fields(self, record: bytes, made: MadeBytes) -> list[bytes]:
        """What is after the last of the chosen fields is not read, be it wrong."""
        fields: list[bytes] = []
        at, clock = 0, WorkClock("reading fields")
        while at < len(record):
            clock.spend(_OF_TURN)
            if record[at : at + 1] in (b"\n", b"\r"):
                at += 1
                continue
            if self.has_quotes and record[at : at + 1] == b'"':
                field, at = self._in_quotes(record, at + 1, clock)
            else:
                field, at = self._without_quotes(record, at)
            fields.append(field)
            made.add(len(field) + OF_FIELD)
            if self.chosen and len(fields) > self.chosen[-1]:
                return fields
        if record.endswith(self.delimiter):
            fields.append(b"")
        return fields

    def _without_quotes(self, record: bytes, at: int) -> tuple[bytes, int]:
        end = record.find(self.delimiter, at)
        field = record[at:] if end < 0 else record[at:end]
        if b"\n" in field or b"\r" in field or (self.has_quotes and b'"' in field):
            raise InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside")
        return field, at + len(field) + 1

    def _in_quotes(self, record: bytes, at: int, clock: WorkClock) -> tuple[bytes, int]:
        pieces = []
        while True:
            clock.spend(_OF_TURN)
            quote = record.find(b'"', at)
            if quote < 0:
                raise InvalidArgumentError(
                    "Quoted field has to end with quote followed by delim or end"
                )
            pieces.append(record[at:quote])
            after = record[quote + 1 : quote + 2]
            if after in (b"", self.delimiter):
                return b"".join(pieces), quote + 2
            if after != b'"':
                raise InvalidArgumentError(
                    "Quote inside a string has to be escaped by another quote"
                )
            pieces.append(b'"')
            at = quote + 2


def column_of(
    field: int,
    first_record: int,
    texts: Sequence[bytes],
    default: Any,
    dtype: DataType,
    missing: set[bytes],
) -> Any:
    """The values of a field, with the default for those that are missing; `first_record` is for messages.

    Raises:
        InvalidArgumentError: a text has no value of the type, or is missing without default.
    """
    if missing.isdisjoint(texts):
        return _values(field, texts, dtype)
    is_missing = np.fromiter(map(missing.__contains__, texts), np.bool_, len(texts))
    if not default.size:
        raise InvalidArgumentError(
            f"Field {field} is required but missing in record "
            f"{first_record + int(is_missing.argmax())}!"
        )
    values = np.empty(len(texts), dtype.numpy_dtype)
    given = filterfalse(missing.__contains__, texts)
    values[~is_missing] = _values(field, [*given], dtype)
    values[is_missing] = default
    return values


def _values(field: int, texts: Sequence[bytes], dtype: DataType) -> Any:
    if dtype is DataType.DT_STRING:
        return string_tensor((len(texts),), list(texts))
    try:
        return numbers(list(texts), dtype)
    except ValueError as error:
        raise InvalidArgumentError(
            f"Field {field} is not a valid {dtype.string}: {error}"
        ) from None


register_decode_csv(columns_of_format)
