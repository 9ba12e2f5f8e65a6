"""Shapes of ops on sparse matrices. A sparse matrix is a variant, with the dense shape as its handle data.

Source: TensorFlow core/ops/sparse_csr_matrix_ops.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import (
    DimensionHandle,
    InferenceContext,
    OpShapeInferenceFn,
    ShapeAndType,
    ShapeHandle,
    broadcast_binary_op_output_shape,
    validate_sparse_tensor,
)
from opkernel.opdef.common_shapes.rules import check_scalars, set_outputs
from opkernel.ops.input_checks import require, require_equal
from opkernel.types import DataType

_MAX_RANK = 3


def _held(c: InferenceContext, index: int) -> ShapeAndType:
    """Shape and dtype of the matrix, or batch of matrices, in the variant at an input."""
    c.with_rank(c.input(index), 0)
    held = c.input_handle_shapes_and_types(index)
    if held is None or len(held) != 1:
        raise InvalidArgumentError(
            f"Unable to access shape and type info from variant input {index}"
        )
    return held[0]


def _known_rank(
    c: InferenceContext, shape: ShapeHandle, name: str, smallest: int = 2
) -> ShapeHandle:
    """The shape of the operand `name`, whose rank must be known and at most that of a batch of matrices."""
    c.with_rank_at_most(c.with_rank_at_least(shape, smallest), _MAX_RANK)
    require(c.rank_known(shape), f"{name} has an unknown rank.")
    return shape


def _matrix(c: InferenceContext, index: int, name: str, smallest: int = 2) -> ShapeHandle:
    return _known_rank(c, _held(c, index).shape, name, smallest)


def _set_matrix(c: InferenceContext, shape: ShapeHandle, dtype: DataType) -> None:
    """Output 0 is a variant that holds a matrix."""
    c.set_output(0, c.scalar())
    c.set_output_handle_shapes_and_types(0, [ShapeAndType(shape, dtype)])


def _check_rank(c: InferenceContext, shape: ShapeHandle, of: str = "") -> None:
    message = f"Invalid rank{of}: {c.rank(shape)}.  Expected a known rank of either 2 or 3."
    require(c.rank(shape) in (2, _MAX_RANK), message)


# Making and taking apart


def from_sparse_tensor_shape(c: InferenceContext) -> None:
    """A variant that holds the shape of a sparse tensor."""
    validate_sparse_tensor(c, c.input(0), c.input(1), c.input(2))
    rank = c.value(c.dim(c.input(0), 1))
    shape = c.with_rank(c.make_shape_from_shape_tensor(2), rank)
    _check_rank(c, shape)
    _set_matrix(c, shape, c.get_attr("T"))


def from_dense_shape(c: InferenceContext) -> None:
    """A variant that holds the shape of input 0."""
    dense, indices = c.input(0), c.input(1)
    _check_rank(c, dense, " of dense")
    rank = c.rank(dense)
    require_equal(c.rank(indices), 2, "indices must be a matrix; but its rank is not 2: {}")
    columns = c.dim(indices, 1).value
    require_equal(columns, rank, "indices.shape[1] must match rank of dense; saw: {} vs. {}")
    _set_matrix(c, dense, c.get_attr("T"))


def _zeros(c: InferenceContext) -> None:
    rank = c.num_elements(c.input(0)).value
    shape = c.with_rank(c.make_shape_from_shape_tensor(0), rank)
    _check_rank(c, shape)
    _set_matrix(c, shape, c.get_attr("type"))


def to_sparse_tensor_shape(c: InferenceContext) -> None:
    """A sparse tensor of the rank that the variant holds."""
    rank = c.rank(_matrix(c, 0, "sparse_matrix", smallest=0))
    set_outputs(c, [c.matrix(None, rank), c.vector(None), c.vector(rank)])


def to_dense_shape(c: InferenceContext) -> None:
    """The shape that the variant holds."""
    c.set_output(0, _matrix(c, 0, "sparse_matrix", smallest=0))


def components_shape(c: InferenceContext) -> None:
    """The compressed rows of one matrix."""
    shape = _held(c, 0).shape
    c.with_rank_at_most(c.with_rank_at_least(shape, 2), _MAX_RANK)
    require(c.rank(c.input(1)) == 0, "index must be a scalar.")
    _known_rank(c, shape, "csr_sparse_matrix")
    row_ends = c.add(c.dim(shape, -2), 1)
    set_outputs(c, [c.vector(row_ends), c.vector(None), c.vector(None)])


def nnz_shape(c: InferenceContext) -> None:
    """The batch dimensions."""
    shape = _matrix(c, 0, "sparse_matrix")
    c.set_output(0, c.subshape(shape, 0, -2))


# Arithmetic


def _add(c: InferenceContext) -> None:
    check_scalars(c, 2, 3)
    _merged(c, "a", "b")


def _softmax(c: InferenceContext) -> None:
    _set_matrix(c, _matrix(c, 0, "logits"), _held(c, 0).dtype)


def _merged(c: InferenceContext, first: str, second: str) -> None:
    """Output 0 holds what both inputs hold; the operands are called `first` and `second`."""
    a = _matrix(c, 0, first)
    b = _matrix(c, 1, second)
    _set_matrix(c, c.merge(a, b), _held(c, 1).dtype)


def _multiply(c: InferenceContext) -> None:
    a = _matrix(c, 0, "a", smallest=0)
    b = _known_rank(c, c.input(1), "b", smallest=0)
    if c.rank(b) == _MAX_RANK:
        if c.rank(a) != _MAX_RANK:
            raise UnimplementedError("rank of b is 3 but rank of a is not.")
        if (c.dim(b, 1).value, c.dim(b, 2).value) != (1, 1):
            raise UnimplementedError("b must be a scalar or shaped [batch_size, 1, 1]")
        a = c.replace_dim(a, 0, c.merge(c.dim(a, 0), c.dim(b, 0)))
    elif c.rank(b) != 0:
        raise UnimplementedError("b must be a scalar or shaped [batch_size, 1, 1]")
    _set_matrix(c, a, _held(c, 0).dtype)


def _rows_and_columns(
    c: InferenceContext, shape: ShapeHandle, operand: str
) -> tuple[DimensionHandle, DimensionHandle]:
    """The rows and columns of an operand, swapped if an attr asks for transpose or adjoint."""
    transpose, adjoint = c.get_attr(f"transpose_{operand}"), c.get_attr(f"adjoint_{operand}")
    message = f"Only one of adjoint_{operand} and transpose_{operand} may be true."
    require(not (transpose and adjoint), message)
    rows, columns = c.dim(shape, -2), c.dim(shape, -1)
    return (columns, rows) if transpose or adjoint else (rows, columns)


def _set_dense_product(c: InferenceContext, a: ShapeHandle, b: ShapeHandle) -> None:
    rows, inner_a = _rows_and_columns(c, a, "a")
    inner_b, columns = _rows_and_columns(c, b, "b")
    batch = c.merge(c.subshape(a, 0, -2), c.subshape(b, 0, -2))
    c.merge(inner_a, inner_b)
    result = c.matrix(columns, rows) if c.get_attr("transpose_output") else c.matrix(rows, columns)
    c.set_output(0, c.concatenate(batch, result))


def matmul_shape(c: InferenceContext) -> None:
    """The product of a sparse matrix and a dense one."""
    a = _matrix(c, 0, "a")
    b = c.with_rank_at_most(c.with_rank_at_least(c.input(1), 2), _MAX_RANK)
    _set_dense_product(c, a, b)


def _mkl_matmul(c: InferenceContext) -> None:
    a = c.with_rank(_held(c, 0).shape, 2)
    _set_dense_product(c, a, c.with_rank(c.input(1), 2))


def sparse_matmul_shape(c: InferenceContext) -> None:
    """A variant that holds the product of two sparse matrices."""
    a = _matrix(c, 0, "a")
    b = _matrix(c, 1, "b")
    rows, inner_a = _rows_and_columns(c, a, "a")
    inner_b, columns = _rows_and_columns(c, b, "b")
    batch = broadcast_binary_op_output_shape(c, c.subshape(a, 0, -2), c.subshape(b, 0, -2))
    c.merge(inner_a, inner_b)
    _set_matrix(c, c.concatenate(batch, c.matrix(rows, columns)), _held(c, 1).dtype)


def transpose_shape(c: InferenceContext) -> None:
    """A variant that holds the transposed matrix."""
    shape = _matrix(c, 0, "input")
    matrix = c.matrix(c.dim(shape, -1), c.dim(shape, -2))
    _set_matrix(c, c.concatenate(c.subshape(shape, 0, -2), matrix), _held(c, 0).dtype)


# Decompositions


def _square_matrix(c: InferenceContext) -> tuple[ShapeHandle, DimensionHandle]:
    """The shape that input 0 holds and the size of its square matrices."""
    shape = _matrix(c, 0, "Sparse matrix")
    return shape, c.merge(c.dim(shape, -2), c.dim(shape, -1))


def ordering_amd_shape(c: InferenceContext) -> None:
    """A permutation for each matrix."""
    shape, _ = _square_matrix(c)
    c.set_output(0, c.subshape(shape, 0, -1))


def cholesky_shape(c: InferenceContext) -> None:
    """A variant that holds a matrix of the same shape."""
    shape, size = _square_matrix(c)
    permutation = c.with_rank_at_most(c.with_rank_at_least(c.input(1), 1), 2)
    require(c.rank_known(permutation), "permutation has an unknown rank.")
    c.merge(size, c.dim(permutation, -1))
    # TensorFlow compares the batch dimensions with an unset shape: they are not checked.
    _set_matrix(c, shape, _held(c, 0).dtype)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "SparseMatrixAdd": _add,
    "SparseMatrixMul": _multiply,
    "SparseMatrixSoftmax": _softmax,
    "SparseMatrixSoftmaxGrad": partial(_merged, first="softmax", second="grad_softmax"),
    "SparseMatrixZeros": _zeros,
    "_MklNativeSparseMatrixMatMul": _mkl_matmul,
}
