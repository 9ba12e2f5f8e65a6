"""Activations, norms, losses, and products fused with the ops after them, as plain NumPy functions."""

from typing import Any

import numpy as np

from opkernel.decompile.numpy_functions.convolutions_pools_images import (
    convolution,
    depthwise_conv2d,
)
from opkernel.decompile.numpy_functions.elementwise import erf, sigmoid
from opkernel.decompile.numpy_functions.linalg import matmul

__all__ = ["FUNCTIONS", "NEEDED_ATTRS"]


def bias_add(value: Any, bias: Any, *, data_format: str = "NHWC") -> Any:
    if data_format == "NCHW":
        bias = bias.reshape(-1, *[1] * (value.ndim - 2))
    return value + bias


def bias_add_grad(gradient: Any, *, data_format: str = "NHWC") -> Any:
    channels = 1 if data_format == "NCHW" else gradient.ndim - 1
    others = tuple(a for a in range(gradient.ndim) if a != channels)
    return np.sum(gradient, others, gradient.dtype)


def relu(x: Any) -> Any:
    return np.maximum(x, x.dtype.type(0))


def relu6(x: Any) -> Any:
    return np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(6))


def leaky_relu(x: Any, *, alpha: float = 0.2) -> Any:
    return np.where(x > 0, x, x * x.dtype.type(alpha))


def elu(x: Any) -> Any:
    return np.maximum(x, 0) + np.expm1(np.minimum(x, 0))


def selu(x: Any) -> Any:
    scale, alpha = x.dtype.type(1.0507009873554805), x.dtype.type(1.6732632423543772)
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def softplus(x: Any) -> Any:
    return np.logaddexp(x, x.dtype.type(0))


def softsign(x: Any) -> Any:
    return x / (1 + np.abs(x))


def relu_grad(gradient: Any, x: Any) -> Any:
    return gradient * (x > 0)


def relu6_grad(gradient: Any, x: Any) -> Any:
    return gradient * ((x > 0) & (x < 6))


def leaky_relu_grad(gradient: Any, x: Any, *, alpha: float = 0.2) -> Any:
    return np.where(x > 0, gradient, gradient * x.dtype.type(alpha))


def elu_grad(gradient: Any, y: Any) -> Any:
    return np.where(y < 0, gradient * (y + 1), gradient)


def selu_grad(gradient: Any, y: Any) -> Any:
    scale, alpha = y.dtype.type(1.0507009873554805), y.dtype.type(1.7580993408473766)
    return gradient * np.where(y < 0, y + alpha, scale)


def softplus_grad(gradient: Any, x: Any) -> Any:
    return gradient / (1 + np.exp(-x))


def softsign_grad(gradient: Any, x: Any) -> Any:
    return gradient / np.square(1 + np.abs(x))


def softmax(logits: Any) -> Any:
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def log_softmax(logits: Any) -> Any:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The losses of rows, and the gradient of their sum."""
    logits, labels = np.broadcast_arrays(logits, labels)
    return -(labels * log_softmax(logits)).sum(axis=-1), softmax(logits) - labels


def sparse_cross_entropy(logits: Any, labels: Any) -> Any:
    """The losses of rows with known classes, and the gradient of their sum."""
    rows, gradient = np.arange(len(labels)), softmax(logits)
    gradient[rows, labels] -= 1
    return -log_softmax(logits)[rows, labels], gradient


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
) -> Any:
    factor = scale / np.sqrt(variance + variance.dtype.type(epsilon))
    shape = (-1, *[1] * (x.ndim - 2)) if data_format.startswith("NC") else (-1,)
    y = (x - mean.reshape(shape)) * factor.reshape(shape) + offset.reshape(shape)
    return y.astype(x.dtype), mean, variance, mean, variance


def fused_batch_norm_v3(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
) -> Any:
    outputs = fused_batch_norm(
        x, scale, offset, mean, variance, epsilon=epsilon, data_format=data_format
    )
    return *outputs, np.zeros((), np.float32)


def local_response_normalization(
    x: Any, *, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5
) -> Any:
    squares = np.pad(x * x, [(0, 0), (0, 0), (0, 0), (depth_radius, depth_radius)])
    windows = np.lib.stride_tricks.sliding_window_view(squares, 2 * depth_radius + 1, axis=3)
    return x / (bias + alpha * windows.sum(axis=-1)) ** x.dtype.type(beta)


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
    attrs = {"strides": strides, "padding": padding, "dilations": dilations}
    y = convolution(x, filter, explicit_paddings=explicit_paddings, **attrs)
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
    attrs = {"strides": strides, "padding": padding, "dilations": dilations}
    y = depthwise_conv2d(x, filter, explicit_paddings=explicit_paddings, **attrs)
    return finished(y, args, fused_ops, epsilon, leakyrelu_alpha)


FUNCTIONS = {
    "_FusedConv2D": fused_conv2d,
    "_FusedDepthwiseConv2dNative": fused_depthwise_conv2d,
    "_FusedMatMul": fused_matmul,
    "BiasAddV1": bias_add,
    "FusedBatchNormV2": fused_batch_norm,
    "LRN": local_response_normalization,
    "SoftmaxCrossEntropyWithLogits": cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": sparse_cross_entropy,
}

NEEDED_ATTRS: dict[str, dict[str, Any]] = {
    "FusedBatchNorm": {"is_training": False},
    "FusedBatchNormV2": {"is_training": False},
    "FusedBatchNormV3": {"is_training": False},
    "_FusedConv2D": {"data_format": "NHWC"},
    "_FusedDepthwiseConv2dNative": {"data_format": "NHWC"},
}
