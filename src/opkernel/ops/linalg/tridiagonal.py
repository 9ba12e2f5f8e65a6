"""Tridiagonal matrices: TridiagonalMatMul, TridiagonalSolve, and gradients.

Source: TensorFlow core/kernels/linalg/tridiagonal_matmul_op.cc, tridiagonal_solve_op.cc,
python/ops/linalg_grad.py.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.graph import constant
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.linalg.matrices import NUMBERS, check_stacks, matrices
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape

__all__ = ["check_product", "check_system"]


_T = "T: {double, float, complex64, complex128}"


def _tridiagonal_matmul_shape(c: InferenceContext) -> None:
    """Three diagonals [..., 1, n], and [..., n, k] -> input 3."""
    _, main, below, right = (matrices(c, i) for i in range(4))
    diagonals = c.merge(c.input(0), c.input(1))
    c.merge(below.batch, c.merge(main.batch, right.batch))
    diagonals = c.merge(c.input(2), diagonals)
    c.merge(c.dim(diagonals, -1), right.rows)
    c.with_value(c.dim(diagonals, -2), 1)
    c.set_output(0, c.input(3))


def _tridiagonal_solve_shape(c: InferenceContext) -> None:
    """Three diagonals in one, [..., 3, n], and [..., n, k] -> input 1."""
    diagonals, right = matrices(c, 0), matrices(c, 1)
    c.merge(diagonals.batch, right.batch)
    c.merge(diagonals.columns, right.rows)
    c.with_value(diagonals.rows, 3)
    c.set_output(0, c.input(1))


TRIDIAGONAL_MAT_MUL = register_op(
    "TridiagonalMatMul",
    inputs=["superdiag: T", "maindiag: T", "subdiag: T", "rhs: T"],
    outputs=["output: T"],
    attrs=[_T],
    shape_fn=_tridiagonal_matmul_shape,
    doc="The product of a tridiagonal matrix, given by its diagonals, and a matrix.",
)
TRIDIAGONAL_SOLVE = register_op(
    "TridiagonalSolve",
    inputs=["diagonals: T", "rhs: T"],
    outputs=["output: T"],
    attrs=["partial_pivoting: bool = true", "perturb_singular: bool = false", _T],
    shape_fn=_tridiagonal_solve_shape,
    doc=(
        "The x with `matrix @ x == rhs` for tridiagonal matrices, given by the diagonals above, at and below "
        "the main one; NaN where the matrix is singular, unless `perturb_singular` moves pivots from 0."
    ),
)


def check_product(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> None:
    """Refuse diagonals that are not those of matrices that fit before `rhs`."""
    check_stacks(superdiag, maindiag, subdiag, rhs)
    size = rhs.shape[-2]
    for name, diagonal in (
        ("superdiagonal", superdiag),
        ("maindiagonal", maindiag),
        ("subdiagonal", subdiag),
    ):
        if diagonal.shape[-2:] != (1, size):
            raise InvalidArgumentError(
                f"Invalid {name} shape: {TensorShape(diagonal.shape)} beside {TensorShape(rhs.shape)}"
            )


@register_kernel(TRIDIAGONAL_MAT_MUL, types={"T": NUMBERS})
def tridiagonal_mat_mul(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Any:
    check_product(superdiag, maindiag, subdiag, rhs)
    result = maindiag.swapaxes(-1, -2) * rhs
    result[..., :-1, :] += superdiag[..., 0, :-1, None] * rhs[..., 1:, :]
    result[..., 1:, :] += subdiag[..., 0, 1:, None] * rhs[..., :-1, :]
    return result


@register_kernel(TRIDIAGONAL_SOLVE, types={"T": NUMBERS})
def tridiagonal_solve(
    diagonals: Any, rhs: Any, *, partial_pivoting: bool, perturb_singular: bool
) -> Any:
    check_system(diagonals, rhs, partial_pivoting, perturb_singular)
    if not rhs.size:
        return rhs.copy()
    least = _least_pivot(diagonals) if perturb_singular else 0
    with np.errstate(all="ignore"):
        return _Elimination(diagonals, rhs, partial_pivoting, least).solution()


def check_system(diagonals: Any, rhs: Any, partial_pivoting: bool, perturb_singular: bool) -> None:
    """Refuse diagonals that do not fit to `rhs`, and ways to solve that do not go together."""
    check_stacks(diagonals, rhs)
    if diagonals.shape[-2] != 3:
        raise InvalidArgumentError(
            f"Expected diagonals to be provided as a matrix with 3 rows, got {diagonals.shape[-2]} rows."
        )
    if diagonals.shape[-1] != rhs.shape[-2]:
        raise InvalidArgumentError(
            "Expected the same number of left-hand sides and right-hand sides, got "
            f"{diagonals.shape[-1]} and {rhs.shape[-2]}."
        )
    if perturb_singular and not partial_pivoting:
        raise InvalidArgumentError("perturb_singular needs partial_pivoting.")


def _least_pivot(diagonals: Any) -> Any:
    info = np.finfo(diagonals.dtype)
    return np.maximum(info.eps * np.abs(diagonals).max(axis=(-1, -2)), info.tiny)[..., None]


class _Elimination:
    """Elimination from above, in all matrices of a stack at once.

    Attributes:
        upper: The three diagonals of the upper triangle that is left.
    """

    def __init__(self, diagonals: Any, rhs: Any, partial_pivoting: bool, least: Any) -> None:
        self._pivoting, self._least = partial_pivoting, least
        self._rhs = rhs.copy()
        above, main, self._below = (diagonals[..., i, :].copy() for i in range(3))
        above[..., -1] = 0
        self.upper = [main, above, np.zeros_like(above)]
        self._is_singular = np.zeros(main.shape[:-1], bool)

    def solution(self) -> Any:
        size = self._rhs.shape[-2]
        for row in in_time(range(size), SLOW):
            if row + 1 < size:
                self._eliminate(row)
            else:
                self._settle(row)
        x = self._substituted(size)
        x[self._is_singular] = np.nan
        return x

    def _eliminate(self, row: int) -> None:
        """Clear the element below the diagonal, after a swap of the rows if it is the greater one."""
        here = [diagonal[..., row] for diagonal in self.upper]
        there = [
            self._below[..., row + 1],
            self.upper[0][..., row + 1],
            self.upper[1][..., row + 1],
        ]
        rhs, following = self._rhs[..., row, :].copy(), self._rhs[..., row + 1, :].copy()
        swap = np.zeros(here[0].shape, bool)
        if self._pivoting:
            swap = np.abs(there[0]) > np.abs(here[0])
        kept = [np.where(swap, b, a) for a, b in zip(here, there, strict=True)]
        other = [np.where(swap, a, b) for a, b in zip(here, there, strict=True)]
        for diagonal, values in zip(self.upper, kept, strict=True):
            diagonal[..., row] = values
        self._rhs[..., row, :] = np.where(swap[..., None], following, rhs)
        self._settle(row)
        factor = other[0] / self.upper[0][..., row]
        self.upper[0][..., row + 1] = other[1] - factor * kept[1]
        self.upper[1][..., row + 1] = other[2] - factor * kept[2]
        moved = np.where(swap[..., None], rhs, following)
        self._rhs[..., row + 1, :] = moved - factor[..., None] * self._rhs[..., row, :]

    def _settle(self, row: int) -> None:
        """Move a pivot away from 0, or note that there is none."""
        pivot = self.upper[0][..., row]
        if np.any(self._least):
            least = self._least[..., 0]
            moved = np.where(pivot.real >= 0, least, -least)
            self.upper[0][..., row] = np.where(np.abs(pivot) <= least, moved, pivot)
        else:
            self._is_singular |= pivot == 0

    def _substituted(self, size: int) -> Any:
        x = np.empty_like(self._rhs)
        main, above, beyond = self.upper
        for row in in_time(range(size - 1, -1, -1), SLOW):
            rest = self._rhs[..., row, :]
            if row + 1 < size:
                rest = rest - above[..., row, None] * x[..., row + 1, :]
            if row + 2 < size:
                rest = rest - beyond[..., row, None] * x[..., row + 2, :]
            x[..., row, :] = rest / main[..., row, None]
        return x


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
