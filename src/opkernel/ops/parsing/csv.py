"""DecodeCSV: fields of records, as columns.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/decode_csv_op.cc.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.declared.rules import check_csv_defaults, set_outputs
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.to_number import numbers
from opkernel.types import DataType


def decode_csv_shape(c: InferenceContext) -> None:
    """Each output has the shape of the records."""
    check_csv_defaults(c, 1, c.num_inputs())
    set_outputs(c, [c.input(0)] * c.num_outputs())


DECODE_CSV = register_op(
    "DecodeCSV",
    inputs=["records: string", "record_defaults: OUT_TYPE"],
    outputs=["output: OUT_TYPE"],
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


@register_kernel(DECODE_CSV, device="CPU", factory=True)
def decode_csv(
    *,
    OUT_TYPE: list[DataType],
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: list[int],
) -> Callable[[Any, list[Any]], list[Any]]:
    delimiter = field_delim.encode("utf-8", "surrogateescape")
    if len(delimiter) != 1:
        raise InvalidArgumentError("field_delim should be only 1 char")
    if select_cols and len(select_cols) != len(OUT_TYPE):
        raise InvalidArgumentError("select_cols should match output size")
    if any(a >= b for a, b in pairwise([-1, *select_cols])):
        raise InvalidArgumentError("select_cols should be strictly increasing indices")
    missing = {b"", na_value.encode("utf-8", "surrogateescape")}
    reader = _Reader(delimiter, use_quote_delim, select_cols)

    def decode(records: Any, record_defaults: list[Any]) -> list[Any]:
        _check_defaults(record_defaults)
        columns = reader.plain_columns(records.reshape(-1).tolist(), len(OUT_TYPE))
        if columns is None:
            columns = read_rows(records)
        return [
            _column(f, column, default.reshape(-1), dtype, missing).reshape(records.shape)
            for f, (column, default, dtype) in enumerate(
                zip(columns, record_defaults, OUT_TYPE, strict=True)
            )
        ]

    def read_rows(records: Any) -> list[Sequence[bytes]]:
        rows = []
        for i, record in enumerate(in_time(records.flat)):
            fields = reader.fields(record)
            if len(fields) != len(OUT_TYPE):
                raise InvalidArgumentError(
                    f"Expect {len(OUT_TYPE)} fields but have {len(fields)} in record {i}"
                )
            rows.append(fields)
        return list(zip(*rows, strict=True)) if rows else [()] * len(OUT_TYPE)

    return decode


def _check_defaults(defaults: list[Any]) -> None:
    for i, default in enumerate(defaults):
        if default.ndim > 1:
            raise InvalidArgumentError("Each record default should be at most rank 1")
        if default.size > 1:
            raise InvalidArgumentError(
                f"There should only be 1 default per field but field {i} has {default.size}"
            )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Cuts records into fields, as RFC 4180 says."""

    delimiter: bytes
    has_quotes: bool
    chosen: list[int]

    def plain_columns(self, records: list[bytes], count: int) -> list[Sequence[bytes]] | None:
        """The columns of records without quotes, all at once; None for others."""
        text = self.delimiter.join(records)
        if self.chosen or b"\n" in text or b"\r" in text or (self.has_quotes and b'"' in text):
            return None
        delimiter = self.delimiter
        if not (records and all(records)) or any(
            record.count(delimiter) != count - 1 for record in records
        ):
            return None
        fields = text.split(delimiter)
        return [fields[i::count] for i in range(count)]

    def fields(self, record: bytes) -> Sequence[bytes]:
        """The fields of a record, or the chosen ones that it has."""
        is_plain = b"\n" not in record and b"\r" not in record
        if is_plain and not (self.has_quotes and b'"' in record):
            fields = record.split(self.delimiter) if record else []
        else:
            fields = self._quoted_fields(record)
        if not self.chosen:
            return fields
        return [fields[i] for i in self.chosen if i < len(fields)]

    def _quoted_fields(self, record: bytes) -> list[bytes]:
        """What is after the last of the chosen fields is not read, be it wrong."""
        fields: list[bytes] = []
        at = 0
        while at < len(record):
            if record[at : at + 1] in (b"\n", b"\r"):
                at += 1
                continue
            if self.has_quotes and record[at : at + 1] == b'"':
                field, at = self._in_quotes(record, at + 1)
            else:
                field, at = self._without_quotes(record, at)
            fields.append(field)
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

    def _in_quotes(self, record: bytes, at: int) -> tuple[bytes, int]:
        pieces = []
        while True:
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


def _column(
    field: int, texts: Sequence[bytes], default: Any, dtype: DataType, missing: set[bytes]
) -> Any:
    """The values of a field, with the default for those that are missing."""
    if missing.isdisjoint(texts):
        return _values(field, texts, dtype)
    is_missing = np.fromiter((text in missing for text in texts), np.bool_, len(texts))
    if not default.size:
        raise InvalidArgumentError(
            f"Field {field} is required but missing in record {int(is_missing.argmax())}!"
        )
    values = np.empty(len(texts), dtype.numpy_dtype)
    given = [text for text in texts if text not in missing]
    values[~is_missing] = _values(field, given, dtype)
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
