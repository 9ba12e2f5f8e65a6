"""The gradient of MatrixSquareRoot.

Source: TensorFlow python/ops/linalg_grad.py; Deadman, Higham and Ralha, Blocked Schur algorithms for
computing the matrix square root (2013).
"""

from typing import Any

import opkernel.gradients as g
from opkernel.ops.linalg.gradients.matrix_algebra import adjoint, plus


@g.register_gradient("MatrixSquareRoot")
def matrix_square_root_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Solves Sylvester's equation `adjoint(root) @ x + x @ adjoint(root) == grad`, all of x as one vector."""
    root = adjoint(op.outputs[0])
    shape = g.shape_of(grad)
    size = g.nodes.StridedSlice(shape, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    batch = g.nodes.StridedSlice(shape, [0], [-2], [1], begin_mask=1)
    unit = g.nodes.MatrixDiag(g.nodes.Fill(g.nodes.Pack([size]), g.nodes.Cast(1, DstT=grad.dtype)))
    count = g.nodes.Mul(size, size)
    turned = g.nodes.Transpose(
        root, g.nodes.ConcatV2([g.nodes.Range(0, g.nodes.Size(batch), 1), _last_two(shape)], 0)
    )
    square = g.nodes.ConcatV2([batch, g.nodes.Pack([count, count])], 0)
    equations = plus(
        g.nodes.Reshape(_kronecker(root, unit), square),
        g.nodes.Reshape(_kronecker(unit, turned), square),
    )
    column = g.nodes.ConcatV2([batch, g.nodes.Pack([count, 1])], 0)
    return g.nodes.Reshape(g.nodes.MatrixSolve(equations, g.nodes.Reshape(grad, column)), shape)


def _last_two(shape: Any) -> Any:
    rank = g.nodes.Size(shape)
    return g.nodes.Pack([g.nodes.Sub(rank, 1), g.nodes.Sub(rank, 2)])


def _kronecker(x: Any, y: Any) -> Any:
    """[..., n, m, n, m]: the products of all elements of matrices."""
    left = g.nodes.ExpandDims(g.nodes.ExpandDims(x, -2), -1)
    right = g.nodes.ExpandDims(g.nodes.ExpandDims(y, -2), -4)
    return g.nodes.Mul(left, right)
