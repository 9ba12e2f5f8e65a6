"""Shapes of ops of arrays, matrices, random numbers and signals.

Source: TensorFlow core/ops/array_ops.cc, core/ops/linalg_ops.cc, core/ops/special_math_ops.cc, math_ops.cc,
nn_ops.cc, tpu_cross_replica_ops.cc, core/ops/nn_ops.cc, core/ops/dataset_ops.cc, experimental_dataset_ops.cc,
core/ops/spectral_ops.cc, core/ops/map_ops.cc, core/ops/control_flow_ops.cc, array_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    common_shapes,
    no_outputs,
    scalar_shape,
)
from opkernel.opdef.common_shapes import (
    conv3d_shape,
    explicit_shape,
    fused_batch_norm_grad_ex_shape,
    unchanged_shape,
    unchanged_shape_with_rank,
    unchanged_shape_with_rank_at_least,
    unknown_shape,
)
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.linalg.matrices import square_matrices, square_shape


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


_BATCH = tuple(f"Batch{way}FFT{suffix}" for way in ("", "I") for suffix in ("", "2D", "3D"))
_ANY_AXES = ("FFTND", "IFFTND", "RFFTND", "IRFFTND")

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(("CheckPinned", "Copy", "CopyHost"), unchanged_shape),
    "_ParallelConcatStart": explicit_shape,
    "_ParallelConcatUpdate": unchanged_shape,
    **dict.fromkeys(_OF_VERSION_0, unknown_shape),
    "MatrixExponential": square_shape,
    "SelfAdjointEig": _self_adjoint_eig_shape,
    "Fact": unknown_shape,
    "KthOrderStatistic": shape_rule("[rows, ?] -> [rows]"),
    "MakeUnique": unchanged_shape_with_rank(2),
    "TopKUnique": shape_rule("[rows, ?] -> [rows, {k}], [rows, {k}]"),
    "TopKWithUnique": shape_rule("[rows, ?] -> [rows, {k}], [rows, {k}]"),
    "_UnaryOpsComposition": unchanged_shape,
    "_FusedBatchNormGradEx": fused_batch_norm_grad_ex_shape,
    "_FusedConv3D": conv3d_shape,
    "AnonymousRandomSeedGenerator": shape_rule("-> [], []"),
    "AnonymousSeedGenerator": shape_rule("-> [], []"),
    "DeleteRandomSeedGenerator": common_shapes.no_outputs,
    "DeleteSeedGenerator": common_shapes.no_outputs,
    "DummySeedGenerator": common_shapes.scalar_shape,
    **dict.fromkeys(_BATCH, unknown_shape),
    **dict.fromkeys(_ANY_AXES, unchanged_shape_with_rank_at_least(1)),
    "EmptyTensorMap": scalar_shape,
    "TensorMapErase": scalar_shape,
    "TensorMapHasKey": scalar_shape,
    "TensorMapInsert": scalar_shape,
    "TensorMapLookup": unknown_shape,
    "TensorMapSize": scalar_shape,
    "TensorMapStackKeys": unknown_shape,
    "Abort": no_outputs,
    "_HostCast": unchanged_shape,
}
