"""Gradients of the gradients of batch normalization: those of the formula, written out."""

from collections.abc import Sequence
from typing import Any

import opkernel.gradients as g
from opkernel.types import DataType


@g.register_gradient(
    "FusedBatchNormGrad",
    "FusedBatchNormGradV2",
    "FusedBatchNormGradV3",
    not_derivative="mean and variance count as those of x",
)
def fused_batch_norm_grad_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    """Mean and variance, which the op is given in inference, count as constant."""
    inputs = list(op.inputs[:5])
    found = _written_out(inputs, **g.attrs_of(op, "epsilon", "data_format", "is_training"))
    back = g.gradients(found, inputs[:3], list(grads[:3]))
    return [*back, *[None] * (len(op.inputs) - 3)]


def _written_out(
    inputs: Sequence[g.Tensor], *, epsilon: float, data_format: bytes, is_training: bool
) -> list[Any]:
    """The gradients of batch normalization by its input, scale and offset, in small steps.

    Args:
        inputs: The gradient of the output, the input, the scale, and the mean and the variance,
            which count in inference alone.
        epsilon: Is added to the variance.
        data_format: Where the channels are.
        is_training: Whether mean and variance are those of the input.
    """
    grad, x, scale, mean, variance = inputs
    rank = len(data_format)
    axes = list(range(rank - 1)) if data_format.endswith(b"C") else [0, *range(2, rank)]
    along = [1] * rank
    along[1 if axes[-1] == rank - 1 else rank - 1] = -1
    wide_grad, wide_x = (g.nodes.Cast(t, DstT=DataType.DT_FLOAT) for t in (grad, x))
    wide_scale = g.nodes.Reshape(scale, along)
    if is_training:
        center = g.nodes.Mean(wide_x, axes, keep_dims=True)
        centered = g.nodes.Sub(wide_x, center)
        spread = g.nodes.Mean(g.nodes.Square(centered), axes, keep_dims=True)
    else:
        centered = g.nodes.Sub(wide_x, g.nodes.Reshape(mean, along))
        spread = g.nodes.Reshape(variance, along)
    inverse = g.nodes.Rsqrt(g.nodes.AddV2(spread, epsilon))
    products = g.nodes.Mul(wide_grad, centered)
    rest = wide_grad
    if is_training:
        slope = g.nodes.Mul(g.nodes.Square(inverse), g.nodes.Mean(products, axes, keep_dims=True))
        rest = g.nodes.Sub(rest, g.nodes.Mean(wide_grad, axes, keep_dims=True))
        rest = g.nodes.Sub(rest, g.nodes.Mul(centered, slope))
    by_x = g.nodes.Cast(g.nodes.Mul(g.nodes.Mul(wide_scale, inverse), rest), DstT=x.dtype)
    by_scale = g.nodes.Sum(g.nodes.Mul(products, inverse), axes)
    return [by_x, by_scale, g.nodes.Sum(wide_grad, axes)]
