"""Shapes of decompositions, inverses and solvers of stacks of matrices.

Source: TensorFlow core/ops/linalg_ops.cc.
"""

from typing import NamedTuple

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import DimensionHandle, InferenceContext, OpShapeInferenceFn, ShapeHandle
from opkernel.opdef.common_shapes import broadcast_binary_op_output_shape, unknown_shape
from opkernel.ops.declared.rules import check_scalars

__all__ = ["SHAPE_FNS"]


class _Matrices(NamedTuple):
    """A stack of matrices: [..., rows, columns]."""

    batch: ShapeHandle
    rows: DimensionHandle
    columns: DimensionHandle


def _matrices(c: InferenceContext, index: int) -> _Matrices:
    """The matrices of an input; refused if its rank is below 2."""
    shape = c.with_rank_at_least(c.input(index), 2)
    return _Matrices(c.subshape(shape, 0, -2), c.dim(shape, -2), c.dim(shape, -1))


def _square_matrices(c: InferenceContext, index: int = 0) -> tuple[ShapeHandle, DimensionHandle]:
    """The leading dimensions and the size of the matrices of an input; refused if not square."""
    batch, rows, columns = _matrices(c, index)
    return batch, c.merge(rows, columns)


def _square_shape(c: InferenceContext) -> None:
    """[..., n, n] -> [..., n, n]."""
    batch, size = _square_matrices(c)
    c.set_output(0, c.concatenate(batch, c.matrix(size, size)))


def _determinant_shape(c: InferenceContext) -> None:
    """[..., n, n] -> [...], each output."""
    matrices = _matrices(c, 0)
    c.merge(matrices.columns, matrices.rows)
    for i in range(c.num_outputs()):
        c.set_output(i, c.subshape(c.input(0), 0, -2))


def _solve_shape(c: InferenceContext) -> None:
    """[..., n, n], [..., n, k] -> [..., n, k]."""
    batch, size = _square_matrices(c)
    right = _matrices(c, 1)
    batch = c.merge(batch, right.batch)
    size = c.merge(c.merge(size, right.rows), size)
    c.set_output(0, c.concatenate(batch, c.matrix(size, right.columns)))


def _least_squares_shape(c: InferenceContext) -> None:
    """[..., m, n], [..., m, k], a scalar -> [..., n, k]."""
    check_scalars(c, 2)
    left, right = _matrices(c, 0), _matrices(c, 1)
    batch = c.merge(left.batch, right.batch)
    c.merge(left.rows, right.rows)
    c.set_output(0, c.concatenate(batch, c.matrix(left.columns, right.columns)))


def _triangular_solve_shape(c: InferenceContext) -> None:
    """[..., n, n], [..., n, k] -> [..., n, k], the leading dimensions broadcast."""
    batch, size = _square_matrices(c)
    _set_broadcast_product(c, batch, size, _matrices(c, 1))


def _banded_triangular_solve_shape(c: InferenceContext) -> None:
    """[..., bands, n], [..., n, k] -> [..., n, k], the leading dimensions broadcast."""
    left, right = _matrices(c, 0), _matrices(c, 1)
    bands, size = left.rows.value, left.columns.value
    if bands == 0:
        raise InvalidArgumentError(f"Number of bands must be positive, but is {bands}")
    if c.value_known(left.columns) and bands > size:
        raise InvalidArgumentError(
            f"Number of bands {bands} cannot exceed the size of the matrix {size}"
        )
    _set_broadcast_product(c, left.batch, left.columns, right)


def _set_broadcast_product(
    c: InferenceContext, batch: ShapeHandle, size: DimensionHandle, right: _Matrices
) -> None:
    batch = broadcast_binary_op_output_shape(c, batch, right.batch)
    size = c.merge(size, right.rows)
    c.set_output(0, c.concatenate(batch, c.matrix(size, right.columns)))


def _tridiagonal_matmul_shape(c: InferenceContext) -> None:
    """Three diagonals [..., 1, n], and [..., n, k] -> input 3."""
    _, main, below, right = (_matrices(c, i) for i in range(4))
    diagonals = c.merge(c.input(0), c.input(1))
    c.merge(below.batch, c.merge(main.batch, right.batch))
    diagonals = c.merge(c.input(2), diagonals)
    c.merge(c.dim(diagonals, -1), right.rows)
    c.with_value(c.dim(diagonals, -2), 1)
    c.set_output(0, c.input(3))


def _tridiagonal_solve_shape(c: InferenceContext) -> None:
    """Three diagonals in one, [..., 3, n], and [..., n, k] -> input 1."""
    diagonals, right = _matrices(c, 0), _matrices(c, 1)
    c.merge(diagonals.batch, right.batch)
    c.merge(diagonals.columns, right.rows)
    c.with_value(diagonals.rows, 3)
    c.set_output(0, c.input(1))


def _self_adjoint_eig_shape(c: InferenceContext) -> None:
    """[..., n, n] -> [..., n + 1, n]: the eigenvalues above the eigenvectors."""
    batch, size = _square_matrices(c)
    c.set_output(0, c.concatenate(batch, c.matrix(c.add(size, 1), size)))


def _eig_shape(c: InferenceContext) -> None:
    """[..., n, n] -> eigenvalues [..., n], and eigenvectors [..., n, n] or [0]."""
    batch, size = _square_matrices(c)
    c.set_output(0, c.concatenate(batch, c.vector(size)))
    vectors = c.get_attr("compute_v")
    c.set_output(1, c.concatenate(batch, c.matrix(size, size)) if vectors else c.vector(0))


def _lu_shape(c: InferenceContext) -> None:
    """[..., n, n] -> the factors [..., n, n] and the permutation [..., n]."""
    batch, size = _square_matrices(c)
    c.set_output(0, c.concatenate(batch, c.matrix(size, size)))
    c.set_output(1, c.concatenate(batch, c.vector(size)))


def _qr_shape(c: InferenceContext) -> None:
    """[..., m, n] -> [..., m, p], [..., p, n], where p is m if full, and else min(m, n)."""
    batch, rows, columns = _matrices(c, 0)
    inner = c.min(rows, columns)
    if c.get_attr("full_matrices"):
        inner = rows
    c.set_output(0, c.concatenate(batch, c.matrix(rows, inner)))
    c.set_output(1, c.concatenate(batch, c.matrix(inner, columns)))


def _svd_shape(c: InferenceContext) -> None:
    """[..., m, n] -> [..., p], and [..., m, p], [..., n, p], or [0], [0]."""
    batch, rows, columns = _matrices(c, 0)
    inner = c.min(rows, columns)
    c.set_output(0, c.concatenate(batch, c.vector(inner)))
    if not c.get_attr("compute_uv"):
        c.set_output(1, c.vector(0))
        c.set_output(2, c.vector(0))
        return
    full = c.get_attr("full_matrices")
    for output, size in ((1, rows), (2, columns)):
        c.set_output(output, c.concatenate(batch, c.matrix(size, size if full else inner)))


_SQUARE = (
    "Cholesky",
    "CholeskyGrad",
    "MatrixExponential",
    "MatrixInverse",
    "MatrixLogarithm",
    "MatrixSquareRoot",
)
_OF_VERSION_0 = (
    "BatchCholesky",
    "BatchCholeskyGrad",
    "BatchMatrixDeterminant",
    "BatchMatrixInverse",
    "BatchMatrixSolve",
    "BatchMatrixSolveLs",
    "BatchMatrixTriangularSolve",
    "BatchSelfAdjointEig",
    "BatchSelfAdjointEigV2",
    "BatchSvd",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_SQUARE, _square_shape),
    **dict.fromkeys(_OF_VERSION_0, unknown_shape),
    "BandedTriangularSolve": _banded_triangular_solve_shape,
    "Eig": _eig_shape,
    "LogMatrixDeterminant": _determinant_shape,
    "Lu": _lu_shape,
    "MatrixDeterminant": _determinant_shape,
    "MatrixSolve": _solve_shape,
    "MatrixSolveLs": _least_squares_shape,
    "MatrixTriangularSolve": _triangular_solve_shape,
    "Qr": _qr_shape,
    "SelfAdjointEig": _self_adjoint_eig_shape,
    "SelfAdjointEigV2": _eig_shape,
    "Svd": _svd_shape,
    "TridiagonalMatMul": _tridiagonal_matmul_shape,
    "TridiagonalSolve": _tridiagonal_solve_shape,
}
