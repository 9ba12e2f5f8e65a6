"""SparseTensorDenseMatMul, and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_tensor_dense_matmul_op.cc.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import COMPLEX, FLOATS, INDEX, NARROW_FLOATS
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.matrix import sparse_times_dense
from opkernel.ops.sparse.tensors import check_rank
from opkernel.types import DataType, TensorShape


def sparse_tensor_dense_matmul_shape(c: InferenceContext) -> None:
    """The shape of the product; input 2 holds the shape of the sparse matrix."""
    check_input_ranks(c, 2, 1)
    a = c.with_rank(c.make_shape_from_shape_tensor(2), 2)
    b = c.with_rank(c.input(3), 2)
    adjoint_a, adjoint_b = c.get_attr("adjoint_a"), c.get_attr("adjoint_b")
    rows, columns = c.dim(a, 1 if adjoint_a else 0), c.dim(b, 0 if adjoint_b else 1)
    c.merge(c.dim(a, 0 if adjoint_a else 1), c.dim(b, 1 if adjoint_b else 0))
    c.set_output(0, c.matrix(rows, columns))


SPARSE_TENSOR_DENSE_MATMUL = register_op(
    "SparseTensorDenseMatMul",
    inputs=["a_indices: Tindices", "a_values: T", "a_shape: int64", "b: T"],
    outputs=["product: T"],
    attrs=[
        "T: type",
        "Tindices: {int32, int64} = DT_INT64",
        "adjoint_a: bool = false",
        "adjoint_b: bool = false",
    ],
    shape_fn=sparse_tensor_dense_matmul_shape,
    doc="The product of a sparse matrix, whose entries may come in any order, with a dense one.",
)


@register_kernel(
    SPARSE_TENSOR_DENSE_MATMUL,
    types={"T": (*FLOATS, *COMPLEX, DataType.DT_INT32), "Tindices": INDEX},
    host_memory=["a_shape"],
)
def sparse_tensor_dense_matmul(
    a_indices: Any,
    a_values: Any,
    a_shape: Any,
    b: Any,
    *,
    T: DataType,
    adjoint_a: bool,
    adjoint_b: bool,
) -> Any:
    _check(a_indices, a_values, a_shape, b)
    rows, columns = a_indices[:, 0], a_indices[:, 1]
    height, width = TensorShape(a_shape.tolist())
    if adjoint_a:
        rows, columns, height, width = columns, rows, width, height
        a_values = a_values.conj() if T in COMPLEX else a_values
    if adjoint_b:
        b = b.conj().T if T in COMPLEX else b.T
    if len(b) != width:
        raise InvalidArgumentError(
            f"Cannot multiply A and B because inner dimension does not match: {width} vs. {len(b)}.  "
            "Did you forget a transpose?"
        )
    shape = check_allocation((height, b.shape[1]), T)
    if not a_values.size or not height * b.shape[1]:
        return np.zeros(shape, b.dtype)
    _check_bounds("k", columns, width, 0 if adjoint_a else 1)
    _check_bounds("m", rows, height, 1 if adjoint_a else 0)
    if T in NARROW_FLOATS:  # added up in float
        found = sparse_times_dense(
            rows, columns, a_values.astype(np.float32), b.astype(np.float32), height
        )
        return found.astype(b.dtype)
    return sparse_times_dense(rows, columns, a_values, np.ascontiguousarray(b), height)


def _check(indices: Any, values: Any, shape: Any, b: Any) -> None:
    check_rank(1, a_shape=shape, a_values=values)
    check_rank(2, a_indices=indices, b=b)
    require_equal(len(shape), 2, "Tensor 'a_shape' must have 2 elements")
    if len(indices) != len(values):
        raise InvalidArgumentError(
            "Number of rows of a_indices does not match number of entries in a_values"
        )
    if indices.shape[1] != 2:
        raise InvalidArgumentError(
            "Number of columns of a_indices does not match number of entries in a_shape"
        )


def _check_bounds(name: str, numbers: Any, size: int, column: int) -> None:
    outside = (numbers < 0) | (numbers >= size)
    if outside.any():
        at = int(np.argmax(outside))
        raise InvalidArgumentError(
            f"{name} ({numbers[at]}) from index[{at},{column}] out of bounds (>={size})"
        )


@g.register_gradient("SparseTensorDenseMatMul")
def sparse_tensor_dense_matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    b_grad = g.nodes.SparseTensorDenseMatMul(indices, values, shape, grad, adjoint_a=not adjoint_a)
    if adjoint_b:
        b_grad = g.nodes.ConjugateTranspose(b_grad, [1, 0])
    return [None, _entries_of_product(indices, grad, b, adjoint_a, adjoint_b), None, b_grad]


def _entries_of_product(
    indices: g.Tensor, grad: g.Tensor, b: g.Tensor, adjoint_a: bool, adjoint_b: bool
) -> g.Tensor:
    """The gradient of the entries of `a`: of `grad` times the adjoint of `b` only what they need."""
    rows, columns = g.nodes.Unpack(indices, num=2, axis=1)
    if adjoint_a:
        rows, columns = columns, rows
    of_b = g.nodes.Transpose(b, [1, 0]) if adjoint_b else g.conj(b)
    products = g.nodes.Mul(g.nodes.GatherV2(grad, rows, 0), g.nodes.GatherV2(of_b, columns, 0))
    entries = g.nodes.Sum(products, 1)
    return g.conj(entries) if adjoint_a else entries
