"""Nodes for products, transposes and diagonals of stacks of matrices."""

from typing import Any

import opkernel.gradients as g
from opkernel.graph import constant
from opkernel.ops.kernel_types import REAL_OF
from opkernel.types import DataType


def mul(x: Any, y: Any, *, adj_x: bool = False, adj_y: bool = False) -> Any:
    """The product of matrices, or of their adjoints."""
    return g.nodes.BatchMatMulV2(x, y, adj_x=adj_x, adj_y=adj_y)


def plus(*terms: Any) -> Any:
    """The sum."""
    total = terms[0]
    for term in terms[1:]:
        total = g.nodes.AddV2(total, term)
    return total


def minus(x: Any, y: Any) -> Any:
    """The difference."""
    return g.nodes.Sub(x, y)


def times(x: Any, y: Any) -> Any:
    """The product, element by element."""
    return g.nodes.Mul(x, y)


def scaled(x: Any, factor: float) -> Any:
    """The product with a number."""
    return g.nodes.Mul(x, g.nodes.Cast(factor, DstT=x.dtype))


def cast(x: Any, dtype: DataType) -> Any:
    """The tensor as another type; itself if it is of that type."""
    return x if x.dtype == dtype else g.nodes.Cast(x, DstT=dtype)


def real_part(x: Any) -> Any:
    """Complex numbers without their imaginary parts; of the same type."""
    if x.dtype not in REAL_OF:
        return x
    return cast(g.nodes.Real(x, Tout=REAL_OF[x.dtype]), x.dtype)


def adjoint(x: Any) -> Any:
    """The conjugates of the transposed matrices."""
    rank = g.nodes.Rank(x)
    axes = g.nodes.Range(0, g.nodes.Sub(rank, 2), 1)
    last = g.nodes.Pack([g.nodes.Sub(rank, 1), g.nodes.Sub(rank, 2)])
    return g.conj(g.nodes.Transpose(x, g.nodes.ConcatV2([axes, last], 0)))


def triangle(x: Any, *, lower: bool) -> Any:
    """A triangle with the diagonal; zeros elsewhere."""
    return g.nodes.MatrixBandPart(x, -1 if lower else 0, 0 if lower else -1)


def diagonal(x: Any) -> Any:
    """The diagonals of matrices."""
    return g.nodes.MatrixDiagPart(x)


def from_diagonal(x: Any) -> Any:
    """Matrices with these diagonals, and zeros elsewhere."""
    return g.nodes.MatrixDiag(x)


def with_diagonal(x: Any, values: Any) -> Any:
    """Matrices with other diagonals."""
    return g.nodes.MatrixSetDiag(x, values)


def halved_diagonal(x: Any) -> Any:
    """Matrices with half of their diagonals."""
    return with_diagonal(x, scaled(diagonal(x), 0.5))


def differences(values: Any) -> Any:
    """The matrices of `1 / (values[j] - values[i])`: near 0 for equal ones, and 0 on the diagonal."""
    ends = g.nodes.Sub(g.nodes.ExpandDims(values, -2), g.nodes.ExpandDims(values, -1))
    square = g.nodes.AddV2(g.nodes.Square(ends), constant(1e-20, values.dtype))
    return with_diagonal(g.nodes.RealDiv(ends, square), g.zeros_like(values))
