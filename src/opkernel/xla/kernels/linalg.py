"""Matrices: factors, inverses, systems of equations, determinants, eigenvalues and singular values.

Compiled code cannot refuse a matrix that has no inverse: its results are infinite or NaN.

Source: TensorFlow compiler/tf2xla/kernels/cholesky_op.cc, qr_op.cc, matrix_inverse_op.cc, matrix_solve_op.cc,
matrix_triangular_solve_op.cc, self_adjoint_eig_op.cc, svd_op.cc, tridiagonal_ops.cc.
"""

from __future__ import annotations

from typing import Any

from opkernel.errors import UnimplementedError
from opkernel.ops.linalg.lu import check_system
from opkernel.ops.linalg.matrices import check_square, check_stacks
from opkernel.ops.linalg.triangular_and_tridiagonal import (
    check_triangular_system,
    check_tridiagonal_product,
    check_tridiagonal_system,
)
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel


def _wide(tensor: Any) -> Any:
    """A tensor of half in float: LAPACK has no half."""
    return tensor.astype(jnp().promote_types(tensor.dtype, jnp().float32))


def _adjoint_if(matrix: Any, is_adjoint: bool) -> Any:
    return matrix.swapaxes(-1, -2).conj() if is_adjoint else matrix


@register_xla_kernel("Cholesky")
def cholesky(tensor: Any) -> Any:
    """The lower factors; NaN for matrices that have none."""
    check_square(tensor)
    return lax().linalg.cholesky(_wide(tensor), symmetrize_input=False)


@register_xla_kernel("MatrixInverse")
def matrix_inverse(tensor: Any, *, adjoint: bool) -> Any:
    """The inverses of matrices, or of their adjoints."""
    check_square(tensor)
    return jnp().linalg.inv(_adjoint_if(_wide(tensor), adjoint))


@register_xla_kernel("MatrixSolve")
def matrix_solve(matrix: Any, rhs: Any, *, adjoint: bool) -> Any:
    """The x with `matrix @ x == rhs`, or the same of the adjoints."""
    check_system(matrix, rhs)
    if not rhs.size:
        return rhs
    return jnp().linalg.solve(_adjoint_if(_wide(matrix), adjoint), _wide(rhs))


@register_xla_kernel("MatrixTriangularSolve")
def matrix_triangular_solve(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Any:
    """The x with `matrix @ x == rhs`, the leading dimensions broadcast."""
    check_triangular_system(matrix, rhs)
    batch = jnp().broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    left, right = (
        jnp().broadcast_to(_wide(one), (*batch, *one.shape[-2:])) for one in (matrix, rhs)
    )
    if not right.size:
        return right
    return lax().linalg.triangular_solve(
        left, right, left_side=True, lower=lower, transpose_a=adjoint, conjugate_a=adjoint
    )


@register_xla_kernel("Qr")
def qr(tensor: Any, *, full_matrices: bool) -> tuple[Any, Any]:
    """Orthonormal columns, and an upper triangle."""
    check_stacks(tensor)
    mode = "complete" if full_matrices else "reduced"
    q, r = jnp().linalg.qr(_wide(tensor), mode=mode)
    return q, r


@register_xla_kernel("Svd")
def svd(tensor: Any, *, compute_uv: bool, full_matrices: bool) -> tuple[Any, Any, Any]:
    """The singular values in descending order, and the vectors; none unless asked for."""
    check_stacks(tensor)
    wide, nothing = _wide(tensor), jnp().zeros(0, tensor.dtype)
    if not compute_uv:
        return jnp().linalg.svd(wide, compute_uv=False), nothing, nothing
    u, s, vh = jnp().linalg.svd(wide, full_matrices=full_matrices)
    return s, u, _adjoint_if(vh, True)


@register_xla_kernel("XlaSelfAdjointEig")
def xla_self_adjoint_eig(a: Any, *, lower: bool) -> tuple[Any, Any]:
    """The eigenvalues in ascending order, and the vectors, as exact as they can be."""
    check_square(a)
    vectors, values = lax().linalg.eigh(_wide(a), lower=lower, symmetrize_input=False)
    return values, vectors


@register_xla_kernel("SelfAdjointEigV2")
def self_adjoint_eig_v2(tensor: Any, *, compute_v: bool) -> tuple[Any, Any]:
    """The same of the lower triangles; no vectors unless asked for."""
    values, vectors = xla_self_adjoint_eig(tensor, lower=True)
    return values, vectors if compute_v else jnp().zeros(0, tensor.dtype)


@register_xla_kernel("XlaSvd")
def xla_svd(a: Any) -> tuple[Any, Any, Any]:
    """The singular values in descending order, and both square matrices of vectors, as exact as they can be."""
    return svd(a, compute_uv=True, full_matrices=True)


@register_xla_kernel("Lu")
def lu(tensor: Any, *, output_idx_type: DataType) -> tuple[Any, Any]:
    """Both factors in one, and the permutation of the rows."""
    check_square(tensor)
    factors, _, permutation = lax().linalg.lu(_wide(tensor))
    return factors, permutation


def _pivots(tensor: Any) -> tuple[Any, Any]:
    """The diagonals of the upper factors, and the signs of the permutations of the rows."""
    check_square(tensor)
    factors, swaps, _ = lax().linalg.lu(_wide(tensor))
    count = jnp().sum(swaps != jnp().arange(swaps.shape[-1]), axis=-1)
    return jnp().diagonal(factors, axis1=-2, axis2=-1), 1 - 2 * (count % 2)


@register_xla_kernel("MatrixDeterminant")
def matrix_determinant(tensor: Any) -> Any:
    """The determinants."""
    pivots, sign = _pivots(tensor)
    return sign * jnp().prod(pivots, axis=-1)


@register_xla_kernel("LogMatrixDeterminant")
def log_matrix_determinant(tensor: Any) -> tuple[Any, Any]:
    """The signs of the determinants, and the logarithms of their absolute values."""
    pivots, sign = _pivots(tensor)
    sizes = jnp().abs(pivots)
    units = jnp().where(sizes == 0, pivots, pivots / sizes)
    unit, log = sign * jnp().prod(units, axis=-1), jnp().sum(jnp().log(sizes), axis=-1)
    return unit, jnp().where(jnp().isnan(unit), jnp().nan, log)


@register_xla_kernel("TridiagonalMatMul")
def tridiagonal_mat_mul(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Any:
    """The product of a tridiagonal matrix, given by its diagonals, and a matrix."""
    check_tridiagonal_product(superdiag, maindiag, subdiag, rhs)
    result = maindiag.swapaxes(-1, -2) * rhs
    above = superdiag[..., 0, :-1, None] * rhs[..., 1:, :]
    below = subdiag[..., 0, 1:, None] * rhs[..., :-1, :]
    return result.at[..., :-1, :].add(above).at[..., 1:, :].add(below)


@register_xla_kernel("TridiagonalSolve")
def tridiagonal_solve(
    diagonals: Any, rhs: Any, *, partial_pivoting: bool, perturb_singular: bool
) -> Any:
    """The x with `matrix @ x == rhs`; NaN where the matrix is singular."""
    check_tridiagonal_system(diagonals, rhs, partial_pivoting, perturb_singular)
    if perturb_singular:
        raise UnimplementedError("perturb_singular is not compiled: no pivot is moved from 0.")
    if not rhs.size:
        return rhs
    above, main, below = (diagonals[..., row, :] for row in range(3))
    above, below = above.at[..., -1].set(0), below.at[..., 0].set(0)
    return lax().linalg.tridiagonal_solve(below, main, above, rhs)
