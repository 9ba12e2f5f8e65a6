"""Qr, Svd, SelfAdjointEigV2, Eig.

LAPACK computes the last three, so that signs and phases of vectors, and the order of the values of Eig, may
differ from TensorFlow's.

Source: TensorFlow core/kernels/linalg/qr_op_impl.h, svd_op_impl.h, self_adjoint_eig_v2_op_impl.h,
eig_op_impl.h.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import one_blas_thread
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.linalg.matrices import (
    NUMBERS,
    T_SPEC,
    adjoint,
    check_square,
    check_stacks,
    matrices,
    of_stack,
    square_matrices,
)
from opkernel.ops.registration import COMPLEX_OF, register_kernel
from opkernel.types import DataType

_QR, _VALUES, _SVD, _EIGH, _EIG = 0.2, 0.2, 0.5, 0.15, 1.5
"""The costs of functions, as `of_stack` takes them."""
_DECOMPOSING = "decomposing matrices"


def _eig_shape(c: InferenceContext) -> None:
    """[..., n, n] -> eigenvalues [..., n], and eigenvectors [..., n, n] or [0]."""
    batch, size = square_matrices(c)
    c.set_output(0, c.concatenate(batch, c.vector(size)))
    vectors = c.get_attr("compute_v")
    c.set_output(1, c.concatenate(batch, c.matrix(size, size)) if vectors else c.vector(0))


def _qr_shape(c: InferenceContext) -> None:
    """[..., m, n] -> [..., m, p], [..., p, n], where p is m if full, and else min(m, n)."""
    batch, rows, columns = matrices(c, 0)
    inner = rows if c.get_attr("full_matrices") else c.min(rows, columns)
    c.set_output(0, c.concatenate(batch, c.matrix(rows, inner)))
    c.set_output(1, c.concatenate(batch, c.matrix(inner, columns)))


def _svd_shape(c: InferenceContext) -> None:
    """[..., m, n] -> [..., p], and [..., m, p], [..., n, p], or [0], [0]."""
    batch, rows, columns = matrices(c, 0)
    inner = c.min(rows, columns)
    c.set_output(0, c.concatenate(batch, c.vector(inner)))
    if not c.get_attr("compute_uv"):
        c.set_output(1, c.vector(0))
        c.set_output(2, c.vector(0))
        return
    full = c.get_attr("full_matrices")
    for output, size in ((1, rows), (2, columns)):
        c.set_output(output, c.concatenate(batch, c.matrix(size, size if full else inner)))


QR = register_op(
    "Qr(input: T) -> q: T, r: T",
    attrs=["full_matrices: bool = false", T_SPEC],
    shape_fn=_qr_shape,
    doc="`input == q @ r`, with orthonormal columns of q and an upper triangle r.",
    traits="clustering=slow",
)
SVD = register_op(
    "Svd(input: T) -> s: T, u: T, v: T",
    attrs=["compute_uv: bool = true", "full_matrices: bool = false", T_SPEC],
    shape_fn=_svd_shape,
    doc="`input == u @ diag(s) @ adjoint(v)`, the singular values in descending order.",
    traits="clustering=inaccurate",
)
SELF_ADJOINT_EIG_V2 = register_op(
    "SelfAdjointEigV2(input: T) -> e: T, v: T",
    attrs=["compute_v: bool = true", T_SPEC],
    shape_fn=_eig_shape,
    doc="The eigenvalues, in ascending order, and eigenvectors of matrices given by their lower triangles.",
    traits="clustering=inaccurate",
)
EIG = register_op(
    "Eig(input: T) -> e: Tout, v: Tout",
    attrs=[
        "compute_v: bool = true",
        "T: {float, double, complex64, complex128}",
        "Tout: {complex64, complex128}",
    ],
    shape_fn=_eig_shape,
    doc="The eigenvalues and eigenvectors of any square matrices.",
)


@register_kernel(QR, types={"T": (*NUMBERS, DataType.DT_HALF)})
def qr(tensor: Any, *, full_matrices: bool) -> tuple[Any, Any]:
    check_stacks(tensor)
    wide = tensor.astype(np.promote_types(tensor.dtype, np.float32), copy=False)
    with one_blas_thread():
        mode: Any = "complete" if full_matrices else "reduced"
        q, r = of_stack(lambda part: np.linalg.qr(part, mode), wide, _QR, "factoring matrices")
    return q.astype(tensor.dtype), r.astype(tensor.dtype)


@register_kernel(SVD, types={"T": NUMBERS})
def svd(tensor: Any, *, compute_uv: bool, full_matrices: bool) -> tuple[Any, Any, Any]:
    check_stacks(tensor)
    # LAPACK refuses NaN; what TensorFlow gives for such matrices is NaN.
    is_finite = np.isfinite(tensor).all(axis=(-1, -2))
    matrix = np.where(is_finite[..., None, None], tensor, 0)
    if not compute_uv:
        with one_blas_thread():
            values = partial(np.linalg.svd, compute_uv=False)
            found = of_stack(values, matrix, _VALUES, _DECOMPOSING)
        s = _or_nan(found, is_finite[..., None])
        return s.astype(tensor.real.dtype).astype(tensor.dtype), *_nothing(tensor.dtype, 2)
    with one_blas_thread():
        u, s, vh = of_stack(
            lambda part: np.linalg.svd(part, full_matrices), matrix, _SVD, _DECOMPOSING
        )
    known = is_finite[..., None, None]
    return (
        _or_nan(s, is_finite[..., None]).astype(tensor.dtype),
        _or_nan(u, known),
        _or_nan(adjoint(vh), known),
    )


def _or_nan(tensor: Any, is_known: Any) -> Any:
    return tensor if np.all(is_known) else np.where(is_known, tensor, np.nan).astype(tensor.dtype)


def _nothing(dtype: "np.dtype[Any]", count: int) -> list[Any]:
    """Outputs that were not asked for."""
    return [np.zeros(0, dtype) for _ in range(count)]


def _eigen(
    tensor: Any,
    compute_v: bool,
    values: Callable[..., Any],
    vectors: Callable[..., Any],
    cost: float,
    what: str,
) -> tuple[Any, Any]:
    check_square(tensor)
    failure = InvalidArgumentError(f"{what} was not successful. The input might not be valid.")
    if not np.all(np.isfinite(tensor)):
        raise failure
    try:
        with one_blas_thread():
            found = of_stack(vectors if compute_v else values, tensor, cost, _DECOMPOSING)
            return found if compute_v else (found, *_nothing(tensor.dtype, 1))
    except np.linalg.LinAlgError:
        raise failure from None


@register_kernel(SELF_ADJOINT_EIG_V2, types={"T": NUMBERS})
def self_adjoint_eig_v2(tensor: Any, *, compute_v: bool) -> tuple[Any, Any]:
    what = "Self-adjoint eigen decomposition"
    e, v = _eigen(tensor, compute_v, np.linalg.eigvalsh, np.linalg.eigh, _EIGH, what)
    return e.astype(tensor.dtype), v


@register_kernel(EIG, types={"T": NUMBERS})
def eig(tensor: Any, *, compute_v: bool, T: DataType, Tout: DataType) -> tuple[Any, Any]:
    check_square(tensor)
    if Tout is not COMPLEX_OF.get(T, T):
        wanted = COMPLEX_OF.get(T, T)
        raise InvalidArgumentError(f"Invalid output dtype {Tout.string} vs {wanted.string}")
    dtype = Tout.numpy_dtype
    e, v = _eigen(tensor, compute_v, np.linalg.eigvals, np.linalg.eig, _EIG, "Eigen decomposition")
    return e.astype(dtype), v.astype(dtype)
