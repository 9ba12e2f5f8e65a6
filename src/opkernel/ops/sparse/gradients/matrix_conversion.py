"""Gradients of sparse matrices made from tensors and of tensors made from them."""

import opkernel.gradients as g
from opkernel.types import DataType


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
