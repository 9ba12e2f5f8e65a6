"""Integers, special functions, Fourier transforms and matrices in programs, against formulas and XLA's own values."""

import math

import numpy as np
import pytest
from tests.xla.single_ops import compiled

from opkernel.errors import InvalidArgumentError, UnimplementedError

pytestmark = pytest.mark.jax

X = np.array([7, -7, 0, 5, -5, 7, -7, -(2**31)], np.int32)
Y = np.array([0, 0, 0, 3, 3, -3, -3, -1], np.int32)


# Recorded from TensorFlow's jit_compile, zeros among the divisors and all
@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("FloorDiv", [-1, -2, -1, 1, -2, -3, 2, -(2**31)]),
        ("FloorMod", [7, -7, 0, 2, 1, -2, -1, 0]),
        ("Div", [-1, -1, -1, 1, -1, -2, 2, -(2**31)]),
        ("TruncateDiv", [-1, -1, -1, 1, -1, -2, 2, -(2**31)]),
        ("Mod", [7, -7, 0, 2, -2, 1, -1, 0]),
        ("TruncateMod", [7, -7, 0, 2, -2, 1, -1, 0]),
    ],
)
def test_division_of_integers(op, expected):
    assert compiled(op, X, Y).tolist() == expected


def test_division_of_unsigned_integers():
    x, y = np.array([7, 0, 250], np.uint8), np.array([0, 0, 3], np.uint8)
    assert compiled("FloorDiv", x, y).tolist() == [255, 255, 83]
    assert compiled("FloorMod", x, y).tolist() == [7, 0, 1]


def test_bits_set():
    found = compiled("PopulationCount", np.array([-1, 0, 5], np.int16))
    assert found.dtype == np.uint8
    assert found.tolist() == [16, 0, 2]


EULER = 0.5772156649015329


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("Lgamma", [0.5], math.log(math.pi) / 2),
        ("Digamma", [1.0], -EULER),
        ("Polygamma", [1.0, 1.0], math.pi**2 / 6),
        ("Polygamma", [0.0, 1.0], -EULER),
        ("Zeta", [4.0, 1.0], math.pi**4 / 90),
        ("Zeta", [math.inf, -0.5], math.inf),
        ("Igamma", [1.0, 0.75], 1 - math.exp(-0.75)),
        ("Igamma", [0.0, 2.0], math.nan),
        ("Igamma", [-4.0, 0.0], 0.0),
        ("Igammac", [1.0, 0.75], math.exp(-0.75)),
        ("Igammac", [0.0, 2.0], math.nan),
        ("IgammaGradA", [math.inf, 2.0], 0.0),
        ("IgammaGradA", [-24.5, 0.0], 0.0),
        ("RandomGammaGrad", [math.inf, 2.0], 0.0),
        ("Betainc", [1.0, 3.0, 0.25], 1 - 0.75**3),
        ("Betainc", [0.0, 3.0, 0.25], math.nan),
        ("Erfinv", [math.erf(0.5)], 0.5),
        ("Ndtri", [0.975], 1.959963984540054),
        ("BesselI0", [1.0], 1.2660658777520084),
        ("BesselI0e", [1.0], 0.46575960759364043),
        ("BesselI1", [-1.0], -0.5651591039924850),
        ("BesselI1e", [1.0], 0.20791041534970844),
    ],
)
def test_a_special_function(op, inputs, expected):
    found = compiled(op, *map(np.float64, inputs))
    assert float(found) == pytest.approx(expected, rel=1e-12, abs=0, nan_ok=True)


@pytest.mark.parametrize("x", [0.5, 1.5, 7.0])
def test_slopes_of_the_gamma_distribution(x):
    """A sample moves so that P(a, x) stays: by -dP/da over the density."""
    a, density = 2.0, x * math.exp(-x)
    step = 1e-4
    above, below = (compiled("Igamma", np.float64(a + d), np.float64(x)) for d in (step, -step))
    slope = compiled("IgammaGradA", np.float64(a), np.float64(x))
    assert float(slope) == pytest.approx((above - below) / (2 * step), rel=1e-6)
    moved = compiled("RandomGammaGrad", np.float64(a), np.float64(x))
    assert float(moved) == pytest.approx(-float(slope) / density, rel=1e-9)


def test_narrow_types_are_computed_in_float():
    found = compiled("Lgamma", np.array([0.5, 30], np.float16))
    assert found.dtype == np.float16
    expected = np.array([math.lgamma(0.5), math.lgamma(30)], np.float16)
    np.testing.assert_array_equal(found, expected)


def test_tensors_are_broadcast():
    found = compiled("Igamma", np.ones((2, 1)), np.array([0.5, 1, 2]))
    np.testing.assert_allclose(found, np.tile(1 - np.exp([-0.5, -1, -2]), (2, 1)), rtol=1e-12)


def test_betainc_of_other_shapes():
    with pytest.raises(InvalidArgumentError, match=r"must all be equal|must be equal"):
        compiled("Betainc", np.ones(2), np.ones(3), np.ones(3))


RNG = np.random.default_rng(5)


def complex_numbers(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


@pytest.mark.parametrize(("rank", "suffix"), [(1, ""), (2, "2D"), (3, "3D")])
def test_transforms(rank, suffix):
    axes, tensor = range(-rank, 0), complex_numbers(2, 3, 4, 6)
    np.testing.assert_allclose(
        compiled(f"FFT{suffix}", tensor), np.fft.fftn(tensor, axes=axes), atol=1e-12
    )
    np.testing.assert_allclose(
        compiled(f"IFFT{suffix}", tensor), np.fft.ifftn(tensor, axes=axes), atol=1e-12
    )


@pytest.mark.parametrize(("rank", "suffix"), [(1, ""), (2, "2D"), (3, "3D")])
def test_real_transforms_and_back(rank, suffix):
    tensor, lengths = RNG.normal(size=(2, 3, 4, 5)), [3, 4, 5][3 - rank :]
    given = {"fft_length": np.array(lengths, np.int32)}
    spectrum = compiled(f"RFFT{suffix}", tensor, **given, Tcomplex="complex128")
    np.testing.assert_allclose(spectrum, np.fft.rfftn(tensor, axes=range(-rank, 0)), atol=1e-12)
    back = compiled(f"IRFFT{suffix}", spectrum, **given, Treal="double")
    np.testing.assert_allclose(back, tensor, atol=1e-12)


def test_a_real_transform_takes_as_much_as_its_length():
    found = compiled("RFFT", np.arange(6, dtype=np.float32), fft_length=np.array([4], np.int32))
    np.testing.assert_allclose(found, np.array([6, -2 + 2j, -2]), atol=1e-6)
    nothing = compiled("IRFFT", np.zeros(3, np.complex64), fft_length=np.array([0], np.int32))
    assert nothing.shape == (0,)
    with pytest.raises(InvalidArgumentError, match="at least 8"):
        compiled("RFFT", np.zeros(6, np.float32), fft_length=np.array([8], np.int32))


def adjoint(matrix):
    return matrix.swapaxes(-1, -2).conj()


@pytest.mark.parametrize("is_adjoint", [False, True])
def test_systems_of_equations(is_adjoint):
    matrix, rhs = complex_numbers(2, 4, 4), complex_numbers(2, 4, 3)
    left = adjoint(matrix) if is_adjoint else matrix
    x = compiled("MatrixSolve", matrix, rhs, adjoint=is_adjoint)
    np.testing.assert_allclose(left @ x, rhs, atol=1e-12)
    inverse = compiled("MatrixInverse", matrix, adjoint=is_adjoint)
    np.testing.assert_allclose(left @ inverse, np.tile(np.eye(4), (2, 1, 1)), atol=1e-12)


@pytest.mark.parametrize("is_adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_systems(lower, is_adjoint):
    matrix, rhs = complex_numbers(3, 3), complex_numbers(2, 3, 2)
    triangle = np.tril(matrix) if lower else np.triu(matrix)
    x = compiled("MatrixTriangularSolve", matrix, rhs, lower=lower, adjoint=is_adjoint)
    np.testing.assert_allclose((adjoint(triangle) if is_adjoint else triangle) @ x, rhs, atol=1e-9)


def test_a_singular_matrix_gives_no_finite_inverse():
    assert not np.isfinite(compiled("MatrixInverse", np.zeros((2, 2)))).any()


def test_cholesky_takes_the_lower_triangle():
    lower = compiled("Cholesky", np.array([[4.0, 99], [2, 5]]))
    np.testing.assert_allclose(lower, [[2, 0], [1, 2]])
    assert np.isnan(compiled("Cholesky", np.array([[1.0, 2], [2, 1]]))[1, 1])


def test_factors():
    matrix = complex_numbers(2, 5, 3)
    for full, inner in ((False, 3), (True, 5)):
        q, r = compiled("Qr", matrix, full_matrices=full)
        np.testing.assert_allclose(q @ r, matrix, atol=1e-12)
        np.testing.assert_allclose(adjoint(q) @ q, np.tile(np.eye(inner), (2, 1, 1)), atol=1e-12)
        assert not np.tril(r, -1).any()
    s, u, v = compiled("Svd", matrix)
    np.testing.assert_allclose((u * s[:, None, :]) @ adjoint(v), matrix, atol=1e-12)
    alone, *nothing = compiled("Svd", matrix, compute_uv=False)
    np.testing.assert_allclose(alone, s, atol=1e-12)
    assert [one.shape for one in nothing] == [(0,), (0,)]


def test_eigenvalues_of_the_lower_triangle():
    values, vectors = compiled("SelfAdjointEigV2", np.array([[2.0, 99], [1, 2]]))
    np.testing.assert_allclose(values, [1, 3])
    np.testing.assert_allclose(np.array([[2.0, 1], [1, 2]]) @ vectors, vectors * values, atol=1e-12)
    assert compiled("SelfAdjointEigV2", np.eye(2), compute_v=False)[1].shape == (0,)


def test_determinants():
    swapped = np.array([[0.0, 2, 0], [3, 0, 0], [0, 0, 5]])
    stack = np.stack([swapped, np.eye(3), np.zeros((3, 3))])
    np.testing.assert_allclose(compiled("MatrixDeterminant", stack), [-30, 1, 0])
    sign, log = compiled("LogMatrixDeterminant", stack)
    assert sign.tolist() == [-1, 1, 0]
    np.testing.assert_allclose(log, [math.log(30), 0, -math.inf])


def test_lu():
    lu, p = compiled("Lu", np.array([[1.0, 2], [4, 6]]))
    np.testing.assert_allclose(lu, np.array([[4, 6], [0.25, 0.5]]))
    assert p.tolist() == [1, 0]


def test_tridiagonal_matrices():
    above, main, below = (complex_numbers(2, 1, 5) for _ in range(3))
    x = complex_numbers(2, 5, 2)
    product = compiled("TridiagonalMatMul", above, main, below, x)
    full = np.zeros((2, 5, 5), complex)
    at = np.arange(5)
    full[:, at, at] = main[:, 0]
    full[:, at[:-1], at[1:]], full[:, at[1:], at[:-1]] = above[:, 0, :-1], below[:, 0, 1:]
    np.testing.assert_allclose(product, full @ x, atol=1e-12)
    diagonals = np.concatenate([above, main, below], axis=1)
    np.testing.assert_allclose(compiled("TridiagonalSolve", diagonals, product), x, atol=1e-10)
    with pytest.raises(UnimplementedError, match="perturb_singular"):
        compiled("TridiagonalSolve", diagonals, x, perturb_singular=True)


@pytest.mark.parametrize("op", ["Cholesky", "MatrixInverse", "MatrixDeterminant", "Lu"])
def test_matrices_that_are_not_square(op):
    with pytest.raises(InvalidArgumentError):
        compiled(op, np.zeros((2, 3)))


def test_complex_numbers_of_infinities():
    found = compiled("Complex", np.ones(2, np.float32), np.array([np.inf, 2], np.float32))
    assert found.real.tolist() == [1, 1]
    assert found.imag.tolist() == [np.inf, 2]


def test_zeta_and_polygamma_at_their_borders():
    x, q = np.array([-4, 1, np.inf, 2], np.float32), np.array([-4, 2, 0.5, 1], np.float32)
    expected = [np.nan, np.inf, np.inf, math.pi**2 / 6]
    np.testing.assert_allclose(compiled("Zeta", x, q), expected, rtol=1e-6)
    n = np.array([np.inf, np.inf, 1], np.float64)
    found = compiled("Polygamma", n, np.array([-1.5, 2, 1]))
    np.testing.assert_allclose(found, [np.inf, np.nan, math.pi**2 / 6], rtol=1e-12)
