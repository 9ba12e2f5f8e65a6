"""BundleReader: checkpoints of format V2, TensorBundles.

A bundle has an index, PREFIX.index, a table of BundleEntryProtos by key, and data files,
PREFIX.data-00000-of-00001. Data are read with `pread`, and not through mapped memory: a file that is cut short
while it is read is an error, and not the end of the process. The files are opened together, so that a reader goes
on with its checkpoint when another one replaces it.

The data of a tensor of strings begin with the strings' lengths, as varints, then come the masked checksum of the lengths
as numbers of 4 bytes (8 for a string of 4 GiB or more), and the strings. The checksum of the tensor goes over the same
numbers, their checksum, and the strings. `bundle_variants` says how variants stand there.

Source: TensorFlow core/util/tensor_bundle/tensor_bundle.cc.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.checkpoint.bundle_variants import read_variants
from opkernel.checkpoint.checkpoint_reader import (
    CheckpointReader,
    StoredTensor,
    check_version,
    checked_parts,
)
from opkernel.checkpoint.crc32c import crc32c, mask, unmask
from opkernel.checkpoint.sstable import Table
from opkernel.checkpoint.tensor_slice import TensorSlice, slice_key
from opkernel.errors import DataLossError, OpError, OutOfRangeError
from opkernel.file_errors import file_errors
from opkernel.files import Opener, open_to_read
from opkernel.proto import BundleEntryProto, BundleHeaderProto, DecodeError
from opkernel.types import Array, DataType, TensorShape
from opkernel.types.varints import read_varints, strings_of_lengths, varint

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
    if count > len(data):
        raise DataLossError(f"{len(data)} bytes cannot hold {count} strings")
    lengths, position = read_varints(data, count)
    crc = _checksum_of_lengths(lengths)
    stored = data[position : position + 4]
    if len(stored) < 4 or struct.unpack("<I", stored)[0] != mask(crc):
        raise DataLossError("the checksum of the strings' lengths is wrong")
    position += 4
    if position + sum(lengths) != len(data):
        raise DataLossError("the strings have other lengths than the tensor has bytes")
    crc = crc32c(data[position:], crc32c(stored, crc))
    return strings_of_lengths(data, position, lengths), crc


_OBJECTS = {DataType.DT_STRING: read_strings, DataType.DT_VARIANT: read_variants}
"""What reads the tensors whose elements are objects."""


def _checksum_of_lengths(lengths: Sequence[int]) -> int:
    if all(length <= _MOST_32_BITS for length in lengths):
        return crc32c(struct.pack(f"<{len(lengths)}I", *lengths))
    packed = [struct.pack("<I" if n <= _MOST_32_BITS else "<Q", n) for n in lengths]
    return crc32c(b"".join(packed))


_HEADER_KEY = b""
_READ_AT_ONCE = 1 << 22
_OPENED_AT_ONCE = 16
_MOST_TRIES = 16


def index_file(prefix: str) -> str:
    """The name of the index of a bundle."""
    return f"{prefix}.index"


def data_file(prefix: str, shard: int, num_shards: int) -> str:
    """The name of a data file of a bundle."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


class BundleReader(CheckpointReader):
    """A checkpoint of format V2.

    Args:
        prefix: What its files' names begin with.
        open_file: Opens each of its files.

    Attributes:
        num_shards: The number of data files.

    Raises:
        NotFoundError: there is no index.
        DataLossError: the index is damaged.
        UnimplementedError: a newer TensorFlow wrote it.
        OpError: `open_file` refuses a file; the same holds of all methods.
    """

    def __init__(self, prefix: str, open_file: Opener = open_to_read) -> None:
        self.path = prefix
        self._open_file = open_file
        self._lock = threading.Lock()
        self._files: dict[int, int] = {}
        self._entries: dict[str, _BundleEntry] = {}
        self._keys: list[str] | None = None
        for _ in range(_MOST_TRIES):
            self._open()
            if self._table.is_current():
                return
            self.close()  # another checkpoint came in its place meanwhile
        self._open()

    def _open(self) -> None:
        """Open the index, and the data files unless they are many."""
        with file_errors(index_file(self.path)):
            self._table = Table(index_file(self.path), self._open_file)
        try:
            self.num_shards, self._swapped = self._header()
            for shard in range(self.num_shards if self.num_shards <= _OPENED_AT_ONCE else 0):
                name = data_file(self.path, shard, self.num_shards)
                with suppress(OSError):  # it is told when a tensor of the file is read
                    self._files[shard] = self._open_file(name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._table.close()
            for descriptor in self._files.values():
                os.close(descriptor)
            self._files.clear()

    def __del__(self) -> None:
        if hasattr(self, "_table"):
            self.close()

    def keys(self) -> list[str]:
        """The keys of all tensors, sorted."""
        with self._lock:
            if self._keys is None:
                keys = [key for key, _ in self._table if key and key[0]]  # 0 begins those of slices
                self._keys = [key.decode("utf-8", "surrogateescape") for key in keys]
            return [*self._keys]

    def _header(self) -> tuple[int, bool]:
        """The number of data files, and whether bytes are in the other order than here."""
        data = self._table.get(_HEADER_KEY)
        if data is None:
            raise DataLossError(f"{index_file(self.path)} is damaged: its header is missing")
        try:
            header = BundleHeaderProto.FromString(data)
        except DecodeError as error:
            raise DataLossError(f"{index_file(self.path)} is damaged: its header") from error
        check_version(self.path, header.version)
        if header.num_shards < 0:
            raise DataLossError(f"{self.path} is damaged: it has {header.num_shards} data files")
        is_big = header.endianness == BundleHeaderProto.BIG
        return header.num_shards, is_big == np.little_endian

    def _entry(self, key: str) -> _BundleEntry | None:
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                data = self._table.get(key.encode("utf-8", "surrogateescape")) if key else None
                if data is None:
                    return None
                found = self._entries[key] = self._parsed(key, data)
            return found

    def _parsed(self, what: str, data: bytes) -> _BundleEntry:
        try:
            return _BundleEntry(BundleEntryProto.FromString(data), self.num_shards)
        except (DecodeError, OpError) as error:
            raise DataLossError(f"{self._named(what)}: its entry is damaged: {error}") from error

    def _whole(self, key: str, entry: StoredTensor) -> Array:
        assert isinstance(entry, _BundleEntry)
        return self._value(key, entry)

    def _part(self, key: str, entry: StoredTensor, part: TensorSlice) -> Array:
        what = f"{key} {part}"
        with self._lock:
            data = self._table.get(slice_key(key, part))
        if data is None:
            raise DataLossError(f"{self._named(key)}: slice {part} is missing")
        found = self._parsed(what, data)
        if found.dtype is not entry.dtype or tuple(found.shape) != part.shape_of(entry.shape):
            raise DataLossError(
                f"{self._named(key)}: slice {part} is stored as {found.dtype.tf_name}{found.shape}"
            )
        return self._value(what, found)

    def _value(self, what: str, entry: _BundleEntry) -> Array:
        """The elements of an entry, whose checksum is verified."""
        dtype, proto = entry.dtype, entry.proto
        count = entry.shape.num_elements()
        if dtype.size and proto.size != count * dtype.size:
            raise DataLossError(
                f"{self._named(what)}: {dtype.tf_name}{entry.shape} has {count * dtype.size} bytes, "
                f"and {proto.size} are stored"
            )
        read = _OBJECTS.get(dtype)
        if read is not None:
            data = np.empty(proto.size, np.uint8)
            self._read(what, proto, data, with_crc=False)
            return self._objects(what, entry, data.tobytes(), read)
        array: Array = np.empty(tuple(entry.shape), dtype.numpy_dtype)
        self._check(what, proto, self._read(what, proto, array.reshape(-1).view(np.uint8)))
        return array.byteswap(inplace=True) if self._swapped else array

    def _objects(
        self, what: str, entry: _BundleEntry, data: bytes, read: Callable[..., Any]
    ) -> Array:
        try:
            objects, crc = read(data, entry.shape.num_elements())
        except DataLossError as error:
            raise DataLossError(f"{self._named(what)} is damaged: {error.message}") from error
        self._check(what, entry.proto, crc)
        result = np.empty(len(objects), object)
        result[:] = objects
        return result.reshape(tuple(entry.shape))

    def _check(self, what: str, proto: BundleEntryProto, crc: int) -> None:
        expected = unmask(proto.crc32c)
        if crc != expected:
            raise DataLossError(
                f"{self._named(what)} is damaged: its checksum in "
                f"{data_file(self.path, proto.shard_id, self.num_shards)} is {crc:#010x}, and "
                f"{expected:#010x} in the index"
            )

    def _read(
        self, what: str, proto: BundleEntryProto, data: Array, *, with_crc: bool = True
    ) -> int:
        """Read the bytes of an entry; returns their checksum, taken while they are in the processor's cache.

        Raises:
            OutOfRangeError: the data file ends before them.
            NotFoundError: it is missing.
        """
        name = data_file(self.path, proto.shard_id, self.num_shards)
        with self._lock:
            descriptor = self._opened(what, name, proto.shard_id)
        left = os.fstat(descriptor).st_size - proto.offset
        if proto.size > left:
            raise OutOfRangeError(
                f"{self._named(what)}: {name} is cut short: {proto.size} bytes are stored at byte "
                f"{proto.offset}, {max(left, 0)} are there"
            )
        done = crc = 0
        while done < proto.size:
            piece = data.data[done : done + _READ_AT_ONCE]
            read = os.preadv(descriptor, [piece], proto.offset + done)
            if not read:
                raise OutOfRangeError(
                    f"{self._named(what)}: {name} was cut short while it was read"
                )
            if with_crc:
                crc = crc32c(piece[:read], crc)
            done += read
        return crc

    def _opened(self, what: str, name: str, shard: int) -> int:
        """The descriptor of a data file."""
        self._table.check_open()
        descriptor = self._files.get(shard)
        if descriptor is None:
            with file_errors(f"{self._named(what)}: {name}"):
                descriptor = self._files[shard] = self._open_file(name)
        return descriptor


class _BundleEntry(StoredTensor):
    """An entry of the index, checked.

    Raises:
        OpError: it has a type or shape that does not exist, or a place that no file has.
    """

    __slots__ = ("proto",)

    def __init__(self, proto: BundleEntryProto, num_shards: int) -> None:
        slices = [TensorSlice.from_proto(part) for part in proto.slices]
        dtype, shape = DataType(proto.dtype), TensorShape.from_proto(proto.shape)
        super().__init__(dtype, shape, checked_parts("the entry", shape, slices))
        self.proto = proto
        if dtype is DataType.DT_INVALID or dtype.is_ref:
            raise DataLossError(f"its type is {dtype.tf_name}")
        if not slices and not 0 <= proto.shard_id < num_shards:
            raise DataLossError(f"data file {proto.shard_id} of {num_shards}")
        if proto.offset < 0 or proto.size < 0:
            raise DataLossError(f"{proto.size} bytes at byte {proto.offset}")
