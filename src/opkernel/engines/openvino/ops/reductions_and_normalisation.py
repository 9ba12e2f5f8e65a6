"""Softmax, biases and normalisations; and reductions over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import opset
from opkernel.engines.openvino.op_rule import BOOL, openvino_op
from opkernel.engines.openvino.ops.elementwise import ACTIVATIONS
from opkernel.engines.openvino.tensors import (
    Shapes,
    hoist_transposes,
    ints,
    permuted,
    reshaped,
    scalar,
    shape_of,
    unpermuted,
)
from opkernel.ops.math.reductions import reduction_axes

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


@openvino_op("BiasAddV1")
@hoist_transposes
def _sum(x: Any, y: Any) -> Any:
    return opset().add(x, y).output(0)


def _is_training(*, is_training: bool) -> str:
    return "it is in training" if is_training else ""


def normalised(x: Any, statistics: tuple[Any, Any, Any, Any], epsilon: float) -> Any:
    """A batch whose channels are on axis 1, normalised with scale, offset, mean and variance."""
    return opset().batch_norm_inference(x, *statistics, epsilon).output(0)


@openvino_op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", refuses=_is_training)
def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float,
    data_format: str,
    output_shapes: Shapes,
) -> Any:
    made = _batch_norm(x, (scale, offset, mean, variance), epsilon, data_format)
    return made[: len(output_shapes)]


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


def _reduces(name: str, of_nothing: Any) -> Callable[..., Any]:
    """The builder that calls a function of the opset; and what a reduction of no elements gives."""

    def build(x: Any, axes: Any, *, keep_dims: bool, output_shapes: Shapes) -> Any:
        found = reduction_axes(axes, len(shape_of(x)))
        if 0 in shape_of(x):
            return np.full(output_shapes[0], of_nothing)
        return _reduced(getattr(opset(), name), x, found, keep_dims) if found else x

    return build


def _reduced(reduce: Callable[..., Any], x: Any, axes: tuple[int, ...], keep_dims: bool) -> Any:
    """The reduction of what is not turned yet, with what is left turned after it."""
    x, order = unpermuted(x)
    made = reduce(x, ints([order[axis] for axis in axes]), keep_dims).output(0)
    left = [at for axis, at in enumerate(order) if keep_dims or axis not in axes]
    return permuted(made, [sorted(left).index(at) for at in left])


def _register(op: str, name: str, of_nothing: Any, **options: Any) -> None:
    register = openvino_op(op, constants=["reduction_indices"], takes_empty=True, **options)
    register(_reduces(name, of_nothing))


_BOOLS = {"input": BOOL, "output": BOOL}

_register("All", "reduce_logical_and", np.True_, types=_BOOLS)
_register("Any", "reduce_logical_or", np.False_, types=_BOOLS)
_register("Max", "reduce_max", np.float32(-np.inf), differs_for_non_finite=True)
_register("Mean", "reduce_mean", np.float32(np.nan))
_register("Min", "reduce_min", np.float32(np.inf), differs_for_non_finite=True)
_register("Prod", "reduce_prod", np.float32(1))
_register("Sum", "reduce_sum", np.float32(0))


@openvino_op("EuclideanNorm", constants=["reduction_indices"], takes_empty=True)
def euclidean_norm(x: Any, axes: Any, *, keep_dims: bool, output_shapes: Shapes) -> Any:
    if not axes.size:
        return opset().absolute(x)
    build = _reduces("reduce_l2", np.float32(0))
    return build(x, axes, keep_dims=keep_dims, output_shapes=output_shapes)


@openvino_op("L2Loss", takes_empty=True)
def l2_loss(t: Any) -> Any:
    if 0 in shape_of(t):
        return np.zeros((), np.float32)
    axes = ints(range(len(shape_of(t))))
    return opset().multiply(opset().reduce_sum(opset().multiply(t, t), axes), scalar(0.5))
