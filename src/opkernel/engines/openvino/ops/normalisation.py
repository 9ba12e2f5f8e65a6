"""Softmax, biases and normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.engines.openvino.layout import hoist_transposes
from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import openvino_op
from opkernel.engines.openvino.ops.activations import ACTIVATIONS
from opkernel.engines.openvino.tensors import ints, permuted, reshaped, scalar, shape_of

__all__ = ["along_channels", "normalised"]


@openvino_op("Softmax", differs_for_non_finite=True)
def softmax(logits: Any) -> Any:
    return opset().softmax(logits, len(shape_of(logits)) - 1)


@openvino_op("LogSoftmax", differs_for_non_finite=True)
def log_softmax(logits: Any) -> Any:
    return opset().log_softmax(logits, len(shape_of(logits)) - 1)


def along_channels(vector: Any, rank: int, axis: int) -> Any:
    """A vector in a shape that is broadcast along an axis."""
    return reshaped(vector, [-1 if at == axis else 1 for at in range(rank)]) if rank > 1 else vector


@openvino_op("BiasAdd")
def bias_add(value: Any, bias: Any, *, data_format: str) -> Any:
    if data_format == "NCHW":
        return opset().add(value, along_channels(bias, len(shape_of(value)), 1))
    return _sum(value, bias)


@hoist_transposes
def _sum(x: Any, y: Any) -> Any:
    return opset().add(x, y).output(0)


@openvino_op("BiasAddV1")
def bias_add_v1(value: Any, bias: Any) -> Any:
    return _sum(value, bias)


def _is_training(*, is_training: bool) -> str:
    return "it is in training" if is_training else ""


def normalised(x: Any, statistics: tuple[Any, Any, Any, Any], epsilon: float) -> Any:
    """A batch whose channels are on axis 1, normalised with scale, offset, mean and variance."""
    return opset().batch_norm_inference(x, *statistics, epsilon).output(0)


@openvino_op("FusedBatchNorm", "FusedBatchNormV2", refuses=_is_training)
def fused_batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *, epsilon: float, data_format: str
) -> Any:
    return _batch_norm(x, (scale, offset, mean, variance), epsilon, data_format)[:5]


@openvino_op("FusedBatchNormV3", refuses=_is_training)
def fused_batch_norm_v3(
    x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *, epsilon: float, data_format: str
) -> Any:
    return _batch_norm(x, (scale, offset, mean, variance), epsilon, data_format)


@openvino_op("_FusedBatchNormEx", refuses=_is_training, differs_for_non_finite=True)
def fused_batch_norm_ex(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    side_input: list[Any],
    *,
    epsilon: float,
    data_format: str,
    activation_mode: str,
) -> Any:
    y, *others = _batch_norm(x, (scale, offset, mean, variance), epsilon, data_format)
    for side in side_input:
        y = _sum(y, side)
    return ACTIVATIONS["" if activation_mode == "Identity" else activation_mode](y, 0), *others


def _batch_norm(
    x: Any, statistics: tuple[Any, Any, Any, Any], epsilon: float, data_format: str
) -> tuple[Any, ...]:
    """The normalised batch, and the mean and the variance, which are given on, twice."""
    rank = len(shape_of(x))
    turned = x
    if data_format[-1] == "C":
        turned = permuted(x, (0, rank - 1, *range(1, rank - 1)))
    y = normalised(turned, statistics, epsilon)
    if data_format[-1] == "C":
        y = permuted(y, (0, *range(2, rank), 1))
    mean, variance = statistics[2:]
    return y, mean, variance, mean, variance, np.zeros((), np.float32)


def _bias_is_not_positive(*, bias: float) -> str:
    return "" if bias > 0 else "its bias is not positive"


@openvino_op("LRN", refuses=_bias_is_not_positive, differs_for_non_finite=True)
def lrn(x: Any, *, depth_radius: int, bias: float, alpha: float, beta: float) -> Any:
    """OpenVINO cuts the bias to an integer, so that it is made 1."""
    size = 2 * depth_radius + 1
    turned = permuted(x, (0, 3, 1, 2))
    made = opset().lrn(turned, ints([1]), alpha / bias * size, beta, 1.0, size)
    if bias != 1:
        made = opset().multiply(made, scalar(bias**-beta))
    return permuted(made.output(0), (0, 2, 3, 1))
