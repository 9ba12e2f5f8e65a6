"""Sparse matrices from tensors and back, and gradients.

Source: TensorFlow core/ops/sparse_csr_matrix_ops.cc, core/kernels/sparse/*_csr_sparse_matrix_op.cc,
csr_sparse_matrix_to_*_op.cc, sparse_matrix_components_op.cc, nnz_op.cc.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.ops.declared.sparse_matrix import (
    components_shape,
    from_dense_shape,
    from_sparse_tensor_shape,
    nnz_shape,
    to_dense_shape,
    to_sparse_tensor_shape,
)
from opkernel.ops.kernel_types import COMPLEX
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.matrix import Rows, matrix_of, row_pointers, to_handle
from opkernel.ops.sparse.tensors import check_bounds, check_parts, check_rank
from opkernel.types import DataType, TensorShape

_TYPES = (DataType.DT_FLOAT, DataType.DT_DOUBLE, *COMPLEX)
_TYPE = "type: {float, double, complex64, complex128}"
_T = "T: {float, double, complex64, complex128}"
_LARGEST = np.iinfo(np.int32).max

SPARSE_TENSOR_TO_CSR = register_op(
    "SparseTensorToCSRSparseMatrix",
    inputs=["indices: int64", "values: T", "dense_shape: int64"],
    outputs=["sparse_matrix: variant"],
    attrs=[_T],
    shape_fn=from_sparse_tensor_shape,
    doc="The sparse matrix, or the batch of them, of a sparse tensor whose indices are sorted.",
)
DENSE_TO_CSR = register_op(
    "DenseToCSRSparseMatrix",
    inputs=["dense_input: T", "indices: int64"],
    outputs=["sparse_output: variant"],
    attrs=[_T],
    shape_fn=from_dense_shape,
    doc="The sparse matrix of the elements of a tensor at the given indices.",
)
CSR_TO_DENSE = register_op(
    "CSRSparseMatrixToDense",
    inputs=["sparse_input: variant"],
    outputs=["dense_output: type"],
    attrs=[_TYPE],
    shape_fn=to_dense_shape,
    doc="The tensor of the elements of a sparse matrix.",
)
CSR_TO_SPARSE_TENSOR = register_op(
    "CSRSparseMatrixToSparseTensor",
    inputs=["sparse_matrix: variant"],
    outputs=["indices: int64", "values: type", "dense_shape: int64"],
    attrs=[_TYPE],
    shape_fn=to_sparse_tensor_shape,
    doc="The sparse tensor of a sparse matrix.",
)
CSR_COMPONENTS = register_op(
    "CSRSparseMatrixComponents",
    inputs=["csr_sparse_matrix: variant", "index: int32"],
    outputs=["row_ptrs: int32", "col_inds: int32", "values: type"],
    attrs=[_TYPE],
    shape_fn=components_shape,
    doc="The compressed rows of one matrix of a batch.",
)
NNZ = register_op(
    "SparseMatrixNNZ",
    inputs=["sparse_matrix: variant"],
    outputs=["nnz: int32"],
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
    for rows, part in in_time(
        zip(matrix.matrices, dense.reshape(-1, *matrix.shape[-2:]), strict=True), SLOW
    ):
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
