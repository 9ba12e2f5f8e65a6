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
from typing import Any, BinaryIO, Self

import numpy as np

from opkernel.checkpoint.atomic_files import (
    OpenPlace,
    Place,
    opened_place,
    place_of,
    replaced_file,
    temporary_name,
    written_file,
)
from opkernel.checkpoint.bundle_reader import BundleReader, data_file, index_file, strings_as_bytes
from opkernel.checkpoint.bundle_variants import variants_as_bytes
from opkernel.checkpoint.crc32c import crc32c, mask
from opkernel.checkpoint.sstable import Table, write_table
from opkernel.checkpoint.tensor_slice import TensorSlice, slice_key
from opkernel.errors import (
    DataLossError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from opkernel.file_errors import checked_path, file_errors
from opkernel.files import Directory, Opener
from opkernel.proto import BundleEntryProto, BundleHeaderProto, DecodeError
from opkernel.tracebacks import entrances
from opkernel.types import Array, DataType, TensorShape, natural_dtype

_PRODUCER = 1


@entrances
class BundleWriter:
    """Writes a checkpoint: `add` tensors, then `finish`.

        with BundleWriter("model.ckpt-100") as writer:
            writer.add("kernel", kernel)

    At the end of a `with` block the checkpoint is finished; after an error in the block nothing is left of it.

    Args:
        prefix: What its files' names begin with; a checkpoint of this prefix is replaced.
        open_place: Opens the directory of the files.

    Raises:
        InvalidArgumentError: no file can have that prefix.
        NotFoundError, PermissionDeniedError, UnavailableError: the files cannot be written; the same holds
            of all methods.
    """

    def __init__(self, prefix: str | os.PathLike[str], *, open_place: OpenPlace = place_of) -> None:
        self._prefix = checked_path(prefix)
        self._entries: dict[bytes, BundleEntryProto] = {}
        self._offset = 0
        self._files = ExitStack()
        self._data: BinaryIO | None = None
        self._directory, self._stem = opened_place(self._prefix, open_place)
        self._name = temporary_name(self._stem)
        try:
            self._data = self._files.enter_context(written_file(self._directory, self._name))
        except BaseException:
            self._directory.close()
            raise

    def add(self, key: str, value: Any, dtype: DataType | None = None) -> None:
        """Add a tensor.

        Args:
            key: Its key.
            value: An array; strings as `bytes` objects, variants as Variants.
            dtype: Its type, where the array leaves that open.

        Raises:
            InvalidArgumentError: the key is empty or was added before.
            UnimplementedError: it holds resources.
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
            UnimplementedError: it holds resources.
        """
        array = np.asarray(value)
        tensor_slice.check_holds(array.shape, shape)
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
        with self._directory as directory:
            try:
                self._data = None
                self._files.close()
                _publish(directory, self._stem, [(directory, self._name)], self._entries)
            except BaseException:  # an interrupt, too, leaves nothing behind
                with suppress(OSError):
                    directory.unlink(self._name)
                raise

    def discard(self) -> None:
        """Leave nothing of a checkpoint that is not finished."""
        if self._data is not None:
            self._data = None
            with self._directory, suppress(_Discarded), self._files:
                raise _Discarded

    def __del__(self) -> None:
        if hasattr(self, "_data"):
            self.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
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
        elif dtype is DataType.DT_VARIANT:
            view, crc = variants_as_bytes(array.ravel().tolist(), name)
        else:
            view = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            crc = crc32c(view)
        with file_errors(self._prefix):
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
    if found is DataType.DT_RESOURCE:
        raise UnimplementedError(f"{name} is of type {found.tf_name}, which is not saved")
    return found


def merge_bundles(
    prefixes: Iterable[str],
    merged_prefix: str,
    *,
    allow_missing_files: bool = False,
    open_place: OpenPlace = place_of,
) -> None:
    """Make one checkpoint of several, whose files are gone afterwards.

    Args:
        prefixes: The checkpoints; a slice of a tensor is in one of them.
        merged_prefix: The checkpoint that is made; it may replace one.
        allow_missing_files: Leave out checkpoints that are not there, if there is any.
        open_place: Opens the directories of the checkpoints.

    Raises:
        InvalidArgumentError: a tensor is in two checkpoints, or has two types or shapes; or a checkpoint
            is missing, or all are.
        DataLossError: a checkpoint is damaged.
    """
    with ExitStack() as places:
        merged, folders = _Merged(), dict[str, Directory]()
        for prefix in prefixes:
            try:
                folder, stem = os.path.split(prefix)
                if folder not in folders:
                    folders[folder] = places.enter_context(opened_place(prefix, open_place)[0])
                merged.take_in(prefix, folders[folder], stem)
            except NotFoundError as error:
                if not allow_missing_files:
                    raise InvalidArgumentError(
                        f"There is no checkpoint {prefix}: {error}"
                    ) from error
        if not merged.data_files:
            raise InvalidArgumentError(f"There is no checkpoint to be merged into {merged_prefix}")
        target, stem = opened_place(merged_prefix, open_place)
        _publish(places.enter_context(target), stem, merged.data_files, merged.entries)
        for prefix, directory, name in merged.indexes:
            if prefix != merged_prefix:
                with suppress(OSError):
                    directory.unlink(name)


class _Merged:
    """The entries and files of several checkpoints."""

    def __init__(self) -> None:
        self.indexes: list[tuple[str, Directory, str]] = []
        self.data_files: list[Place] = []
        self.entries: dict[bytes, BundleEntryProto] = {}

    def take_in(self, prefix: str, directory: Directory, stem: str) -> None:
        """Take in a checkpoint."""
        open_file = _opener_in(directory)
        with BundleReader(prefix, open_file):  # checks the header
            table = Table(index_file(prefix), open_file)
            try:
                entries = [(key, value) for key, value in table]
            finally:
                table.close()
        header = BundleHeaderProto.FromString(entries[0][1])
        first = len(self.data_files)
        for key, value in entries[1:]:
            try:
                entry = BundleEntryProto.FromString(value)
            except DecodeError as error:
                raise DataLossError(f"{index_file(prefix)} is damaged: an entry") from error
            if not 0 <= entry.shard_id < header.num_shards and not entry.slices:
                raise DataLossError(
                    f"{index_file(prefix)} is damaged: an entry is in data file {entry.shard_id} of "
                    f"{header.num_shards}"
                )
            entry.shard_id += first
            self._put(key, entry)
        self.indexes.append((prefix, directory, index_file(stem)))
        names = {*directory.names()}
        for shard in range(header.num_shards):
            name = data_file(stem, shard, header.num_shards)
            self.data_files.append((directory, name))
            if name not in names:
                break  # reported when the file is to get its name: the index may claim any number of files

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


def _opener_in(directory: Directory) -> Opener:
    """Opens files by their paths in a directory."""
    return lambda path: directory.open(os.path.basename(path))


def _publish(
    directory: Directory,
    stem: str,
    data_files: Sequence[Place],
    entries: dict[bytes, BundleEntryProto],
) -> None:
    """Give data files their names, and write the index, which makes a checkpoint of them."""
    prefix = os.path.join(directory.path, stem)
    with file_errors(prefix), directory.locked():  # others may save to the same prefix
        count = _num_shards_of(directory, stem)
        own = re.compile(rf"{re.escape(stem)}\.data-[0-9]{{5,}}-of-{count:05d}")
        old = [(directory, one) for one in directory.names() if own.fullmatch(one)]
        num_shards = len(data_files) + (len(data_files) == count)
        new = [data_file(stem, shard, num_shards) for shard in range(num_shards)]
        for (source, name), path in zip(data_files, new, strict=False):
            with file_errors(os.path.join(source.path, name)):
                directory.take(source, name, path)
        for path in new[len(data_files) :]:
            with replaced_file(directory, path):
                pass  # an empty one
        with replaced_file(directory, index_file(stem)) as file:
            _write_index(file, num_shards, entries)
        for source, name in (*old, *data_files):  # none has a new name
            with suppress(OSError):
                source.unlink(name)


def _write_index(file: BinaryIO, num_shards: int, entries: dict[bytes, BundleEntryProto]) -> None:
    header = BundleHeaderProto(num_shards=num_shards)
    header.version.producer = _PRODUCER
    stored = {key: one.SerializeToString(deterministic=True) for key, one in entries.items()}
    write_table(file, header.SerializeToString(deterministic=True), stored)


def _num_shards_of(directory: Directory, stem: str) -> int:
    """How many data files the index of a checkpoint claims; none where it cannot be read."""
    try:
        prefix = os.path.join(directory.path, stem)
        with BundleReader(prefix, _opener_in(directory)) as reader:
            return reader.num_shards
    except OpError:
        return 0
