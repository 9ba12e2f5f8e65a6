"""Shapes of ops of arrays, matrices and signals, and of RISC.

RISC is a reduced set of ops; most have no shape function of their own in TensorFlow.

Source: TensorFlow core/ops/array_ops.cc, linalg_ops.cc, special_math_ops.cc, math_ops.cc, nn_ops.cc,
tpu_cross_replica_ops.cc, spectral_ops.cc, risc_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, common_shapes
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require


def _equal_shapes(c: InferenceContext) -> None:
    """As input 0, whose shape input 1 must have: nothing is broadcast."""
    first, second = c.input(0), c.input(1)
    require(c.rank(first) == c.rank(second), "Mismatch rank for input.")
    for a, b in zip(first.dims or (), second.dims or (), strict=True):
        if c.value_known(a) and c.value_known(b) and a.value != b.value:
            raise InvalidArgumentError("Mismatch shapes for input.")
    common_shapes.unchanged_shape(c)


_RISC_EQUAL = "Add BinaryComparison Div Max Min Mul Pow Rem Sub"
_RISC_UNCHANGED = (
    "Abs BinaryArithmetic Cast Ceil Cos Exp Floor Imag IsFinite Log LogicalNot Neg Real Sign Sort "
    "Unary"
)
_RISC_UNKNOWN = (
    "Bitcast Broadcast Cholesky Condition Conv Fft Gather LogicalAnd LogicalOr Pad Pool Reduce "
    "Reshape Reverse Scatter Shape Squeeze Transpose TriangularSolve While"
)

_BATCH = tuple(f"Batch{way}FFT{suffix}" for way in ("", "I") for suffix in ("", "2D", "3D"))
_ANY_AXES = ("FFTND", "IFFTND", "RFFTND", "IRFFTND")

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "KthOrderStatistic": shape_rule("[rows, ?] -> [rows]"),
    "MakeUnique": common_shapes.unchanged_shape_with_rank(2),
    "TopKUnique": shape_rule("[rows, ?] -> [rows, {k}], [rows, {k}]"),
    "TopKWithUnique": shape_rule("[rows, ?] -> [rows, {k}], [rows, {k}]"),
    **dict.fromkeys(_BATCH, common_shapes.unknown_shape),
    **dict.fromkeys(_ANY_AXES, common_shapes.unchanged_shape_with_rank_at_least(1)),
    **{f"Risc{name}": _equal_shapes for name in _RISC_EQUAL.split()},
    **{f"Risc{name}": common_shapes.unchanged_shape for name in _RISC_UNCHANGED.split()},
    **{f"Risc{name}": common_shapes.unknown_shape for name in _RISC_UNKNOWN.split()},
    "RiscConcat": common_shapes.concat_v2_shape,
    "RiscDot": common_shapes.matmul_shape,
    "RiscRandomUniform": common_shapes.random_shape,
    "RiscSlice": common_shapes.slice_shape,
}
