"""Systems of equations with triangular matrices: MatrixTriangularSolve, BandedTriangularSolve, and gradients.

Source: TensorFlow core/kernels/linalg/matrix_triangular_solve_op_impl.h, banded_triangular_solve_op.cc,
python/ops/linalg_grad.py.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.graph import constant
from opkernel.kernel import one_blas_thread
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_output_shape
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.ops.linalg.gradients.matrix_algebra import mul, triangle
from opkernel.ops.linalg.matrices import (
    NUMBERS,
    T_SPEC,
    Matrices,
    adjoint,
    matrices,
    square_matrices,
)
from opkernel.ops.math.matmul import matmul_in_parts
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape

__all__ = ["check_triangular_system", "triangular_solve"]


_BLOCK = 16
"""Systems of so many rows are solved row by row, larger ones half by half."""


def triangular_solve(matrix: Any, rhs: Any, *, lower: bool) -> Any:
    """The x with `matrix @ x == rhs`; elements on the other side of the diagonal do not count."""
    size = matrix.shape[-1]
    if size <= _BLOCK:
        return _row_by_row(matrix, rhs, lower)
    half = size // 2
    first, last = (slice(half), slice(half, None)) if lower else (slice(half, None), slice(half))
    x = triangular_solve(matrix[..., first, first], rhs[..., first, :], lower=lower)
    rest = rhs[..., last, :] - matmul_in_parts(matrix[..., last, first], x)
    y = triangular_solve(matrix[..., last, last], rest, lower=lower)
    return np.concatenate([x, y] if lower else [y, x], axis=-2)


def _row_by_row(matrix: Any, rhs: Any, lower: bool) -> Any:
    size = matrix.shape[-1]
    batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    x = np.empty((*batch, *rhs.shape[-2:]), rhs.dtype)
    for i in in_time(range(size) if lower else range(size - 1, -1, -1), SLOW):
        known = slice(i) if lower else slice(i + 1, None)
        sums = (matrix[..., i, None, known] @ x[..., known, :])[..., 0, :]
        x[..., i, :] = (rhs[..., i, :] - sums) / matrix[..., i, i, None]
    return x


def _triangular_solve_shape(c: InferenceContext) -> None:
    """[..., n, n], [..., n, k] -> [..., n, k], the leading dimensions broadcast."""
    batch, size = square_matrices(c)
    _set_broadcast_product(c, batch, size, matrices(c, 1))


def _banded_triangular_solve_shape(c: InferenceContext) -> None:
    """[..., bands, n], [..., n, k] -> [..., n, k], the leading dimensions broadcast."""
    left, right = matrices(c, 0), matrices(c, 1)
    bands, size = left.rows.value, left.columns.value
    if bands == 0:
        raise InvalidArgumentError(f"Number of bands must be positive, but is {bands}")
    if c.value_known(left.columns) and bands > size:
        raise InvalidArgumentError(
            f"Number of bands {bands} cannot exceed the size of the matrix {size}"
        )
    _set_broadcast_product(c, left.batch, left.columns, right)


def _set_broadcast_product(
    c: InferenceContext, batch: ShapeHandle, size: DimensionHandle, right: Matrices
) -> None:
    batch = broadcast_binary_op_output_shape(c, batch, right.batch)
    size = c.merge(size, right.rows)
    c.set_output(0, c.concatenate(batch, c.matrix(size, right.columns)))


_ATTRS = ["lower: bool = true", "adjoint: bool = false"]

MATRIX_TRIANGULAR_SOLVE = register_op(
    "MatrixTriangularSolve",
    inputs=["matrix: T", "rhs: T"],
    outputs=["output: T"],
    attrs=[*_ATTRS, "T: {bfloat16, double, float, half, complex64, complex128}"],
    shape_fn=_triangular_solve_shape,
    doc="The x with `matrix @ x == rhs`, for triangular matrices or their adjoints.",
)
BANDED_TRIANGULAR_SOLVE = register_op(
    "BandedTriangularSolve",
    inputs=["matrix: T", "rhs: T"],
    outputs=["output: T"],
    attrs=[*_ATTRS, T_SPEC],
    shape_fn=_banded_triangular_solve_shape,
    doc="MatrixTriangularSolve for matrices that are given by the bands beside their diagonals.",
)


def check_triangular_system(matrix: Any, rhs: Any) -> None:
    """Refuse what is no triangular matrix with a right side, the leading dimensions broadcast."""
    _check_ranks(matrix, rhs)
    rows, columns = matrix.shape[-2:]
    require_equal(rows, columns, "In[0] matrices in the last dimensions must be square ({} =/= {})")
    _check_product(matrix, rhs)


@register_kernel(MATRIX_TRIANGULAR_SOLVE, types={"T": NUMBERS})
def matrix_triangular_solve(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Any:
    check_triangular_system(matrix, rhs)
    return _solved(matrix, rhs, lower, adjoint)


@register_kernel(BANDED_TRIANGULAR_SOLVE, types={"T": NUMBERS})
def banded_triangular_solve(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Any:
    _check_ranks(matrix, rhs)
    for number, tensor in enumerate((matrix, rhs)):
        if not tensor.size:
            raise InvalidArgumentError(
                f"In[{number}] must not be an empty tensor: {TensorShape(tensor.shape)}"
            )
    _check_product(matrix, rhs)
    bands, size = matrix.shape[-2:]
    if bands > size:
        raise InvalidArgumentError(
            f"Number of bands {bands} cannot exceed the size of the matrix {size}"
        )
    if not np.all(matrix[..., 0 if lower else -1, :]):
        raise InvalidArgumentError("Input matrix is not invertible.")
    return _solved(_with_bands(matrix, lower), rhs, lower, adjoint)


def _with_bands(bands: Any, lower: bool) -> Any:
    """The matrices whose diagonals are the rows: the main one first if lower, else last."""
    count, size = bands.shape[-2:]
    full = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
    for row in in_time(range(count), SLOW):
        offset = row if lower else count - 1 - row
        at, values = np.arange(size - offset), bands[..., row, :]
        if lower:
            full[..., at + offset, at] = values[..., offset:]
        else:
            full[..., at, at + offset] = values[..., : size - offset]
    return full


def _solved(matrix: Any, rhs: Any, lower: bool, is_adjoint: bool) -> Any:
    if is_adjoint:
        matrix, lower = adjoint(matrix), not lower
    if not rhs.size or not matrix.size:
        batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        return np.zeros((*batch, *rhs.shape[-2:]), rhs.dtype)
    with one_blas_thread():
        return triangular_solve(matrix, rhs, lower=lower)


def _check_ranks(matrix: Any, rhs: Any) -> None:
    for number, tensor in enumerate((matrix, rhs)):
        require_rank_at_least(tensor, 2, f"In[{number}] ndims must be >= 2: {tensor.ndim}")


def _check_product(matrix: Any, rhs: Any) -> None:
    """Refuse what does not fit: sizes, and leading dimensions that cannot be broadcast."""
    shapes = f"{TensorShape(matrix.shape)} {TensorShape(rhs.shape)}"
    require_equal(
        matrix.shape[-1], rhs.shape[-2], f"In[0] mismatch In[1] shape: {{}} vs. {{}}: {shapes}"
    )
    try:
        np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    except ValueError:
        raise InvalidArgumentError(
            f"In[0] and In[1] must have compatible batch dimensions: {shapes}"
        ) from None


@g.register_gradient("MatrixTriangularSolve")
def matrix_triangular_solve_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    for_matrix, for_rhs = _gradients(op, grad, g.nodes.MatrixTriangularSolve)
    matrix, rhs = op.inputs
    return _summed(matrix, rhs, triangle(for_matrix, lower=op.get_attr("lower")), for_rhs)


@g.register_gradient("BandedTriangularSolve")
def banded_triangular_solve_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    matrix, rhs = op.inputs
    for_matrix, for_rhs = _gradients(op, grad, g.nodes.BandedTriangularSolve)
    last = g.nodes.Sub(
        g.nodes.StridedSlice(g.shape_of(matrix), [-2], [-1], [1], shrink_axis_mask=1), 1
    )
    bounds = [g.nodes.Neg(last), 0] if op.get_attr("lower") else [0, last]
    bands = g.nodes.MatrixDiagPartV3(
        for_matrix, g.nodes.Pack(bounds), constant(0, matrix.dtype), align="LEFT_RIGHT"
    )
    return _summed(matrix, rhs, bands, for_rhs)


def _gradients(op: g.Operation, grad: g.Tensor, solve: Any) -> tuple[Any, Any]:
    """The gradients of whole matrices and of right sides, both broadcast."""
    is_adjoint, solution = op.get_attr("adjoint"), op.outputs[0]
    for_rhs = solve(op.inputs[0], grad, lower=op.get_attr("lower"), adjoint=not is_adjoint)
    factors = (solution, for_rhs) if is_adjoint else (for_rhs, solution)
    return g.nodes.Neg(mul(*factors, adj_y=True)), for_rhs


def _summed(matrix: g.Tensor, rhs: g.Tensor, for_matrix: Any, for_rhs: Any) -> g.Gradients:
    """The gradients, summed along what was broadcast of the leading dimensions."""
    shapes = [g.shape_of(matrix), g.shape_of(rhs)]
    leading = [g.nodes.StridedSlice(shape, [0], [-2], [1], begin_mask=1) for shape in shapes]
    axes = g.nodes.BroadcastGradientArgs(*leading)
    return [
        g.nodes.Reshape(g.nodes.Sum(one, along), shape)
        for one, along, shape in zip((for_matrix, for_rhs), axes, shapes, strict=True)
    ]
