"""MatrixSolveLs: systems of equations solved as well as can be.

Source: TensorFlow core/kernels/linalg/matrix_solve_ls_op_impl.h.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.linalg.cholesky import lower_factor
from opkernel.ops.linalg.matrices import NUMBERS, T_SPEC, adjoint, check_stacks, matrices, of_stack
from opkernel.ops.linalg.triangular import triangular_solve
from opkernel.ops.math.matmul import matmul_in_parts
from opkernel.ops.registration import register_kernel

_PSEUDO_INVERSE = 0.8
"""The cost of the function, as `of_stack` takes it."""


def _least_squares_shape(c: InferenceContext) -> None:
    """[..., m, n], [..., m, k], a scalar -> [..., n, k]."""
    check_scalars(c, 2)
    left, right = matrices(c, 0), matrices(c, 1)
    batch = c.merge(left.batch, right.batch)
    c.merge(left.rows, right.rows)
    c.set_output(0, c.concatenate(batch, c.matrix(left.columns, right.columns)))


MATRIX_SOLVE_LS = register_op(
    "MatrixSolveLs",
    inputs=["matrix: T", "rhs: T", "l2_regularizer: double"],
    outputs=["output: T"],
    attrs=[T_SPEC, "fast: bool = true"],
    shape_fn=_least_squares_shape,
    doc=(
        "The x of the least sum of squares of `matrix @ x - rhs`, or the least x of many. `fast` solves the "
        "normal equations, with `l2_regularizer` added to their diagonals; without it, the rank may be any."
    ),
)


@register_kernel(MATRIX_SOLVE_LS, types={"T": NUMBERS})
def matrix_solve_ls(matrix: Any, rhs: Any, l2_regularizer: Any, *, fast: bool) -> Any:
    check_stacks(matrix, rhs)
    require_scalar(l2_regularizer, "l2_regularizer must be scalar, got shape {}")
    if l2_regularizer < 0:
        raise InvalidArgumentError("l2_regularizer must be >= 0.")
    rows, columns = matrix.shape[-2:]
    if rows != rhs.shape[-2]:
        raise InvalidArgumentError("Input matrix and rhs are incompatible.")
    if not matrix.size or not rhs.size:
        return np.zeros((*rhs.shape[:-2], columns, rhs.shape[-1]), rhs.dtype)
    if not fast:
        inverse = of_stack(np.linalg.pinv, matrix, _PSEUDO_INVERSE, "inverting matrices")
        return matmul_in_parts(inverse, rhs)
    if rows >= columns:
        gramian, right = (matmul_in_parts(adjoint(matrix), one) for one in (matrix, rhs))
        return _normal_solution(gramian, right, l2_regularizer)
    gramian = matmul_in_parts(matrix, adjoint(matrix))
    return matmul_in_parts(adjoint(matrix), _normal_solution(gramian, rhs, l2_regularizer))


def _normal_solution(gramian: Any, rhs: Any, l2_regularizer: Any) -> Any:
    size = gramian.shape[-1]
    factor = lower_factor(gramian + np.eye(size, dtype=gramian.dtype) * l2_regularizer.item())
    pivots = np.abs(np.diagonal(factor, axis1=-2, axis2=-1))
    least = np.finfo(factor.dtype).eps ** 0.5 * pivots.max(axis=-1, initial=0)
    if not np.all(pivots.min(axis=-1, initial=np.inf) > least):
        raise InvalidArgumentError(
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
            "l2_regularizer > 0."
        )
    half = triangular_solve(factor, rhs, lower=True)
    return triangular_solve(adjoint(factor), half, lower=False)
