"""Gradients of batch normalization."""

from typing import Any

import opkernel.gradients as g

_TO_CHANNELS_LAST = {b"NCHW": [0, 2, 3, 1], b"NCDHW": [0, 2, 3, 4, 1]}
_TO_CHANNELS_FIRST = {b"NCHW": [0, 3, 1, 2], b"NCDHW": [0, 4, 1, 2, 3]}
_CHANNELS_LAST = {b"NCHW": b"NHWC", b"NCDHW": b"NDHWC"}


@g.register_gradient("FusedBatchNorm", not_derivative="it is that of y alone")
def fused_batch_norm_gradient(op: g.Operation, grad: g.Tensor, *_: Any) -> g.Gradients:
    return _gradients(op, grad, g.nodes.FusedBatchNormGrad)


@g.register_gradient("FusedBatchNormV2", not_derivative="it is that of y alone")
def fused_batch_norm_v2_gradient(op: g.Operation, grad: g.Tensor, *_: Any) -> g.Gradients:
    return _gradients(op, grad, g.nodes.FusedBatchNormGradV2)


@g.register_gradient("FusedBatchNormV3", not_derivative="it is that of y alone")
def fused_batch_norm_v3_gradient(op: g.Operation, grad: g.Tensor, *_: Any) -> g.Gradients:
    return _gradients(op, grad, g.nodes.FusedBatchNormGradV3, op.outputs[5])


def _gradients(
    op: g.Operation, grad: g.Tensor, normalize_back: Any, *reserved: g.Tensor
) -> g.Gradients:
    """The gradients of the input, the scale and the offset.

    In inference the op that gives them takes channels last alone.
    """
    x, scale, _, mean, variance = op.inputs
    attrs = g.attrs_of(op, "epsilon", "data_format", "is_training")
    layout = attrs["data_format"]
    if attrs["is_training"]:
        saved = op.outputs[3:5]
        found = normalize_back(grad, x, scale, *saved, *reserved, **attrs)
        return [*found[:3], None, None]
    if layout in _CHANNELS_LAST:
        attrs["data_format"] = _CHANNELS_LAST[layout]
        grad, x = (g.nodes.Transpose(tensor, _TO_CHANNELS_LAST[layout]) for tensor in (grad, x))
    for_x, *others = normalize_back(grad, x, scale, mean, variance, *reserved, **attrs)[:3]
    if layout in _CHANNELS_LAST:
        for_x = g.nodes.Transpose(for_x, _TO_CHANNELS_FIRST[layout])
    return [for_x, *others, None, None]
