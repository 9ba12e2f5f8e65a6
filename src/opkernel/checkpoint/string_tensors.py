"""Tensors of strings and of variants in the data files of bundles.

The strings' lengths come first, as varints, then the masked checksum of the lengths as numbers of 4 bytes (8 for
a string of 4 GiB or more), then the strings. The checksum of the tensor goes over the same numbers, their checksum,
and the strings.

Source: TensorFlow core/util/tensor_bundle/tensor_bundle.cc (WriteStringTensor, ReadStringTensor).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from opkernel.checkpoint.crc32c import crc32c, mask
from opkernel.checkpoint.varint import read_varint, varint
from opkernel.errors import DataLossError

_MOST_32_BITS = 0xFFFFFFFF


def strings_as_bytes(strings: Sequence[bytes]) -> tuple[bytes, int]:
    """Strings as a data file has them, and the checksum, which is not masked."""
    lengths = b"".join([varint(len(one)) for one in strings])
    crc = _checksum_of_lengths([len(one) for one in strings])
    stored = struct.pack("<I", mask(crc))
    data = b"".join(strings)
    return lengths + stored + data, crc32c(data, crc32c(stored, crc))


def read_strings(data: bytes, count: int) -> tuple[list[bytes], int]:
    """The strings of a data file, and their checksum, which is not masked.

    Raises:
        DataLossError: the data are damaged.
    """
    lengths, position = _lengths(data, count)
    crc = _checksum_of_lengths(lengths)
    stored = data[position : position + 4]
    if len(stored) < 4 or struct.unpack("<I", stored)[0] != mask(crc):
        raise DataLossError("the checksum of the strings' lengths is wrong")
    position += 4
    if position + sum(lengths) != len(data):
        raise DataLossError("the strings have other lengths than the tensor has bytes")
    crc = crc32c(data[position:], crc32c(stored, crc))
    strings = []
    for length in lengths:
        strings.append(data[position : position + length])
        position += length
    return strings, crc


def _lengths(data: bytes, count: int) -> tuple[list[int], int]:
    """The lengths of the strings, and the position after them."""
    if count > len(data):
        raise DataLossError(f"{len(data)} bytes cannot hold {count} strings")
    lengths, position = [], 0
    for _ in range(count):
        length, position = read_varint(data, position)
        lengths.append(length)
    return lengths, position


def _checksum_of_lengths(lengths: Sequence[int]) -> int:
    if all(length <= _MOST_32_BITS for length in lengths):
        return crc32c(struct.pack(f"<{len(lengths)}I", *lengths))
    packed = [struct.pack("<I" if n <= _MOST_32_BITS else "<Q", n) for n in lengths]
    return crc32c(b"".join(packed))
