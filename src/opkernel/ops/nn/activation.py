"""Activations, the ops that give their gradients (ReluGrad and its like), and second derivatives.

A gradient op takes the gradient of an activation's result and, as the activation's definition makes
convenient, the activation's input (`features`) or result (`outputs`). Both have the same shape;
unlike in arithmetic nothing is broadcast.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/relu_op_functor.h, softplus_op.h, softsign_op.h.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import merge_both_inputs_shape_fn, unchanged_shape
from opkernel.ops.math.elementwise import POINTWISE, Types, kernel_of_body, register_body
from opkernel.ops.registration import FLOATS, REAL_NUMBERS, register_kernel
from opkernel.types import DataType

__all__ = ["check_same_shape"]


FLOAT_SPEC = "{half, bfloat16, float, double}"

# Klambauer et al., Self-Normalizing Neural Networks, 2017.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def _activation(
    name: str, doc: str, types: str = FLOAT_SPEC, attrs: Sequence[str] = (), traits: str = ""
) -> OpHandle:
    return register_op(
        f"{name}(features: T) -> activations: T",
        attrs=[*attrs, f"T: {types}"],
        shape_fn=unchanged_shape,
        traits=f"{POINTWISE} {traits}",
        doc=doc,
    )


RELU = _activation(
    "Relu",
    "max(features, 0).",
    "{realnumbertype, qint8}",
    traits="idempotent growing function_gradient=yes",
)
RELU6 = _activation(
    "Relu6",
    "min(max(features, 0), 6).",
    "realnumbertype",
    traits="idempotent growing function_gradient=yes",
)
LEAKY_RELU = _activation(
    "LeakyRelu",
    "The features, those below 0 times `alpha`.",
    f"{FLOAT_SPEC} = DT_FLOAT",
    ["alpha: float = 0.2"],
)
ELU = _activation("Elu", "The features; exp(features) - 1 where they are below 0.")
SELU = _activation("Selu", "scale * features; scale * alpha * (exp(features) - 1) below 0.")
SOFTPLUS = _activation("Softplus", "log(exp(features) + 1).", traits="growing")
SOFTSIGN = _activation("Softsign", "features / (abs(features) + 1).")


@register_kernel(RELU, types={"T": REAL_NUMBERS}, kind="elementwise", factory=True)
@cache
def relu(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
    """One call of the namespace's maximum; NaN stays NaN."""
    return partial(xp.maximum, _zero(T) if xp is np else T.numpy_dtype.type(0))


@cache
def _zero(dtype: DataType) -> Any:
    """An array of rank 0: NumPy takes it faster than a number."""
    return np.zeros((), dtype.numpy_dtype)


@register_kernel(RELU6, types={"T": REAL_NUMBERS}, kind="elementwise", factory=True)
def relu6(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
    """NaN stays NaN."""
    zero, six = T.numpy_dtype.type(0), T.numpy_dtype.type(6)

    def clip_0_6(features: Any, *, xp: Any) -> Any:
        if xp is np:  # several times as fast as what follows, and one step
            return np.clip(features, zero, six)
        return xp.minimum(xp.maximum(features, zero), six)

    return (
        kernel_of_body(clip_0_6, T, xp, in_float=True) if T in FLOATS else partial(clip_0_6, xp=xp)
    )


# OpDef and kernels do not agree in TensorFlow: no node can ask for an integer LeakyRelu.
@register_kernel(LEAKY_RELU, types={"T": REAL_NUMBERS}, kind="elementwise", factory=True)
def leaky_relu(*, alpha: float, T: DataType, xp: Any) -> Callable[[Any], Any]:
    """The slope is rounded to the type of the features."""
    slope = float(T.numpy_dtype.type(alpha))

    def choose(features: Any, *, xp: Any) -> Any:
        return xp.where(features > 0, features, features * slope)

    def larger(features: Any, *, xp: Any) -> Any:
        return xp.maximum(features, features * slope)

    return kernel_of_body(larger if 0 < slope <= 1 else choose, T, xp, in_float=True)


def elu(features: Any, *, xp: Any) -> Any:
    return xp.maximum(features, 0) + _exp_minus_1(features, xp)


def selu(features: Any, *, xp: Any) -> Any:
    number = features.dtype.type
    below = _exp_minus_1(features, xp) * number(SELU_SCALE * SELU_ALPHA)
    return xp.maximum(features, 0) * number(SELU_SCALE) + below


def _exp_minus_1(features: Any, xp: Any) -> Any:
    """exp(features) - 1 below 0, and 0 elsewhere."""
    return xp.exp(xp.minimum(features, 0)) - 1


def softplus(features: Any, *, xp: Any) -> Any:
    """max(x, 0) + log1p(exp(-|x|)), which neither overflows nor cancels."""
    if features.dtype.itemsize == 2:
        return _narrow_softplus(features, xp)
    return xp.maximum(features, 0) + xp.log1p(xp.exp(-xp.abs(features)))


def _narrow_softplus(features: Any, xp: Any) -> Any:
    """log1p(exp(x)), or x or exp(x) if that is as good, each step rounded as TensorFlow does."""
    is_half = features.dtype == np.float16
    epsilon = features.dtype.type(2.0**-13 if is_half else 2.0**-7)  # Eigen's, not the type's
    bound = -(xp.log(epsilon) + features.dtype.type(2))
    power = xp.exp(features)
    small = xp.where(features < -bound, power, xp.log1p(power))
    return xp.where(features > bound, features, small)


def softsign(features: Any, *, xp: Any) -> Any:
    return features / (xp.abs(features) + 1)


register_body(ELU, elu, FLOATS)
register_body(SELU, selu, FLOATS)
register_body(SOFTPLUS, softplus, FLOATS)
register_body(SOFTSIGN, softsign, FLOATS)


_SELU_SCALE_ALPHA = SELU_SCALE * SELU_ALPHA


def check_same_shape(op: str, gradients: Any, other: Any) -> None:
    """Raise InvalidArgumentError unless the two inputs of `op` have the same shape."""
    if gradients.shape != other.shape:
        raise InvalidArgumentError(
            f"Inputs to operation {op} must have the same size and shape. "
            f"Input 0: {list(gradients.shape)} != input 1: {list(other.shape)}"
        )


def _gradient_op(
    name: str, types: str = FLOAT_SPEC, forward: str = "features", attrs: Sequence[str] = ()
) -> OpHandle:
    return register_op(
        f"{name}(gradients: T, {forward}: T) -> backprops: T",
        attrs=[*attrs, f"T: {types}"],
        shape_fn=merge_both_inputs_shape_fn,
        doc=f"The gradient of {name.removesuffix('Grad')}, from that of its result and `{forward}`.",
    )


RELU_GRAD = _gradient_op("ReluGrad", "realnumbertype")
RELU6_GRAD = _gradient_op("Relu6Grad", "realnumbertype")
LEAKY_RELU_GRAD = _gradient_op(
    "LeakyReluGrad", f"{FLOAT_SPEC} = DT_FLOAT", attrs=["alpha: float = 0.2"]
)
ELU_GRAD = _gradient_op("EluGrad", forward="outputs")
SELU_GRAD = _gradient_op("SeluGrad", forward="outputs")
SOFTPLUS_GRAD = _gradient_op("SoftplusGrad")
SOFTSIGN_GRAD = _gradient_op("SoftsignGrad")


def _register(
    op: OpHandle, body: Callable[..., Any], types: Types = FLOATS, *, in_float: bool = False
) -> None:
    @register_kernel(op, types={"T": types}, kind="same_shapes", factory=True)
    def make(*, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
        return with_checked_shapes(op.name, kernel_of_body(body, T, xp, in_float=in_float))


def with_checked_shapes(op: str, kernel: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def backprops(gradients: Any, forward: Any) -> Any:
        check_same_shape(op, gradients, forward)
        return kernel(gradients, forward)

    return backprops


def _is_positive(features: Any, xp: Any) -> Any:
    """Whether an element is above 0; floating point numbers too small to be normal count as 0."""
    is_float = xp.isdtype(features.dtype, "real floating")
    return features >= (float(xp.finfo(features.dtype).smallest_normal) if is_float else 1)


# A factor of 0 or 1, not a choice: an infinite or NaN gradient leaves its trace where Relu is flat.
def relu_grad(gradients: Any, features: Any, *, xp: Any) -> Any:
    return gradients * _is_positive(features, xp)


def relu6_grad(gradients: Any, features: Any, *, xp: Any) -> Any:
    return gradients * (_is_positive(features, xp) & (features < 6))


def elu_grad(gradients: Any, outputs: Any, *, xp: Any) -> Any:
    if xp is np:  # the same; a choice takes ten times as long
        slope = np.fmin(outputs, 0)
        slope += 1
        slope *= gradients
        return slope
    return xp.where(outputs < 0, (outputs + 1) * gradients, gradients)


def selu_grad(gradients: Any, outputs: Any, *, xp: Any) -> Any:
    number = outputs.dtype.type
    if xp is np:  # as in Elu
        below = outputs < 0
        slope = (np.fmin(outputs, 0) + number(_SELU_SCALE_ALPHA)) * below
        slope += np.multiply(~below, number(SELU_SCALE))
        return slope * gradients
    below = gradients * (outputs + number(_SELU_SCALE_ALPHA))
    return xp.where(outputs < 0, below, gradients * number(SELU_SCALE))


def softplus_grad(gradients: Any, features: Any, *, xp: Any) -> Any:
    power = xp.exp(-features)
    power += features.dtype.type(1)
    return gradients / power


def softsign_grad(gradients: Any, features: Any, *, xp: Any) -> Any:
    root = xp.abs(features) + features.dtype.type(1)
    return gradients / (root * root)


_register(RELU_GRAD, relu_grad, REAL_NUMBERS, in_float=True)
_register(RELU6_GRAD, relu6_grad, REAL_NUMBERS, in_float=True)
_register(ELU_GRAD, elu_grad)
_register(SELU_GRAD, selu_grad)
_register(SOFTPLUS_GRAD, softplus_grad)
_register(SOFTSIGN_GRAD, softsign_grad)


@register_kernel(LEAKY_RELU_GRAD, types={"T": REAL_NUMBERS}, kind="same_shapes", factory=True)
def leaky_relu_grad(*, alpha: float, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    slope = float(T.numpy_dtype.type(alpha))

    def body(gradients: Any, features: Any, *, xp: Any) -> Any:
        positive = _is_positive(features, xp)
        if xp is np and 0 <= slope <= 1:  # the same; a choice takes ten times as long
            return gradients * np.maximum(positive, features.dtype.type(slope))
        return xp.where(positive, gradients, gradients * slope)

    return with_checked_shapes(LEAKY_RELU_GRAD.name, kernel_of_body(body, T, xp, in_float=True))


g.register_gradient("Relu")(lambda op, grad: g.nodes.ReluGrad(grad, op.outputs[0]))
g.register_gradient("Relu6")(lambda op, grad: g.nodes.Relu6Grad(grad, op.outputs[0]))


@g.register_gradient("LeakyRelu")
def leaky_relu_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.LeakyReluGrad(grad, op.inputs[0], **g.attrs_of(op, "alpha"))


g.register_gradient("Elu")(lambda op, grad: g.nodes.EluGrad(grad, op.outputs[0]))
g.register_gradient("Selu")(lambda op, grad: g.nodes.SeluGrad(grad, op.outputs[0]))
g.register_gradient("Softplus")(lambda op, grad: g.nodes.Mul(grad, g.nodes.Sigmoid(op.inputs[0])))
g.register_gradient("Softsign")(lambda op, grad: g.nodes.SoftsignGrad(grad, op.inputs[0]))


def _by_slope(name: str, *attrs: str) -> g.GradientFunction:
    """The gradients of `gradients` times a slope of 0, 1 or an attr, which `features` choose."""

    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        features = op.inputs[1]
        again = getattr(g.nodes, name)(grad, features, **g.attrs_of(op, *attrs))
        return again, g.zeros_like(features)

    return gradient


g.register_gradient("ReluGrad")(_by_slope("ReluGrad"))
g.register_gradient("Relu6Grad")(_by_slope("Relu6Grad"))
g.register_gradient("LeakyReluGrad")(_by_slope("LeakyReluGrad", "alpha"))


def _linear_below_zero(name: str) -> g.GradientFunction:
    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        gradients, outputs = op.inputs
        product = g.nodes.Mul(grad, gradients)
        for_outputs = g.nodes.Select(g.nodes.Less(outputs, 0), product, g.zeros_like(outputs))
        return getattr(g.nodes, name)(grad, outputs), for_outputs

    return gradient


g.register_gradient("EluGrad")(_linear_below_zero("EluGrad"))
g.register_gradient("SeluGrad")(_linear_below_zero("SeluGrad"))


@g.register_gradient("SoftplusGrad")
def softplus_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    gradients, x = op.inputs
    both = g.nodes.AddV2(g.nodes.AddV2(g.nodes.Exp(g.nodes.Neg(x)), 2), g.nodes.Exp(x))
    return g.nodes.SoftplusGrad(grad, x), g.nodes.RealDiv(g.nodes.Mul(grad, gradients), both)
