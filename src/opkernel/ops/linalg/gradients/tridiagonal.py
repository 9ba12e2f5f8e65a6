"""Gradients of products and solutions of tridiagonal matrices.

Source: TensorFlow python/ops/linalg_grad.py.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.graph import constant


@g.register_gradient("TridiagonalMatMul")
def tridiagonal_mat_mul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    above, main, below, rhs = (g.conj(tensor) for tensor in op.inputs)
    for_rhs = g.nodes.TridiagonalMatMul(
        _moved(below, -1, axis=-1), main, _moved(above, 1, axis=-1), grad
    )
    products = [
        g.nodes.Sum(g.nodes.Mul(one, grad), [-1])
        for one in (_moved(rhs, -1, axis=-2), rhs, _moved(rhs, 1, axis=-2))
    ]
    return [*(g.nodes.ExpandDims(one, -2) for one in products), for_rhs]


@g.register_gradient("TridiagonalSolve")
def tridiagonal_solve_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """As TensorFlow's, that of transposed matrices, even of complex ones."""
    diagonals, solution = op.inputs[0], op.outputs[0]
    above, main, below = g.nodes.Unpack(diagonals, num=3, axis=-2)
    flipped = g.nodes.Pack([_moved(below, -1, axis=-1), main, _moved(above, 1, axis=-1)], axis=-2)
    for_rhs = g.nodes.TridiagonalSolve(
        flipped, grad, **g.attrs_of(op, "partial_pivoting", "perturb_singular")
    )
    products = [
        g.nodes.Sum(g.nodes.Mul(for_rhs, one), [-1])
        for one in (_moved(solution, -1, axis=-2), solution, _moved(solution, 1, axis=-2))
    ]
    return g.nodes.Neg(g.nodes.Pack(products, axis=-2)), for_rhs


def _moved(x: Any, by: int, *, axis: int) -> Any:
    """The elements moved along an axis; a zero comes in at the end that becomes free."""
    rank = g.nodes.Rank(x)
    at = g.nodes.OneHot(g.nodes.AddV2(rank, axis), rank, 1, 0)
    none = g.nodes.ZerosLike(at)
    before, after = (at, none) if by > 0 else (none, at)
    padded = g.nodes.PadV2(x, g.nodes.Pack([before, after], axis=1), constant(0, x.dtype))
    return g.nodes.Slice(padded, after, g.shape_of(x))
