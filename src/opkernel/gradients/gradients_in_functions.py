"""The gradients that functions have: fewer than graphs have, as in TensorFlow.

TensorFlow's C++ knows the gradients of the ops below, its Python many more. Gradients that users
register are known in both.

Source: TensorFlow core/ops/math_grad.cc, array_grad.cc, nn_grad.cc, functional_grad.cc, random_ops.cc.
"""

from __future__ import annotations

from collections.abc import Mapping

from opkernel.errors import NotFoundError
from opkernel.gradients.node_methods import nodes
from opkernel.gradients.registry import (
    GradientFunction,
    Gradients,
    is_of_catalogue,
    look_up_gradient,
)
from opkernel.graph import Operation, Tensor

__all__ = ["gradient_in_function"]

_WITH_GRADIENT = """
    Abs Acos Acosh Add AddV2 Angle Asin Asinh Atan Atanh AvgPool BatchMatMul BatchMatMulV2 BiasAdd
    BroadcastTo Cast Complex Concat ConcatV2 Conj ConjugateTranspose Conv2D Cos Cosh Div DivNoNan Exp
    ExpandDims Expm1 Fill GatherNd Identity Imag Inv Log Log1p LogSoftmax MatMul Max MaxPool
    MaxPoolGrad Maximum Mean Min Minimum Mul MulNoNan Neg Pack Pow ReadVariableOp Real RealDiv
    Reciprocal Relu Relu6 Reshape Reverse ReverseV2 Rsqrt Select Sigmoid Sign Sin Sinh Slice Softmax
    Split SplitV Sqrt Square SquaredDifference Squeeze StridedSlice StridedSliceGrad Sub Sum Tan Tanh
    Transpose Unpack Xdivy Xlog1py Xlogy
"""
_WITHOUT_GRADIENT = """
    Const EditDistance Equal FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVarsGradient
    FakeQuantWithMinMaxVarsPerChannelGradient Floor FloorDiv Greater GreaterEqual Less LessEqual
    LinSpace LogicalAnd LogicalNot LogicalOr NotEqual OnesLike RandomUniform Range Rank Shape Size
    StatelessMultinomial StatelessRandomNormal StatelessRandomUniform StatelessTruncatedNormal
    StopGradient TruncateDiv ZerosLike
"""
WITH_GRADIENT = frozenset(_WITH_GRADIENT.split())
WITHOUT_GRADIENT = frozenset(_WITHOUT_GRADIENT.split())


def _acosh_gradient(op: Operation, grad: Tensor) -> Gradients:
    return nodes.Mul(grad, nodes.Sinh(op.outputs[0]))


def _asinh_gradient(op: Operation, grad: Tensor) -> Gradients:
    return nodes.Mul(grad, nodes.Cosh(op.outputs[0]))


def _cast_gradient(op: Operation, grad: Tensor) -> Gradients:
    source = op.inputs[0].dtype
    return None if source.is_bool else nodes.Cast(grad, DstT=source)


UNLIKE_GRAPHS: Mapping[str, GradientFunction] = {
    "Acosh": _acosh_gradient,
    "Asinh": _asinh_gradient,
    "Cast": _cast_gradient,
}
"""Gradients of TensorFlow's C++ unlike its Python's: it multiplies where the derivatives of the
inverses of sinh and cosh are quotients, and casts to integers, too."""


def gradient_in_function(op_type: str) -> GradientFunction | None:
    """The gradient function of an op inside functions; None for an op whose gradient is zero.

    Raises:
        NotFoundError: the op has none.
    """
    if op_type in WITHOUT_GRADIENT:
        return None
    if op_type not in WITH_GRADIENT and is_of_catalogue(op_type):
        raise NotFoundError(f"No gradient defined for op: {op_type}", op=op_type)
    return UNLIKE_GRAPHS.get(op_type) or look_up_gradient(op_type)
