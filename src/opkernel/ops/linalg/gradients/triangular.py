"""Gradients of solutions of triangular systems.

Source: TensorFlow python/ops/linalg_grad.py.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.graph import constant
from opkernel.ops.linalg.gradients.matrix_algebra import mul, triangle


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
