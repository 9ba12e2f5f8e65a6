"""Shapes of ops of matrices without kernels.

Source: TensorFlow core/ops/linalg_ops.cc.
"""

from opkernel.opdef import InferenceContext, OpShapeInferenceFn
from opkernel.opdef.common_shapes import unknown_shape
from opkernel.ops.linalg.matrices import square_matrices, square_shape

__all__ = ["SHAPE_FNS"]


def _self_adjoint_eig_shape(c: InferenceContext) -> None:
    """[..., n, n] -> [..., n + 1, n]: the eigenvalues above the eigenvectors."""
    batch, size = square_matrices(c)
    c.set_output(0, c.concatenate(batch, c.matrix(c.add(size, 1), size)))


_OF_VERSION_0 = (
    "BatchCholesky",
    "BatchCholeskyGrad",
    "BatchMatrixDeterminant",
    "BatchMatrixInverse",
    "BatchMatrixSolve",
    "BatchMatrixSolveLs",
    "BatchMatrixTriangularSolve",
    "BatchSelfAdjointEig",
    "BatchSelfAdjointEigV2",
    "BatchSvd",
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_OF_VERSION_0, unknown_shape),
    "MatrixExponential": square_shape,
    "SelfAdjointEig": _self_adjoint_eig_shape,
}
