"""Feature messages of many examples as columns: how many values each has, and all values.

Source: TensorFlow core/example/feature.proto, core/util/example_proto_fast_parsing.cc.
"""

from array import array as array_of
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.made_bytes import MadeBytes, check_bytes, making_bytes
from opkernel.device.string_buffer import counts_in_strings
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.interrupts import contextmanager
from opkernel.kernel import check_allocation
from opkernel.ops.parsing.feature_spans import MANY_TURNS, TAG_OF_BYTES, Spans
from opkernel.ops.parsing.wire import Buffer, WireError, buffer_of, fields, read_lengths, varints
from opkernel.ops.ragged.gather_range import lengths_to_splits, ranges
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType
from opkernel.types.varints import varint

KIND_OF = {DataType.DT_STRING: 1, DataType.DT_FLOAT: 2, DataType.DT_INT64: 3}
_NAMES = {1: "string", 2: "float", 3: "int64"}
Part = tuple[int, int, int, int]
"""A field: its number and wire type, and where the value begins and ends."""

_AT_ONCE = 1 << 18
"""So many bytes are gathered at once."""
_OF_FEATURE = 96
"""The bytes that the feature of an example takes while its values are found."""
_OF_PLACE = 64
"""The bytes that a string or message takes while its place is found."""


def text_of(key: bytes) -> str:
    """A key as it is shown."""
    return key.decode(errors="backslashreplace")


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one feature: of each example how many, -1 where it is missing; all in a row."""

    counts: Any
    values: Any

    @property
    def lengths(self) -> Any:
        """The counts, 0 where the feature is missing."""
        return np.maximum(self.counts, 0)


def column_of(spans: Spans, dtype: DataType, name: str) -> Column:
    """The values of a feature.

    Raises:
        InvalidArgumentError: a message is damaged, or has values of another type.
    """
    with making_bytes("features", _OF_FEATURE * spans.starts.size):
        return _column(spans, dtype, name)


def _column(spans: Spans, dtype: DataType, name: str) -> Column:
    kind = KIND_OF[dtype]
    rows = np.flatnonzero(spans.ends > spans.starts)
    data = spans.buffer.array
    lists, odd = _lists(data, spans.starts[rows], spans.ends[rows], kind)
    if odd.any():
        return _column(_regular(spans, rows[odd], kind, name), dtype, name)
    starts, ends = lists
    counts = np.full(spans.starts.size, -1, np.int64)
    if kind == 1:
        counts[rows], values = _strings(spans.buffer, starts, ends)
    else:
        if kind == 2:
            check_allocation((int((ends - starts).sum()) // 4,), dtype)
        payload = _gathered(data, starts, ends)
        if kind == 2:
            counts[rows], values = (ends - starts) // 4, payload.view("<f4").astype(np.float32)
        else:
            is_end = payload < 0x80
            counts[rows] = counts_in_strings(is_end, lengths_to_splits(ends - starts))
            check_allocation((int(np.count_nonzero(is_end)),), dtype)
            with parsing(name):
                values = varints(payload)
    return Column(counts, values)


def _gathered(data: Any, starts: Any, ends: Any) -> Any:
    """The parts of a buffer, one after the other: short ones many at a time."""
    sizes = ends - starts
    stops = np.cumsum(sizes)
    found = np.empty(int(stops[-1]) if len(stops) else 0, np.uint8)
    row = done = 0
    while row < len(stops):
        after = max(int(np.searchsorted(stops, done + _AT_ONCE, side="right")), row + 1)
        stop = int(stops[after - 1])
        if after == row + 1:
            found[done:stop] = data[int(starts[row]) : int(ends[row])]
        else:
            found[done:stop] = data[ranges(starts[row:after], sizes[row:after])]
        row, done = after, stop
        check_time("reading features")
    return found


@contextmanager
def parsing(name: str) -> Iterator[None]:
    """A block whose errors name the feature."""
    try:
        yield
    except WireError as error:
        message = f"Key: {name}. Can't parse serialized Example: {error}"
        raise InvalidArgumentError(message) from None


def _lists(data: Any, starts: Any, ends: Any, kind: int) -> tuple[tuple[Any, Any], Any]:
    """Where the packed numbers or the strings stand; and which features are of another form."""
    size, begin, fine = read_lengths(data, starts + 1)
    fine &= (data[starts] == kind << 3 | 2) & (begin + size == ends)
    if kind == 1 or not starts.size:
        return (begin, ends), ~(fine & _are_strings(data, begin, ends, fine))
    is_full = begin < ends
    inside = np.minimum(begin, data.size - 2)
    size, payload, ends_well = read_lengths(data, inside + 1)
    is_packed = ends_well & (data[inside] == TAG_OF_BYTES) & (payload + size == ends)
    if kind == 2:
        is_packed &= size % 4 == 0
    else:
        is_packed &= data[np.minimum(ends, data.size) - 1] < 0x80
        is_packed &= size > 0
    return (np.where(is_full, payload, begin), ends), ~(fine & (is_packed | ~is_full))


def _are_strings(data: Any, starts: Any, ends: Any, fine: Any) -> Any:
    good = fine.copy()
    active = np.flatnonzero(fine & (starts < ends))
    cursor = starts.copy()
    for turn in in_time(count(), SLOW):
        if not active.size:
            break
        if turn > MANY_TURNS and active.size < MANY_TURNS:
            good[active] = [_ends_well(data, int(cursor[row]), int(ends[row])) for row in active]
            break
        at = cursor[active]
        size, begin, ends_well = read_lengths(data, at + 1)
        stop = begin + size
        right = ends_well & (data[at] == TAG_OF_BYTES) & (stop <= ends[active])
        good[active[~right]] = False
        cursor[active] = stop
        active = active[right & (stop < ends[active])]
    return good


def _ends_well(data: Any, at: int, end: int) -> bool:
    """Whether strings, and nothing else, stand between two places of a buffer."""
    try:
        return all(part[:2] == (1, 2) for part in in_time(fields(data, at, end)))
    except WireError:
        return False


def _strings(buffer: Buffer, starts: Any, ends: Any) -> tuple[Any, Any]:
    """How many strings each list has, and all of them."""
    data = buffer.data
    counts, begins, stops = _places_of_strings(buffer, starts, ends)
    spans = in_time(zip(begins.tolist(), stops.tolist(), strict=True))
    check_allocation(begins.shape, DataType.DT_STRING)
    return counts, string_tensor(begins.shape, (data[a:b] for a, b in spans))


def places_in_lists(spans: Spans, made: MadeBytes) -> tuple[Any, Any, Any] | None:
    """How many messages each list has, and where they begin and end; None unless all lists hold only these.

    Args:
        spans: The lists.
        made: Counts the bytes of the places.
    """
    array = spans.buffer.array
    fine = _are_strings(array, spans.starts, spans.ends, np.ones(spans.starts.size, np.bool_))
    if not fine.all():
        return None
    return _places_of_strings(spans.buffer, spans.starts, spans.ends, made)


def _places_of_strings(
    buffer: Buffer, starts: Any, ends: Any, made: MadeBytes | None = None
) -> tuple[Any, Any, Any]:
    """How many strings each list has, and where these begin and end."""
    data, array = buffer
    counts = np.zeros(starts.size, np.int64)
    places: list[tuple[Any, Any, Any, Any]] = []
    cursor, active = starts.copy(), np.flatnonzero(starts < ends)
    for turn in in_time(count(), SLOW):
        if not active.size:
            break
        if turn > MANY_TURNS and active.size < MANY_TURNS:
            places += [_rest(data, row, turn, cursor, ends) for row in active.tolist()]
            for rows, *_ in places[-active.size :]:
                counts[rows[0]] += rows.size
            break
        if made is not None:
            made.add(_OF_PLACE * active.size)
        size, begin, _ = read_lengths(array, cursor[active] + 1)
        places.append((active, np.full(active.size, turn), begin, begin + size))
        counts[active] += 1
        cursor[active] = begin + size
        active = active[cursor[active] < ends[active]]
    if not places:
        return counts, *np.zeros((2, 0), np.int64)
    rows, turns, begins, stops = (np.concatenate(part) for part in zip(*places, strict=True))
    order = stable_order(rows, turns) if len(places) > 1 else slice(None)
    return counts, begins[order], stops[order]


def _rest(data: bytes, row: int, turn: int, cursor: Any, ends: Any) -> tuple[Any, Any, Any, Any]:
    """The row, the turn, the begin and the end of each string that is left of a list."""
    found = array_of("q")
    for _, _, begin, stop in in_time(fields(data, int(cursor[row]), int(ends[row]))):
        found.extend((begin, stop))
    places = np.array(found, np.int64).reshape(-1, 2)
    turns = turn + np.arange(len(places))
    return np.full(len(places), row), turns, places[:, 0], places[:, 1]


def _regular(spans: Spans, rows: Any, kind: int, name: str) -> Spans:
    """The spans with the features of some examples written anew, in the usual form."""
    starts, ends = spans.starts.copy(), spans.ends.copy()
    data = spans.buffer.data
    pieces, size = [data], len(data)
    with parsing(name):
        for i in in_time(rows.tolist(), SLOW):
            feature = _rewritten(data, int(starts[i]), int(ends[i]), kind)
            pieces.append(feature)
            starts[i], ends[i] = size, size + len(feature)
            size += len(feature)
    check_bytes(size, "features")
    return Spans(buffer_of(pieces), starts, ends)


def _rewritten(data: bytes, start: int, end: int, kind: int) -> bytes:
    """A feature whose numbers are packed, without other fields."""
    parts, begin, stop = parts_of_list(data, start, end, kind)
    content = data[begin:stop]
    if kind != 1:
        payload = packed_numbers(data, parts, kind)
        content = b"\x0a" + varint(len(payload)) + payload if payload else b""
    return bytes([kind << 3 | 2]) + varint(len(content)) + content


def parts_of_list(data: bytes, start: int, end: int, kind: int) -> tuple[list[Part], int, int]:
    """The fields of the list of values of a feature, and where the list begins and ends.

    Raises:
        WireError: it is no feature, of other values, or of strings and other fields.
    """
    number, wire, begin, stop = next(fields(data, start, end))
    if wire != 2 or number not in _NAMES:
        raise WireError("it is no feature")
    if number != kind:
        raise WireError(
            f"Data types don't match. Data type: {_NAMES[number]} but expected type: {_NAMES[kind]}"
        )
    parts = list(in_time(fields(data, begin, stop)))
    if kind == 1 and any(part[:2] != (1, 2) for part in parts):
        raise WireError("Parsing bytes_list failed")
    return parts, begin, stop


def packed_numbers(data: bytes, parts: list[Part], kind: int) -> bytes:
    """The numbers of a list, packed."""
    if not parts:
        return b""
    loose = 5 if kind == 2 else 0
    if parts[0][:2] == (1, 2):
        payload = data[parts[0][2] : parts[0][3]]
    elif all(part[:2] == (1, loose) for part in parts):
        payload = b"".join([data[a:b] for _, _, a, b in parts])
    else:
        raise WireError("a list of numbers has other fields")
    if (kind == 2 and len(payload) % 4) or (kind == 3 and payload[-1:] >= b"\x80"):
        raise WireError("a list of numbers is cut off")
    return payload
