"""The gradient of MatrixSolveLs, by the normal equations.

Source: TensorFlow python/ops/linalg_grad.py.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.ops.linalg.gradients.matrix_algebra import adjoint, cast, minus, mul, plus


@g.register_gradient("MatrixSolveLs", not_derivative="l2_regularizer counts as constant")
def matrix_solve_ls_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    if not op.get_attr("fast"):
        raise InvalidArgumentError(
            f"The gradient of MatrixSolveLs is not defined for fast=False ({op.name!r})"
        )
    dims = op.inputs[0].shape.dims
    if dims is None or dims[-2] is None or dims[-1] is None:
        raise UnimplementedError(
            f"The gradient of MatrixSolveLs needs matrices of known size; {op.name!r} has "
            f"{op.inputs[0].shape}"
        )
    gradients = _overdetermined if dims[-2] >= dims[-1] else _underdetermined
    return *gradients(op, grad), None


def _overdetermined(op: g.Operation, grad: g.Tensor) -> tuple[Any, Any]:
    matrix, rhs, _ = op.inputs
    z = _solved(op, mul(matrix, matrix, adj_x=True), grad)
    both = mul(op.outputs[0], z, adj_y=True)
    for_matrix = minus(mul(rhs, z, adj_y=True), mul(matrix, plus(both, adjoint(both))))
    return for_matrix, mul(matrix, z)


def _underdetermined(op: g.Operation, grad: g.Tensor) -> tuple[Any, Any]:
    matrix, rhs, _ = op.inputs
    gramian = mul(matrix, matrix, adj_y=True)
    for_rhs = _solved(op, gramian, mul(matrix, grad))
    weights = _solved(op, gramian, rhs)
    inside = mul(for_rhs, mul(weights, matrix, adj_x=True))
    outside = mul(weights, minus(grad, mul(matrix, for_rhs, adj_x=True)), adj_y=True)
    return minus(outside, inside), for_rhs


def _solved(op: g.Operation, gramian: Any, rhs: Any) -> Any:
    """The solution of a system with a regularised Gramian matrix."""
    diagonal = g.nodes.MatrixDiagPart(gramian)
    more = g.nodes.AddV2(diagonal, cast(op.inputs[2], gramian.dtype))
    factor = g.nodes.Cholesky(g.nodes.MatrixSetDiag(gramian, more))
    half = g.nodes.MatrixTriangularSolve(factor, rhs, lower=True)
    return g.nodes.MatrixTriangularSolve(factor, half, lower=True, adjoint=True)
