"""Gradients of determinants, inverses and solutions.

Source: TensorFlow python/ops/linalg_grad.py; Giles, Collected matrix derivative results (2008).
"""

from typing import Any

import opkernel.gradients as g
from opkernel.ops.linalg.gradients.matrix_algebra import adjoint, cast, mul, times


@g.register_gradient("MatrixInverse")
def matrix_inverse_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    inverse = op.outputs[0]
    right = mul(grad, inverse, adj_y=True)
    for_input = g.nodes.Neg(mul(inverse, right, adj_x=True))
    return adjoint(for_input) if op.get_attr("adjoint") else for_input


@g.register_gradient("MatrixDeterminant")
def matrix_determinant_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    # TensorFlow does not conjugate the determinant.
    return _of_each(times(grad, op.outputs[0]), _inverse_adjoint(op))


@g.register_gradient("LogMatrixDeterminant", not_derivative="the sign counts as constant")
def log_matrix_determinant_gradient(
    op: g.Operation, for_sign: g.Tensor, for_log: g.Tensor
) -> g.Gradients:
    """The sign counts as constant."""
    return _of_each(for_log, _inverse_adjoint(op))


def _inverse_adjoint(op: g.Operation) -> Any:
    return g.nodes.MatrixInverse(op.inputs[0], adjoint=True)


def _of_each(factors: Any, matrices: Any) -> Any:
    """Each matrix times its factor."""
    column = g.nodes.ExpandDims(g.nodes.ExpandDims(factors, -1), -1)
    return times(column, cast(matrices, factors.dtype))


@g.register_gradient("MatrixSolve")
def matrix_solve_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    matrix, solution = op.inputs[0], op.outputs[0]
    is_adjoint = op.get_attr("adjoint")
    for_rhs = g.nodes.MatrixSolve(matrix, grad, adjoint=not is_adjoint)
    factors = (solution, for_rhs) if is_adjoint else (for_rhs, solution)
    return g.nodes.Neg(mul(*factors, adj_y=True)), for_rhs
