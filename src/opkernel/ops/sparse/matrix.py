"""Sparse matrices in variants: compressed rows, one matrix or a batch of them.

Products of sparse matrices with dense ones. SciPy (the extra `scipy`) adds in TensorFlow's order.

Without SciPy NumPy adds, in another order.

Source: TensorFlow core/kernels/sparse/sparse_matrix.h.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.libraries import library_or_none, warn_of_fallback
from opkernel.ops.input_checks import require_equal
from opkernel.ops.stable_order import stable_order
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

_GATHERED = 1 << 20
"""How many products NumPy makes at once."""


def row_pointers(rows: Any, count: int) -> Any:
    """Where each of `count` rows begins among entries sorted by row, and where the last one ends."""
    return np.searchsorted(rows, np.arange(count + 1))


def sparse_times_dense(rows: Any, columns: Any, values: Any, dense: Any, count: int) -> Any:
    """The product of a sparse matrix of `count` rows with a dense one.

    Args:
        rows: Of each entry, in any order; entries of a row are added in their order.
        columns: Of each entry.
        values: Of each entry; of a type that NumPy adds itself.
        dense: The other matrix, of the same type.
        count: How many rows the sparse matrix has.
    """
    if (rows[1:] < rows[:-1]).any():
        order = stable_order(rows)
        rows, columns, values = rows[order], columns[order], values[order]
    sparse = library_or_none("scipy.sparse")
    if sparse is None:
        warn_of_fallback("scipy", "NumPy multiplies sparse matrices; the last bits of sums differ")
        return _product(rows, columns, values, dense, count)
    parts = (values, columns, row_pointers(rows, count))
    return sparse.csr_array(parts, shape=(count, len(dense))) @ dense


def _product(rows: Any, columns: Any, values: Any, dense: Any, count: int) -> Any:
    """The product by NumPy; the entries are sorted by row."""
    product = np.zeros((count, dense.shape[1]), dense.dtype)
    step = max(_GATHERED // max(dense.shape[1], 1), 1)
    for start in in_time(range(0, len(rows), step), SLOW):
        part = slice(start, start + step)
        terms = values[part, None] * dense[columns[part]]
        first = np.flatnonzero(np.concatenate(([True], rows[part][1:] != rows[part][:-1])))
        product[rows[part][first]] += np.add.reduceat(terms, first, axis=0)
    return product


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
        require_equal(len(proto.tensors), 5, "A CSRSparseMatrix has 5 tensors, not {}")
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
