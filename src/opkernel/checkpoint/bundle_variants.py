"""Variants in the data files of checkpoints.

Each variant is a varint with its length, a serialized VariantTensorDataProto, and the masked checksum of all that comes
before, in which lengths count as numbers of 8 bytes.

Source: WriteVariantTensor and ReadVariantTensor in TensorFlow core/util/tensor_bundle/tensor_bundle.cc.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from opkernel.checkpoint.crc32c import crc32c, mask
from opkernel.errors import DataLossError, OpError, UnimplementedError
from opkernel.proto import DecodeError, VariantTensorDataProto
from opkernel.types import Variant, variant_from_proto
from opkernel.types.varints import read_varint, varint


def variants_as_bytes(variants: Iterable[object], name: str) -> tuple[bytes, int]:
    """Variants as a data file has them, and the checksum, which is not masked.

    Raises:
        UnimplementedError: a variant cannot be saved; it holds what stands under the name.
    """
    parts, crc = [], 0
    for variant in variants:
        if not isinstance(variant, Variant):
            raise UnimplementedError(f"{name} holds {variant!r}, which is not saved")
        data = variant.to_proto().SerializeToString()
        crc = crc32c(data, crc32c(struct.pack("<Q", len(data)), crc))
        stored = struct.pack("<I", mask(crc))
        crc = crc32c(stored, crc)
        parts += [varint(len(data)), data, stored]
    return b"".join(parts), crc


def read_variants(data: bytes, count: int) -> tuple[Sequence[Variant], int]:
    """The variants of a data file, and their checksum, which is not masked.

    Raises:
        DataLossError: the data are damaged.
    """
    variants, crc, position = [], 0, 0
    for _ in range(count):
        length, position = read_varint(data, position)
        end = position + length
        stored = data[end : end + 4]
        crc = crc32c(data[position:end], crc32c(struct.pack("<Q", length), crc))
        if len(stored) < 4 or struct.unpack("<I", stored)[0] != mask(crc):
            raise DataLossError("the checksum of a variant is wrong")
        try:
            variants.append(
                variant_from_proto(VariantTensorDataProto.FromString(data[position:end]))
            )
        except (DecodeError, OpError) as error:
            raise DataLossError(f"a variant cannot be parsed: {error}") from error
        crc, position = crc32c(stored, crc), end + 4
    if position != len(data):
        raise DataLossError("the variants have other lengths than the tensor has bytes")
    return variants, crc
