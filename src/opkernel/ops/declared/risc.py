"""Shapes of the reduced set of ops; most have no shape function of their own in TensorFlow.

Source: TensorFlow core/ops/risc_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    concat_v2_shape,
    matmul_shape,
    random_shape,
    slice_shape,
    unchanged_shape,
    unknown_shape,
)


def _equal_shapes(c: InferenceContext) -> None:
    """As input 0, whose shape input 1 must have: nothing is broadcast."""
    first, second = c.input(0), c.input(1)
    if c.rank(first) != c.rank(second):
        raise InvalidArgumentError("Mismatch rank for input.")
    for a, b in zip(first.dims or (), second.dims or (), strict=True):
        if c.value_known(a) and c.value_known(b) and a.value != b.value:
            raise InvalidArgumentError("Mismatch shapes for input.")
    unchanged_shape(c)


_EQUAL = "Add BinaryComparison Div Max Min Mul Pow Rem Sub"
_UNCHANGED = (
    "Abs BinaryArithmetic Cast Ceil Cos Exp Floor Imag IsFinite Log LogicalNot Neg Real Sign Sort "
    "Unary"
)
_UNKNOWN = (
    "Bitcast Broadcast Cholesky Condition Conv Fft Gather LogicalAnd LogicalOr Pad Pool Reduce "
    "Reshape Reverse Scatter Shape Squeeze Transpose TriangularSolve While"
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **{f"Risc{name}": _equal_shapes for name in _EQUAL.split()},
    **{f"Risc{name}": unchanged_shape for name in _UNCHANGED.split()},
    **{f"Risc{name}": unknown_shape for name in _UNKNOWN.split()},
    "RiscConcat": concat_v2_shape,
    "RiscDot": matmul_shape,
    "RiscRandomUniform": random_shape,
    "RiscSlice": slice_shape,
}
