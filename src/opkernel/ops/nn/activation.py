"""Activations.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/relu_op_functor.h, softplus_op.h, softsign_op.h.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.kernel_types import FLOATS, REAL_NUMBERS
from opkernel.ops.math.elementwise import POINTWISE, kernel_of_body, register_body
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

__all__ = ["FLOAT_SPEC", "SELU_ALPHA", "SELU_SCALE"]

FLOAT_SPEC = "{half, bfloat16, float, double}"

# Klambauer et al., Self-Normalizing Neural Networks, 2017.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def _activation(
    name: str,
    doc: str,
    types: str = FLOAT_SPEC,
    attrs: Sequence[str] = (),
    traits: str = "",
) -> OpHandle:
    return register_op(
        name,
        inputs=["features: T"],
        outputs=["activations: T"],
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


@register_kernel(RELU, device="CPU", types={"T": REAL_NUMBERS}, kind="elementwise", factory=True)
@cache
def relu(*, T: DataType, xp: Any) -> Callable[[Any], Any]:
    """One call of the namespace's maximum; NaN stays NaN."""
    return partial(xp.maximum, _zero(T) if xp is np else T.numpy_dtype.type(0))


@cache
def _zero(dtype: DataType) -> Any:
    """An array of rank 0: NumPy takes it faster than a number."""
    return np.zeros((), dtype.numpy_dtype)


@register_kernel(RELU6, device="CPU", types={"T": REAL_NUMBERS}, kind="elementwise", factory=True)
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
@register_kernel(
    LEAKY_RELU, device="CPU", types={"T": REAL_NUMBERS}, kind="elementwise", factory=True
)
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
