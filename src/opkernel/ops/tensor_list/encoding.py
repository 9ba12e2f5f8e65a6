"""The metadata of a tensor list in files: varints, and then the message of the element shape.

Source: TensorList::Encode and Decode in TensorFlow core/kernels/tensor_list.cc.
"""

from typing import NamedTuple

from opkernel.errors import InvalidArgumentError
from opkernel.proto import DecodeError, TensorShapeProto
from opkernel.types import DataType, PartialTensorShape

__all__ = ["ListMetadata", "decode_metadata", "encode_metadata"]

_MAX_VARINT_BITS = 64


class ListMetadata(NamedTuple):
    """The data about a list in a file, beside its tensors."""

    unset: list[int]
    """Where the list has elements that were not set yet."""
    element_dtype: DataType
    max_num_elements: int
    element_shape: PartialTensorShape


def encode_metadata(metadata: ListMetadata) -> bytes:
    """The bytes of the metadata."""
    numbers = [
        len(metadata.unset),
        *metadata.unset,
        metadata.element_dtype,
        metadata.max_num_elements % 2**_MAX_VARINT_BITS,
    ]
    shape = metadata.element_shape.to_proto().SerializeToString()
    return b"".join(map(_varint, numbers)) + shape


def decode_metadata(content: bytes) -> ListMetadata:
    """The metadata that the bytes hold.

    Raises:
        InvalidArgumentError: they are malformed.
    """
    count, position = _read_varint(content, 0)
    if count > len(content):
        raise InvalidArgumentError(f"A tensor list of {len(content)} bytes lists {count} indices")
    unset = []
    for _ in range(count):
        index, position = _read_varint(content, position)
        unset.append(index)
    dtype, position = _read_varint(content, position)
    maximum, position = _read_varint(content, position)
    try:
        shape = TensorShapeProto.FromString(content[position:])
    except DecodeError as error:
        raise InvalidArgumentError(f"A tensor list's shape is malformed: {error}") from None
    low_bits = maximum % 2**32
    signed = low_bits - 2**32 if low_bits >= 2**31 else low_bits
    return ListMetadata(unset, DataType(dtype), signed, PartialTensorShape.from_proto(shape))


def _varint(number: int) -> bytes:
    content = bytearray()
    while number >= 0x80:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    content.append(number)
    return bytes(content)


def _read_varint(content: bytes, position: int) -> tuple[int, int]:
    """The varint at `position`, and its end."""
    value = 0
    for shift in range(0, _MAX_VARINT_BITS, 7):
        if position >= len(content):
            break
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise InvalidArgumentError("The metadata of a tensor list ends within a number")
