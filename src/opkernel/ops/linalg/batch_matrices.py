"""The old names of ops of matrices, from before GraphDef version 13: BatchCholesky and the like, SelfAdjointEig.

Each has the kernel of its successor. BatchSelfAdjointEig and SelfAdjointEig have one output, the eigenvalues above the
eigenvectors. None has a gradient, as in TensorFlow.

Source: TensorFlow core/ops/linalg_ops.cc, core/kernels/linalg.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.opdef import InferenceContext, OpHandle, register_op, unknown_shape
from opkernel.ops.linalg.cholesky_and_least_squares import cholesky, cholesky_grad, matrix_solve_ls
from opkernel.ops.linalg.decompositions import self_adjoint_eig_v2, svd
from opkernel.ops.linalg.lu import IN_NUMPY
from opkernel.ops.linalg.matrices import NUMBERS, square_matrices
from opkernel.ops.linalg.triangular_and_tridiagonal import matrix_triangular_solve
from opkernel.ops.registration import WIDE_FLOATS, register_kernel

_REAL, _ANY = "T: {double, float}", "T: {float, double, complex64, complex128}"
_ADJOINT, _VECTORS = "adjoint: bool = false", "compute_v: bool = true"


def _declare(successor: str, arguments: str, *attrs: str) -> OpHandle:
    return register_op(
        f"Batch{successor}({arguments}",
        attrs=attrs,
        shape_fn=unknown_shape,
        deprecated=(13, f"Use {successor} instead."),
        doc=f"The old name of {successor}.",
    )


_OF_ONE, _OF_SYSTEM = "input: T) -> output: T", "matrix: T, rhs: T) -> output: T"
_GRAD = "l: T, grad: T) -> output: T"
_LEAST_SQUARES = "matrix: T, rhs: T, l2_regularizer: double) -> output: T"
_SVD_TYPES = "T: {double, float, complex64, complex128}"
_SVD_ATTRS = ("compute_uv: bool = true", "full_matrices: bool = false", _SVD_TYPES)

_REAL_OPS: list[tuple[OpHandle, Callable[..., Any]]] = [
    (_declare("Cholesky", _OF_ONE, _REAL), cholesky),
    (_declare("CholeskyGrad", _GRAD, "T: {float, double}"), cholesky_grad),
    (_declare("MatrixInverse", _OF_ONE, _ADJOINT, _REAL), IN_NUMPY.inverse),
    (_declare("MatrixSolve", _OF_SYSTEM, _ADJOINT, _REAL), IN_NUMPY.solve),
    (_declare("MatrixSolveLs", _LEAST_SQUARES, _REAL, "fast: bool = true"), matrix_solve_ls),
    (
        _declare("MatrixTriangularSolve", _OF_SYSTEM, "lower: bool = true", _ADJOINT, _REAL),
        matrix_triangular_solve,
    ),
    (_declare("SelfAdjointEigV2", "input: T) -> e: T, v: T", _VECTORS, _REAL), self_adjoint_eig_v2),
]
_NUMBER_OPS: list[tuple[OpHandle, Callable[..., Any]]] = [
    (_declare("MatrixDeterminant", _OF_ONE, _ANY), IN_NUMPY.determinant),
    (_declare("Svd", "input: T) -> s: T, u: T, v: T", *_SVD_ATTRS), svd),
]
for _types, _ops in ((WIDE_FLOATS, _REAL_OPS), (NUMBERS, _NUMBER_OPS)):
    for _op, _kernel in _ops:
        register_kernel(_op, types={"T": _types})(_kernel)


def _self_adjoint_eig_shape(c: InferenceContext) -> None:
    """[..., n, n] -> [..., n + 1, n]: the eigenvalues above the eigenvectors."""
    batch, size = square_matrices(c)
    c.set_output(0, c.concatenate(batch, c.matrix(c.add(size, 1), size)))


BATCH_SELF_ADJOINT_EIG, SELF_ADJOINT_EIG = (
    register_op(
        f"{name}({_OF_ONE}",
        attrs=[types],
        shape_fn=shape_fn,
        deprecated=(11, "Use SelfAdjointEigV2 instead."),
        doc="The eigenvalues, in ascending order, and below them the eigenvectors of SelfAdjointEigV2.",
    )
    for name, types, shape_fn in (
        ("BatchSelfAdjointEig", _REAL, unknown_shape),
        ("SelfAdjointEig", "T: {double, float, half}", _self_adjoint_eig_shape),
    )
)


@register_kernel(BATCH_SELF_ADJOINT_EIG, SELF_ADJOINT_EIG, types={"T": WIDE_FLOATS})
def self_adjoint_eig(tensor: Any) -> Any:
    values, vectors = self_adjoint_eig_v2(tensor, compute_v=True)
    return np.concatenate([values[..., None, :], vectors], axis=-2)
