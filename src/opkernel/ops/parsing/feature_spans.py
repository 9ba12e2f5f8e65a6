"""Where Feature messages stand in the buffer of many examples, found by their keys.

Source: TensorFlow core/example/feature.proto, core/util/example_proto_fast_parsing.cc.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from opkernel.device.made_bytes import MadeBytes
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.ops.parsing.wire import Buffer, WireError, buffer_of, fields, read_lengths

TAG_OF_BYTES = 0x0A
_TAG_OF_FEATURE = 0x12
_BYTES_WIRE = 2
MANY_TURNS = 64
"""After so many turns, what is left of few records is read one by one."""
_COMPARED_AT_ONCE = 32
"""So many bytes of a key are compared for all records at once."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Where Feature messages stand in a buffer, one for each example; -1 where there is none."""

    buffer: Buffer
    starts: Any
    ends: Any


def message_spans(
    records: Sequence[bytes], number: int, made: MadeBytes
) -> tuple[Buffer, Any, Any]:
    """All records in one buffer, and where their message in the field of this number stands.

    The parts of a message that stands in several fields are joined, as protocol buffers say.

    Args:
        records: The records.
        number: The number of the field.
        made: Counts the bytes of the buffer.
    """
    sizes = np.fromiter(map(len, records), np.int64, len(records))
    stops = np.cumsum(sizes)
    total = int(sizes.sum())
    made.add(total)
    buffer = buffer_of(records)
    starts, ends, odd = _one_field(buffer.array, stops - sizes, stops, number)
    messages = []
    for i in in_time(np.flatnonzero(odd).tolist(), SLOW):
        messages.append(joined_message(records[i], number))
        made.add(len(messages[-1]))
        starts[i], ends[i] = total, total + len(messages[-1])
        total += len(messages[-1])
    if messages:
        made.add(total)
        buffer = buffer_of([*records, *messages])
    return buffer, starts, ends


def _one_field(data: Any, cursor: Any, stops: Any, number: int) -> tuple[Any, Any, Any]:
    """Where a field of messages stands, at their end if it is missing; and which messages have another form.

    All messages are gone through in step, one field of each at a time.
    """
    starts, ends = stops.copy(), stops.copy()
    odd, found = np.zeros((2, stops.size), np.bool_)
    active = np.flatnonzero(cursor < stops)
    for _ in in_time(range(MANY_TURNS), SLOW):
        if not active.size:
            break
        at = cursor[active]
        tag = data[at]
        size, begin, fine = read_lengths(data, at + 1)
        end = begin + size
        fine &= (tag & 0x87 == _BYTES_WIRE) & (tag > _BYTES_WIRE) & (end <= stops[active])
        odd[active[~fine]] = True
        rows, end = active[fine], end[fine]
        is_it = tag[fine] == number << 3 | _BYTES_WIRE
        these = rows[is_it]
        odd[these] |= found[these]  # the parts of a message in several fields are joined
        found[these] = True
        starts[these], ends[these] = begin[fine][is_it], end[is_it]
        cursor[rows] = end
        active = rows[end < stops[rows]]
    odd[active] = True
    return starts, ends, odd


def joined_message(record: bytes, number: int) -> bytes:
    """The parts of the message in the fields of a number, one after the other.

    Raises:
        InvalidArgumentError: the record is damaged.
    """
    try:
        found = [
            record[a:b]
            for n, w, a, b in in_time(fields(record, 0, len(record)))
            if (n, w) == (number, 2)
        ]
    except WireError as error:
        raise InvalidArgumentError(f"Could not parse example input: {error}") from None
    return b"".join(found)


def spans_of_features(buffer: Buffer, starts: Any, ends: Any, keys: Sequence[bytes]) -> list[Spans]:
    """Where the features of these keys stand in Features messages.

    Raises:
        InvalidArgumentError: a message is damaged.
    """
    found = [np.full((2, starts.size), -1, np.int64) for _ in keys]
    odd = _scan(buffer.array, starts, ends, keys, found)
    for i in in_time(np.flatnonzero(odd), SLOW):
        entries = entries_of(buffer.data, int(starts[i]), int(ends[i]))
        for key, places in in_time(zip(keys, found, strict=True)):
            places[:, i] = entries.get(key, (-1, -1))
    return [Spans(buffer, *places) for places in found]


def _scan(data: Any, starts: Any, ends: Any, keys: Sequence[bytes], found: list[Any]) -> Any:
    """Go through the maps in step, one entry of each at a time; tells which have another form."""
    odd = np.zeros(starts.size, np.bool_)
    cursor = starts.copy()
    active = np.flatnonzero(cursor < ends)
    patterns: dict[int, list[tuple[Any, Any]]] = {}
    for key, places in zip(keys, found, strict=True):
        patterns.setdefault(len(key), []).append((np.frombuffer(key, np.uint8), places))
    for turn in in_time(count(), SLOW):
        if not active.size:
            break
        if turn > MANY_TURNS and active.size < MANY_TURNS:
            odd[active] = True
            break
        at, stop = cursor[active], ends[active]
        size, key_tag, fine = read_lengths(data, at + 1)
        entry_end = key_tag + size
        fine &= (data[at] == TAG_OF_BYTES) & (entry_end <= stop)
        inside = np.minimum(key_tag, data.size - 1)
        key_size, key_at, ends_well = read_lengths(data, np.minimum(inside + 1, data.size - 1))
        key_end = key_at + key_size
        fine &= ends_well & (data[inside] == TAG_OF_BYTES) & (key_end < entry_end)
        inside = np.minimum(key_end, data.size - 1)
        size, begin, ends_well = read_lengths(data, np.minimum(inside + 1, data.size - 1))
        fine &= ends_well & (data[inside] == _TAG_OF_FEATURE) & (begin + size == entry_end)
        odd[active[~fine]] = True
        rows, key_at, key_size, begin, entry_end = (
            one[fine] for one in (active, key_at, key_size, begin, entry_end)
        )
        for size in patterns.keys() & {*key_size.tolist()}:
            of_size = np.flatnonzero(key_size == size)
            for pattern, places in in_time(patterns[size], SLOW):
                some = _with_key(data, key_at, of_size, pattern)
                places[0, rows[some]], places[1, rows[some]] = begin[some], entry_end[some]
        cursor[rows] = entry_end
        active = rows[entry_end < ends[rows]]
    return odd


def _with_key(data: Any, key_at: Any, some: Any, pattern: Any) -> Any:
    """Those of some places where a key stands; the first bytes are compared for all places at once."""
    for i in range(min(pattern.size, _COMPARED_AT_ONCE)):
        some = some[data[key_at[some] + i] == pattern[i]]
    if pattern.size <= _COMPARED_AT_ONCE:
        return some
    ends = [data[at : at + pattern.size] for at in key_at[some].tolist()]
    return some[[np.array_equal(end, pattern) for end in ends]]


def entries_of(data: bytes, start: int, end: int) -> dict[bytes, tuple[int, int]]:
    """Where the values of a map of messages stand, by their keys; the last of a key counts.

    Raises:
        InvalidArgumentError: the message is damaged.
    """
    entries = {}
    try:
        for number, wire, begin, stop in in_time(fields(data, start, end)):
            if (number, wire) != (1, 2):
                continue
            key, value = b"", (stop, stop)
            for part, kind, a, b in in_time(fields(data, begin, stop)):
                if (part, kind) == (1, 2):
                    key = data[a:b]
                elif (part, kind) == (2, 2):
                    value = a, b
            entries[key] = value
    except WireError as error:
        raise InvalidArgumentError(f"Could not parse example input: {error}") from None
    return entries
