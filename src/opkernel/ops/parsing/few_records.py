"""Feature messages of few examples as columns: each message is read by itself, as `features` reads those of odd forms.

Source: TensorFlow core/util/example_proto_fast_parsing.cc.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.kernel import check_allocation
from opkernel.ops.parsing.feature_maps import TAG_OF_BYTES, TAG_OF_FEATURE, FeatureMap, ReadMap
from opkernel.ops.parsing.features import (
    KIND_OF,
    Column,
    numbers_of_list,
    strings_of_list,
    wrong_feature,
)
from opkernel.ops.parsing.wire import BYTES_WIRE, WireError, varints
from opkernel.types import DataType

FEW_BYTES = 1 << 14
"""So many bytes are few: a budget need not be asked, and lengths in them have two bytes at most."""

_MISSING = 0, 0
_TAGS = TAG_OF_BYTES, TAG_OF_BYTES, TAG_OF_FEATURE
"""The tags of an entry, of its key and of its value."""


def columns_one_by_one(
    records: Sequence[bytes],
    keys: Sequence[bytes],
    types: Sequence[DataType],
    number: int,
    read_map: ReadMap,
) -> list[Column]:
    """The features of few records, whose bytes are read one after the other.

    Args:
        records: The records.
        keys: The names of the features.
        types: Their types.
        number: The number of the field that has the features.
        read_map: Reads the maps of another form than most.

    Raises:
        InvalidArgumentError: a message is damaged, or has values of another type.
    """
    maps = []
    for record in records:
        entries = _usual_map(record, number)
        maps.append((record, read_map(record, number) if entries is None else entries))
    return [_column(maps, dtype, key) for key, dtype in zip(keys, types, strict=True)]


def _column(maps: Sequence[tuple[bytes, FeatureMap]], dtype: DataType, key: bytes) -> Column:
    kind, counts, values = KIND_OF[dtype], [-1] * len(maps), []
    try:
        for row, (data, entries) in enumerate(maps):
            start, end = entries.get(key, _MISSING)
            if start < end:
                some = _usual_values(data, start, end, kind)
                if some is None:
                    some = _values(data, start, end, kind)
                counts[row] = len(some)
                values.append(some)
    except WireError as error:
        raise wrong_feature(key, error) from None
    size = check_allocation((sum(map(len, values)),), dtype)
    if kind == 1:
        joined = string_tensor(size, [*chain.from_iterable(values)])
    elif len(values) == 1:
        joined = values[0]
    else:
        joined = np.concatenate(values) if values else np.empty(size, dtype.numpy_dtype)
    return Column(np.array(counts, np.int64), joined)


def _values(data: bytes, start: int, end: int, kind: int) -> Any:
    """The strings of a feature in a list, or its numbers in an array."""
    if kind == 1:
        return [data[a:b] for a, b in strings_of_list(data, start, end)]
    payload = np.frombuffer(numbers_of_list(data, start, end, kind), np.uint8)
    return payload.view("<f4").astype(np.float32) if kind == 2 else varints(payload)


# Messages as everybody writes them: without other fields, each field once, in its place, with short lengths.


def _content(data: bytes, at: int) -> tuple[int, int]:
    """Where the content begins and ends whose length stands at a place; it ends at -1 if the length has more than two bytes."""
    size = data[at]
    if size < 0x80:
        return at + 1, at + 1 + size
    high = data[at + 1]
    return at + 2, at + 2 + size - 0x80 + (high << 7) if high < 0x80 else -1


def _usual_map(data: bytes, number: int) -> FeatureMap | None:
    """The map in a record, if both have the usual form."""
    entries = {}
    try:
        at, end = _content(data, 1)
        if data[0] != number << 3 | BYTES_WIRE or end != len(data):
            return None
        while at < end:
            key_tag, entry_end = _content(data, at + 1)
            key_at, key_end = _content(data, key_tag + 1)
            start, stop = _content(data, key_end + 1)
            tags = data[at], data[key_tag], data[key_end]
            if tags != _TAGS or stop != entry_end or stop < start:
                return None
            entries[data[key_at:key_end]] = start, stop
            at = stop
    except IndexError:
        return None
    return entries if at == end else None


def _usual_values(data: bytes, start: int, end: int, kind: int) -> Any | None:
    """As `_values`, of a feature in the usual form; None for another."""
    try:
        begin, stop = _content(data, start + 1)
        if data[start] != kind << 3 | BYTES_WIRE or stop != end:
            return None
        if kind == 1:
            return _usual_strings(data, begin, end)
        at, stop = _content(data, begin + 1)
        if data[begin] != TAG_OF_BYTES or stop != end or at >= end:
            return None
    except IndexError:
        return None
    if kind == 2:
        count, rest = divmod(end - at, 4)
        return None if rest else np.frombuffer(data, "<f4", count, at).astype(np.float32)
    return None if data[end - 1] >= 0x80 else varints(np.frombuffer(data, np.uint8, end - at, at))


def _usual_strings(data: bytes, at: int, end: int) -> list[bytes] | None:
    strings = []
    while at < end:
        begin, stop = _content(data, at + 1)
        if data[at] != TAG_OF_BYTES or not begin <= stop <= end:
            return None
        strings.append(data[begin:stop])
        at = stop
    return strings
