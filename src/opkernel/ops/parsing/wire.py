"""Protocol buffers on the wire: many messages in step, as columns of cursors, or one by hand."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.work_clock import WorkClock

_PADDING = bytes(16)
_BYTES_WIRE = 2
_AT_ONCE = 1 << 16
"""So many bytes of integers are read at once."""
_FIXED_SIZES = {1: 8, 5: 4}


class WireError(ValueError):
    """The bytes are no message."""


class Buffer(NamedTuple):
    """Bytes, also as an array; behind them stand a few more, so that a cursor may read past the end."""

    data: bytes
    array: Any


def buffer_of(pieces: Iterable[bytes]) -> Buffer:
    """The buffer of pieces, one after the other."""
    data = b"".join([*pieces, _PADDING])
    return Buffer(data, np.frombuffer(data, np.uint8))


def read_lengths(data: Any, at: Any) -> tuple[Any, Any, Any]:
    """The varints of up to 32 bits at places: their values, where they end, and whether they do."""
    value = data[at].astype(np.int64)
    more = value >= 0x80
    stop = at + 1
    if not more.any():
        return value, stop, ~more
    value &= 0x7F
    for i in range(1, 5):
        byte = data[np.minimum(at + i, data.size - 1)].astype(np.int64)
        value |= np.where(more, (byte & 0x7F) << 7 * i, 0)
        stop = stop + more
        more = more & (byte >= 0x80)
        if not more.any():
            break
    return value, stop, ~more


def varints(payload: Any) -> Any:
    """The varints of an array of bytes, as int64; the last byte must end one.

    Raises:
        WireError: one has more than ten bytes.
    """
    is_end = payload < 0x80
    count = np.count_nonzero(is_end)
    if count == payload.size:
        return payload.astype(np.int64)
    values, done, at = np.empty(count, np.int64), 0, 0
    clock = WorkClock("reading integers")
    while at < payload.size:
        clock.spend(_AT_ONCE << 4)
        ends = np.flatnonzero(is_end[at : at + _AT_ONCE])
        if not ends.size:
            raise WireError("a varint has more than ten bytes")
        stop = at + int(ends[-1]) + 1
        values[done : done + ends.size] = _some_varints(payload[at:stop], ends)
        done, at = done + ends.size, stop
    return values


def _some_varints(payload: Any, ends: Any) -> Any:
    """The varints of an array of bytes, which end at these places."""
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > 10:
        raise WireError("a varint has more than ten bytes")
    values = np.zeros(ends.size, np.uint64)
    for i in range(longest):
        some = lengths > i
        part = (payload[starts[some] + i] & np.uint8(0x7F)).astype(np.uint64)
        values[some] |= part << np.uint64(7 * i)
    return values.view(np.int64)


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A varint and the place after it; WireError if it does not end."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a varint does not end")


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: number, wire type, and where the value begins and ends.

    Raises:
        WireError: the bytes are no message.
    """
    at = start
    while at < end:
        tag, at = read_varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise WireError("a field has number 0")
        if wire == 0:
            _, stop = read_varint(data, at, end)
        elif wire == _BYTES_WIRE:
            length, at = read_varint(data, at, end)
            stop = at + length
        elif wire in _FIXED_SIZES:
            stop = at + _FIXED_SIZES[wire]
        else:
            raise WireError(f"a field has wire type {wire}")
        if stop > end:
            raise WireError("a field goes past its message")
        yield number, wire, at, stop
        at = stop


def write_varint(value: int) -> bytes:
    """The varint of a number that is not negative."""
    pieces = bytearray()
    while value >= 0x80:
        pieces.append(value & 0x7F | 0x80)
        value >>= 7
    pieces.append(value)
    return bytes(pieces)
