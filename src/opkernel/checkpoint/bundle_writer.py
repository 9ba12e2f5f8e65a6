"""BundleWriter: writes checkpoints of format V2, byte for byte as TensorFlow writes them.

A crash at any moment leaves the old or the new checkpoint. Data go to files that no index names yet. Then the index is
renamed, in one step. A checkpoint that replaces another of the same prefix has its data in a file of another name
than the one before it: `of-00001` and `of-00002` by turns, the latter with an empty second file.

Source: TensorFlow core/util/tensor_bundle/tensor_bundle.cc (BundleWriter, MergeBundles).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from opkernel.checkpoint.atomic_files import (
    flush_directory,
    locked_directory,
    rename,
    temporary_name,
    write_whole,
    written_file,
)
from opkernel.checkpoint.bundle_reader import BundleReader, data_file, index_file
from opkernel.checkpoint.crc32c import crc32c, mask
from opkernel.checkpoint.ordered_code import slice_key
from opkernel.checkpoint.sstable import Table, TableWriter
from opkernel.checkpoint.string_tensors import strings_as_bytes
from opkernel.checkpoint.tensor_slice import TensorSlice
from opkernel.errors import (
    DataLossError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from opkernel.file_errors import checked_path, file_error, file_errors
from opkernel.proto import BundleEntryProto, BundleHeaderProto, DecodeError
from opkernel.types import DataType, TensorShape, natural_dtype

__all__ = ["BundleWriter", "merge_bundles"]

Array = np.ndarray[Any, Any]
_PRODUCER = 1


class BundleWriter:
    """Writes a checkpoint: `add` tensors, then `finish`.

        with BundleWriter("model.ckpt-100") as writer:
            writer.add("kernel", kernel)

    At the end of a `with` block the checkpoint is finished; after an error in the block nothing is left of it.

    Args:
        prefix: What its files' names begin with; a checkpoint of this prefix is replaced.

    Raises:
        InvalidArgumentError: no file can have that prefix.
        NotFoundError, PermissionDeniedError, UnavailableError: the files cannot be written; the same holds
            of all methods.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        self._prefix = checked_path(prefix)
        self._entries: dict[bytes, BundleEntryProto] = {}
        self._offset = 0
        self._name = temporary_name(self._prefix)
        self._files = ExitStack()
        self._data: BinaryIO | None = None
        self._data = self._files.enter_context(written_file(self._name))

    def add(self, key: str, value: Any, dtype: DataType | None = None) -> None:
        """Add a tensor.

        Args:
            key: Its key.
            value: An array; strings as `bytes` objects.
            dtype: Its type, where the array leaves that open.

        Raises:
            InvalidArgumentError: the key is empty or was added before.
            UnimplementedError: it holds resources or variants.
        """
        self._add(_key(key), key, np.asarray(value), dtype)

    def add_slice(
        self,
        key: str,
        shape: Sequence[int],
        tensor_slice: TensorSlice,
        value: Any,
        dtype: DataType | None = None,
    ) -> None:
        """Add a slice of a tensor of a shape; a slice that is all of it is saved as a whole.

        Raises:
            InvalidArgumentError: the key is empty, or the slice was added before.
            InternalError: the tensor has another shape or type in another slice, or the value has
                not the shape of the slice.
            UnimplementedError: it holds resources or variants.
        """
        array = np.asarray(value)
        if array.shape != tensor_slice.shape_of(shape):
            raise InternalError(
                f"Slice {tensor_slice} of shape {TensorShape(shape)} cannot hold {TensorShape(array.shape)}"
            )
        if tensor_slice.within(shape) == TensorSlice.whole(len(shape)).within(shape):
            self.add(key, array, dtype)
            return
        entry = BundleEntryProto(
            dtype=_dtype(key, array, dtype), shape=TensorShape(shape).to_proto()
        )
        known = self._entries.setdefault(_key(key), entry)
        if (known.dtype, known.shape) != (entry.dtype, entry.shape) or (
            known is not entry and not known.slices
        ):
            raise InternalError(f"Tensor {key} was added with another type or shape")
        self._add(slice_key(key, tensor_slice), f"{key} {tensor_slice}", array, dtype)
        known.slices.append(tensor_slice.to_proto())

    def finish(self) -> None:
        """Write the index; with that the checkpoint is there.

        Raises:
            FailedPreconditionError: the writer was finished or discarded.
        """
        self._opened()
        self._data = None
        self._files.close()
        _publish(self._prefix, [self._name], self._entries)

    def discard(self) -> None:
        """Leave nothing of a checkpoint that is not finished."""
        if self._data is not None:
            self._data = None
            with suppress(_Discarded), self._files:
                raise _Discarded

    def __del__(self) -> None:
        if hasattr(self, "_data"):
            self.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.finish()
        else:
            self.discard()

    def _opened(self) -> BinaryIO:
        if self._data is None:
            raise FailedPreconditionError(f"The writer of {self._prefix} is finished")
        return self._data

    def _add(self, key: bytes, name: str, array: Array, dtype: DataType | None) -> None:
        file = self._opened()
        if key in self._entries:
            raise InvalidArgumentError(f"Adding duplicate key: {name}")
        dtype = _dtype(name, array, dtype)
        if dtype is DataType.DT_STRING:
            data, crc = strings_as_bytes(array.ravel().tolist())
            view: Any = data
        else:
            view = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            crc = crc32c(view)
        with file_errors(self._name):
            file.write(view)
        self._entries[key] = BundleEntryProto(
            dtype=dtype,
            shape=TensorShape(array.shape).to_proto(),
            offset=self._offset,
            size=len(view),
            crc32c=mask(crc),
        )
        self._offset += len(view)


class _Discarded(Exception):
    """Ends a file that is being written."""


def _key(key: str) -> bytes:
    if not key:
        raise InvalidArgumentError(
            "A tensor of a checkpoint needs a key: the empty one is the header's"
        )
    return key.encode("utf-8", "surrogateescape")


def _dtype(name: str, array: Array, dtype: DataType | None) -> DataType:
    found = natural_dtype(array) if dtype is None else dtype
    if not found.size and found is not DataType.DT_STRING:
        raise UnimplementedError(f"{name} is of type {found.tf_name}, which is not saved")
    return found


def merge_bundles(
    prefixes: Iterable[str], merged_prefix: str, *, allow_missing_files: bool = False
) -> None:
    """Make one checkpoint of several, whose files are gone afterwards.

    Args:
        prefixes: The checkpoints; a slice of a tensor is in one of them.
        merged_prefix: The checkpoint that is made; it may replace one.
        allow_missing_files: Leave out checkpoints that are not there, if there is any.

    Raises:
        InvalidArgumentError: a tensor is in two checkpoints, or has two types or shapes; or a checkpoint
            is missing, or all are.
        DataLossError: a checkpoint is damaged.
    """
    merged = _Merged()
    for prefix in prefixes:
        try:
            merged.take_in(prefix)
        except NotFoundError as error:
            if not allow_missing_files:
                raise InvalidArgumentError(f"There is no checkpoint {prefix}: {error}") from error
    if not merged.data_files:
        raise InvalidArgumentError(f"There is no checkpoint to be merged into {merged_prefix}")
    _publish(merged_prefix, merged.data_files, merged.entries)
    for prefix in merged.prefixes:
        if prefix != merged_prefix:
            index = index_file(prefix)
            with suppress(OSError):
                os.unlink(index)


class _Merged:
    """The entries and data files of several checkpoints."""

    def __init__(self) -> None:
        self.prefixes: list[str] = []
        self.data_files: list[str] = []
        self.entries: dict[bytes, BundleEntryProto] = {}

    def take_in(self, prefix: str) -> None:
        """Take in a checkpoint."""
        with BundleReader(prefix):  # checks the header
            table = Table(index_file(prefix))
            try:
                entries = [(key, value) for key, value in table]
            finally:
                table.close()
        header = BundleHeaderProto.FromString(entries[0][1])
        first = len(self.data_files)
        for key, value in entries[1:]:
            entry = _entry_of(value, header.num_shards, prefix)
            entry.shard_id += first
            self._put(key, entry)
        self.prefixes.append(prefix)
        for shard in range(header.num_shards):
            self.data_files.append(data_file(prefix, shard, header.num_shards))
            if not os.path.exists(self.data_files[-1]):
                break  # told when it is to be renamed; the index may claim any number of files

    def _put(self, key: bytes, entry: BundleEntryProto) -> None:
        known = self.entries.get(key)
        if known is None:
            self.entries[key] = entry
            return
        name = key.decode(errors="replace")
        if not (known.slices and entry.slices):
            raise InvalidArgumentError(f"Tensor {name} is in two of the checkpoints")
        if (known.dtype, known.shape) != (entry.dtype, entry.shape):
            raise InvalidArgumentError(f"Tensor {name} has two types or shapes")
        known.slices.extend(entry.slices)


def _entry_of(value: bytes, num_shards: int, prefix: str) -> BundleEntryProto:
    """An entry of an index.

    Raises:
        DataLossError: it is damaged, or its data file is none of the checkpoint's.
    """
    try:
        entry = BundleEntryProto.FromString(value)
    except DecodeError as error:
        raise DataLossError(f"{index_file(prefix)} is damaged: an entry") from error
    if not 0 <= entry.shard_id < num_shards and not entry.slices:
        raise DataLossError(
            f"{index_file(prefix)} is damaged: an entry is in data file {entry.shard_id} of {num_shards}"
        )
    return entry


def _publish(
    prefix: str, data_files: Sequence[str], entries: dict[bytes, BundleEntryProto]
) -> None:
    """Give data files their names, and write the index, which makes a checkpoint of them."""
    with locked_directory(prefix):  # others may save to the same prefix
        _publish_alone(prefix, data_files, entries)


def _publish_alone(
    prefix: str, data_files: Sequence[str], entries: dict[bytes, BundleEntryProto]
) -> None:
    count = _num_shards_of(prefix)
    old = _data_files_of(prefix, count)
    num_shards = len(data_files) + (len(data_files) == count)
    new = [data_file(prefix, shard, num_shards) for shard in range(num_shards)]
    for name, path in zip(data_files, new, strict=False):
        _link(name, path)
    for path in new[len(data_files) :]:
        write_whole(path, b"")
    name = temporary_name(index_file(prefix))
    with written_file(name) as file:
        _write_index(file, num_shards, entries)
    flush_directory(prefix)
    rename(name, index_file(prefix))
    flush_directory(prefix)
    for path in {*old, *data_files} - {*new}:
        with suppress(OSError):
            os.unlink(path)


def _link(name: str, path: str) -> None:
    """Give a file a second name, which a crash may have left to another one; or else rename it."""
    with suppress(OSError):
        os.unlink(path)
    try:
        os.link(name, path)
    except FileNotFoundError as error:
        raise file_error(name, error) from error
    except OSError:  # the file system has no links
        rename(name, path)


def _write_index(file: BinaryIO, num_shards: int, entries: dict[bytes, BundleEntryProto]) -> None:
    header = BundleHeaderProto(num_shards=num_shards)
    header.version.producer = _PRODUCER
    writer = TableWriter(file)
    writer.add(b"", header.SerializeToString(deterministic=True))
    for key in sorted(entries):
        writer.add(key, entries[key].SerializeToString(deterministic=True))
    writer.finish()


def _num_shards_of(prefix: str) -> int:
    """How many data files the index of a checkpoint claims; none where it cannot be read."""
    try:
        with BundleReader(prefix) as reader:
            return reader.num_shards
    except OpError:
        return 0


def _data_files_of(prefix: str, count: int) -> list[str]:
    """The data files of a checkpoint, one of so many files, that are there."""
    folder, name = os.path.split(prefix)
    own = re.compile(rf"{re.escape(name)}\.data-[0-9]{{5,}}-of-{count:05d}")
    return [os.path.join(folder, one) for one in os.listdir(folder or ".") if own.fullmatch(one)]
