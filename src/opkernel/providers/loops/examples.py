"""Loops that read Example messages: one record, and one feature, after the other.

The messages that they take are those of `opkernel.ops.parsing.feature_spans` and `feature_lists`; they tell which
records and lists have another form.

Source: TensorFlow core/util/example_proto_fast_parsing.cc.
"""

from typing import Any

import numpy as np

from opkernel.ops.data import parsed_examples
from opkernel.ops.parsing import example, feature_lists, feature_spans, features, sequence_example
from opkernel.ops.parsing.feature_lists import LOOSE, ODD, PACKED, TAG_OF_LOOSE
from opkernel.ops.parsing.feature_maps import TAG_OF_BYTES, TAG_OF_FEATURE
from opkernel.ops.parsing.wire import BYTES_WIRE
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_MOST_ENTRIES = 1 << 20
"""Records with more features are read by Python, which looks at the clock."""
_INTEGER_BYTES = 1 << 20
"""About so many bytes of integers are read in one call."""
_FLOAT_TAG, _INTEGER_TAG = TAG_OF_LOOSE[2], TAG_OF_LOOSE[3]
_FNV_SEED, _FNV_FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@part_of_loops
def varint_at(data: Array | bytes, at: int, end: int) -> tuple[np.int64, int]:
    """The varint of up to 35 bits at a place, and the place after it; -1 if it does not end before another place."""
    value = np.int64(0)
    shift = 0
    while at < end and shift < 35:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return np.int64(-1), at


@part_of_loops
def field_at(data: Array | bytes, at: int, end: int, tag: int) -> tuple[int, Any]:
    """Where the bytes of a field begin and end, which stands at a place; the end is -1 if it is another one."""
    if at >= end or data[at] != tag:
        return at, -1
    size, begin = varint_at(data, at + 1, end)
    if size < 0 or begin + size > end:
        return begin, -1
    return begin, begin + size


@part_of_loops
def _hash(data: Array, begin: int, end: int) -> Any:
    found = _FNV_SEED
    for at in range(begin, end):
        found = (found ^ np.uint64(data[at])) * _FNV_FACTOR
    return np.int64((found ^ found >> np.uint64(32)) & np.uint64(0x7FFFFFFF))


@part_of_loops
def _table_of(data: Array, key_splits: Array) -> Array:
    """The numbers of keys by their hashes, at the first free place; -1 where there is none."""
    size = 4
    while size < 2 * key_splits.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    for number in range(key_splits.size - 1):
        at = _hash(data, key_splits[number], key_splits[number + 1]) & (size - 1)
        while table[at] >= 0:
            at = (at + 1) & (size - 1)
        table[at] = number
    return table


@part_of_loops
def _number_of(data: Array, begin: int, end: int, key_splits: Array, table: Array) -> Any:
    """The number of the key between two places; -1 if it is none."""
    at = _hash(data, begin, end) & (table.size - 1)
    while table[at] >= 0:
        number = table[at]
        start = key_splits[number]
        if key_splits[number + 1] - start == end - begin:
            for i in range(end - begin):
                if data[start + i] != data[begin + i]:
                    break
            else:
                return number
        at = (at + 1) & (table.size - 1)
    return -1


@part_of_loops
def _find_in_map(
    data: Array, at: int, end: int, key_splits: Array, table: Array, found: Array
) -> int:
    """Find the features of one map; how many entries it has, -1 if it has another form."""
    count = 0
    while at < end:
        entry, stop = field_at(data, at, end, TAG_OF_BYTES)
        if stop < 0:
            return -1
        key, key_end = field_at(data, entry, stop, TAG_OF_BYTES)
        if key_end < 0:
            return -1
        value, value_end = field_at(data, key_end, stop, TAG_OF_FEATURE)
        if value_end != stop:
            return -1
        number = _number_of(data, key, key_end, key_splits, table)
        if number >= 0:
            found[number, 0], found[number, 1] = value, stop
        at = stop
        count += 1
        if count > _MOST_ENTRIES:
            return -1
    return count


@loop(otherwise=feature_spans.find_features)
def find_features(
    data: Array, splits: Array, key_splits: Array, part: Array, places: Array, odd: Array
) -> None:
    """As `feature_spans.find_features`; the parts of a message in several fields come one after the other."""
    first, last, number = part
    table = _table_of(data, key_splits)
    tag = number << 3 | BYTES_WIRE
    for row in range(first, last):
        at, end = splits[row], splits[row + 1]
        entries = 0
        while at < end and entries >= 0:
            field: Any = np.int64(data[at])
            begin, stop = field_at(data, at, end, field)
            if field & 0x87 != BYTES_WIRE or field <= BYTES_WIRE or stop < 0:
                entries = -1
                break
            if field == tag:
                found = _find_in_map(data, begin, stop, key_splits, table, places[:, :, row])
                entries = -1 if found < 0 else entries + found + 1
                if entries > _MOST_ENTRIES:
                    entries = -1
            at = stop
        odd[row] = entries < 0


@part_of_loops
def _count_strings(data: Array, at: int, end: int) -> int:
    """How many strings stand between two places; -1 if anything else does, too."""
    count = 0
    while at < end:
        _, at = field_at(data, at, end, TAG_OF_BYTES)
        if at < 0:
            return -1
        count += 1
    return count


@part_of_loops
def _count_packed(data: Array, begin: int, end: int, kind: int) -> int:
    """How many packed numbers stand between two places; -1 if the last one is cut off."""
    if kind == 2:
        return -1 if (end - begin) % 4 else (end - begin) // 4
    if begin < end and data[end - 1] >= 0x80:
        return -1
    count = 0
    for at in range(begin, end):
        count += data[at] < 0x80
    return count


@part_of_loops
def _count_loose(data: Array, at: int, end: int, kind: int) -> int:
    """How many numbers with a tag each stand between two places; -1 if anything else does, too."""
    count = 0
    while at < end:
        if data[at] != (_FLOAT_TAG if kind == 2 else _INTEGER_TAG):
            return -1
        at += 1
        if kind == 2:
            at += 4
        else:
            while at < end and data[at] >= 0x80:
                at += 1
            at += 1
        if at > end:
            return -1
        count += 1
    return count


@loop(otherwise=feature_lists.find_lists)
def find_lists(data: Array, places: Array, part: Array, lists: Array) -> None:
    """As `feature_lists.find_lists`."""
    first, last, kind = part
    begins, stops, counts, forms = lists
    for row in range(first, last):
        begin, end = places[0, row], places[1, row]
        begins[row], stops[row], forms[row] = begin, max(begin, end), PACKED
        counts[row] = 0 if kind == 0 else -1
        if end <= begin:
            continue
        if kind:
            begin, stop = field_at(data, begin, end, kind << 3 | BYTES_WIRE)
            if stop != end:
                forms[row] = ODD
                continue
        begins[row] = begin
        if kind < 2:
            count = _count_strings(data, begin, end)
        elif begin == end:
            count = 0
        elif data[begin] == TAG_OF_BYTES:
            payload, stop = field_at(data, begin, end, TAG_OF_BYTES)
            begins[row] = payload
            count = -1 if stop != end else _count_packed(data, payload, end, kind)
        else:
            count = _count_loose(data, begin, end, kind)
            forms[row] = LOOSE
        counts[row] = count
        if count < 0:
            forms[row] = ODD


@loop(otherwise=feature_lists.read_floats)
def read_floats(data: Array, lists: Array, part: Array, values: Array) -> None:
    """As `feature_lists.read_floats`."""
    first, last = part
    begins, stops, counts, forms = lists
    to = 0
    for row in range(first):
        to += 4 * max(counts[row], 0)
    for row in range(first, last):
        at, end = begins[row], stops[row]
        if forms[row] == PACKED:
            for i in range(end - at):
                values[to + i] = data[at + i]
            to += end - at
        else:
            while at < end:
                for i in range(4):
                    values[to + i] = data[at + 1 + i]
                at += 5
                to += 4


@loop(otherwise=feature_lists.read_integers)
def read_integers(data: Array, lists: Array, values: Array, state: Array) -> bool:
    """As `feature_lists.read_integers`; the state is a list, a place in it, and how many integers are read."""
    row, inside, to = state
    begins, stops, _, forms = lists
    left = _INTEGER_BYTES
    while row < begins.size:
        at, end, is_loose = begins[row] + inside, stops[row], forms[row] == LOOSE
        start = at
        while at < end and left > at - start:
            if is_loose:
                at += 1
            value, shift = np.uint64(data[at] & 0x7F), np.uint64(7)
            while data[at] >= 0x80:
                at += 1
                if shift > np.uint64(63):
                    state[0] = -1
                    return True
                value |= np.uint64(data[at] & 0x7F) << shift
                shift += np.uint64(7)
            at += 1
            values[to] = np.int64(value)
            to += 1
        left -= at - start + 1
        if at < end:
            state[0], state[1], state[2] = row, at - begins[row], to
            return False
        row, inside = row + 1, 0
        if left <= 0:
            break
    state[0], state[1], state[2] = row, inside, to
    return bool(row == begins.size)


@loop(otherwise=feature_lists.read_places)
def read_places(data: Array, lists: Array, part: Array, splits: Array, places: Array) -> None:
    """As `feature_lists.read_places`."""
    for row in range(part[0], part[1]):
        at = lists[0, row]
        for to in range(splits[row], splits[row + 1]):
            begin, at = field_at(data, at, lists[1, row], TAG_OF_BYTES)
            places[0, to], places[1, to] = begin, at


_BY_LOOPS = features.Reading(find_features, find_lists, read_floats, read_integers, read_places)

example.register_examples(_BY_LOOPS, LOOPS.kernels)
sequence_example.register_sequence_examples(_BY_LOOPS, LOOPS.kernels)
parsed_examples.register_parsed_examples(_BY_LOOPS, LOOPS.kernels)
