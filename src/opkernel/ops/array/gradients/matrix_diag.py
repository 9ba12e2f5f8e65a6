"""Gradients of diagonals of matrices."""

from typing import Any

import opkernel.gradients as g
from opkernel.graph import constant


@g.register_gradient("MatrixDiag")
def matrix_diag_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.MatrixDiagPart(grad)


@g.register_gradient(
    "MatrixDiagV2", "MatrixDiagV3", not_derivative="padding_value counts as constant"
)
def matrix_diag_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return [_diagonals(op, grad, op.inputs[1]), None, None, None, None]


@g.register_gradient("MatrixDiagPart")
def matrix_diag_part_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.MatrixSetDiag(g.zeros_like(op.inputs[0]), grad)


@g.register_gradient(
    "MatrixDiagPartV2", "MatrixDiagPartV3", not_derivative="padding_value counts as constant"
)
def matrix_diag_part_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, k, _ = op.inputs
    return _with_diagonals(op, g.zeros_like(x), grad, k), None, None


@g.register_gradient("MatrixSetDiag")
def matrix_set_diag_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    without = g.nodes.MatrixSetDiag(grad, g.zeros_like(op.inputs[1]))
    return without, g.nodes.MatrixDiagPart(grad)


@g.register_gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, diagonal, k = op.inputs
    without = _with_diagonals(op, grad, g.zeros_like(diagonal), k)
    return without, _diagonals(op, grad, k), None


def _diagonals(op: g.Operation, matrix: g.Tensor, k: g.Tensor) -> Any:
    """The diagonals of a matrix, laid out as `op` does."""
    zero = constant(0, matrix.dtype)
    if op.type.endswith("V3"):
        return g.nodes.MatrixDiagPartV3(matrix, k, zero, align=op.get_attr("align"))
    return g.nodes.MatrixDiagPartV2(matrix, k, zero)


def _with_diagonals(op: g.Operation, matrix: g.Tensor, diagonals: g.Tensor, k: g.Tensor) -> Any:
    """A matrix with other diagonals, laid out as `op` does."""
    if op.type.endswith("V3"):
        return g.nodes.MatrixSetDiagV3(matrix, diagonals, k, align=op.get_attr("align"))
    return g.nodes.MatrixSetDiagV2(matrix, diagonals, k)
