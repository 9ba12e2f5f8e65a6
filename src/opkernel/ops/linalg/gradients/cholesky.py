"""The gradient of Cholesky, from triangular systems.

Source: TensorFlow python/ops/linalg_grad.py; Murray, Differentiation of the Cholesky decomposition (2016).
"""

import opkernel.gradients as g
from opkernel.ops.linalg.gradients.matrix_algebra import (
    adjoint,
    halved_diagonal,
    mul,
    plus,
    scaled,
    triangle,
)


@g.register_gradient("Cholesky")
def cholesky_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    factor = op.outputs[0]
    middle = triangle(halved_diagonal(mul(factor, grad, adj_x=True)), lower=True)
    left = g.nodes.MatrixTriangularSolve(factor, middle, lower=True, adjoint=True)
    both = adjoint(g.nodes.MatrixTriangularSolve(factor, adjoint(left), lower=True, adjoint=True))
    return scaled(plus(both, adjoint(both)), 0.5)
