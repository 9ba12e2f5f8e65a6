"""LU decompositions, and what follows from them: Lu, determinants, inverses, systems of equations.

Source: TensorFlow core/kernels/linalg/lu_op.cc, determinant_op.cc, matrix_inverse_op.cc,
matrix_solve_op.cc.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, one_blas_thread
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require_equal
from opkernel.ops.linalg.matrices import (
    NUMBERS,
    T_SPEC,
    adjoint,
    check_square,
    check_stacks,
    matrices,
    square_matrices,
    square_shape,
)
from opkernel.ops.linalg.triangular_and_tridiagonal import triangular_solve
from opkernel.ops.math.matmul import matmul_in_parts
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.types import DataType

__all__ = ["check_system", "solved"]

_PANEL = 32
"""So many columns are eliminated one by one, before the rest of the matrix follows by one product."""


class _Factors(NamedTuple):
    """`matrix[permutation] == (unit lower triangle of lu) @ (upper triangle of lu)`."""

    lu: Any
    permutation: Any
    is_odd: Any

    @property
    def pivots(self) -> Any:
        return np.diagonal(self.lu, axis1=-2, axis2=-1)

    def solve(self, rhs: Any) -> Any:
        permuted = np.take_along_axis(rhs, self.permutation[..., None], axis=-2)
        with one_blas_thread():
            y = triangular_solve(_unit_lower(self.lu), permuted, lower=True)
            return triangular_solve(self.lu, y, lower=False)


Eliminate = Callable[[Any, Any, Any], Any]
"""A function as `eliminate_by_numpy`."""


def _factors(matrix: Any, eliminate: Eliminate) -> _Factors:
    """The pivot of a column is the element of the greatest absolute value, the first of equals."""
    size = matrix.shape[-1]
    lu = matrix.reshape(math.prod(matrix.shape[:-2]), size, size).copy()
    permutation = np.broadcast_to(np.arange(size), lu.shape[:2]).copy()
    is_odd = np.zeros(lu.shape[0], bool)
    with np.errstate(all="ignore"), one_blas_thread():
        for start in range(0, size, _PANEL):
            end = min(start + _PANEL, size)
            order = np.broadcast_to(np.arange(size - start), permutation[:, start:].shape).copy()
            panel = eliminate(lu[:, start:, start:end], order, is_odd)
            stack, to = np.nonzero(order != np.arange(size - start))
            to, moved = start + to, start + order[stack, to]
            permutation[stack, to] = permutation[stack, moved]
            if size > _PANEL:
                lu[stack, to] = lu[stack, moved]
            lu[:, start:, start:end] = panel
            if end < size:
                top = triangular_solve(
                    _unit_lower(lu[:, start:end, start:end]), lu[:, start:end, end:], lower=True
                )
                lu[:, start:end, end:] = top
                lu[:, end:, end:] -= matmul_in_parts(lu[:, end:, start:end], top)
    batch = matrix.shape[:-2]
    return _Factors(
        lu.reshape(matrix.shape), permutation.reshape(*batch, size), is_odd.reshape(batch)
    )


def solved(matrix: Any, rhs: Any) -> Any:
    """The x with `matrix @ x == rhs`; not finite for matrices that are not invertible."""
    with np.errstate(all="ignore"):
        return _factors(matrix, eliminate_by_numpy).solve(rhs)


def eliminate_by_numpy(panel: Any, order: Any, is_odd: Any) -> Any:
    """The panel with its columns eliminated, one after the other.

    Args:
        panel: Some columns of matrices, from the row of the first pivot on, [stack, rows, columns].
        order: The numbers of the rows, [stack, rows], which are swapped with them.
        is_odd: Whether rows of a matrix were swapped an odd number of times, [stack]; it is updated.
    """
    panel = _with_long_runs(panel)
    for k in in_time(range(panel.shape[2]), SLOW):
        is_odd ^= _eliminate(panel, order, k)
    return panel


def _with_long_runs(panel: Any) -> Any:
    """A copy whose columns stand together in memory or, in a high stack, the elements of one place."""
    stack, rows, _ = panel.shape
    axes = (2, 1, 0) if stack > rows else (0, 2, 1)
    return panel.transpose(axes).copy().transpose(axes)


def _unit_lower(block: Any) -> Any:
    units = np.arange(block.shape[-1])
    lower = block.copy()
    lower[..., units, units] = 1
    return lower


def _eliminate(panel: Any, order: Any, k: int) -> Any:
    """Bring the pivot of column k up, and clear the column below it; whether rows were swapped."""
    column, stack = panel[:, k:, k], np.arange(len(panel))
    weights = column.real**2 + column.imag**2 if np.iscomplexobj(panel) else np.abs(column)
    pivot = k + np.argmax(np.where(np.isnan(weights), -1, weights), axis=1)
    for rows in (panel, order):
        upper = rows[stack, k].copy()
        rows[stack, k] = rows[stack, pivot]
        rows[stack, pivot] = upper
    divisor, below = panel[:, k, k, None], panel[:, k + 1 :, k]
    np.divide(below, divisor, out=below, where=divisor != 0)
    rest = panel[:, k + 1 :, k + 1 :]
    product = np.empty_like(rest)  # its runs in memory are those of the panel
    rest -= np.multiply(below[..., None], panel[:, k, None, k + 1 :], out=product)
    return pivot != k


def _determinant_shape(c: InferenceContext) -> None:
    """[..., n, n] -> [...], each output."""
    shape = matrices(c, 0)
    c.merge(shape.columns, shape.rows)
    for i in range(c.num_outputs()):
        c.set_output(i, c.subshape(c.input(0), 0, -2))


LU = register_op(
    "Lu(input: T) -> lu: T, p: output_idx_type",
    attrs=[T_SPEC, "output_idx_type: {int32, int64} = DT_INT32"],
    shape_fn=shape_rule("[..., n, n] -> [..., n, n], [..., n]"),
    doc="The LU decomposition of matrices, both factors in one, and the permutation of the rows.",
)
MATRIX_DETERMINANT = register_op(
    "MatrixDeterminant(input: T) -> output: T",
    attrs=["T: {half, float, double, complex64, complex128}"],
    shape_fn=_determinant_shape,
    doc="The determinants of matrices.",
)
LOG_MATRIX_DETERMINANT = register_op(
    "LogMatrixDeterminant(input: T) -> sign: T, log_abs_determinant: T",
    attrs=["T: {half, float, double, complex64, complex128}"],
    shape_fn=_determinant_shape,
    doc="The signs of determinants, and the logarithms of their absolute values.",
)
MATRIX_INVERSE = register_op(
    "MatrixInverse(input: T) -> output: T",
    attrs=["adjoint: bool = false", T_SPEC],
    shape_fn=square_shape,
    doc="The inverses of matrices, or of their adjoints.",
    traits="clustering=slow",
)


def _solve_shape(c: InferenceContext) -> None:
    """[..., n, n], [..., n, k] -> [..., n, k]."""
    batch, size = square_matrices(c)
    right = matrices(c, 1)
    batch = c.merge(batch, right.batch)
    size = c.merge(c.merge(size, right.rows), size)
    c.set_output(0, c.concatenate(batch, c.matrix(size, right.columns)))


MATRIX_SOLVE = register_op(
    "MatrixSolve(matrix: T, rhs: T) -> output: T",
    attrs=["adjoint: bool = false", T_SPEC],
    shape_fn=_solve_shape,
    doc="The x with `matrix @ x == rhs`, or the same of the adjoints of the matrices.",
    traits="clustering=slow",
)


def _invertible_factors(matrix: Any, message: str, eliminate: Eliminate) -> _Factors:
    factors = _factors(matrix, eliminate)
    if not np.all(np.abs(factors.pivots) > 0):  # which NaN is not, either
        raise InvalidArgumentError(message)
    return factors


def _lu(eliminate: Eliminate, tensor: Any, *, output_idx_type: DataType) -> tuple[Any, Any]:
    check_square(tensor)
    factors = _invertible_factors(tensor, "Input is not invertible.", eliminate)
    return factors.lu, factors.permutation.astype(output_idx_type.numpy_dtype)


def _matrix_determinant(eliminate: Eliminate, tensor: Any) -> Any:
    check_square(tensor)
    factors = _factors(tensor, eliminate)
    sign = np.where(factors.is_odd, -1, 1).astype(tensor.dtype)
    with np.errstate(all="ignore"):
        return np.asarray(sign * np.prod(factors.pivots, axis=-1))


def _log_matrix_determinant(eliminate: Eliminate, tensor: Any) -> tuple[Any, Any]:
    check_square(tensor)
    factors = _factors(tensor, eliminate)
    pivots = factors.pivots
    sizes = np.abs(pivots)
    with np.errstate(all="ignore"):
        is_complex = np.iscomplexobj(pivots)
        units = np.where(sizes == 0, pivots, pivots / sizes) if is_complex else np.sign(pivots)
        sign = np.where(factors.is_odd, -1, 1) * np.prod(units, axis=-1)
        log = np.sum(np.log(sizes), axis=-1)
    return np.asarray(sign).astype(tensor.dtype), np.asarray(log).astype(tensor.dtype)


def _matrix_inverse(eliminate: Eliminate, tensor: Any, *, adjoint: bool) -> Any:
    check_square(tensor)
    if not tensor.size:
        return tensor.copy()
    wide = tensor.astype(np.promote_types(tensor.dtype, np.float32), copy=False)
    matrix = _adjoint_if(wide, adjoint)
    factors = _invertible_factors(matrix, "Input is not invertible.", eliminate)
    identity = np.broadcast_to(np.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
    return factors.solve(identity).astype(tensor.dtype, copy=False)


def check_system(matrix: Any, rhs: Any) -> None:
    """Refuse stacks of matrices that are no left and right sides of systems of equations."""
    check_stacks(matrix, rhs)
    check_square(matrix, "First input (lhs)")
    require_equal(matrix.shape[-1], rhs.shape[-2], "Input matrix and rhs are incompatible.")


def _matrix_solve(eliminate: Eliminate, matrix: Any, rhs: Any, *, adjoint: bool) -> Any:
    check_system(matrix, rhs)
    if not matrix.size or not rhs.size:
        return np.zeros_like(rhs)
    turned = _adjoint_if(matrix, adjoint)
    factors = _invertible_factors(turned, "Input matrix is not invertible.", eliminate)
    return factors.solve(rhs)


def _adjoint_if(matrix: Any, is_adjoint: bool) -> Any:
    return adjoint(matrix) if is_adjoint else matrix


class LuKernels(NamedTuple):
    """The kernels of this module, for one way to eliminate columns."""

    lu: Callable[..., Any]
    determinant: Callable[..., Any]
    log_determinant: Callable[..., Any]
    inverse: Callable[..., Any]
    solve: Callable[..., Any]


def lu_kernels(eliminate: Eliminate) -> LuKernels:
    """The kernels that eliminate columns with a function."""

    def lu(tensor: Any, *, output_idx_type: DataType) -> tuple[Any, Any]:
        return _lu(eliminate, tensor, output_idx_type=output_idx_type)

    def matrix_determinant(tensor: Any) -> Any:
        return _matrix_determinant(eliminate, tensor)

    def log_matrix_determinant(tensor: Any) -> tuple[Any, Any]:
        return _log_matrix_determinant(eliminate, tensor)

    def matrix_inverse(tensor: Any, *, adjoint: bool) -> Any:
        return _matrix_inverse(eliminate, tensor, adjoint=adjoint)

    def matrix_solve(matrix: Any, rhs: Any, *, adjoint: bool) -> Any:
        return _matrix_solve(eliminate, matrix, rhs, adjoint=adjoint)

    return LuKernels(lu, matrix_determinant, log_matrix_determinant, matrix_inverse, matrix_solve)


def register_lu(
    kernels: LuKernels, types: Sequence[DataType], registry: KernelRegistry | None = None
) -> None:
    """Register the kernels for some of the types of numbers; half matrices are inverted as float."""
    of_number = {"T": types}
    register_kernel(LU, types={**of_number, "output_idx_type": INDEX}, registry=registry)(
        kernels.lu
    )
    register_kernel(MATRIX_INVERSE, types={"T": (*types, DataType.DT_HALF)}, registry=registry)(
        kernels.inverse
    )
    for op, kernel in (
        (MATRIX_DETERMINANT, kernels.determinant),
        (LOG_MATRIX_DETERMINANT, kernels.log_determinant),
        (MATRIX_SOLVE, kernels.solve),
    ):
        register_kernel(op, types=of_number, registry=registry)(kernel)


IN_NUMPY = lu_kernels(eliminate_by_numpy)
register_lu(IN_NUMPY, NUMBERS)
