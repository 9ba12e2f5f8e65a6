"""Activations; products fuse with these, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.engines.openvino.layout import hoist_transposes
from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.tensors import scalar

__all__ = ["ACTIVATIONS"]


@openvino_op("Relu", differs_for_non_finite=True)
@hoist_transposes
def relu(features: Any) -> Any:
    return opset().relu(features)


@openvino_op("Relu6", differs_for_non_finite=True)
@hoist_transposes
def relu6(features: Any) -> Any:
    return opset().clamp(features, 0.0, 6.0)


@openvino_op("LeakyRelu")
@hoist_transposes
def leaky_relu(features: Any, *, alpha: float) -> Any:
    return opset().prelu(features, scalar(alpha))


@openvino_op("Elu")
@hoist_transposes
def elu(features: Any) -> Any:
    return opset().elu(features, 1.0)


@openvino_op("Selu")
@hoist_transposes
def selu(features: Any) -> Any:
    return opset().selu(features, scalar(1.6732632423543772), scalar(1.0507009873554805))


@openvino_op("Sigmoid")
@hoist_transposes
def sigmoid(x: Any) -> Any:
    return opset().sigmoid(x)


@openvino_op("Softplus")
@hoist_transposes
def softplus(features: Any) -> Any:
    return opset().softplus(features)


@openvino_op("Softsign")
@hoist_transposes
def softsign(features: Any) -> Any:
    return opset().softsign(features)


ACTIVATIONS: dict[str, Callable[[Any, float], Any]] = {
    "": lambda x, _: x,
    "Relu": lambda x, _: relu(x),
    "Relu6": lambda x, _: relu6(x),
    "Elu": lambda x, _: elu(x),
    "LeakyRelu": lambda x, alpha: leaky_relu(x, alpha=alpha),
    "Tanh": lambda x, _: opset().tanh(x),
    "Sigmoid": lambda x, _: sigmoid(x),
    "GeluExact": lambda x, _: opset().gelu(x, "erf"),
    "GeluApproximate": lambda x, _: opset().gelu(x, "tanh"),
}
"""What fused ops name, as a function of a tensor and the slope of LeakyRelu below 0."""
