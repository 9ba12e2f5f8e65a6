"""Fields of protocol buffers by their types: which tensors hold them, how they stand on the wire.

Source: TensorFlow core/util/proto/proto_utils.{h,cc}, descriptors.cc.
"""

import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import copysign, inf
from typing import Any, cast

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from opkernel.device.string_tensors import gather_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef.text.field_label import is_packed, is_repeated
from opkernel.ops.kernel_types import WIDE_FLOATS
from opkernel.ops.parsing.wire import WireError, read_varint, varints, write_varint
from opkernel.proto import TensorProto
from opkernel.types import DataType

Column = Any
"""Elements of a field: an `array` of numbers, or a list of bytes."""

_F = FieldDescriptor
_SIGNED = (DataType.DT_INT32, DataType.DT_INT64)
_UNSIGNED = (DataType.DT_UINT32, DataType.DT_UINT64)
_LONG = (DataType.DT_UINT64,)
_STRING = (DataType.DT_STRING,)
_BYTES_WIRE = 2
_AT_ONCE, _OF_ELEMENT = 1 << 12, 1 << 10
"""So many elements are read or written at once; the work of each."""
_FEW = 32
"""So many bytes of elements are read one by one."""
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
        if wire not in (self.wire, _BYTES_WIRE):
            return found
        if self.wire == _BYTES_WIRE:
            found.append(data[start:end])
            return found
        if end - start > _FEW:
            for part in in_time(self._parts(data, start, end), _AT_ONCE << 4):
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
            size = min(_AT_ONCE, payload.size)
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
            return (
                write_varint(self.number << 3 | _BYTES_WIRE) + write_varint(len(content)) + content
            )
        return self._content(values, write_varint(self.number << 3 | self.wire))

    def _content(self, values: Any, tag: bytes) -> bytes:
        if len(values) <= _AT_ONCE:
            return b"".join([tag + self.write(value) for value in values.tolist()])
        parts = [values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE)]
        contents = (self._content(part, tag) for part in in_time(parts, _AT_ONCE * _OF_ELEMENT))
        return gather_bytes(contents, "a message")


def _cast(value: Any, bits: int, is_signed: bool) -> int:
    """The integer in so many bits, as C++ casts it."""
    number = int(value) & (1 << bits) - 1
    return number - (number >> bits - 1 << bits) if is_signed else number


def _as_bits(values: Any, bits: int, is_signed: bool) -> Any:
    """Integers of 64 bits, cast to fewer as C++ casts them."""
    return values.view(np.uint64).astype(f"{'i' if is_signed else 'u'}{bits // 8}")


def _varint_codec(bits: int, *, is_signed: bool = False, is_zigzag: bool = False) -> Any:
    def read(data: bytes, at: int, end: int) -> tuple[int, int]:
        value, at = read_varint(data, at, end)
        if is_zigzag:
            value = _cast(value, bits, False)
            return value >> 1 ^ -(value & 1), at
        return _cast(value, bits, is_signed), at

    def read_many(payload: Any) -> Any:
        values = _as_bits(varints(payload), bits, is_signed and not is_zigzag)
        return (
            (values >> 1).astype(np.int64) ^ -(values & 1).astype(np.int64) if is_zigzag else values
        )

    def write(value: Any) -> bytes:
        number = _cast(value, bits, is_signed)
        if is_zigzag:
            number = number << 1 ^ number >> bits - 1
        return write_varint(number & 2**64 - 1)

    return 0, "q" if is_signed or is_zigzag else "Q", read, read_many, write


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
    _BYTES_WIRE,
    "",
    _whole,
    lambda payload: payload,
    lambda value: write_varint(len(value)) + bytes(value),
)
_BOOL = _varint_codec(64)

_CODECS: dict[int, tuple[tuple[DataType, ...], Any]] = {
    _F.TYPE_DOUBLE: ((DataType.DT_DOUBLE,), _fixed_codec("<d")),
    _F.TYPE_FLOAT: (WIDE_FLOATS, _fixed_codec("<f")),
    _F.TYPE_INT64: ((DataType.DT_INT64,), _varint_codec(64, is_signed=True)),
    _F.TYPE_UINT64: (_LONG, _varint_codec(64)),
    _F.TYPE_INT32: (_SIGNED, _varint_codec(32, is_signed=True)),
    _F.TYPE_FIXED64: (_LONG, _fixed_codec("<Q")),
    _F.TYPE_FIXED32: (_UNSIGNED, _fixed_codec("<I")),
    _F.TYPE_BOOL: (
        (DataType.DT_BOOL,),
        (
            0,
            "B",
            lambda data, at, end: (lambda v, stop: (v != 0, stop))(*_BOOL[2](data, at, end)),
            lambda payload: _BOOL[3](payload) != 0,
            _BOOL[4],
        ),
    ),
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
    if dtype not in dtypes:
        raise InvalidArgumentError(
            f"Unexpected output type for {message.full_name}.{name}: {dtype.string}"
        )
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
