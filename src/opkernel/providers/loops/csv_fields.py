"""The loop of DecodeCSV: cuts records into fields, byte by byte."""

from functools import partial

import numpy as np

from opkernel.device.made_bytes import MadeBytes
from opkernel.device.string_buffer import joined_strings
from opkernel.ops.parsing import csv
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.providers.loops.made_strings import strings_between
from opkernel.types import Array

_LINE_FEED, _RETURN, _QUOTE = b'\n\r"'
_LONG = 1 << 12
"""Records of more bytes on average are left to Python."""


@part_of_loops
def _in_quotes(
    data: Array, at: int, end: int, delimiter: int, out: Array, to: int
) -> tuple[int, int]:
    """Copy a field in quotes; where it ends in both buffers, the former is -1 where it is wrong."""
    while at < end:
        if data[at] == _QUOTE:
            if at + 1 == end or data[at + 1] == delimiter:
                return at + 2, to
            if data[at + 1] != _QUOTE:
                return -1, to
            at += 1
        out[to] = data[at]
        to += 1
        at += 1
    return -1, to


@part_of_loops
def _without_quotes(
    data: Array, at: int, end: int, form: Array, out: Array, to: int
) -> tuple[int, int]:
    """The same for a field without quotes."""
    while at < end and data[at] != form[0]:
        if data[at] == _LINE_FEED or data[at] == _RETURN or (form[1] and data[at] == _QUOTE):
            return -1, to
        out[to] = data[at]
        to += 1
        at += 1
    return at + 1, to


def _find_none(*_: Array) -> bool:
    """Without a loop, the reader of records finds fields faster."""
    return False


@loop(otherwise=_find_none)
def find_fields(
    data: Array, splits: Array, form: Array, chosen: Array, out: Array, places: Array
) -> bool:
    """Find the fields of records; False where one is wrong, or has another number of fields.

    Args:
        data: The bytes of the records.
        splits: Where each begins.
        form: The delimiter, whether there are quotes, the number of columns.
        chosen: The fields that are taken, in rising order; what follows the last of them is not read. Empty where each
            record has just the fields of the columns.
        out: The bytes of the fields, which are written.
        places: Where each begins and ends, [2, columns, records].
    """
    to, columns, is_chosen = 0, form[2], chosen.size > 0
    for row in range(splits.size - 1):
        at, end = splits[row], splits[row + 1]
        count = found = 0
        is_empty_last = at < end and data[end - 1] == form[0]
        while (at < end or is_empty_last) and not (is_chosen and found == columns):
            begin = to
            if at >= end:
                is_empty_last = False
            elif data[at] == _LINE_FEED or data[at] == _RETURN:
                at += 1
                continue
            elif form[1] and data[at] == _QUOTE:
                at, to = _in_quotes(data, at + 1, end, form[0], out, to)
            else:
                at, to = _without_quotes(data, at, end, form, out, to)
            if at < 0 or (not is_chosen and count == columns):
                return False
            if not is_chosen or chosen[found] == count:
                places[0, found, row], places[1, found, row] = begin, to
                found += 1
            count += 1
        if found != columns:
            return False
    return True


def columns_of_records(
    records: list[bytes], form: csv.CsvFormat, count: int, made: MadeBytes
) -> csv.Columns | None:
    """The columns of records, as `csv.FindColumns`."""
    columns = csv.plain_columns_of_format(records, form, count, made)
    size = sum(map(len, records))
    if columns is not None or size > _LONG * len(records):
        return columns
    made.add(2 * size + csv.OF_FIELD * count * len(records))
    texts = np.empty(len(records), object)
    texts[:] = records
    chosen = np.array(form.chosen, np.int64)
    numbers = np.array([form.delimiter[0], form.has_quotes, count])
    places, out = np.empty((2, count, len(records)), np.int64), np.empty(size, np.uint8)
    if not find_fields(*joined_strings(texts), numbers, chosen, out, places):
        return csv.quoted_columns(records, form, count, made)
    return [*map(list, map(partial(strings_between, out), *places))]


csv.register_decode_csv(columns_of_records, LOOPS.kernels)
