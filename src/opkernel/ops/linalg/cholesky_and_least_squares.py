"""Cholesky and CholeskyGrad; MatrixSolveLs, systems of equations solved as well as can be.

Source: TensorFlow core/kernels/linalg/cholesky_op.cc, cholesky_grad.cc, matrix_solve_ls_op_impl.h;
Murray, Differentiation of the Cholesky decomposition (2016).
"""

from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import one_blas_thread
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require, require_equal, require_scalar
from opkernel.ops.linalg.matrices import (
    NUMBERS,
    T_SPEC,
    adjoint,
    check_square,
    check_stacks,
    of_stack,
    square_shape,
)
from opkernel.ops.linalg.triangular_and_tridiagonal import triangular_solve
from opkernel.ops.math.matmul import matmul_in_parts
from opkernel.ops.registration import FLOATS, register_kernel

__all__ = ["lower_factor"]

_COST = 0.03
"""Of the function of LAPACK, as `of_stack` takes it."""

CHOLESKY = register_op(
    "Cholesky(input: T) -> output: T",
    attrs=[T_SPEC],
    shape_fn=square_shape,
    doc="The lower triangle L with `L @ adjoint(L) == input`; only the lower triangle of the input counts.",
)
CHOLESKY_GRAD = register_op(
    "CholeskyGrad(l: T, grad: T) -> output: T",
    attrs=["T: {half, float, double}"],
    shape_fn=square_shape,
    doc="The gradient of Cholesky from its output and the gradient of that.",
)


def lower_factor(matrix: Any) -> Any:
    """The Cholesky factors; NaN for matrices that have none."""
    with one_blas_thread():
        return of_stack(_lower_factors, matrix, _COST, "factoring matrices")


def _lower_factors(matrix: Any) -> Any:
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        if matrix.ndim == 2:
            return np.tril(np.full_like(matrix, np.nan))
    stack = matrix.reshape(-1, *matrix.shape[-2:])
    factors = np.empty_like(stack)
    is_sure = _has_positive_pivots(stack)
    if not is_sure.all():
        factors[~is_sure] = np.tril(np.full(matrix.shape[-2:], np.nan, matrix.dtype))
        factors[is_sure] = _lower_factors(stack[is_sure])
    else:
        for factor, one in zip(factors, in_time(stack, SLOW), strict=True):
            factor[...] = _lower_factors(one)
    return factors.reshape(matrix.shape)


def _has_positive_pivots(stack: Any) -> Any:
    """Whether matrices have factors, but for rounding; most that have none end after a few columns."""
    rest, order = np.array(stack), np.arange(len(stack))
    found = np.ones(len(stack), bool)
    for column in in_time(range(stack.shape[-1]), SLOW):
        pivots = rest[:, column, column].real
        stays = pivots > 0
        if not stays.all():
            found[order[~stays]] = False
            rest, order, pivots = rest[stays], order[stays], pivots[stays]
        below = rest[:, column + 1 :, column]
        scaled = below / pivots[:, None]
        rest[:, column + 1 :, column + 1 :] -= scaled[:, :, None] * below.conj()[:, None, :]
    return found


@register_kernel(CHOLESKY, types={"T": NUMBERS})
def cholesky(tensor: Any) -> Any:
    check_square(tensor)
    if not tensor.size:
        return tensor.copy()
    factor = lower_factor(tensor)
    has_none = ~np.isfinite(factor).all(axis=(-1, -2), keepdims=True)
    return np.where(has_none, np.tril(_in_place_of_factors(tensor)), factor)


def _in_place_of_factors(matrix: Any) -> Any:
    """What stands where a matrix has no factor: NaN; 0 for complex numbers, of which C++ has no NaN, unless one is given."""
    nan = np.full_like(matrix, np.nan)
    if matrix.dtype.kind != "c":
        return nan
    is_given = np.isnan(np.tril(matrix)).any(axis=(-1, -2), keepdims=True)
    return np.where(is_given, nan, np.zeros_like(matrix))


@register_kernel(CHOLESKY_GRAD, types={"T": FLOATS[2:]})
def cholesky_grad(l: Any, grad: Any) -> Any:  # noqa: E741 - TensorFlow's name
    check_stacks(l, grad)
    check_square(l)
    require_equal(l.shape, grad.shape, "Inputs (L and grad) must have the same shape.")
    if not l.size:
        return grad.copy()
    result = _backwards(np.tril(l), np.tril(grad))
    return (result + result.swapaxes(-1, -2)) / 2


def _backwards(lower: Any, grad: Any) -> Any:
    """The gradient of the lower triangle, column by column from the last, as by Murray's level 2."""
    for k in in_time(range(lower.shape[-1] - 1, -1, -1), SLOW):
        pivot, row, column = lower[..., k, k, None], lower[..., k, :k], lower[..., k + 1 :, k]
        below = grad[..., k + 1 :, k] / pivot
        at = (grad[..., k, k, None] - np.sum(column * below, axis=-1, keepdims=True)) / pivot
        grad[..., k + 1 :, k] = below
        grad[..., k, :k] -= at * row + (below[..., None, :] @ lower[..., k + 1 :, :k])[..., 0, :]
        grad[..., k + 1 :, :k] -= below[..., None] * row[..., None, :]
        grad[..., k, k] = at[..., 0] / 2
    return grad


_PSEUDO_INVERSE = 0.8
"""The cost of the function, as `of_stack` takes it."""


MATRIX_SOLVE_LS = register_op(
    "MatrixSolveLs(matrix: T, rhs: T, l2_regularizer: double) -> output: T",
    attrs=[T_SPEC, "fast: bool = true"],
    shape_fn=shape_rule("[..., m, n], [..., m, k], [] -> [..., n, k]"),
    doc="The x of the least sum of squares of `matrix @ x - rhs`, or the least x of many. `fast` solves the "
    "normal equations, with `l2_regularizer` added to their diagonals; without it, the rank may be any.",
)


@register_kernel(MATRIX_SOLVE_LS, types={"T": NUMBERS})
def matrix_solve_ls(matrix: Any, rhs: Any, l2_regularizer: Any, *, fast: bool) -> Any:
    check_stacks(matrix, rhs)
    require_scalar(l2_regularizer, "l2_regularizer must be scalar, got shape {}")
    require(l2_regularizer >= 0, "l2_regularizer must be >= 0.")
    rows, columns = matrix.shape[-2:]
    require_equal(rows, rhs.shape[-2], "Input matrix and rhs are incompatible.")
    if not matrix.size or not rhs.size:
        return np.zeros((*rhs.shape[:-2], columns, rhs.shape[-1]), rhs.dtype)
    if not fast:
        matrix = _without_rank_if_nan(matrix)
        inverse = of_stack(np.linalg.pinv, matrix, _PSEUDO_INVERSE, "inverting matrices")
        return matmul_in_parts(inverse, rhs)
    if rows >= columns:
        gramian, right = (matmul_in_parts(adjoint(matrix), one) for one in (matrix, rhs))
        return _normal_solution(gramian, right, l2_regularizer)
    gramian = matmul_in_parts(matrix, adjoint(matrix))
    return matmul_in_parts(adjoint(matrix), _normal_solution(gramian, rhs, l2_regularizer))


def _without_rank_if_nan(matrix: Any) -> Any:
    """Zeros in place of matrices with a NaN, whose rank TensorFlow takes for 0; so do infinite complex ones."""
    is_odd = ~np.isfinite(matrix) if np.iscomplexobj(matrix) else np.isnan(matrix)
    return np.where(is_odd.any(axis=(-1, -2), keepdims=True), matrix.dtype.type(0), matrix)


def _normal_solution(gramian: Any, rhs: Any, l2_regularizer: Any) -> Any:
    size = gramian.shape[-1]
    factor = lower_factor(gramian + np.eye(size, dtype=gramian.dtype) * l2_regularizer.item())
    pivots = np.abs(np.diagonal(factor, axis1=-2, axis2=-1))
    least = np.finfo(factor.dtype).eps ** 0.5 * pivots.max(axis=-1, initial=0)
    is_finite = np.isfinite(gramian).all(axis=(-1, -2))
    if np.any(is_finite & ~(pivots.min(axis=-1, initial=np.inf) > least)):
        raise InvalidArgumentError(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
            "l2_regularizer > 0."
        )
    half = triangular_solve(factor, rhs, lower=True)
    return triangular_solve(adjoint(factor), half, lower=False)
