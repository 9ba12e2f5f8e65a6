"""Sparse matrices in variants: compressed rows, one matrix or a batch of them.

Source: TensorFlow core/kernels/sparse/sparse_matrix.h.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.proto import VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    TensorShape,
    Variant,
    object_scalar,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

__all__ = ["CsrSparseMatrix", "Rows", "matrix_of", "to_handle"]

_TYPE_NAME = "tensorflow::CSRSparseMatrix"


class Rows(NamedTuple):
    """One matrix: the entries row by row.

    Attributes:
        row_ptrs: Where each row begins, and where the last one ends; int32, as the columns.
        col_inds: The column of each entry.
        values: The entries.
    """

    row_ptrs: Any
    col_inds: Any
    values: Any

    @property
    def row_inds(self) -> Any:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.row_ptrs) - 1), np.diff(self.row_ptrs))


class CsrSparseMatrix(Variant):
    """A sparse matrix, or a batch of them.

    Attributes:
        dtype: The type of the entries.
        shape: That of the matrix, or of the batch.
        matrices: The matrix, or those of the batch.
    """

    __slots__ = ("dtype", "matrices", "shape")

    def __init__(self, dtype: DataType, shape: Sequence[int], matrices: Sequence[Rows]) -> None:
        self.dtype = dtype
        self.shape = tuple(shape)
        self.matrices = tuple(matrices)

    def __repr__(self) -> str:
        return f"CSRSparseMatrix(dtype={self.dtype.string}, shape={TensorShape(self.shape)})"

    def with_tensors(self, change: Callable[[Any], Any]) -> "CsrSparseMatrix":
        """The matrix with a function applied to each tensor."""
        matrices = [Rows(*map(change, rows)) for rows in self.matrices]
        return CsrSparseMatrix(self.dtype, self.shape, matrices)

    def to_proto(self) -> VariantTensorDataProto:
        """The matrix as it stands in a file."""
        counts = [0, *(len(rows.values) for rows in self.matrices)]
        tensors: list[Any] = [
            np.array(self.shape, np.int64),
            np.cumsum(counts).astype(np.int32),
        ]
        tensors += [np.concatenate(parts) for parts in zip(*self.matrices, strict=True)]
        return VariantTensorDataProto(
            type_name=_TYPE_NAME,
            metadata=bytes([1, 0, 0, 0, self.dtype.value, 0, 0, 0]),
            tensors=[tensor_to_proto(tensor) for tensor in tensors],
        )

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> "CsrSparseMatrix":
        """The matrix that stands in a file.

        Raises:
            InvalidArgumentError: its tensors make no matrix.
        """
        if len(proto.tensors) != 5:
            raise InvalidArgumentError(f"A CSRSparseMatrix has 5 tensors, not {len(proto.tensors)}")
        shape, ends, row_ptrs, col_inds, values = map(tensor_from_proto, proto.tensors)
        sizes = TensorShape(shape.tolist())
        batch = sizes[0] if len(sizes) == 3 else 1
        cuts = ends[1:-1].tolist()
        if len(sizes) not in (2, 3) or len(ends) != batch + 1:
            raise InvalidArgumentError(f"A CSRSparseMatrix cannot have the shape {sizes}")
        if len(row_ptrs) != batch * (sizes[-2] + 1) or len(col_inds) != len(values):
            raise InvalidArgumentError("The tensors of a CSRSparseMatrix do not fit together")
        parts = zip(
            np.split(row_ptrs, batch), np.split(col_inds, cuts), np.split(values, cuts), strict=True
        )
        matrices = [Rows(*part) for part in parts]
        for rows in matrices:
            _check_rows(rows, sizes[-1])
        return cls(DataType(proto.tensors[4].dtype), sizes, matrices)


def _check_rows(rows: Rows, width: int) -> None:
    """Raise InvalidArgumentError unless the pointers rise, and the columns are within the width."""
    pointers, columns = rows.row_ptrs, rows.col_inds
    rises = pointers[0] == 0 and (np.diff(pointers) >= 0).all() and pointers[-1] == len(columns)
    if not rises or ((columns < 0) | (columns >= width)).any():
        raise InvalidArgumentError("A CSRSparseMatrix has entries out of bounds")


register_variant_decoder(_TYPE_NAME, CsrSparseMatrix.from_proto)


def matrix_of(handle: Any, dtype: DataType | None = None, index: int = 0) -> CsrSparseMatrix:
    """The matrix in a variant, of a type if one is given.

    Raises:
        InvalidArgumentError: the variant holds something else, or a matrix of another type.
    """
    value = handle[()] if handle.ndim == 0 else None
    if isinstance(value, OpaqueVariant) and value.type_name == _TYPE_NAME:
        value = CsrSparseMatrix.from_proto(value.to_proto())
    if not isinstance(value, CsrSparseMatrix):
        raise InvalidArgumentError(f"Input {index} must be a scalar variant with a CSRSparseMatrix")
    if not value.matrices:
        raise InvalidArgumentError(f"Variant input {index} is not valid: the batch is empty")
    if dtype is not None and value.dtype is not dtype:
        raise InvalidArgumentError(
            f"Asked for a CSRSparseMatrix of type {dtype.string} but saw dtype: {value.dtype.string}"
        )
    return value


def to_handle(dtype: DataType, shape: Sequence[int], matrices: Sequence[Rows]) -> Any:
    """A variant that holds a matrix."""
    return object_scalar(CsrSparseMatrix(dtype, shape, matrices))
