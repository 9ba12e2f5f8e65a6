"""Protocol buffers on the wire: messages by hand or many in step, as columns of cursors; and fields by their types.

A `FieldCodec` says which tensors hold a field, and how its elements stand on the wire.

Source: TensorFlow core/util/proto/proto_utils.{h,cc}, descriptors.cc.
"""

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import copysign, inf
from typing import Any, NamedTuple, cast

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from opkernel.device.string_tensors import gather_bytes
from opkernel.device.work_clock import WorkClock, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef.text.debug_string import is_packed, is_repeated
from opkernel.ops.input_checks import require
from opkernel.ops.registration import WIDE_FLOATS
from opkernel.proto import TensorProto
from opkernel.types import DataType
from opkernel.types.varints import varint

_PADDING = bytes(16)
BYTES_WIRE = 2
_AT_ONCE = 1 << 16
"""So many bytes of integers are read at once."""
_FEW = 32
"""So many bytes of elements are read one by one."""
FIXED_SIZES = {1: 8, 5: 4}


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
    if payload.size <= _FEW:
        return np.array(_few_varints(payload.tobytes()), np.int64)
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


def _few_varints(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value = data[at]
        at += 1
        if value > 0x7F:
            value, at = read_varint(data, at - 1, len(data))
            value = _cast(value, 64, True)
        found.append(value)
    return found


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


def read_varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    """A varint and the place after it; WireError if it does not end."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a varint does not end" if shift < 70 else "a varint has more than ten bytes")


def fields(data: bytes | memoryview, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message: number, wire type, and where the value begins and ends.

    Raises:
        WireError: the bytes are no message.
    """
    at = start
    while at < end:
        tag, at = (data[at], at + 1) if data[at] < 0x80 else read_varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise WireError("a field has number 0")
        if wire == 0:
            _, stop = read_varint(data, at, end)
        elif wire == BYTES_WIRE:
            is_short = at < end and data[at] < 0x80
            length, at = (data[at], at + 1) if is_short else read_varint(data, at, end)
            stop = at + length
        elif wire in FIXED_SIZES:
            stop = at + FIXED_SIZES[wire]
        else:
            raise WireError(f"a field has wire type {wire}")
        if stop > end:
            raise WireError("a field goes past its message")
        yield number, wire, at, stop
        at = stop


Column = Any
"""Elements of a field: an `array` of numbers, or a list of bytes."""

_F = FieldDescriptor
_SIGNED = (DataType.DT_INT32, DataType.DT_INT64)
_UNSIGNED = (DataType.DT_UINT32, DataType.DT_UINT64)
_LONG = (DataType.DT_UINT64,)
_STRING = (DataType.DT_STRING,)
_ELEMENTS_AT_ONCE, _OF_ELEMENT = 1 << 12, 1 << 10
"""So many elements are read or written at once; the work of each."""
_PAST_FLOATS = (2 - 2**-24) * 2.0**127
"""The least number that a float rounds to infinity."""


@dataclass(frozen=True, slots=True)
class FieldCodec:
    """A field: its number, the types of tensors that hold it, and its elements on the wire."""

    number: int
    wire: int
    dtypes: tuple[DataType, ...]
    is_repeated: bool
    is_packed: bool
    typecode: str
    """The type of the elements in an `array`; none for bytes."""
    read: Callable[[bytes, int, int], tuple[Any, int]]
    """An element from a place in a buffer that ends at another; and the place after it."""
    read_many: Callable[[Any], Any]
    """All elements of an array of bytes, as an array; WireError if the last is cut off."""
    write: Callable[[Any], bytes]
    """An element, without its tag."""

    def new_column(self) -> Column:
        """What takes elements of the field, of many messages."""
        return array(self.typecode) if self.typecode else []

    def elements(self, data: bytes, wire: int, start: int, end: int) -> Column:
        """What one occurrence of the field says; nothing if it is of another wire type.

        Raises:
            WireError: an element is cut off.
        """
        found = self.new_column()
        if wire not in (self.wire, BYTES_WIRE):
            return found
        if self.wire == BYTES_WIRE:
            found.append(data[start:end])
            return found
        if end - start > _FEW:
            for part in in_time(self._parts(data, start, end), _ELEMENTS_AT_ONCE << 4):
                found.frombytes(self.read_many(part).astype(self.typecode).tobytes())
        else:
            while start < end:
                value, start = self.read(data, start, end)
                found.append(value)
        if wire != self.wire and not self.is_repeated:
            return array(
                self.typecode, [0] if found else []
            )  # TensorFlow counts one, and reads none
        return found

    def _parts(self, data: bytes, start: int, end: int) -> Iterator[Any]:
        """The bytes of packed elements, some whole elements at a time."""
        payload = np.frombuffer(data, np.uint8, end - start, start)
        while payload.size:
            size = min(_ELEMENTS_AT_ONCE, payload.size)
            if self.wire == 0:  # to the end of the last varint
                ends = np.flatnonzero(payload[:size] < 0x80)
                if not ends.size:
                    raise WireError("a varint does not end")
                size = int(ends[-1]) + 1
            yield payload[:size]
            payload = payload[size:]

    def written(self, values: Any) -> bytes:
        """The field with the elements of an array; nothing for none."""
        if not len(values):
            return b""
        if self.is_packed:
            content = self._content(values, b"")
            return varint(self.number << 3 | BYTES_WIRE) + varint(len(content)) + content
        return self._content(values, varint(self.number << 3 | self.wire))

    def _content(self, values: Any, tag: bytes) -> bytes:
        if len(values) <= _ELEMENTS_AT_ONCE:
            return b"".join([tag + self.write(value) for value in values.tolist()])
        parts = [
            values[at : at + _ELEMENTS_AT_ONCE] for at in range(0, len(values), _ELEMENTS_AT_ONCE)
        ]
        contents = (
            self._content(part, tag) for part in in_time(parts, _ELEMENTS_AT_ONCE * _OF_ELEMENT)
        )
        return gather_bytes(contents, "a message")


def _cast(value: Any, bits: int, is_signed: bool) -> int:
    """The integer in so many bits, as C++ casts it."""
    number = int(value) & (1 << bits) - 1
    return number - (number >> bits - 1 << bits) if is_signed else number


def _as_bits(values: Any, bits: int, is_signed: bool) -> Any:
    """Integers of 64 bits, cast to fewer as C++ casts them."""
    return values.view(np.uint64).astype(f"{'i' if is_signed else 'u'}{bits // 8}")


def _varint_codec(
    bits: int, *, is_signed: bool = False, is_zigzag: bool = False, is_bool: bool = False
) -> Any:
    def read(data: bytes, at: int, end: int) -> tuple[int, int]:
        value, at = read_varint(data, at, end)
        value = _cast(value, bits, is_signed and not is_zigzag)
        if is_zigzag:
            return value >> 1 ^ -(value & 1), at
        return (value != 0 if is_bool else value), at

    def read_many(payload: Any) -> Any:
        values = _as_bits(varints(payload), bits, is_signed and not is_zigzag)
        if is_zigzag:
            return (values >> 1).astype(np.int64) ^ -(values & 1).astype(np.int64)
        return values != 0 if is_bool else values

    def write(value: Any) -> bytes:
        number = _cast(value, bits, is_signed)
        if is_zigzag:
            number = number << 1 ^ number >> bits - 1
        return varint(number & 2**64 - 1)

    typecode = "B" if is_bool else "q" if is_signed or is_zigzag else "Q"
    return 0, typecode, read, read_many, write


def _fixed_codec(form: str) -> Any:
    layout = struct.Struct(form)

    def read(data: bytes, at: int, end: int) -> tuple[Any, int]:
        if at + layout.size > end:
            raise WireError("a number is cut off")
        return layout.unpack_from(data, at)[0], at + layout.size

    def read_many(payload: Any) -> Any:
        if payload.size % layout.size:
            raise WireError("a number is cut off")
        return payload.view(np.dtype(form))

    def write(value: Any) -> bytes:
        if form == "<f":
            return layout.pack(copysign(inf, value) if abs(value) >= _PAST_FLOATS else value)
        if form == "<d":
            return layout.pack(value)
        return layout.pack(_cast(value, 8 * layout.size, form[-1].islower()))

    typecode = form[-1] if form[-1] in "fd" else "q" if form[-1].islower() else "Q"
    return 5 if layout.size == 4 else 1, typecode, read, read_many, write


def _whole(data: bytes, at: int, end: int) -> tuple[bytes, int]:
    return data[at:end], end


_BYTES = (
    BYTES_WIRE,
    "",
    _whole,
    lambda payload: payload,
    lambda value: varint(len(value)) + bytes(value),
)

_CODECS: dict[int, tuple[tuple[DataType, ...], Any]] = {
    _F.TYPE_DOUBLE: ((DataType.DT_DOUBLE,), _fixed_codec("<d")),
    _F.TYPE_FLOAT: (WIDE_FLOATS, _fixed_codec("<f")),
    _F.TYPE_INT64: ((DataType.DT_INT64,), _varint_codec(64, is_signed=True)),
    _F.TYPE_UINT64: (_LONG, _varint_codec(64)),
    _F.TYPE_INT32: (_SIGNED, _varint_codec(32, is_signed=True)),
    _F.TYPE_FIXED64: (_LONG, _fixed_codec("<Q")),
    _F.TYPE_FIXED32: (_UNSIGNED, _fixed_codec("<I")),
    _F.TYPE_BOOL: ((DataType.DT_BOOL,), _varint_codec(64, is_bool=True)),
    _F.TYPE_STRING: (_STRING, _BYTES),
    _F.TYPE_MESSAGE: (_STRING, _BYTES),
    _F.TYPE_BYTES: (_STRING, _BYTES),
    _F.TYPE_UINT32: (_UNSIGNED, _varint_codec(32)),
    _F.TYPE_ENUM: ((DataType.DT_INT32,), _varint_codec(32, is_signed=True)),
    _F.TYPE_SFIXED32: (_SIGNED, _fixed_codec("<i")),
    _F.TYPE_SFIXED64: ((DataType.DT_INT64,), _fixed_codec("<q")),
    _F.TYPE_SINT32: (_SIGNED, _varint_codec(32, is_signed=True, is_zigzag=True)),
    _F.TYPE_SINT64: ((DataType.DT_INT64,), _varint_codec(64, is_signed=True, is_zigzag=True)),
}


def codec_of(message: Descriptor, name: str, dtype: DataType) -> FieldCodec:
    """How a field stands on the wire.

    Raises:
        InvalidArgumentError: there is no such field, or no tensor of the type holds it.
    """
    field = message.fields_by_name.get(name)
    if field is None:
        raise InvalidArgumentError(f"Unknown field: {name} in message type {message.full_name}")
    if field.type not in _CODECS:
        raise InvalidArgumentError(f"Field {name} of {message.full_name} is a group")
    dtypes, (wire, typecode, *functions) = _CODECS[field.type]
    text = f"Unexpected output type for {message.full_name}.{name}: {dtype.string}"
    require(dtype in dtypes, text)
    forms = is_repeated(field), is_packed(field)
    return FieldCodec(field.number, wire, dtypes, *forms, typecode, *functions)


def message_descriptor(source: str, name: str) -> Descriptor:
    """The description of a message type, from where `descriptor_source` says.

    Raises:
        InvalidArgumentError: there is none of the name, or the source is not understood.
    """
    if source in ("", "local://"):
        pool = TensorProto.DESCRIPTOR.file.pool
    elif source.startswith("bytes://"):
        pool = _pool_of(source.removeprefix("bytes://").encode("utf-8", "surrogateescape"))
    else:
        raise InvalidArgumentError(
            f"descriptor_source {source!r} does not represent a serialized FileDescriptorSet. Files "
            "are not read; give local:// or bytes:// and the serialized set"
        )
    try:
        return cast(Descriptor, pool.FindMessageTypeByName(name))
    except KeyError:
        raise InvalidArgumentError(f"No descriptor found for message type {name}") from None


def _pool_of(serialized: bytes) -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(serialized).file:
            pool.AddSerializedFile(file.SerializeToString())
    except Exception as error:  # protobuf raises its own, TypeError and others, by implementation
        raise InvalidArgumentError(f"descriptor_source is no FileDescriptorSet: {error}") from error
    return pool
