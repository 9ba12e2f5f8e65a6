"""The lists of values of Feature messages: where the values of many features stand in a buffer, and the values.

These are the algorithms of NumPy, for all features in step; a compiled loop may stand in the place of each.

Source: TensorFlow core/example/feature.proto, core/util/example_proto_fast_parsing.cc.
"""

from array import array
from itertools import count
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.string_buffer import counts_in_strings
from opkernel.device.work_clock import SLOW, in_time
from opkernel.ops.parsing.feature_maps import TAG_OF_BYTES
from opkernel.ops.parsing.feature_spans import MANY_TURNS
from opkernel.ops.parsing.wire import WireError, fields, read_lengths, varints
from opkernel.ops.ragged.gather_range import lengths_to_splits, ranges

TAG_OF_LOOSE = {2: 0x0D, 3: 0x08}
"""The tag before each number of a list that is not packed."""
PACKED, LOOSE, ODD = 0, 1, 2
"""The forms of lists."""
_AT_ONCE = 1 << 18
"""So many bytes are gathered at once."""


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


def find_lists(data: Any, places: Any, part: Any, lists: Any) -> None:
    """Find the lists of values of some features, and count the values.

    Args:
        data: The buffer; a few more bytes stand behind the last feature.
        places: Where features begin and end, int64 [2, features]; a feature without bytes is missing.
        part: The first of the features, the one after the last of them, and the number of the field of a feature: of
            strings 1, floats 2, integers 3; 0 for messages that are themselves a list of messages.
        lists: Takes, int64 [4, features], where the values of each begin and end; how many they are, -1 of features
            that are missing (0 for lists of messages); and how they stand: PACKED, as strings do; LOOSE, each with a
            tag; or ODD, for lists that are to be read one by one.
    """
    (first, last, kind), (starts, ends) = part.tolist(), places
    begins, stops, counts, forms = lists
    rows = first + np.flatnonzero(ends[first:last] > starts[first:last])
    counts[first:last], forms[first:last] = -1 if kind else 0, PACKED
    begin, end = starts[rows], ends[rows]
    fine = np.ones(rows.size, np.bool_)
    if kind and rows.size:
        size, begin, fine = read_lengths(data, begin + 1)
        fine &= (data[starts[rows]] == kind << 3 | 2) & (begin + size == end)
    if kind in (2, 3):
        begin, number, form = _number_lists(data, begin, end, kind, fine)
    else:
        number, fine = _count_strings(data, begin, end, fine)
        form = np.where(fine, PACKED, ODD)
    begins[rows], stops[rows], counts[rows], forms[rows] = begin, end, number, form


def _number_lists(data: Any, begin: Any, end: Any, kind: int, fine: Any) -> tuple[Any, Any, Any]:
    """Where the numbers of lists begin, how many they are, and their form."""
    is_full = fine & (begin < end)
    inside = np.minimum(begin, data.size - 2)
    size, payload, ends_well = read_lengths(data, inside + 1)
    is_packed = is_full & ends_well & (data[inside] == TAG_OF_BYTES) & (payload + size == end)
    counts = np.zeros(size.size, np.int64)
    if kind == 2:
        is_packed &= size % 4 == 0
        counts[is_packed] = size[is_packed] // 4
    else:
        is_packed &= (size == 0) | (data[np.minimum(end, data.size) - 1] < 0x80)
        is_end = _gathered(data, payload[is_packed], end[is_packed]) < 0x80
        counts[is_packed] = counts_in_strings(is_end, lengths_to_splits(size[is_packed]))
    forms = np.where(is_packed | (fine & ~is_full), PACKED, ODD)
    loose = np.flatnonzero(is_full & ~is_packed)
    if loose.size:
        good, counts[loose] = _count_loose(data, begin[loose], end[loose], kind)
        forms[loose[good]] = LOOSE
    return np.where(is_packed, payload, begin), counts, forms


def _count_loose(data: Any, begins: Any, stops: Any, kind: int) -> tuple[Any, Any]:
    """Which lists are of numbers with a tag each, and how many numbers they have."""
    payload, sizes = _gathered(data, begins, stops), stops - begins
    splits, is_tag = lengths_to_splits(sizes), _tags(payload, sizes, kind)
    wrong = is_tag & (payload != TAG_OF_LOOSE[kind])
    good = (counts_in_strings(wrong, splits) == 0) & (data[begins] == TAG_OF_LOOSE[kind])
    if kind == 2:
        return good & (sizes % 5 == 0), sizes // 5
    ends = counts_in_strings(payload < 0x80, splits)
    return good & (ends % 2 == 0) & (data[stops - 1] < 0x80), ends // 2


def _tags(payload: Any, sizes: Any, kind: int) -> Any:
    """Which bytes of lists, which stand one after the other, are tags, if each number has one."""
    if kind == 2:
        return ranges(0, sizes) % 5 == 0
    is_end = payload < 0x80
    before = np.cumsum(is_end) - is_end
    starts = np.cumsum(sizes) - sizes
    return (before - np.repeat(before[starts], sizes)) % 2 == 0


def _payload(data: Any, lists: Any, kind: int) -> Any:
    """The numbers of lists, packed, one list after the other."""
    begins, stops, _, forms = lists
    some = np.flatnonzero(begins < stops)
    begins, stops = begins[some], stops[some]
    payload, is_loose = _gathered(data, begins, stops), forms[some] == LOOSE
    if not is_loose.any():
        return payload
    sizes = stops - begins
    return payload[~(np.repeat(is_loose, sizes) & _tags(payload, sizes, kind))]


def read_floats(data: Any, lists: Any, part: Any, values: Any) -> None:
    """The floats of some lists that `find_lists` found.

    Args:
        data: The buffer.
        lists: As `find_lists` gives it.
        part: The first of the lists, and the one after the last of them.
        values: Takes the bytes of the floats of all lists.
    """
    first, last = part.tolist()
    at = 4 * int(np.maximum(lists[2, :first], 0).sum())
    payload = _payload(data, lists[:, first:last], 2)
    values[at : at + payload.size] = payload


def read_integers(data: Any, lists: Any, values: Any, state: Any) -> bool:
    """The integers of lists that `find_lists` found, or some of them.

    Args:
        data: The buffer.
        lists: As `find_lists` gives it.
        values: Takes the integers of all lists.
        state: Three zeros, int64; then where a next call goes on. The first is -1 if an integer has over ten bytes.

    Returns:
        Whether all are read.
    """
    try:
        values[...] = varints(_payload(data, lists, 3))
    except WireError:
        state[0] = -1
    return True


def _count_strings(data: Any, starts: Any, ends: Any, fine: Any) -> tuple[Any, Any]:
    """How many strings lists have, and which are lists of strings and nothing else."""
    good, counts = fine.copy(), np.zeros(starts.size, np.int64)
    active = np.flatnonzero(fine & (starts < ends))
    cursor = starts.copy()
    for turn in in_time(count(), SLOW):
        if not active.size:
            break
        if turn > MANY_TURNS and active.size < MANY_TURNS:
            for row in active.tolist():
                number = _number_of_strings(data, int(cursor[row]), int(ends[row]))
                good[row], counts[row] = number >= 0, turn + number
            break
        at = cursor[active]
        size, begin, ends_well = read_lengths(data, at + 1)
        stop = begin + size
        right = ends_well & (data[at] == TAG_OF_BYTES) & (stop <= ends[active])
        good[active[~right]] = False
        counts[active] += 1
        cursor[active] = stop
        active = active[right & (stop < ends[active])]
    return counts, good


def _number_of_strings(data: Any, at: int, end: int) -> int:
    """How many strings stand between two places of a buffer; -1 if anything else does, too."""
    try:
        found = [part[:2] == (1, 2) for part in in_time(fields(memoryview(data), at, end))]
    except WireError:
        return -1
    return len(found) if all(found) else -1


def read_places(data: Any, lists: Any, part: Any, splits: Any, places: Any) -> None:
    """Where the strings stand of some lists that `find_lists` found.

    Args:
        data: The buffer.
        lists: As `find_lists` gives it.
        part: The first of the lists, and the one after the last of them.
        splits: The number of the first string of each list, and that of all strings.
        places: Takes where the strings of all lists begin and end, int64 [2, strings].
    """
    (first, last), (begins, stops, _, _) = part.tolist(), lists
    cursor = begins.copy()
    active = first + np.flatnonzero(splits[first + 1 : last + 1] > splits[first:last])
    for turn in in_time(count(), SLOW):
        if not active.size:
            break
        if turn > MANY_TURNS and active.size < MANY_TURNS:
            for row in active.tolist():
                _read_rest(data, int(cursor[row]), int(stops[row]), int(splits[row]) + turn, places)
            break
        size, begin, _ = read_lengths(data, cursor[active] + 1)
        at = splits[active] + turn
        places[0, at], places[1, at] = begin, begin + size
        cursor[active] = begin + size
        active = active[cursor[active] < stops[active]]


def _read_rest(data: Any, start: int, stop: int, at: int, places: Any) -> None:
    """Where the strings between two places of a buffer stand."""
    found = array("q")
    for _, _, begin, end in in_time(fields(memoryview(data), start, stop)):
        found.extend((begin, end))
    some = np.array(found, np.int64).reshape(-1, 2).T
    places[:, at : at + some.shape[1]] = some
