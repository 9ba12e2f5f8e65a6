"""Where Feature messages stand in the buffer of many examples, found by their keys.

Source: TensorFlow core/example/feature.proto, core/util/example_proto_fast_parsing.cc.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.made_bytes import MadeBytes
from opkernel.device.string_buffer import parts_of_buffer
from opkernel.device.work_clock import SLOW, in_time
from opkernel.ops.parsing.feature_maps import TAG_OF_BYTES, TAG_OF_FEATURE, ReadMap
from opkernel.ops.parsing.wire import BYTES_WIRE, Buffer, buffer_of, read_lengths
from opkernel.ops.ragged.gather_range import lengths_to_splits

MANY_TURNS = 64
"""After so many turns, what is left of few records is read one by one."""
_COMPARED_AT_ONCE = 32
"""So many bytes of a key are compared for all records at once."""
_PART = 1 << 20
"""So many bytes are read between two looks at the clock."""

_NOWHERE = -1, -1

FindFeatures = Callable[..., None]
"""Finds features as `find_features` does."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Where Feature messages stand in a buffer, one for each example; -1 where there is none."""

    buffer: Buffer
    places: Any
    """Where they begin and end, int64 [2, examples]."""

    @property
    def starts(self) -> Any:
        """Where they begin."""
        return self.places[0]

    @property
    def ends(self) -> Any:
        """Where they end."""
        return self.places[1]

    def parts(self) -> Iterator[tuple[int, int]]:
        """The examples in runs of bounded work."""
        if self.buffer.array.size <= _PART:
            return iter([(0, self.starts.size)])
        return _parts(lengths_to_splits(self.ends - self.starts))


def _parts(splits: Any) -> Iterator[tuple[int, int]]:
    """The first and the last string of parts of a buffer, with a look at the clock after each."""
    for part in parts_of_buffer(splits, _PART):
        yield part.start, part.stop
        check_time("reading features")


def spans_of_features(
    records: Sequence[bytes],
    number: int,
    keys: Sequence[bytes],
    find: FindFeatures,
    read_map: ReadMap,
    made: MadeBytes,
) -> list[Spans]:
    """Where the features of these keys stand in records.

    Args:
        records: The records.
        number: The number of the field of a record that has the features.
        keys: The keys.
        find: The algorithm.
        read_map: Reads the records of another form.
        made: Counts the bytes of the buffer.

    Raises:
        InvalidArgumentError: a record is damaged.
    """
    splits = lengths_to_splits(np.fromiter(map(len, records), np.int64, len(records)))
    total = int(splits[-1])
    made.add(total)
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    places = np.full((len(numbers), 2, len(records)), -1, np.int64)
    odd = np.zeros(len(records), np.bool_)
    key_splits = lengths_to_splits(np.fromiter(map(len, numbers), np.int64, len(numbers)))
    buffer = buffer_of([*records, *numbers])
    for first, last in _parts(splits) if total > _PART else [(0, len(records))]:
        find(buffer.array, splits, total + key_splits, np.array([first, last, number]), places, odd)
    for i in in_time(np.flatnonzero(odd).tolist(), SLOW):
        entries = read_map(records[i], number)
        for key, at in in_time(numbers.items(), SLOW):
            places[at, :, i] = entries.get(key, _NOWHERE)
        places[:, :, i] += np.where(places[:, :, i] < 0, 0, splits[i])
    return [Spans(buffer, places[numbers[key]]) for key in keys]


def find_features(
    data: Any, splits: Any, key_splits: Any, part: Any, places: Any, odd: Any
) -> None:
    """Find features in some records of a buffer; or tell that a record has another form than most.

    All records are gone through in step, one field of each at a time.

    Args:
        data: The buffer of records and of keys, with a few more bytes at its end.
        splits: Where records begin, and the end of the last.
        key_splits: Where keys begin, and the end of the last.
        part: The first of the records, the one after the last of them, and the number of the field of a record that
            has the features, up to 15.
        places: Takes where each feature begins and ends, int64 [keys, 2, records].
        odd: Takes which records are to be read one by one, bool [records].
    """
    first, last, number = part.tolist()
    starts, ends, is_odd = _one_field(
        data, splits[first:last].copy(), splits[first + 1 : last + 1], number
    )
    ends[is_odd] = starts[is_odd]
    found = places[:, :, first:last]
    patterns: dict[int, list[tuple[Any, Any]]] = {}
    for i, (a, b) in enumerate(zip(key_splits[:-1].tolist(), key_splits[1:].tolist(), strict=True)):
        patterns.setdefault(b - a, []).append((data[a:b], found[i]))
    odd[first:last] = is_odd | _scan(data, starts, ends, patterns)


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
        fine &= (tag & 0x87 == BYTES_WIRE) & (tag > BYTES_WIRE) & (end <= stops[active])
        odd[active[~fine]] = True
        rows, end = active[fine], end[fine]
        is_it = tag[fine] == number << 3 | BYTES_WIRE
        these = rows[is_it]
        odd[these] |= found[these]  # the parts of a message in several fields are joined
        found[these] = True
        starts[these], ends[these] = begin[fine][is_it], end[is_it]
        cursor[rows] = end
        active = rows[end < stops[rows]]
    odd[active] = True
    return starts, ends, odd


def _scan(data: Any, starts: Any, ends: Any, patterns: dict[int, list[tuple[Any, Any]]]) -> Any:
    """Go through the maps in step, one entry of each at a time; tells which have another form.

    Args:
        data: The buffer.
        starts: Where maps begin.
        ends: Where they end.
        patterns: Keys by their size, each with what takes the places of its features.
    """
    odd = np.zeros(starts.size, np.bool_)
    cursor = starts.copy()
    active = np.flatnonzero(cursor < ends)
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
        fine &= ends_well & (data[inside] == TAG_OF_FEATURE) & (begin + size == entry_end)
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
