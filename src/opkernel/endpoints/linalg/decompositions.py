"""Decompositions of matrices, and what is solved with them.

Source: TensorFlow python/ops/linalg_ops.py, python/ops/linalg/linalg_impl.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.linalg.products import matmul, matrix_transpose
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    is_symbolic,
    known_rank,
    like,
    number_like,
    pair,
    shape_of,
    static_shape,
)
from opkernel.errors import InvalidArgumentError
from opkernel.ops.registration import COMPLEX_OF, REAL_OF
from opkernel.types import DataType


@composed
def eig(tensor: TensorLike, name: str | None = None) -> Any:
    """The eigenvalues and eigenvectors (columns) of square matrices, as complex numbers."""
    x = convert(tensor)
    wide = COMPLEX_OF.get(dtype_of(x), dtype_of(x))
    return tuple(raw_ops.Eig(input=x, Tout=wide, compute_v=True))


@composed
def eigvals(tensor: TensorLike, name: str | None = None) -> Any:
    """The eigenvalues of square matrices, as complex numbers."""
    x = convert(tensor)
    return raw_ops.Eig(input=x, Tout=COMPLEX_OF.get(dtype_of(x), dtype_of(x)), compute_v=False)[0]


@composed
def eigh(tensor: TensorLike, name: str | None = None) -> Any:
    """The eigenvalues, in ascending order, and eigenvectors (columns) of self-adjoint matrices."""
    return tuple(raw_ops.SelfAdjointEigV2(input=tensor, compute_v=True))


@composed
def eigvalsh(tensor: TensorLike, name: str | None = None) -> Any:
    """The eigenvalues of self-adjoint matrices, in ascending order."""
    return raw_ops.SelfAdjointEigV2(input=tensor, compute_v=False)[0]


@composed
def svd(
    tensor: TensorLike,
    full_matrices: bool = False,
    compute_uv: bool = True,
    name: str | None = None,
) -> Any:
    """The singular values of matrices, and the matrices u and v: `u @ diag(s) @ adjoint(v)`.

    Args:
        tensor: matrices.
        full_matrices: give square u and v.
        compute_uv: give u and v; otherwise the singular values only.
        name: a name for the scope of nodes in a graph.
    """
    found = raw_ops.Svd(input=tensor, compute_uv=compute_uv, full_matrices=full_matrices)
    return tuple(found) if compute_uv else found[0]


@composed
def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Any:
    """The solutions X of `A @ X = rhs`, from the Cholesky factor of A (`cholesky(A)`)."""
    factor = convert(chol)
    y = raw_ops.MatrixTriangularSolve(matrix=factor, rhs=rhs, adjoint=False, lower=True)
    return raw_ops.MatrixTriangularSolve(matrix=factor, rhs=y, adjoint=True, lower=True)


@composed
def logdet(matrix: TensorLike, name: str | None = None) -> Any:
    """The logarithm of the determinant of positive definite matrices."""
    diagonal = raw_ops.MatrixDiagPart(input=raw_ops.Cholesky(input=convert(matrix)))
    if dtype_of(diagonal).is_complex:
        diagonal = raw_ops.Real(input=diagonal, Tout=REAL_OF[dtype_of(diagonal)])
    total = raw_ops.Sum(input=raw_ops.Log(x=diagonal), axis=np.array([-1], np.int32))
    return raw_ops.Mul(x=number_like(total, 2.0), y=total)


@composed
def lstsq(
    matrix: TensorLike,
    rhs: TensorLike,
    l2_regularizer: float = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Any:
    """The X with the least squares of `matrix @ X - rhs`.

    Args:
        matrix: matrices of M rows and N columns.
        rhs: matrices of M rows.
        l2_regularizer: the weight of the squares of X; only if `fast`.
        fast: solve the normal equations; otherwise by an orthogonal decomposition, which is exact for
            matrices that are nearly singular, and gives the X of the least norm.
        name: a name for the scope of nodes in a graph.
    """
    a, b = pair(matrix, rhs)
    weight = np.array(l2_regularizer, np.float64)
    sizes = static_shape(a)
    if not fast or sizes is None or None in sizes[-2:]:
        return raw_ops.MatrixSolveLs(matrix=a, rhs=b, l2_regularizer=weight, fast=fast)
    is_tall = (sizes[-2] or 0) >= (sizes[-1] or 0)
    gram = matmul(a, a, adjoint_a=True) if is_tall else matmul(a, a, adjoint_b=True)
    if l2_regularizer:
        size = min(sizes[-2] or 0, sizes[-1] or 0)
        unit = np.eye(size, dtype=dtype_of(a).numpy_dtype) * l2_regularizer
        gram = raw_ops.AddV2(x=gram, y=unit.astype(dtype_of(a).numpy_dtype))
    factor = raw_ops.Cholesky(input=gram)
    if is_tall:
        return cholesky_solve(factor, matmul(a, b, adjoint_a=True))
    return matmul(a, cholesky_solve(factor, b), adjoint_a=True)


@composed
def pinv(
    a: TensorLike,
    rcond: TensorLike | None = None,
    validate_args: bool = False,
    name: str | None = None,
) -> Any:
    """The Moore-Penrose inverse of matrices.

    Args:
        a: float32 or float64 matrices.
        rcond: singular values below this part of the largest count as 0; if None, ten times the larger
            size times the type's epsilon.
        validate_args: ignored; arguments are always checked.
        name: a name for the scope of nodes in a graph.

    Raises:
        TypeError: the type is not floating.
    """
    x = convert(a)
    if not dtype_of(x).is_floating:
        raise TypeError(f"pinv takes floating-point matrices, and got {dtype_of(x).tf_name}")
    if known_rank(x, "pinv") < 2:
        raise ValueError(f"pinv takes matrices, and got a tensor of rank {known_rank(x, 'pinv')}")
    limit = _relative_limit(x, 10.0) if rcond is None else like(rcond, dtype_of(x))
    values, left, right = raw_ops.Svd(input=x, compute_uv=True, full_matrices=False)
    last = np.array([-1], np.int32)
    highest = raw_ops.Max(input=values, axis=last)
    cutoff = raw_ops.ExpandDims(input=raw_ops.Mul(x=limit, y=highest), axis=-1)
    infinite = number_like(values, np.inf)
    kept = raw_ops.SelectV2(condition=raw_ops.Greater(x=values, y=cutoff), t=values, e=infinite)
    scaled = raw_ops.RealDiv(x=right, y=raw_ops.ExpandDims(input=kept, axis=-2))
    return matmul(scaled, left, adjoint_b=True)


def _relative_limit(x: Any, factor: float) -> Any:
    """A factor times the larger size of the matrices times the epsilon of the type."""
    shape = shape_of(x)
    size = raw_ops.Cast(x=raw_ops.Maximum(x=shape[-2], y=shape[-1]), DstT=dtype_of(x))
    epsilon = float(np.finfo(dtype_of(x).numpy_dtype).eps)
    return raw_ops.Mul(x=number_like(x, factor * epsilon), y=size)


@composed
def matrix_rank(
    a: TensorLike,
    tol: TensorLike | None = None,
    validate_args: bool = False,
    name: str | None = None,
) -> Any:
    """How many singular values of matrices are above `tol`; by default above what rounding makes of 0."""
    x = convert(a)
    if known_rank(x, "matrix_rank") < 2:
        raise ValueError("matrix_rank takes matrices")
    values = raw_ops.Svd(input=x, compute_uv=False)[0]
    last = np.array([-1], np.int32)
    if tol is None:
        highest = raw_ops.Max(input=values, axis=last, keep_dims=True)
        limit = raw_ops.Mul(x=_relative_limit(x, 1.0), y=highest)
    else:
        limit = like(tol, dtype_of(x))
    above = raw_ops.Cast(x=raw_ops.Greater(x=values, y=limit), DstT=DataType.DT_INT32)
    return raw_ops.Sum(input=above, axis=last)


@composed
def expm(input: TensorLike, name: str | None = None) -> Any:
    """The exponential of square matrices, by scaling, a rational approximation and squaring."""
    x = convert(input)
    sizes = static_shape(x) or []
    if len(sizes) < 2 or (sizes[-1] != sizes[-2] and None not in sizes[-2:]):
        raise InvalidArgumentError(f"expm takes square matrices, and got the shape {sizes}")
    rows = raw_ops.Sum(input=raw_ops.Abs(x=x), axis=np.array([-2], np.int32), keep_dims=True)
    length = raw_ops.Max(input=rows, axis=np.array([-1], np.int32), keep_dims=True)
    positive = raw_ops.Maximum(x=length, y=number_like(x, 1e-30))
    log2 = raw_ops.RealDiv(x=raw_ops.Log(x=positive), y=number_like(x, np.log(2.0)))
    times = raw_ops.Maximum(x=raw_ops.Ceil(x=log2) + number_like(x, 1.0), y=number_like(x, 0.0))
    scale = raw_ops.Pow(x=number_like(x, 0.5), y=times)
    result = _pade(raw_ops.Mul(x=x, y=scale))
    most = 64 if dtype_of(x).size >= 8 else 32
    if not is_symbolic(times):
        most = int(np.max(np.asarray(times), initial=0))
    for number in range(most):
        more = raw_ops.Greater(x=times, y=number_like(x, float(number)))
        squared = raw_ops.BatchMatMulV2(x=result, y=result)
        result = raw_ops.SelectV2(condition=more, t=squared, e=result)
    return result


def _pade(x: Any) -> Any:
    """The (13, 13) Pade approximation of the exponential of matrices with a norm of at most 1/2."""
    b = [
        64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
        129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
        40840800.0, 960960.0, 16380.0, 182.0, 1.0,
    ]  # fmt: skip
    unit = raw_ops.MatrixDiag(diagonal=raw_ops.OnesLike(x=raw_ops.MatrixDiagPart(input=x)))
    power, even, odd = unit, unit * number_like(x, 1.0), unit * number_like(x, b[1] / b[0])
    square = raw_ops.BatchMatMulV2(x=x, y=x)
    for number in range(2, 14, 2):
        power = raw_ops.BatchMatMulV2(x=power, y=square)
        even = even + power * number_like(x, b[number] / b[0])
        odd = odd + power * number_like(x, b[number + 1] / b[0])
    odd = raw_ops.BatchMatMulV2(x=x, y=odd)
    return raw_ops.MatrixSolve(matrix=even - odd, rhs=even + odd)


@composed
def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Any:
    """The matrices of an LU decomposition: `lu_reconstruct(*lu(x))` is `x`."""
    both = convert(lower_upper)
    product = matmul(_lower(both), raw_ops.MatrixBandPart(input=both, num_lower=0, num_upper=-1))
    order = convert(perm)
    inverse = _inverse_order(order)
    depth = known_rank(both, "lu_reconstruct") - 2
    return raw_ops.GatherV2(params=product, indices=inverse, axis=depth, batch_dims=depth)


def _lower(both: Any) -> Any:
    strict = raw_ops.MatrixBandPart(input=both, num_lower=-1, num_upper=0)
    ones = raw_ops.OnesLike(x=raw_ops.MatrixDiagPart(input=both))
    return raw_ops.MatrixSetDiag(input=strict, diagonal=ones)


def _inverse_order(order: Any) -> Any:
    """The inverse of permutations along the last axis."""
    negative = raw_ops.Neg(x=cast_to(order, DataType.DT_INT32))
    return raw_ops.TopKV2(input=negative, k=raw_ops.Shape(input=order)[-1])[1]


@composed
def lu_solve(
    lower_upper: TensorLike,
    perm: TensorLike,
    rhs: TensorLike,
    validate_args: bool = False,
    name: str | None = None,
) -> Any:
    """The solutions X of `A @ X = rhs`, from the LU decomposition of A (`lu(A)`)."""
    both, wanted = convert(lower_upper), convert(rhs)
    depth = known_rank(both, "lu_solve") - 2
    batch = raw_ops.ConcatV2(
        values=[raw_ops.Shape(input=both)[:-2], raw_ops.Shape(input=wanted)[-2:]], axis=0
    )
    wanted = raw_ops.BroadcastTo(input=wanted, shape=batch)
    turned = raw_ops.GatherV2(params=wanted, indices=convert(perm), axis=depth, batch_dims=depth)
    y = raw_ops.MatrixTriangularSolve(matrix=_lower(both), rhs=turned, lower=True)
    return raw_ops.MatrixTriangularSolve(matrix=both, rhs=y, lower=False)


@composed
def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Any:
    """The inverse of the matrices of an LU decomposition."""
    both = convert(lower_upper)
    ones = raw_ops.OnesLike(x=raw_ops.MatrixDiagPart(input=both))
    return lu_solve(both, perm, raw_ops.MatrixDiag(diagonal=ones))


@composed
def tridiagonal_solve(
    diagonals: Any,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Any:
    """The solutions X of `A @ X = rhs` for matrices A with three diagonals.

    Args:
        diagonals: with "compact" a tensor of the shape [..., 3, M]: above, on and below the diagonal;
            with "sequence" a tuple of the three; with "matrix" the matrices.
        rhs: the right sides, of the shape [..., M] or [..., M, K].
        diagonals_format: "compact", "sequence" or "matrix".
        transpose_rhs: transpose the right sides first.
        conjugate_rhs: take their conjugate first.
        name: a name for the scope of nodes in a graph.
        partial_pivoting: exchange rows where that is more exact.
        perturb_singular: change singular matrices a little.

    Raises:
        ValueError: there is no such format.
    """
    parts = _diagonals(diagonals, diagonals_format)
    wanted = convert(rhs)
    is_vector = (
        known_rank(wanted, "tridiagonal_solve") == known_rank(parts, "tridiagonal_solve") - 1
    )
    if conjugate_rhs and dtype_of(wanted).is_complex:
        wanted = raw_ops.Conj(input=wanted)
    if is_vector:
        wanted = raw_ops.ExpandDims(input=wanted, axis=-1)
    elif transpose_rhs:
        wanted = matrix_transpose(wanted)
    found = raw_ops.TridiagonalSolve(
        diagonals=parts,
        rhs=wanted,
        partial_pivoting=partial_pivoting,
        perturb_singular=perturb_singular,
    )
    return raw_ops.Squeeze(input=found, axis=[-1]) if is_vector else found


def _diagonals(diagonals: Any, form: str) -> Any:
    """The three diagonals of matrices, as a tensor of the shape [..., 3, M]."""
    if form == "compact":
        return convert(diagonals)
    if form == "matrix":
        return raw_ops.MatrixDiagPartV3(
            input=convert(diagonals), k=np.array([-1, 1], np.int32), padding_value=0,
            align="LEFT_RIGHT",
        )  # fmt: skip
    if form == "sequence" and isinstance(diagonals, list | tuple) and len(diagonals) == 3:
        above, on, below = map(convert, diagonals)
        size = (static_shape(on) or [None])[-1]
        zeros = [[0, 0]] * (known_rank(on, "tridiagonal_solve") - 1)
        if (static_shape(above) or [None])[-1] != size:
            above = raw_ops.Pad(input=above, paddings=np.array([*zeros, [0, 1]], np.int32))
        if (static_shape(below) or [None])[-1] != size:
            below = raw_ops.Pad(input=below, paddings=np.array([*zeros, [1, 0]], np.int32))
        return raw_ops.Pack(values=[above, on, below], axis=-2)
    raise ValueError(
        f'diagonals_format is "compact", "sequence" (three tensors) or "matrix", and not {form!r}'
    )


@composed
def tridiagonal_matmul(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Any:
    """The products of matrices with three diagonals and other matrices; see `tridiagonal_solve`."""
    parts = _diagonals(diagonals, diagonals_format)
    rows = [raw_ops.ExpandDims(input=parts[..., n, :], axis=-2) for n in range(3)]
    return raw_ops.TridiagonalMatMul(superdiag=rows[0], maindiag=rows[1], subdiag=rows[2], rhs=rhs)
