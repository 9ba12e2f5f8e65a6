"""Checkpoints of format V1, in which slices of tensors stand in tables: SlicesReader, and SlicesWriter.

A file is a table: under the empty key stands what there is (SavedTensorSliceMeta), and under the name of each slice
its elements as a TensorProto. A checkpoint is one file, or several with names like PREFIX-00000-of-00002. The writer
writes files byte for byte as TensorFlow writes them.

Source: TensorFlow core/util/tensor_slice_reader.cc, tensor_slice_writer.cc, tensor_slice_set.cc,
saved_tensor_slice_util.cc.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from opkernel.checkpoint.atomic_files import OpenPlace, opened_place, place_of, replaced_file
from opkernel.checkpoint.checkpoint_reader import (
    CheckpointReader,
    StoredTensor,
    check_version,
    checked_parts,
)
from opkernel.checkpoint.sstable import Table, write_table
from opkernel.checkpoint.tensor_slice import TensorSlice, slice_key
from opkernel.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    OpError,
    UnimplementedError,
)
from opkernel.file_errors import file_errors
from opkernel.files import Opener, open_to_read
from opkernel.proto import DecodeError, SavedSliceMeta, SavedTensorSlices, TensorProto
from opkernel.types import (
    NUMBER_TYPES,
    Array,
    DataType,
    TensorShape,
    natural_dtype,
    tensor_from_proto,
)
from opkernel.types.tensor import value_field

_META_KEY = b""


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
        check_version(file, meta.versions)
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
        entry = self._tensors.setdefault(meta.name, _Slices(dtype, shape))
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

    def __init__(self, dtype: DataType, shape: TensorShape) -> None:
        self.tables: dict[TensorSlice, Table] = {}  # they come file by file
        super().__init__(dtype, shape, self.tables.keys())


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


_PRODUCER = 1
_NOT_SAVED = {DataType.DT_BFLOAT16, DataType.DT_QINT16, DataType.DT_QUINT16}
_REFUSED_AS_ARGUMENTS = {DataType.DT_UINT32, DataType.DT_UINT64}
_TYPES = {DataType.DT_BOOL, DataType.DT_STRING, *NUMBER_TYPES} - _NOT_SAVED - _REFUSED_AS_ARGUMENTS
"""The types that the format has."""


class SlicesWriter:
    """Writes a checkpoint of format V1: `add` slices, then `finish`.

    Args:
        path: The file; it is replaced as a whole.
        open_place: Opens its directory.
    """

    def __init__(self, path: str | os.PathLike[str], *, open_place: OpenPlace = place_of) -> None:
        self._path = os.fspath(path)
        self._open_place = open_place
        self._meta: dict[str, SavedSliceMeta] = {}
        self._data: dict[bytes, bytes] = {}

    def add(
        self,
        name: str,
        shape: Sequence[int],
        tensor_slice: TensorSlice,
        value: Any,
        dtype: DataType | None = None,
    ) -> None:
        """Add a slice of a tensor of a shape.

        The type is that of the array, where none is given.

        Raises:
            InternalError: the tensor has another shape or type in another slice, or the value has
                not the shape of the slice.
            InvalidArgumentError: the slice was added before, or is uint32 or uint64.
            UnimplementedError: the format has no such type.
        """
        array = np.asarray(value)
        dtype = natural_dtype(array) if dtype is None else dtype
        if dtype not in _TYPES:
            refusal = InvalidArgumentError if dtype in _REFUSED_AS_ARGUMENTS else UnimplementedError
            raise refusal(f"Checkpoints of format V1 hold no {dtype.tf_name} ({name})")
        tensor_slice.check_holds(array.shape, shape)
        meta = SavedSliceMeta(name=name, shape=TensorShape(shape).to_proto(), type=dtype)
        known = self._meta.setdefault(name, meta)
        if (known.shape, known.type) != (meta.shape, meta.type):
            raise InternalError(f"Tensor {name} was added with another type or shape")
        key = slice_key(name, tensor_slice)
        if key in self._data:
            raise InvalidArgumentError(f"Slice {tensor_slice} of tensor {name} was added before")
        known.slice.append(tensor_slice.to_proto())
        saved = SavedTensorSlices()
        saved.data.name = name
        saved.data.slice.CopyFrom(tensor_slice.to_proto())
        saved.data.data.CopyFrom(_proto_of(array, dtype))
        self._data[key] = saved.SerializeToString(deterministic=True)

    def finish(self) -> None:
        """Write the file.

        Raises:
            NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be written.
        """
        saved = SavedTensorSlices()
        saved.meta.tensor.extend(self._meta.values())
        saved.meta.versions.producer = _PRODUCER
        content = BytesIO()
        write_table(content, saved.SerializeToString(deterministic=True), self._data)
        directory, name = opened_place(self._path, self._open_place)
        with directory, replaced_file(directory, name) as file:
            file.write(content.getvalue())


def _proto_of(array: np.ndarray[Any, Any], dtype: DataType) -> TensorProto:
    """The elements of an array as the format has them: in the field of their type."""
    proto = TensorProto()
    flat = array.ravel()
    if dtype.is_complex:
        flat = flat.view(flat.real.dtype)
    elif dtype is DataType.DT_HALF:
        flat = flat.view(np.uint16)
    getattr(proto, value_field(dtype)).extend(flat.tolist())
    return proto
