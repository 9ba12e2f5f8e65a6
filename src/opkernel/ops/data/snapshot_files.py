"""Files of elements, as tf.data's snapshots have them.

Version 1 is a sequence of records, each with its size before it: an element as a SnapshotRecord or, with Snappy, the
sizes of its tensors and then all of them compressed. Version 2 is a TFRecord file with a record for each tensor.

A folder of shards has a folder for each shard: `00000000.shard/00000000.snapshot` and so on. Files are written whole:
each appears under its name once it is complete.

Source: TensorFlow core/data/snapshot_utils.{h,cc}.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO

import numpy as np

from opkernel.checkpoint.atomic_files import replaced_file
from opkernel.checkpoint.snappy import compressed, decompressed
from opkernel.device.opened_files import read_whole
from opkernel.device.permissions import Permissions
from opkernel.errors import DataLossError, InternalError, InvalidArgumentError, NotFoundError
from opkernel.file_errors import file_errors
from opkernel.io.byte_stream import WINDOW_BITS, ByteStream
from opkernel.io.record_format import record_parts
from opkernel.io.snappy_stream import SNAPPY, SnappyWriter
from opkernel.kernel import check_allocation
from opkernel.ops.data.dataset import Element
from opkernel.ops.data.iterator_resource import check_types
from opkernel.ops.files.reader_formats import FileReader, TFRecordReader
from opkernel.proto import (
    DecodeError,
    SnapshotMetadataRecord,
    SnapshotRecord,
    SnapshotTensorMetadata,
    TensorProto,
)
from opkernel.types import DataType, tensor_from_proto, tensor_to_proto

METADATA = "snapshot.metadata"
SHARD_SUFFIX = ".shard"
_COMPRESSIONS = ("", *WINDOW_BITS, SNAPPY)
_NO_COPIES = frozenset({DataType.DT_STRING, DataType.DT_VARIANT, DataType.DT_RESOURCE})
"""The types whose tensors are not their bytes."""


def checked_compression(given: bytes | str) -> str:
    """The compression of an attr.

    Raises:
        InvalidArgumentError: there is no such compression.
    """
    name = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
    if name == "AUTO":
        return SNAPPY
    if name not in _COMPRESSIONS:
        raise InvalidArgumentError(f"Unsupported compression {name!r}")
    return name


# Writing


class SnapshotWriter:
    """Writes a file of elements, which appears when `finish` has written all.

    Args:
        permissions: Which files may be written.
        path: The file; its folder and the two above it are made where they are missing.
        compression: How it is compressed.
        version: The version of the format, 1 or 2.
        dtypes: The types of the components.

    Raises:
        PermissionDeniedError: it may not be written.
        OpError: it cannot be written, as `file_errors` says.
    """

    def __init__(
        self,
        permissions: Permissions,
        path: str,
        compression: str,
        version: int,
        dtypes: Sequence[DataType],
    ) -> None:
        self._dtypes, self._is_framed = dtypes, version == 2
        self._packs = version == 1 and compression == SNAPPY
        self._stack = ExitStack()
        with file_errors(path):
            directory, name = permissions.place_to_write(path, makes=len(path))
        self._path = path
        self._stack.enter_context(directory)
        self._file: BinaryIO = self._stack.enter_context(replaced_file(directory, name))
        stream_compression = "" if self._packs else compression
        self._snappy = SnappyWriter(self._file) if stream_compression == SNAPPY else None
        bits = WINDOW_BITS.get(stream_compression)
        self._deflate = None if bits is None else zlib.compressobj(wbits=bits)

    def write(self, element: Element) -> None:
        """Write an element."""
        pairs = [*zip(element, self._dtypes, strict=True)]
        if self._packs:
            self._write_packed(pairs)
        elif self._is_framed:
            for tensor, dtype in pairs:
                self._write_framed(tensor_to_proto(np.asarray(tensor), dtype).SerializeToString())
        else:
            protos = [tensor_to_proto(np.asarray(tensor), dtype) for tensor, dtype in pairs]
            self._write_sized(SnapshotRecord(tensor=protos).SerializeToString())

    def _write_packed(self, pairs: Sequence[tuple[Any, DataType]]) -> None:
        metadata, parts = SnapshotTensorMetadata(), []
        for tensor, dtype in pairs:
            array = np.asarray(tensor)
            if dtype in _NO_COPIES:
                part = tensor_to_proto(array, dtype).SerializeToString()
            else:
                part = np.ascontiguousarray(array).tobytes()
            parts.append(part)
            entry = metadata.tensor_metadata.add(tensor_size_bytes=len(part))
            entry.tensor_shape.SetInParent()
            for size in array.shape:
                entry.tensor_shape.dim.add(size=size)
        self._write_sized(metadata.SerializeToString())
        self._write_sized(compressed(b"".join(parts)))

    def _write_framed(self, data: bytes) -> None:
        self._write(b"".join(record_parts(data)))

    def _write_sized(self, data: bytes) -> None:
        self._write(struct.pack("<Q", len(data)) + data)

    def _write(self, data: bytes) -> None:
        with file_errors(self._path):
            if self._snappy is not None:
                self._snappy.write(data)
            else:
                self._file.write(data if self._deflate is None else self._deflate.compress(data))

    def finish(self) -> None:
        """Bring the file to the disk, under its name."""
        with file_errors(self._path):
            if self._snappy is not None:
                self._snappy.finish()
            if self._deflate is not None:
                self._file.write(self._deflate.flush())
            self._stack.close()

    def discard(self) -> None:
        """Delete what was written."""
        error = InternalError("The file was given up")
        self._stack.__exit__(InternalError, error, None)


class ShardWriters:
    """Writes elements to the shards of a folder, each to its own file.

    Args:
        permissions: Which files may be written.
        folder: The folder, of one run; it is made where it is missing.
        facts: The compression, the version and the types of the components, as for SnapshotWriter.
    """

    def __init__(self, permissions: Permissions, folder: str, *facts: Any) -> None:
        self._permissions, self._folder, self._facts = permissions, folder, facts
        self._writers: dict[int, SnapshotWriter] = {}
        path = os.path.join(folder, SHARD_SUFFIX)
        with file_errors(folder):
            permissions.place_to_write(path, makes=len(path))[0].close()

    def write(self, shard: int, element: Element, number: int = 0) -> None:
        """Write an element to a shard: to the file of a number."""
        writer = self._writers.get(shard)
        if writer is None:
            path = self.file(shard, number)
            writer = SnapshotWriter(self._permissions, path, *self._facts)
            self._writers[shard] = writer
        writer.write(element)

    def file(self, shard: int, number: int) -> str:
        """The file of a number of a shard."""
        return snapshot_file(shard_folder(self._folder, shard), number)

    def finish(self) -> None:
        """Bring all files to the disk."""
        while self._writers:
            self._writers.popitem()[1].finish()

    def discard(self) -> None:
        """Delete files that are not complete."""
        while self._writers:
            self._writers.popitem()[1].discard()


class RunWriters(ShardWriters):
    """Writes all elements to files that stand in the folder of a run itself."""

    def file(self, shard: int, number: int) -> str:
        """The file of a number."""
        return snapshot_file(self._folder, number)


def shard_folder(folder: str, shard: int) -> str:
    """The folder of a shard."""
    return os.path.join(folder, f"{shard % 2**64:08d}{SHARD_SUFFIX}")


def snapshot_file(folder: str, number: int) -> str:
    """The file of a number of a shard."""
    return os.path.join(folder, f"{number:08d}.snapshot")


def write_metadata(permissions: Permissions, folder: str, record: SnapshotMetadataRecord) -> None:
    """Write the file that says which run is the one to read, in the place of an earlier one.

    Raises:
        PermissionDeniedError: it may not be written.
        OpError: it cannot be written, as `file_errors` says.
    """
    path = os.path.join(folder, METADATA)
    with file_errors(path):
        directory, name = permissions.place_to_write(path, makes=len(path))
    with directory, replaced_file(directory, name) as file:
        file.write(record.SerializeToString())


# Reading


def read_metadata(permissions: Permissions, folder: str) -> SnapshotMetadataRecord | None:
    """The file that says which run is the one to read; None where there is none.

    Raises:
        PermissionDeniedError: it may not be read.
        DataLossError: it is damaged.
    """
    path = os.path.join(folder, METADATA)
    try:
        return SnapshotMetadataRecord.FromString(read_whole(permissions, path))
    except NotFoundError:
        return None
    except DecodeError as error:
        raise DataLossError(f"Could not parse the metadata of a snapshot in {path!r}") from error


class _SizedReader(FileReader):
    """Gives records that have their size before them."""

    def next_record(self, stream: ByteStream) -> tuple[int, bytes] | None:
        """Fewer bytes than a size has are the end."""
        header = stream.read(8)
        if len(header) < 8:
            return None
        size = int.from_bytes(header, "little")
        check_allocation((size,), DataType.DT_UINT8)
        data = stream.read(size)
        if len(data) < size:
            raise DataLossError(f"{os.fsdecode(self.state.current_work)!r} ends within a record")
        return 0, data


class SnapshotReader:
    """Reads the elements of a file.

    Args:
        permissions: Which files may be read.
        path: The file.
        compression: How it is compressed.
        version: The version of the format: 0, 1 or 2.
        dtypes: The types of the components.

    Raises:
        PermissionDeniedError: it may not be read.
        OpError: it cannot be opened, as `file_errors` says.
        InvalidArgumentError: there is no such version.
    """

    def __init__(
        self,
        permissions: Permissions,
        path: str,
        compression: str,
        version: int,
        dtypes: Sequence[DataType],
    ) -> None:
        if version not in (0, 1, 2):
            raise InvalidArgumentError(f"Snapshot reader version: {version} is not supported.")
        self._dtypes, self._path = tuple(dtypes), path
        self._is_framed = version == 2
        self._is_packed = version == 1 and compression == SNAPPY
        kind = TFRecordReader if self._is_framed else _SizedReader
        self._reader = kind("" if self._is_packed else compression, "SnapshotReader")
        self._reader.open(permissions, os.fsencode(path))

    def next(self) -> Element | None:
        """The next element; None at the end.

        Raises:
            DataLossError: the file is damaged.
            InvalidArgumentError: the element is of other types.
        """
        record = self._record()
        if record is None:
            return None
        if self._is_packed:
            return self._unpacked(record)
        if not self._is_framed:
            return self._tensors(self._parsed(SnapshotRecord, record).tensor)
        records = [record]
        while len(records) < len(self._dtypes):
            following = self._record()
            if following is None:
                raise DataLossError(f"{self._path!r} ends within an element")
            records.append(following)
        return self._tensors([self._parsed(TensorProto, one) for one in records])

    def close(self) -> None:
        """Close the file."""
        self._reader.finish_work()

    def _record(self) -> bytes | None:
        found = self._reader.next()
        return None if found is None else found[1]

    def _parsed(self, kind: Any, data: bytes) -> Any:
        try:
            return kind.FromString(data)
        except DecodeError as error:
            raise DataLossError(f"Could not parse a {kind.__name__} of {self._path!r}") from error

    def _tensors(self, protos: Sequence[TensorProto]) -> Element:
        check_types(self._dtypes, [_dtype_of(proto) for proto in protos])
        return tuple([tensor_from_proto(proto) for proto in protos])

    def _unpacked(self, record: bytes) -> Element:
        entries = self._parsed(SnapshotTensorMetadata, record).tensor_metadata
        packed = self._record()
        if packed is None or len(entries) != len(self._dtypes):
            raise DataLossError(f"{self._path!r} has an element of {len(entries)} tensors")
        content, start, element = decompressed(packed), 0, []
        for entry, dtype in zip(entries, self._dtypes, strict=True):
            end = start + entry.tensor_size_bytes
            part, start = content[start:end], end
            if dtype in _NO_COPIES:
                element.append(self._tensor(part, dtype))
                continue
            shape = check_allocation([dim.size for dim in entry.tensor_shape.dim], dtype)
            array = np.frombuffer(part, np.uint8)
            if array.size != int(np.prod(shape)) * dtype.numpy_dtype.itemsize:
                raise DataLossError(f"{self._path!r} has a tensor of another size than its shape")
            element.append(array.view(dtype.numpy_dtype).reshape(shape))
        if start != len(content):
            raise DataLossError(f"{self._path!r} has an element of another size than its tensors")
        return tuple(element)

    def _tensor(self, data: bytes, dtype: DataType) -> Any:
        proto = self._parsed(TensorProto, data)
        check_types([dtype], [_dtype_of(proto)])
        return tensor_from_proto(proto)


def _dtype_of(proto: TensorProto) -> DataType:
    try:
        return DataType(proto.dtype)
    except ValueError as error:
        raise DataLossError(f"A snapshot has a tensor of type {proto.dtype}") from error
