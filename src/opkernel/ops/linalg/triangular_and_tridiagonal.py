"""Triangular and tridiagonal matrices: MatrixTriangularSolve, BandedTriangularSolve, TridiagonalMatMul, TridiagonalSolve.

Source: TensorFlow core/kernels/linalg/matrix_triangular_solve_op_impl.h, banded_triangular_solve_op.cc,
tridiagonal_matmul_op.cc, tridiagonal_solve_op.cc.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, one_blas_thread, shard
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_output_shape
from opkernel.ops.input_checks import (
    broadcast_shape,
    require,
    require_equal,
    require_rank_at_least,
)
from opkernel.ops.linalg.matrices import (
    NUMBERS,
    T_SPEC,
    Matrices,
    adjoint,
    check_stacks,
    matrices,
    square_matrices,
)
from opkernel.ops.linalg.perturbed_tridiagonal import perturbed_solution
from opkernel.ops.linalg.tridiagonal_elimination import Elimination, eliminate_by_numpy
from opkernel.ops.math.matmul import matmul_in_parts
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, TensorShape

__all__ = [
    "check_tridiagonal_product",
    "check_tridiagonal_system",
    "check_triangular_system",
    "triangular_solve",
]

_BLOCK = 16
"""Systems of so many rows are solved row by row, larger ones half by half."""


_SIDES = 1 << 8
"""Systems of bands are solved for so many right sides at a time."""
_AT_ONCE, _IN_CACHE = 1 << 20, 1 << 13
"""Tridiagonal systems of about so many unknowns are solved at once; products of so many elements are."""


def triangular_solve(matrix: Any, rhs: Any, *, lower: bool) -> Any:
    """The x with `matrix @ x == rhs`; elements on the other side of the diagonal do not count."""
    size = matrix.shape[-1]
    if size <= _BLOCK:
        return _row_by_row(matrix, rhs, lower)
    half = size // 2
    first, last = (slice(half), slice(half, None)) if lower else (slice(half, None), slice(half))
    x = triangular_solve(matrix[..., first, first], rhs[..., first, :], lower=lower)
    rest = rhs[..., last, :] - matmul_in_parts(matrix[..., last, first], x)
    y = triangular_solve(matrix[..., last, last], rest, lower=lower)
    return np.concatenate([x, y] if lower else [y, x], axis=-2)


def _row_by_row(matrix: Any, rhs: Any, lower: bool) -> Any:
    size = matrix.shape[-1]
    batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    x = np.empty((*batch, *rhs.shape[-2:]), rhs.dtype)
    for i in in_time(range(size) if lower else range(size - 1, -1, -1), SLOW):
        known = slice(i) if lower else slice(i + 1, None)
        sums = (matrix[..., i, None, known] @ x[..., known, :])[..., 0, :]
        x[..., i, :] = (rhs[..., i, :] - sums) / matrix[..., i, i, None]
    return x


def _triangular_solve_shape(c: InferenceContext) -> None:
    """[..., n, n], [..., n, k] -> [..., n, k], the leading dimensions broadcast."""
    batch, size = square_matrices(c)
    _set_broadcast_product(c, batch, size, matrices(c, 1))


def _banded_triangular_solve_shape(c: InferenceContext) -> None:
    """[..., bands, n], [..., n, k] -> [..., n, k], the leading dimensions broadcast."""
    left, right = matrices(c, 0), matrices(c, 1)
    bands, size = left.rows.value, left.columns.value
    if bands == 0:
        raise InvalidArgumentError(f"Number of bands must be positive, but is {bands}")
    if c.value_known(left.columns) and bands > size:
        raise InvalidArgumentError(
            f"Number of bands {bands} cannot exceed the size of the matrix {size}"
        )
    _set_broadcast_product(c, left.batch, left.columns, right)


def _set_broadcast_product(
    c: InferenceContext, batch: ShapeHandle, size: DimensionHandle, right: Matrices
) -> None:
    batch = broadcast_binary_op_output_shape(c, batch, right.batch)
    size = c.merge(size, right.rows)
    c.set_output(0, c.concatenate(batch, c.matrix(size, right.columns)))


_ATTRS = ["lower: bool = true", "adjoint: bool = false"]

MATRIX_TRIANGULAR_SOLVE = register_op(
    "MatrixTriangularSolve(matrix: T, rhs: T) -> output: T",
    attrs=[*_ATTRS, "T: {bfloat16, double, float, half, complex64, complex128}"],
    shape_fn=_triangular_solve_shape,
    doc="The x with `matrix @ x == rhs`, for triangular matrices or their adjoints.",
)
BANDED_TRIANGULAR_SOLVE = register_op(
    "BandedTriangularSolve(matrix: T, rhs: T) -> output: T",
    attrs=[*_ATTRS, T_SPEC],
    shape_fn=_banded_triangular_solve_shape,
    doc="MatrixTriangularSolve for matrices that are given by the bands beside their diagonals.",
)


def check_triangular_system(matrix: Any, rhs: Any) -> None:
    """Refuse what is no triangular matrix with a right side, the leading dimensions broadcast."""
    _check_ranks(matrix, rhs)
    rows, columns = matrix.shape[-2:]
    require_equal(rows, columns, "In[0] matrices in the last dimensions must be square ({} =/= {})")
    _check_product(matrix, rhs)


@register_kernel(MATRIX_TRIANGULAR_SOLVE, types={"T": NUMBERS})
def matrix_triangular_solve(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Any:
    check_triangular_system(matrix, rhs)
    return _solved(matrix, rhs, lower, adjoint)


Substitution = Callable[[Array, Array, bool, bool], None]
"""A function as `substitute_by_numpy`."""


def substitute_by_numpy(bands: Array, x: Array, lower: bool, is_adjoint: bool) -> None:
    """Put the solutions of systems in the place of their right sides.

    Args:
        bands: The matrices, [systems, bands, n].
        x: The right sides, [systems, n, sides].
        lower: Whether the matrices are lower triangles.
        is_adjoint: Whether it is their adjoints that count.
    """
    x[...] = _solved(_with_bands(bands, lower), x, lower, is_adjoint)


def register_banded_solve(substitute: Substitution, registry: KernelRegistry | None = None) -> None:
    """Register the kernel of BandedTriangularSolve with an algorithm."""

    @register_kernel(BANDED_TRIANGULAR_SOLVE, types={"T": NUMBERS}, registry=registry)
    def banded_triangular_solve(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Any:
        _check_banded(matrix, rhs, lower)
        batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        size, sides = rhs.shape[-2:]
        bands = np.broadcast_to(matrix, (*batch, *matrix.shape[-2:])).reshape(
            -1, *matrix.shape[-2:]
        )
        x = np.broadcast_to(rhs, (*batch, size, sides)).reshape(-1, size, sides).copy()
        step = max(_AT_ONCE // (matrix.shape[-2] * size * min(sides, _SIDES)), 1)

        def solve(at: tuple[int, int]) -> None:
            some, columns = slice(at[0], at[0] + step), slice(at[1], at[1] + _SIDES)
            with np.errstate(all="ignore"):
                substitute(bands[some], x[some, :, columns], lower, adjoint)

        shard(solve, [*product(range(0, len(x), step), range(0, sides, _SIDES))])
        return x.reshape(*batch, size, sides)


def _check_banded(matrix: Any, rhs: Any, lower: bool) -> None:
    _check_ranks(matrix, rhs)
    for number, tensor in enumerate((matrix, rhs)):
        if not tensor.size:
            raise InvalidArgumentError(
                f"In[{number}] must not be an empty tensor: {TensorShape(tensor.shape)}"
            )
    _check_product(matrix, rhs)
    bands, size = matrix.shape[-2:]
    if bands > size:
        raise InvalidArgumentError(
            f"Number of bands {bands} cannot exceed the size of the matrix {size}"
        )
    require(np.all(matrix[..., 0 if lower else -1, :]), "Input matrix is not invertible.")


register_banded_solve(substitute_by_numpy)


def _with_bands(bands: Any, lower: bool) -> Any:
    """The matrices whose diagonals are the rows: the main one first if lower, else last."""
    count, size = bands.shape[-2:]
    full = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
    for row in in_time(range(count), SLOW):
        offset = row if lower else count - 1 - row
        at, values = np.arange(size - offset), bands[..., row, :]
        if lower:
            full[..., at + offset, at] = values[..., offset:]
        else:
            full[..., at, at + offset] = values[..., : size - offset]
    return full


def _solved(matrix: Any, rhs: Any, lower: bool, is_adjoint: bool) -> Any:
    if is_adjoint:
        matrix, lower = adjoint(matrix), not lower
    if not rhs.size or not matrix.size:
        batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
        return np.zeros((*batch, *rhs.shape[-2:]), rhs.dtype)
    with one_blas_thread():
        return triangular_solve(matrix, rhs, lower=lower)


def _check_ranks(matrix: Any, rhs: Any) -> None:
    for number, tensor in enumerate((matrix, rhs)):
        require_rank_at_least(tensor, 2, f"In[{number}] ndims must be >= 2: {tensor.ndim}")


def _check_product(matrix: Any, rhs: Any) -> None:
    """Refuse what does not fit: sizes, and leading dimensions that cannot be broadcast."""
    shapes = f"{TensorShape(matrix.shape)} {TensorShape(rhs.shape)}"
    require_equal(
        matrix.shape[-1], rhs.shape[-2], f"In[0] mismatch In[1] shape: {{}} vs. {{}}: {shapes}"
    )
    misfit = f"In[0] and In[1] must have compatible batch dimensions: {shapes}"
    broadcast_shape(matrix.shape[:-2], rhs.shape[:-2], misfit)


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


TRIDIAGONAL_MAT_MUL = register_op(
    "TridiagonalMatMul(superdiag: T, maindiag: T, subdiag: T, rhs: T) -> output: T",
    attrs=[_T],
    shape_fn=_tridiagonal_matmul_shape,
    doc="The product of a tridiagonal matrix, given by its diagonals, and a matrix.",
)


def _tridiagonal_solve_shape(c: InferenceContext) -> None:
    """Three diagonals in one, [..., 3, n], and [..., n, k] -> input 1."""
    diagonals, right = matrices(c, 0), matrices(c, 1)
    c.merge(diagonals.batch, right.batch)
    c.merge(diagonals.columns, right.rows)
    c.with_value(diagonals.rows, 3)
    c.set_output(0, c.input(1))


TRIDIAGONAL_SOLVE = register_op(
    "TridiagonalSolve(diagonals: T, rhs: T) -> output: T",
    attrs=["partial_pivoting: bool = true", "perturb_singular: bool = false", _T],
    shape_fn=_tridiagonal_solve_shape,
    doc="The x with `matrix @ x == rhs` for tridiagonal matrices, given by the diagonals above, at and below "
    "the main one; NaN where the matrix is singular, unless `perturb_singular` moves pivots from 0.",
)


def check_tridiagonal_product(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> None:
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
    check_tridiagonal_product(superdiag, maindiag, subdiag, rhs)
    above, main, below = (
        one.reshape(-1, rhs.shape[-2], 1) for one in (superdiag, maindiag, subdiag)
    )
    right, result = rhs.reshape(-1, *rhs.shape[-2:]), np.empty_like(rhs)
    products = result.reshape(right.shape)
    step = max(_IN_CACHE // max(right[:1].size, 1), 1)
    for start in in_time(range(0, len(right), step), SLOW):
        part = slice(start, start + step)
        own, factor = products[part], right[part]
        np.multiply(main[part], factor, out=own)
        own[:, :-1] += above[part, :-1] * factor[:, 1:]
        own[:, 1:] += below[part, 1:] * factor[:, :-1]
    return result


def register_tridiagonal_solve(
    eliminate: Elimination, registry: KernelRegistry | None = None
) -> None:
    """Register the kernel of TridiagonalSolve with an algorithm."""

    @register_kernel(TRIDIAGONAL_SOLVE, types={"T": NUMBERS}, registry=registry)
    def tridiagonal_solve(
        diagonals: Any, rhs: Any, *, partial_pivoting: bool, perturb_singular: bool
    ) -> Any:
        check_tridiagonal_system(diagonals, rhs, partial_pivoting, perturb_singular)
        if not rhs.size:
            return rhs.copy()
        if perturb_singular:
            return perturbed_solution(diagonals, rhs)
        stack, sides = (
            np.ascontiguousarray(one).reshape(-1, *one.shape[-2:]) for one in (diagonals, rhs)
        )
        of_singular = rhs.dtype.type(
            0 if np.iscomplexobj(rhs) else np.nan
        )  # C++ has no complex NaN
        result, step = np.empty_like(sides), max(_AT_ONCE // (rhs.shape[-2] * rhs.shape[-1]), 1)

        def solve(start: int) -> None:
            part = slice(start, start + step)
            with np.errstate(all="ignore"):
                result[part] = eliminate(stack[part], sides[part], partial_pivoting, of_singular)

        shard(solve, range(0, len(stack), step))
        return result.reshape(rhs.shape)


register_tridiagonal_solve(eliminate_by_numpy)


def check_tridiagonal_system(
    diagonals: Any, rhs: Any, partial_pivoting: bool, perturb_singular: bool
) -> None:
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
    require(partial_pivoting or not perturb_singular, "perturb_singular needs partial_pivoting.")
