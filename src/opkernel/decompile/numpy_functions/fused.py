"""Products and convolutions, fused with the ops after them as TensorFlow's optimisation does."""

from typing import Any

import numpy as np

from opkernel.decompile.numpy_functions.convolution import convolution, depthwise_conv2d
from opkernel.decompile.numpy_functions.elementwise import erf, sigmoid
from opkernel.decompile.numpy_functions.linalg import matmul
from opkernel.decompile.numpy_functions.nn import elu, fused_batch_norm, leaky_relu, relu, relu6

__all__ = ["FUNCTIONS", "NEEDED_ATTRS"]


def gelu(x: Any) -> Any:
    return x * (1 + erf(x * x.dtype.type(np.sqrt(0.5)))) / 2


def gelu_by_tanh(x: Any) -> Any:
    inner = (x + x.dtype.type(0.044715) * x**3) * x.dtype.type(np.sqrt(2 / np.pi))
    return x * (1 + np.tanh(inner)) / 2


def finished(x: Any, args: Any, fused_ops: Any, epsilon: float, alpha: float) -> Any:
    """The result of an op's epilogue for a product and the other inputs."""
    activations: dict[str, Any] = {
        "Elu": elu,
        "GeluApproximate": gelu_by_tanh,
        "GeluExact": gelu,
        "LeakyRelu": lambda y: leaky_relu(y, alpha=alpha),
        "Relu": relu,
        "Relu6": relu6,
        "Sigmoid": sigmoid,
        "Tanh": np.tanh,
    }
    for op in fused_ops:
        if op == "BiasAdd":
            x = x + args[0]
        elif op == "FusedBatchNorm":
            x = fused_batch_norm(x, *args, epsilon=epsilon)[0]
        else:
            x = activations[op](x)
    return x


def fused_matmul(
    a: Any,
    b: Any,
    args: Any,
    *,
    fused_ops: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Any:
    product = matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    return finished(product, args, fused_ops, epsilon, leakyrelu_alpha)


def fused_conv2d(
    x: Any,
    filter: Any,
    args: Any,
    host_args: Any,
    *,
    strides: Any,
    padding: str,
    fused_ops: Any,
    dilations: Any = (1, 1, 1, 1),
    explicit_paddings: Any = (),
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Any:
    y = convolution(
        x,
        filter,
        strides=strides,
        padding=padding,
        dilations=dilations,
        explicit_paddings=explicit_paddings,
    )
    return finished(y, args, fused_ops, epsilon, leakyrelu_alpha)


def fused_depthwise_conv2d(
    x: Any,
    filter: Any,
    args: Any,
    *,
    strides: Any,
    padding: str,
    fused_ops: Any,
    dilations: Any = (1, 1, 1, 1),
    explicit_paddings: Any = (),
    epsilon: float = 1e-4,
    leakyrelu_alpha: float = 0.2,
) -> Any:
    y = depthwise_conv2d(
        x,
        filter,
        strides=strides,
        padding=padding,
        dilations=dilations,
        explicit_paddings=explicit_paddings,
    )
    return finished(y, args, fused_ops, epsilon, leakyrelu_alpha)


FUNCTIONS = {
    "_FusedConv2D": fused_conv2d,
    "_FusedDepthwiseConv2dNative": fused_depthwise_conv2d,
    "_FusedMatMul": fused_matmul,
}

NEEDED_ATTRS: dict[str, dict[str, Any]] = {
    op: {"data_format": "NHWC"} for op in ("_FusedConv2D", "_FusedDepthwiseConv2dNative")
}
