"""Sparse matrices in variants: compressed rows, one matrix or a batch of them.

The ops make them of tensors, as SparseTensorToCSRSparseMatrix does, and tensors of them. Products of sparse
matrices with dense ones are here, too. SciPy (the extra `scipy`) adds in TensorFlow's order; without it NumPy
adds, in another order.

Source: TensorFlow core/ops/sparse_csr_matrix_ops.cc, core/kernels/sparse/sparse_matrix.h,
*_csr_sparse_matrix_op.cc, csr_sparse_matrix_to_*_op.cc, sparse_matrix_components_op.cc, nnz_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.libraries import library_or_none, warn_of_fallback
from opkernel.opdef import register_op
from opkernel.ops.declared.sparse_matrix import (
    components_shape,
    from_dense_shape,
    from_sparse_tensor_shape,
    nnz_shape,
    to_dense_shape,
    to_sparse_tensor_shape,
)
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.registration import COMPLEX, register_kernel
from opkernel.ops.sparse.tensors import check_bounds, check_parts, check_rank
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
_FEW = 1 << 14
"""Up to so many products NumPy adds in order sooner than SciPy is imported; complex ones it rounds otherwise."""


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
    if values.dtype.kind != "c" and len(rows) * dense.shape[1] <= _FEW:
        product = np.zeros((count, dense.shape[1]), dense.dtype)
        np.add.at(product, rows, values[:, None] * dense[columns])
        return product
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
        tensors: list[Any] = [np.array(self.shape, np.int64), np.cumsum(counts).astype(np.int32)]
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
    require(value.matrices, f"Variant input {index} is not valid: the batch is empty")
    if dtype is not None and value.dtype is not dtype:
        raise InvalidArgumentError(
            f"Asked for a CSRSparseMatrix of type {dtype.string} but saw dtype: {value.dtype.string}"
        )
    return value


def to_handle(dtype: DataType, shape: Sequence[int], matrices: Sequence[Rows]) -> Any:
    """A variant that holds a matrix."""
    return object_scalar(CsrSparseMatrix(dtype, shape, matrices))


_TYPES = (DataType.DT_FLOAT, DataType.DT_DOUBLE, *COMPLEX)
_TYPE = "type: {float, double, complex64, complex128}"
_T = "T: {float, double, complex64, complex128}"
_LARGEST = np.iinfo(np.int32).max

SPARSE_TENSOR_TO_CSR = register_op(
    "SparseTensorToCSRSparseMatrix(indices: int64, values: T, dense_shape: int64) "
    "-> sparse_matrix: variant",
    attrs=[_T],
    shape_fn=from_sparse_tensor_shape,
    doc="The sparse matrix, or the batch of them, of a sparse tensor whose indices are sorted.",
)
DENSE_TO_CSR = register_op(
    "DenseToCSRSparseMatrix(dense_input: T, indices: int64) -> sparse_output: variant",
    attrs=[_T],
    shape_fn=from_dense_shape,
    doc="The sparse matrix of the elements of a tensor at the given indices.",
)
CSR_TO_DENSE = register_op(
    "CSRSparseMatrixToDense(sparse_input: variant) -> dense_output: type",
    attrs=[_TYPE],
    shape_fn=to_dense_shape,
    doc="The tensor of the elements of a sparse matrix.",
)
CSR_TO_SPARSE_TENSOR = register_op(
    "CSRSparseMatrixToSparseTensor(sparse_matrix: variant) "
    "-> indices: int64, values: type, dense_shape: int64",
    attrs=[_TYPE],
    shape_fn=to_sparse_tensor_shape,
    doc="The sparse tensor of a sparse matrix.",
)
CSR_COMPONENTS = register_op(
    "CSRSparseMatrixComponents(csr_sparse_matrix: variant, index: int32) "
    "-> row_ptrs: int32, col_inds: int32, values: type",
    attrs=[_TYPE],
    shape_fn=components_shape,
    doc="The compressed rows of one matrix of a batch.",
)
NNZ = register_op(
    "SparseMatrixNNZ(sparse_matrix: variant) -> nnz: int32",
    shape_fn=nnz_shape,
    doc="How many entries each matrix has.",
)


def _to_csr(indices: Any, values: Any, shape: TensorShape, dtype: DataType) -> Any:
    """As in TensorFlow the entries are taken as they come: only how many each row has matters."""
    if shape[-2] + 1 > _LARGEST or shape[-1] > _LARGEST or len(values) > _LARGEST:
        raise InvalidArgumentError(f"The sizes of a CSRSparseMatrix must fit int32, got {shape}")
    batch = shape[0] if len(shape) == 3 else 1
    check_allocation((batch, shape[-2] + 1), DataType.DT_INT32)
    numbers = indices[:, 0] if len(shape) == 3 else np.zeros(len(indices), np.int64)
    cuts = row_pointers(np.sort(numbers), batch)[1:-1]
    parts = zip(
        *(np.split(tensor, cuts) for tensor in (indices[:, -2], indices[:, -1], values)),
        strict=True,
    )
    matrices = [
        Rows(
            row_pointers(np.sort(rows), shape[-2]).astype(np.int32),
            columns.astype(np.int32),
            entries.copy(),
        )
        for rows, columns, entries in parts
    ]
    return to_handle(dtype, shape, matrices[:batch])


@register_kernel(SPARSE_TENSOR_TO_CSR, types={"T": _TYPES})
def sparse_tensor_to_csr(indices: Any, values: Any, dense_shape: Any, *, T: DataType) -> Any:
    check_parts(indices, values, dense_shape)
    if len(dense_shape) not in (2, 3):
        raise InvalidArgumentError(
            f"SparseTensor must have rank 2 or 3; but indices has rank: {len(dense_shape)}"
        )
    shape = TensorShape(dense_shape.tolist())
    check_bounds(indices, shape)
    return _to_csr(indices, values, shape, T)


@register_kernel(DENSE_TO_CSR, types={"T": _TYPES})
def dense_to_csr(dense_input: Any, indices: Any, *, T: DataType) -> Any:
    if dense_input.ndim not in (2, 3):
        raise InvalidArgumentError(
            f"params must have rank == 2 or 3; but saw shape: {TensorShape(dense_input.shape)}"
        )
    check_rank(2, indices=indices)
    if indices.shape[1] != dense_input.ndim:
        raise InvalidArgumentError(
            f"indices must have {dense_input.ndim} columns, got shape {TensorShape(indices.shape)}"
        )
    shape = TensorShape(dense_input.shape)
    check_bounds(indices, shape)
    return _to_csr(indices, dense_input[tuple(indices.T)], shape, T)


@register_kernel(CSR_TO_DENSE, types={"type": _TYPES})
def csr_to_dense(sparse_input: Any, *, type: DataType) -> Any:
    matrix = matrix_of(sparse_input, type)
    dense = np.zeros(check_allocation(matrix.shape, type), type.numpy_dtype)
    parts = dense.reshape(-1, *matrix.shape[-2:])
    for rows, part in in_time(zip(matrix.matrices, parts, strict=True), SLOW):
        part[rows.row_inds, rows.col_inds] = rows.values
    return dense


@register_kernel(CSR_TO_SPARSE_TENSOR, types={"type": _TYPES})
def csr_to_sparse_tensor(sparse_matrix: Any, *, type: DataType) -> tuple[Any, Any, Any]:
    matrix = matrix_of(sparse_matrix, type)
    columns = [
        np.concatenate([rows.row_inds for rows in matrix.matrices]),
        np.concatenate([rows.col_inds for rows in matrix.matrices]),
    ]
    if len(matrix.shape) == 3:
        counts = [len(rows.values) for rows in matrix.matrices]
        columns.insert(0, np.repeat(np.arange(len(counts)), counts))
    values = np.concatenate([rows.values for rows in matrix.matrices])
    return np.stack(columns, axis=1).astype(np.int64), values, np.array(matrix.shape, np.int64)


@register_kernel(CSR_COMPONENTS, types={"type": _TYPES}, host_memory=["index"])
def csr_components(csr_sparse_matrix: Any, index: Any, *, type: DataType) -> tuple[Any, Any, Any]:
    matrix = matrix_of(csr_sparse_matrix, type)
    check_rank(0, index=index)
    if not 0 <= index < len(matrix.matrices):
        raise InvalidArgumentError(f"index ({index}) not in [0, {len(matrix.matrices)})")
    rows = matrix.matrices[int(index)]
    return rows.row_ptrs.copy(), rows.col_inds.copy(), rows.values.copy()


@register_kernel(NNZ)
def nnz(sparse_matrix: Any) -> Any:
    matrix = matrix_of(sparse_matrix)
    counts = np.array([len(rows.values) for rows in matrix.matrices], np.int32)
    return counts if len(matrix.shape) == 3 else counts[0]


@g.register_gradient("SparseTensorToCSRSparseMatrix")
def sparse_tensor_to_csr_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    found = g.nodes.CSRSparseMatrixToSparseTensor(grad, type=op.get_attr("T"))
    return [None, found[1], None]


@g.register_gradient("CSRSparseMatrixToSparseTensor")
def csr_to_sparse_tensor_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    return g.nodes.SparseTensorToCSRSparseMatrix(op.outputs[0], grads[1], op.outputs[2])


@g.register_gradient("DenseToCSRSparseMatrix")
def dense_to_csr_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return [g.nodes.CSRSparseMatrixToDense(grad, type=op.get_attr("T")), None]


@g.register_gradient("CSRSparseMatrixToDense")
def csr_to_dense_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    parts = g.nodes.CSRSparseMatrixToSparseTensor(op.inputs[0], type=op.get_attr("type"))
    shape = g.nodes.Shape(grad, out_type=DataType.DT_INT64)
    return g.nodes.SparseTensorToCSRSparseMatrix(parts[0], g.nodes.GatherNd(grad, parts[0]), shape)
