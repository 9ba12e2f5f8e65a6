"""SlicesReader: checkpoints of format V1, in which slices of tensors stand in tables.

A file is a table: under the empty key stands what there is (SavedTensorSliceMeta), and under the name of each slice
its elements as a TensorProto. A checkpoint is one file, or several with names like PREFIX-00000-of-00002.

Source: TensorFlow core/util/tensor_slice_reader.cc, tensor_slice_set.cc, saved_tensor_slice_util.cc.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from opkernel.checkpoint.checkpoint_reader import (
    Array,
    CheckpointReader,
    StoredTensor,
    checked_parts,
)
from opkernel.checkpoint.ordered_code import slice_key
from opkernel.checkpoint.sstable import Table
from opkernel.checkpoint.tensor_slice import TensorSlice
from opkernel.errors import (
    DataLossError,
    InternalError,
    OpError,
    UnimplementedError,
)
from opkernel.file_errors import file_errors
from opkernel.files import Opener, open_to_read
from opkernel.proto import DecodeError, SavedSliceMeta, SavedTensorSlices, TensorProto
from opkernel.types import DataType, TensorShape, tensor_from_proto

_META_KEY = b""
_VERSION = 1


class SlicesReader(CheckpointReader):
    """A checkpoint of format V1.

    Args:
        path: What messages call it.
        files: Its files.
        open_file: Opens each of them.

    Raises:
        NotFoundError: a file is missing.
        DataLossError: a file is damaged.
        InternalError: a tensor has two types or shapes.
        UnimplementedError: a newer TensorFlow wrote it.
        OpError: `open_file` refuses a file.
    """

    def __init__(self, path: str, files: Sequence[str], open_file: Opener = open_to_read) -> None:
        self.path = path
        self._open_file = open_file
        self._lock = threading.Lock()
        self._tables: list[Table] = []
        self._tensors: dict[str, _Slices] = {}
        try:
            for file in files:
                self._add(file)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            for table in self._tables:
                table.close()

    def keys(self) -> list[str]:
        """The names of all tensors, sorted."""
        return sorted(self._tensors)

    def slices(self, key: str) -> list[TensorSlice]:
        """The slices that a tensor is stored in; none where it is stored as a whole."""
        parts = super().slices(key)
        return [] if len(parts) == 1 and parts[0].is_whole else parts

    def _add(self, file: str) -> None:
        """Take in a file."""
        with file_errors(file):
            table = Table(file, self._open_file)
        self._tables.append(table)
        data = table.get(_META_KEY)
        if data is None:
            raise DataLossError(f"{file} is damaged: it does not say which tensors it has")
        try:
            meta = SavedTensorSlices.FromString(data).meta
        except DecodeError as error:
            raise DataLossError(f"{file} is damaged: what it says of its tensors") from error
        if meta.versions.min_consumer > _VERSION:
            raise UnimplementedError(
                f"{file} needs a reader of version {meta.versions.min_consumer}: this one has version "
                f"{_VERSION}"
            )
        for tensor in meta.tensor:
            self._take_in(file, tensor, table)

    def _take_in(self, file: str, meta: SavedSliceMeta, table: Table) -> None:
        what = f"Tensor {meta.name} of {file}"
        try:
            dtype, shape = DataType(meta.type), TensorShape.from_proto(meta.shape)
            slices = [TensorSlice.from_proto(part) for part in meta.slice]
        except OpError as error:
            raise DataLossError(f"{what} is damaged: {error.message}") from error
        if dtype is DataType.DT_INVALID or dtype.is_ref:
            raise DataLossError(f"{what} is damaged: its type is {dtype.tf_name}")
        entry = self._tensors.setdefault(meta.name, _Slices(dtype, shape, []))
        if (entry.dtype, tuple(entry.shape)) != (dtype, tuple(shape)):
            raise InternalError(
                f"{what} is {dtype.tf_name}{shape}, and {entry.dtype.tf_name}{entry.shape} in another file"
            )
        for part in checked_parts(what, shape, slices):
            entry.tables[part] = table

    def _entry(self, key: str) -> StoredTensor | None:
        return self._tensors.get(key)

    def _whole(self, key: str, entry: StoredTensor) -> Array:
        raise DataLossError(f"{self._named(key)}: no slice of it is stored")

    def _part(self, key: str, entry: StoredTensor, part: TensorSlice) -> Array:
        assert isinstance(entry, _Slices)
        with self._lock:
            data = entry.tables[part].get(slice_key(key, part))
        if data is None:
            raise DataLossError(f"{self._named(key)}: slice {part} is missing")
        try:
            proto = SavedTensorSlices.FromString(data).data.data
            return _elements(proto, entry.dtype, TensorShape(part.shape_of(entry.shape)))
        except (DecodeError, OpError, ValueError) as error:
            raise DataLossError(f"{self._named(key)}: slice {part} is damaged: {error}") from error


class _Slices(StoredTensor):
    """What the files say of a tensor, and the file of each slice."""

    __slots__ = ("tables",)

    def __init__(self, dtype: DataType, shape: TensorShape, slices: Sequence[TensorSlice]) -> None:
        self.tables: dict[TensorSlice, Table] = {}
        super().__init__(dtype, shape, slices)
        self.slices = self.tables.keys()  # type: ignore[assignment]  # they come file by file


def _elements(proto: TensorProto, dtype: DataType, shape: TensorShape) -> Array:
    """The elements of a slice; the proto has neither type nor shape.

    Raises:
        DataLossError: it has another number of elements.
    """
    whole = TensorProto()
    whole.CopyFrom(proto)
    whole.dtype = dtype
    count = _count(proto, dtype)
    if count != shape.num_elements():
        raise DataLossError(f"it has {count} elements, and shape {shape}")
    whole.tensor_shape.CopyFrom(shape.to_proto())
    return tensor_from_proto(whole)


def _count(proto: TensorProto, dtype: DataType) -> int:
    """The number of elements that a proto has."""
    if proto.tensor_content:
        return len(proto.tensor_content) // max(dtype.size, 1)
    values = next((field for field, _ in proto.ListFields() if field.name.endswith("_val")), None)
    count = len(getattr(proto, values.name)) if values is not None else 0
    return count // 2 if dtype.is_complex else count
