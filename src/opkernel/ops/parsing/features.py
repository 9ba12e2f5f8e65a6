"""Feature messages of many examples as columns: how many values each has, and all values.

Source: TensorFlow core/example/feature.proto, core/util/example_proto_fast_parsing.cc.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.made_bytes import MadeBytes, check_bytes, making_bytes
from opkernel.device.string_tensors import string_tensor
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.interrupts import contextmanager
from opkernel.kernel import check_allocation
from opkernel.ops.parsing.feature_lists import (
    ODD,
    find_lists,
    read_floats,
    read_integers,
    read_places,
)
from opkernel.ops.parsing.feature_maps import TAG_OF_BYTES, ReadMap, clipped, map_of_example
from opkernel.ops.parsing.feature_spans import FindFeatures, Spans, find_features
from opkernel.ops.parsing.wire import BYTES_WIRE, WireError, buffer_of, fields, read_varint
from opkernel.ops.ragged.gather_range import lengths_to_splits
from opkernel.types import DataType
from opkernel.types.varints import varint

KIND_OF = {DataType.DT_STRING: 1, DataType.DT_FLOAT: 2, DataType.DT_INT64: 3}
_NAMES = {1: "string", 2: "float", 3: "int64"}

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


class Reading(NamedTuple):
    """The algorithms that read features: those of `feature_spans` and `feature_lists`, or others that do the same."""

    find_features: FindFeatures
    find_lists: Callable[..., None]
    read_floats: Callable[..., None]
    read_integers: Callable[..., bool]
    read_places: Callable[..., None]
    read_map: ReadMap = map_of_example


def column_of(spans: Spans, dtype: DataType, name: str, reading: Reading) -> Column:
    """The values of a feature.

    Raises:
        InvalidArgumentError: a message is damaged, or has values of another type.
    """
    with making_bytes("features", _OF_FEATURE * spans.starts.size):
        return _column(spans, dtype, name, reading)


def _lists(spans: Spans, kind: int, reading: Reading) -> Any:
    """Where the values of each list begin and end, how many there are, and their form, int64 [4, lists]."""
    lists = np.zeros((4, spans.starts.size), np.int64)
    for first, last in spans.parts():
        part = np.array([first, last, kind])
        reading.find_lists(spans.buffer.array, spans.places, part, lists)
    return lists


def _column(spans: Spans, dtype: DataType, name: str, reading: Reading) -> Column:
    kind = KIND_OF[dtype]
    lists = _lists(spans, kind, reading)
    _, _, counts, forms = lists
    odd = np.flatnonzero(forms == ODD)
    if odd.size:
        return _column(_regular(spans, odd, kind, name), dtype, name, reading)
    size = int(counts.sum() + np.count_nonzero(counts < 0))
    check_allocation((size,), dtype)
    data = spans.buffer.array
    if kind == KIND_OF[DataType.DT_STRING]:
        begins, stops = _places(spans, lists, size, reading)
        texts = map(spans.buffer.data.__getitem__, map(slice, begins.tolist(), stops.tolist()))
        return Column(counts, string_tensor((size,), in_time(texts)))
    values = np.empty(size, dtype.numpy_dtype.newbyteorder("<"))
    if kind == KIND_OF[DataType.DT_FLOAT]:
        for first, last in spans.parts():
            reading.read_floats(data, lists, np.array([first, last]), values.view(np.uint8))
    else:
        state = np.zeros(3, np.int64)
        with parsing(name):
            while not reading.read_integers(data, lists, values, state):
                check_time("reading features")
            if state[0] < 0:
                raise WireError("a varint has more than ten bytes")
    return Column(counts, values.astype(dtype.numpy_dtype, copy=False))


def _places(spans: Spans, lists: Any, size: int, reading: Reading) -> Any:
    """Where the strings of lists begin and end."""
    places, splits = np.empty((2, size), np.int64), lengths_to_splits(np.maximum(lists[2], 0))
    for first, last in spans.parts():
        reading.read_places(spans.buffer.array, lists, np.array([first, last]), splits, places)
    return places


def places_in_lists(spans: Spans, made: MadeBytes, reading: Reading) -> tuple[Any, Any, Any] | None:
    """How many messages each list has, and where they begin and end; None unless all lists hold only these.

    Args:
        spans: The lists.
        made: Counts the bytes of the places.
        reading: The algorithms.
    """
    lists = _lists(spans, 0, reading)
    _, _, counts, forms = lists
    if forms.any():
        return None
    size = int(counts.sum())
    made.add(_OF_PLACE * size)
    return counts, *_places(spans, lists, size, reading)


@contextmanager
def parsing(name: str) -> Iterator[None]:
    """A block whose errors name the feature."""
    try:
        yield
    except WireError as error:
        raise wrong_feature(name, error) from None


def wrong_feature(name: bytes | str, error: WireError) -> InvalidArgumentError:
    """The error for a feature that cannot be read."""
    name = name if isinstance(name, str) else text_of(name)
    return InvalidArgumentError(f"Key: {name}. Can't parse serialized Example: {error}")


def _regular(spans: Spans, rows: Any, kind: int, name: str) -> Spans:
    """The spans with the features of some examples written anew, in the usual form."""
    places = spans.places.copy()
    starts, ends = places
    data = spans.buffer.data
    pieces, size = [data], len(data)
    with parsing(name):
        for i in in_time(rows.tolist(), SLOW):
            feature = _rewritten(data, int(starts[i]), int(ends[i]), kind)
            pieces.append(feature)
            starts[i], ends[i] = size, size + len(feature)
            size += len(feature)
    check_bytes(size, "features")
    return Spans(buffer_of(pieces), places)


def _rewritten(data: bytes, start: int, end: int, kind: int) -> bytes:
    """A feature whose numbers are packed, without other fields."""
    if kind == 1:
        places = strings_of_list(data, start, end)
        content = b"".join([b"\x0a" + varint(b - a) + data[a:b] for a, b in places])
    else:
        payload = numbers_of_list(data, start, end, kind)
        content = b"\x0a" + varint(len(payload)) + payload if payload else b""
    return bytes([kind << 3 | 2]) + varint(len(content)) + content


def strings_of_list(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Where the strings of a feature begin and end.

    Raises:
        WireError: it is no feature, of numbers, or has other fields.
    """
    parts = list(in_time(fields(data, *_list_of(data, start, end, 1))))
    if any(part[:2] != (1, BYTES_WIRE) for part in parts):
        raise WireError("Parsing bytes_list failed")
    return [(begin, stop) for _, _, begin, stop in parts]


def numbers_of_list(data: bytes, start: int, end: int, kind: int) -> bytes:
    """The numbers of a feature, packed.

    Raises:
        WireError: it is no feature, of other values, or has other fields.
    """
    at, end = _list_of(data, start, end, kind)
    if at == end:
        return b""
    if data[at] == TAG_OF_BYTES:  # fields behind it are not read
        size, begin = read_varint(data, at + 1, end)
        size = size & 0xFFFFFFFF if kind == 3 else (size & 0xFFFFFFFF) // 4 * 4
        if kind == 2 and begin + size > end:
            raise WireError("a list of floats is cut off")
        payload = data[begin : min(begin + size, end)]
    else:
        loose = (1, 5 if kind == 2 else 0)
        parts = list(in_time(fields(data, at, end)))
        if any(part[:2] != loose for part in parts):
            raise WireError("a list of numbers has other fields")
        payload = b"".join([data[a:b] for _, _, a, b in parts])
    if (kind == 2 and len(payload) % 4) or (kind == 3 and payload[-1:] >= b"\x80"):
        raise WireError("a list of numbers is cut off")
    return payload


def _list_of(data: bytes, start: int, end: int, kind: int) -> tuple[int, int]:
    """Where the list of values of a feature begins and ends."""
    number, wire = divmod(data[start], 8)
    if wire != BYTES_WIRE or number not in _NAMES:
        raise WireError("it is no feature")
    if number != kind:
        raise WireError(
            f"Data types don't match. Data type: {_NAMES[number]} but expected type: {_NAMES[kind]}"
        )
    return clipped(data, start + 1, end)


BY_COLUMNS = Reading(find_features, find_lists, read_floats, read_integers, read_places)
"""The algorithms of NumPy."""
