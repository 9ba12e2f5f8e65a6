"""Cholesky, and gradients.

Source: TensorFlow core/kernels/linalg/cholesky_op.cc, cholesky_grad.cc; Murray, Differentiation of the
Cholesky decomposition (2016); python/ops/linalg_grad.py.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.kernel import one_blas_thread
from opkernel.opdef import register_op
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.linalg.gradients.matrix_algebra import (
    adjoint,
    halved_diagonal,
    mul,
    plus,
    scaled,
    triangle,
)
from opkernel.ops.linalg.matrices import (
    NUMBERS,
    T_SPEC,
    check_square,
    check_stacks,
    of_stack,
    square_shape,
)
from opkernel.ops.registration import register_kernel

__all__ = ["lower_factor"]


_COST = 0.03
"""Of the function of LAPACK, as `of_stack` takes it."""

CHOLESKY = register_op(
    "Cholesky",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=[T_SPEC],
    shape_fn=square_shape,
    doc="The lower triangle L with `L @ adjoint(L) == input`; only the lower triangle of the input counts.",
)
CHOLESKY_GRAD = register_op(
    "CholeskyGrad",
    inputs=["l: T", "grad: T"],
    outputs=["output: T"],
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
    factors = np.empty_like(matrix)
    for factor, one in zip(factors, in_time(matrix, SLOW), strict=True):
        factor[...] = _lower_factors(one)
    return factors


@register_kernel(CHOLESKY, types={"T": NUMBERS})
def cholesky(tensor: Any) -> Any:
    check_square(tensor)
    if not tensor.size:
        return tensor.copy()
    factor = lower_factor(tensor)
    has_none = ~np.isfinite(factor).all(axis=(-1, -2), keepdims=True)
    return np.where(has_none, np.tril(np.full_like(factor, np.nan)), factor)


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


@g.register_gradient("Cholesky")
def cholesky_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    factor = op.outputs[0]
    middle = triangle(halved_diagonal(mul(factor, grad, adj_x=True)), lower=True)
    left = g.nodes.MatrixTriangularSolve(factor, middle, lower=True, adjoint=True)
    both = adjoint(g.nodes.MatrixTriangularSolve(factor, adjoint(left), lower=True, adjoint=True))
    return scaled(plus(both, adjoint(both)), 0.5)
