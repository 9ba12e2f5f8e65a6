"""Where the features of one record stand, by their keys: for records of any form, and for damaged ones.

TensorFlow has three parsers, which take different things for damage. That of Example messages and that of batches of
SequenceExamples know no other field in a map, and end a map or an entry at the end of what holds it. That of single
SequenceExamples is protobuf's.

Source: TensorFlow core/util/example_proto_fast_parsing.cc (ParseExample, FastParseSequenceExample),
core/kernels/example_parsing_ops.cc; protobuf io/coded_stream.cc (PushLimit, Skip).
"""

from collections.abc import Callable, Iterator

from opkernel.device.work_clock import WorkClock, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.ops.parsing.wire import BYTES_WIRE, FIXED_SIZES, WireError, fields, read_varint

TAG_OF_BYTES = 0x0A
TAG_OF_FEATURE = 0x12
FeatureMap = dict[bytes, tuple[int, int]]
"""Where features begin and end in a record, by their keys."""
ReadMap = Callable[[bytes, int], FeatureMap]
"""Reads the map of features in the fields of a number of a record; the last feature of a key counts.

Raises InvalidArgumentError where the record is damaged.
"""

_MOST_INT32 = 0x7FFFFFFF
_OF_ENTRY = 1 << 12
"""The work of reading a field, or an entry of a map."""


def map_of_example(record: bytes, number: int) -> FeatureMap:
    """As TensorFlow reads Example messages: an entry has two fields, keys or values; see `ReadMap`."""
    return _strict_map(record, number, is_ordered=False)


def map_of_sequence_example(record: bytes, number: int) -> FeatureMap:
    """As TensorFlow reads batches of SequenceExamples: an entry has a key and then a value; see `ReadMap`."""
    return _strict_map(record, number, is_ordered=True)


def map_of_message(record: bytes, number: int) -> FeatureMap:
    """As protobuf reads messages: entries have fields in any order, and fields that are not known; see `ReadMap`."""
    entries = {}
    try:
        for begin, end in _messages(record, 0, len(record), number):
            for start, stop in _messages(record, begin, end, 1):
                key, value = b"", (stop, stop)
                for part, wire, a, b in in_time(fields(record, start, stop)):
                    if (part, wire) == (1, BYTES_WIRE):
                        key = record[a:b]
                    elif (part, wire) == (2, BYTES_WIRE):
                        value = a, b
                entries[key] = value
    except WireError as error:
        raise _damaged(error) from None
    return entries


def _messages(record: bytes, start: int, end: int, number: int) -> Iterator[tuple[int, int]]:
    for part, wire, begin, stop in in_time(fields(record, start, end)):
        if (part, wire) == (number, BYTES_WIRE):
            yield begin, stop


def _damaged(error: WireError) -> InvalidArgumentError:
    return InvalidArgumentError(f"Could not parse example input: {error}")


def _strict_map(record: bytes, number: int, *, is_ordered: bool) -> FeatureMap:
    entries, clock = {}, WorkClock("reading features")
    try:
        for begin, end in _clipped_messages(record, number, clock):
            at = begin
            while at < end:
                clock.spend(_OF_ENTRY)
                if record[at] != TAG_OF_BYTES:
                    raise WireError("a map of features has another field")
                at, stop = clipped(record, at + 1, end)
                key, value = _entry(record, at, stop, is_ordered)
                entries[key] = value
                at = stop
    except WireError as error:
        raise _damaged(error) from None
    return entries


def _clipped_messages(record: bytes, number: int, clock: WorkClock) -> Iterator[tuple[int, int]]:
    """Where the messages in the fields of a number begin and end; fields of other numbers have any number."""
    at, end, wanted = 0, len(record), number << 3 | BYTES_WIRE
    while at < end:
        clock.spend(_OF_ENTRY)
        tag, at = read_varint(record, at, end)
        wire = tag & 7
        if tag == wanted:
            begin, at = clipped(record, at, end)
            yield begin, at
        elif wire == BYTES_WIRE:
            size, at = read_varint(record, at, end)
            at += size & 0xFFFFFFFF if size & 0xFFFFFFFF <= _MOST_INT32 else 0
        elif wire == 0:
            _, at = read_varint(record, at, end)
        elif wire in FIXED_SIZES and at + FIXED_SIZES[wire] <= end:
            at += FIXED_SIZES[wire]
        else:
            raise WireError("a field is cut off, or of a group")


def clipped(record: bytes, at: int, end: int) -> tuple[int, int]:
    """Where the content begins and ends whose length stands at a place; at the latest it ends where its holder does."""
    size, begin = read_varint(record, at, end)
    size &= 0xFFFFFFFF
    return begin, min(begin + size, end) if size <= _MOST_INT32 else end


def _entry(record: bytes, at: int, end: int, is_ordered: bool) -> tuple[bytes, tuple[int, int]]:
    """The key of an entry, and where its feature stands."""
    key, value = b"", (end, end)
    for expected in (TAG_OF_BYTES, TAG_OF_FEATURE):
        tag = record[at] if at < end else 0
        if tag != expected and (is_ordered or tag not in (TAG_OF_BYTES, TAG_OF_FEATURE)):
            raise WireError("an entry of a map is no key and feature")
        size, begin = read_varint(record, at + 1, end)
        at = begin + (size & 0xFFFFFFFF)
        if at > end:
            raise WireError("a field goes past its message")
        if tag == TAG_OF_BYTES:
            key = record[begin:at]
        else:
            value = begin, at
    if at != end:
        raise WireError("an entry of a map has another field")
    return key, value
