"""Tridiagonal matrices.

Source: TensorFlow compiler/tf2xla/kernels/tridiagonal_ops.cc.
"""

from __future__ import annotations

from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.ops.linalg.tridiagonal import check_product, check_system
from opkernel.xla.jax_numpy import lax
from opkernel.xla.register_kernel import register_xla_kernel


@register_xla_kernel("TridiagonalMatMul")
def tridiagonal_mat_mul(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Any:
    """The product of a tridiagonal matrix, given by its diagonals, and a matrix."""
    check_product(superdiag, maindiag, subdiag, rhs)
    result = maindiag.swapaxes(-1, -2) * rhs
    above = superdiag[..., 0, :-1, None] * rhs[..., 1:, :]
    below = subdiag[..., 0, 1:, None] * rhs[..., :-1, :]
    return result.at[..., :-1, :].add(above).at[..., 1:, :].add(below)


@register_xla_kernel("TridiagonalSolve")
def tridiagonal_solve(
    diagonals: Any, rhs: Any, *, partial_pivoting: bool, perturb_singular: bool
) -> Any:
    """The x with `matrix @ x == rhs`; NaN where the matrix is singular."""
    check_system(diagonals, rhs, partial_pivoting, perturb_singular)
    if perturb_singular:
        raise UnimplementedError("perturb_singular is not compiled: no pivot is moved from 0.")
    if not rhs.size:
        return rhs
    above, main, below = (diagonals[..., row, :] for row in range(3))
    above, below = above.at[..., -1].set(0), below.at[..., 0].set(0)
    return lax().linalg.tridiagonal_solve(below, main, above, rhs)
