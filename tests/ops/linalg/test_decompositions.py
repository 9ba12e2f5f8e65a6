"""Decompositions multiply to what was decomposed; solutions solve; bad matrices are told."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError

RNG = np.random.default_rng(3)
TYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [(1, 1), (5, 5), (2, 3, 3), (70, 70), (2, 2, 17, 17)]
EMPTY = [(0, 0), (2, 0, 0), (0, 3, 3)]


def drawn(dtype: str, *shape: int) -> Any:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def adjoint(x: Any) -> Any:
    return np.conj(x.swapaxes(-1, -2))


def close(actual: Any, wanted: Any, scale: float = 1) -> None:
    assert np.shape(actual) == np.shape(wanted)
    tolerance = {4: 2e-4, 8: 1e-10}[np.asarray(actual).real.dtype.itemsize] * scale
    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance * 10)


every = pytest.mark.parametrize("dtype", TYPES)
square = pytest.mark.parametrize("shape", SIZES + EMPTY)


@every
@square
def test_lu_multiplies_to_the_permuted_matrix(dtype: str, shape: tuple[int, ...]) -> None:
    matrix = drawn(dtype, *shape)
    lu, p = raw_ops.Lu(input=matrix)
    assert p.dtype == np.int32
    assert lu.dtype == dtype
    lower = np.tril(lu, -1) + np.eye(shape[-1], dtype=dtype)
    assert np.all(np.abs(lower) <= 1 + 1e-6)
    close(lower @ np.triu(lu), np.take_along_axis(matrix, p[..., None], axis=-2))


@every
@square
def test_inverses_solutions_and_determinants(dtype: str, shape: tuple[int, ...]) -> None:
    matrix = drawn(dtype, *shape) + 3 * np.eye(shape[-1], dtype=dtype)
    rhs = drawn(dtype, *shape[:-1], 2)
    eye = np.broadcast_to(np.eye(shape[-1]), shape)
    close(raw_ops.MatrixInverse(input=matrix) @ matrix, eye, 10)
    close(adjoint(matrix) @ raw_ops.MatrixInverse(input=matrix, adjoint=True), eye, 10)
    close(matrix @ raw_ops.MatrixSolve(matrix=matrix, rhs=rhs), rhs, 10)
    close(adjoint(matrix) @ raw_ops.MatrixSolve(matrix=matrix, rhs=rhs, adjoint=True), rhs, 10)
    small = matrix / 3
    close(raw_ops.MatrixDeterminant(input=small), np.linalg.det(small), 100)
    sign, log = raw_ops.LogMatrixDeterminant(input=small)
    close(sign * np.exp(log), np.linalg.det(small).astype(dtype), 100)


@every
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("is_adjoint", [True, False])
def test_triangular_systems_read_one_triangle_and_are_broadcast(
    dtype: str, lower: bool, is_adjoint: bool
) -> None:
    for size in (1, 3, 40):
        matrix = drawn(dtype, 2, 1, size, size) / size + 2 * np.eye(size, dtype=dtype)
        triangle = np.tril(matrix) if lower else np.triu(matrix)
        rhs = drawn(dtype, 3, size, 2)
        attrs = {"lower": lower, "adjoint": is_adjoint}
        x = raw_ops.MatrixTriangularSolve(matrix=matrix, rhs=rhs, **attrs)
        applied = adjoint(triangle) if is_adjoint else triangle
        close(applied @ x, np.broadcast_to(rhs, (2, 3, size, 2)))


def test_bands_stand_for_the_matrix_that_they_are_of() -> None:
    # [[2, 0, 0], [5, 3, 0], [7, 6, 4]] x = [2, 8, 17]
    below = np.array([[2.0, 3, 4], [0, 5, 6], [0, 0, 7]])
    x = raw_ops.BandedTriangularSolve(matrix=below, rhs=np.array([[2.0], [8], [17]]))
    np.testing.assert_allclose(x, [[1], [1], [1]])
    above = np.array([[7.0, 0, 0], [5, 6, 0], [2, 3, 4]])
    x = raw_ops.BandedTriangularSolve(matrix=above[1:], rhs=np.ones((3, 1)), lower=False)
    full = np.array([[2.0, 5, 0], [0, 3, 6], [0, 0, 4]])
    np.testing.assert_allclose(full @ x, np.ones((3, 1)))


@every
@square
def test_cholesky_factors_are_lower_triangles(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(dtype, *shape)
    matrix = x @ adjoint(x) + np.eye(shape[-1], dtype=dtype)
    spoilt = matrix + np.triu(np.full_like(matrix, 9), 1)  # which does not count
    factor = raw_ops.Cholesky(input=spoilt)
    assert np.array_equal(factor, np.tril(factor))
    close(factor @ adjoint(factor), matrix, 10)


def test_a_matrix_without_cholesky_factor_gives_nan_and_its_neighbour_does_not() -> None:
    matrices = np.array([[[1.0, 2], [2, 1]], [[4, 2], [2, 2]]], np.float32)
    factors = raw_ops.Cholesky(input=matrices)
    assert np.isnan(factors[0][np.tril_indices(2)]).all()
    np.testing.assert_array_equal(factors[1], [[2, 0], [1, 1]])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_a_complex_matrix_without_cholesky_factor_gives_zeros(dtype: Any) -> None:
    matrices = np.array([[[1, 2], [2, 1]], [[0, 0], [0, 0]], [[4, 2], [2, 2]]], dtype)
    factors = raw_ops.Cholesky(input=matrices)
    np.testing.assert_array_equal(factors[:2], np.zeros((2, 2, 2)))
    np.testing.assert_array_equal(factors[2], [[2, 0], [1, 1]])
    assert raw_ops.Cholesky(input=np.zeros((1, 1), dtype)) == 0
    assert np.isnan(raw_ops.Cholesky(input=np.full((1, 1), np.nan, dtype))).all()


@every
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (0, 3), (3, 0), (0, 2, 3)])
@pytest.mark.parametrize("full", [True, False])
def test_qr_and_svd_multiply_to_the_matrix(dtype: str, shape: tuple[int, ...], full: bool) -> None:
    matrix = drawn(dtype, *shape)
    rows, columns = shape[-2:]
    q, r = raw_ops.Qr(input=matrix, full_matrices=full)
    inner = rows if full else min(rows, columns)
    assert q.shape == (*shape[:-1], inner)
    assert r.shape == (*shape[:-2], inner, columns)
    close(q @ r, matrix)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(inner), (*shape[:-2], inner, inner)))
    s, u, v = raw_ops.Svd(input=matrix, full_matrices=full)
    least = min(rows, columns)
    assert np.all(np.diff(s.real, axis=-1) <= 0)
    close((u[..., :least] * s[..., None, :]) @ adjoint(v[..., :least]), matrix)
    assert u.shape[-1] == (rows if full else least)
    assert v.shape[-1] == (columns if full else least)
    close(raw_ops.Svd(input=matrix, compute_uv=False)[0], s)


@every
def test_eigenvectors_are_scaled_by_their_eigenvalues(dtype: str) -> None:
    x = drawn(dtype, 2, 4, 4)
    wide = {"float32": "complex64", "complex64": "complex64"}.get(dtype, "complex128")
    e, v = raw_ops.Eig(input=x, Tout=wide)
    close(x @ v, v * e[..., None, :], 10)
    hermitian = x + adjoint(x)
    e, v = raw_ops.SelfAdjointEigV2(input=np.tril(hermitian))  # the upper triangle does not count
    close(hermitian @ v, v * e[..., None, :], 10)
    assert np.all(np.diff(e.real, axis=-1) >= 0)
    close(raw_ops.SelfAdjointEigV2(input=hermitian, compute_v=False)[0], e)


@every
def test_least_squares_are_those_of_the_normal_equations(dtype: str) -> None:
    for rows, columns in ((5, 3), (3, 5)):
        matrix, rhs = drawn(dtype, 2, rows, columns), drawn(dtype, 2, rows, 2)
        exact = np.linalg.pinv(matrix) @ rhs
        for fast in (True, False):
            close(
                raw_ops.MatrixSolveLs(matrix=matrix, rhs=rhs, l2_regularizer=0.0, fast=fast),
                exact,
                100,
            )
        inner = adjoint(matrix) @ matrix + 0.5 * np.eye(columns, dtype=dtype)
        close(
            raw_ops.MatrixSolveLs(matrix=matrix, rhs=rhs, l2_regularizer=0.5),
            np.linalg.solve(inner, adjoint(matrix) @ rhs),
            100,
        )


def dense(diagonals: Any) -> Any:
    above, main, below = diagonals
    return np.diag(main) + np.diag(above[:-1], 1) + np.diag(below[1:], -1)


@every
@pytest.mark.parametrize("pivoting", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_tridiagonal_systems(dtype: str, pivoting: bool, size: int) -> None:
    diagonals, rhs = drawn(dtype, 3, size), drawn(dtype, size, 2)
    if not pivoting:
        diagonals[1] += 5
    x = raw_ops.TridiagonalSolve(diagonals=diagonals, rhs=rhs, partial_pivoting=pivoting)
    close(dense(diagonals) @ x, rhs, 100)
    rows = [row[None] for row in diagonals]
    product = raw_ops.TridiagonalMatMul(
        superdiag=rows[0], maindiag=rows[1], subdiag=rows[2], rhs=rhs
    )
    close(product, dense(diagonals) @ rhs)


def test_a_pivot_is_taken_from_below_where_the_diagonal_is_zero() -> None:
    diagonals = np.array([[1.0, 0], [0, 0], [0, 1]])  # [[0, 1], [1, 0]]
    rhs = np.array([[3.0], [4]])
    np.testing.assert_array_equal(
        raw_ops.TridiagonalSolve(diagonals=diagonals, rhs=rhs), [[4], [3]]
    )
    without = raw_ops.TridiagonalSolve(diagonals=diagonals, rhs=rhs, partial_pivoting=False)
    assert np.isnan(without).all()


SINGULAR = np.array([[1.0, 2], [2, 4]])
NOT_FINITE = np.array([[np.nan, 1], [1, 2.0]])


@pytest.mark.parametrize("matrix", [SINGULAR, NOT_FINITE])
def test_singular_matrices_are_told(matrix: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        raw_ops.MatrixInverse(input=matrix)
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        raw_ops.MatrixSolve(matrix=matrix, rhs=matrix)
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        raw_ops.Lu(input=matrix)


def test_ill_conditioned_least_squares_are_told() -> None:
    with pytest.raises(InvalidArgumentError, match="rank deficient"):
        raw_ops.MatrixSolveLs(matrix=SINGULAR, rhs=SINGULAR, l2_regularizer=0.0)
    x = raw_ops.MatrixSolveLs(matrix=SINGULAR, rhs=SINGULAR, l2_regularizer=0.0, fast=False)
    np.testing.assert_allclose(SINGULAR @ x, SINGULAR, atol=1e-12)


@pytest.mark.parametrize("op", ["SelfAdjointEigV2", "Eig"])
def test_eigenvalues_of_nan_are_refused(op: str) -> None:
    attrs = {"Tout": "complex128"} if op == "Eig" else {}
    with pytest.raises(InvalidArgumentError, match="not successful"):
        getattr(raw_ops, op)(input=NOT_FINITE, **attrs)


def test_values_of_nan_are_nan_and_others_of_the_stack_are_not() -> None:
    s, u, _ = raw_ops.Svd(input=np.stack([NOT_FINITE, SINGULAR]))
    assert np.isnan(s[0]).all()
    assert np.isnan(u[0]).all()
    np.testing.assert_allclose(s[1], [5, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Cholesky", {"input": np.ones(2)}),
        ("Cholesky", {"input": np.ones((2, 3))}),
        ("MatrixSolve", {"matrix": np.eye(2), "rhs": np.ones((3, 1))}),
        ("MatrixSolve", {"matrix": np.eye(2), "rhs": np.ones((1, 2, 1))}),
        ("MatrixTriangularSolve", {"matrix": np.ones((2, 3)), "rhs": np.ones((3, 1))}),
        ("MatrixTriangularSolve", {"matrix": np.ones((2, 3, 3)), "rhs": np.ones((3, 3, 1))}),
        ("BandedTriangularSolve", {"matrix": np.ones((3, 2)), "rhs": np.ones((2, 1))}),
        ("TridiagonalSolve", {"diagonals": np.ones((2, 3)), "rhs": np.ones((3, 1))}),
        ("CholeskyGrad", {"l": np.eye(2), "grad": np.eye(3)}),
    ],
)
def test_wrong_shapes_are_refused(op: str, inputs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        getattr(raw_ops, op)(**inputs)


def test_functions_of_matrices_need_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    with pytest.raises(
        UnimplementedError, match=r"MatrixSquareRoot needs the library scipy: pip install"
    ):
        raw_ops.MatrixSquareRoot(input=np.eye(2))


def test_square_roots_and_logarithms() -> None:
    pytest.importorskip("scipy")
    matrix = np.array([[2.0, 1], [1, 3]])
    root = raw_ops.MatrixSquareRoot(input=matrix[None])[0]
    np.testing.assert_allclose(root @ root, matrix)
    assert np.isnan(raw_ops.MatrixSquareRoot(input=np.diag([-1.0, 4]))).all()
    turn = np.array([[0, -1], [1, 0]], np.complex64)  # by a right angle
    logarithm = raw_ops.MatrixLogarithm(input=turn)
    np.testing.assert_allclose(logarithm, np.pi / 2 * turn, atol=1e-6)
