"""SlicesWriter: writes checkpoints of format V1, byte for byte as TensorFlow writes them.

Source: TensorFlow core/util/tensor_slice_writer.cc.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np

from opkernel.checkpoint.atomic_files import OpenPlace, opened_place, place_of, replaced_file
from opkernel.checkpoint.ordered_code import slice_key
from opkernel.checkpoint.sstable import TableWriter
from opkernel.checkpoint.tensor_slice import TensorSlice
from opkernel.errors import InternalError, InvalidArgumentError, UnimplementedError
from opkernel.proto import SavedSliceMeta, SavedTensorSlices, TensorProto
from opkernel.types import DataType, TensorShape, natural_dtype

_PRODUCER = 1
_FIELDS = {
    DataType.DT_FLOAT: "float_val",
    DataType.DT_DOUBLE: "double_val",
    DataType.DT_INT64: "int64_val",
    DataType.DT_BOOL: "bool_val",
    DataType.DT_STRING: "string_val",
    DataType.DT_COMPLEX64: "scomplex_val",
    DataType.DT_COMPLEX128: "dcomplex_val",
    DataType.DT_HALF: "half_val",
    **dict.fromkeys(
        (
            DataType.DT_INT32, DataType.DT_INT16, DataType.DT_INT8, DataType.DT_UINT8,
            DataType.DT_UINT16, DataType.DT_QINT8, DataType.DT_QUINT8, DataType.DT_QINT32,
        ),
        "int_val",
    ),
}  # fmt: skip
"""The field of a TensorProto for each type that the format has."""


_REFUSED_AS_ARGUMENTS = (DataType.DT_UINT32, DataType.DT_UINT64)


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
        if dtype not in _FIELDS:
            refusal = InvalidArgumentError if dtype in _REFUSED_AS_ARGUMENTS else UnimplementedError
            raise refusal(f"Checkpoints of format V1 hold no {dtype.tf_name} ({name})")
        if array.shape != tensor_slice.shape_of(shape):
            raise InternalError(
                f"Slice {tensor_slice} of shape {TensorShape(shape)} cannot hold {TensorShape(array.shape)}"
            )
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
        saved.data.data.CopyFrom(_elements(array, dtype))
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
        writer = TableWriter(content)
        writer.add(b"", saved.SerializeToString(deterministic=True))
        for key in sorted(self._data):
            writer.add(key, self._data[key])
        writer.finish()
        directory, name = opened_place(self._path, self._open_place)
        with directory, replaced_file(directory, name) as file:
            file.write(content.getvalue())


def _elements(array: np.ndarray[Any, Any], dtype: DataType) -> TensorProto:
    """The elements of an array as the format has them: in the field of their type."""
    proto = TensorProto()
    flat = array.ravel()
    if dtype.is_complex:
        flat = flat.view(flat.real.dtype)
    elif _FIELDS[dtype] == "half_val":
        flat = flat.view(np.uint16)
    getattr(proto, _FIELDS[dtype]).extend(flat.tolist())
    return proto
