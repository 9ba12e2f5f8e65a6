"""FusedBatchNormGrad and its versions: gradients of batch normalisation, and gradients of these.

In training the mean and the variance depend on the batch, and the gradient passes through them, too;
in inference they are constants.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/fused_batch_norm_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import fused_batch_norm_grad_shape
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.input_checks import require_equal
from opkernel.ops.nn.batch_norm import (
    IMAGES,
    MIXED_TYPES,
    T_AND_U,
    VOLUMES,
    Channels,
    check_length,
    check_vector,
)
from opkernel.ops.nn.channels_first import ONEDNN_TYPES
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def _declare(
    name: str, types: Sequence[str], data_format: str, signature: str, unused: tuple[int, int]
) -> OpHandle:
    """An op with inputs beside the gradient and the tensor; two of its outputs are not used."""
    u = "U" if len(types) == 2 else "T"
    first, second = unused
    return register_op(
        f"{name}(y_backprop: T, x: T, {signature}) -> x_backprop: T, scale_backprop: {u}, "
        f"offset_backprop: {u}, reserve_space_{first}: {u}, reserve_space_{second}: {u}",
        attrs=[*types, "epsilon: float = 0.0001", data_format, "is_training: bool = true"],
        shape_fn=fused_batch_norm_grad_shape,
        traits="images=ii-:i",
        doc="""The gradient of batch normalisation.

        y_backprop: The gradient by the normalised tensor.
        reserve_space_1: The mean of the batch; in inference that of the population.
        reserve_space_2: The biased variance of the batch; in inference that of the population.
        """,
    )


_STATISTICS = "scale: float, reserve_space_1: U, reserve_space_2: U"

FUSED_BATCH_NORM_GRAD = _declare(
    "FusedBatchNormGrad",
    ["T: {float}"],
    IMAGES,
    "scale: T, reserve_space_1: T, reserve_space_2: T",
    (3, 4),
)
FUSED_BATCH_NORM_GRAD_V2 = _declare("FusedBatchNormGradV2", T_AND_U, IMAGES, _STATISTICS, (3, 4))
FUSED_BATCH_NORM_GRAD_V3 = _declare(
    "FusedBatchNormGradV3", T_AND_U, VOLUMES, f"{_STATISTICS}, reserve_space_3: U", (4, 5)
)


def _gradient(
    *, T: DataType, epsilon: float, data_format: str, is_training: bool, xp: Any
) -> Callable[..., Any]:
    """The third reserve space of V3 is not read: only cuDNN has a use for it."""
    channels = Channels(data_format, xp)
    is_last = channels.format is TensorFormat.NHWC
    takes_inference = is_last or (data_format == "NCHW" and T in ONEDNN_TYPES)

    def kernel(y_backprop: Any, x: Any, scale: Any, mean: Any, variance: Any, *_: Any) -> Any:
        _check(channels, y_backprop, x, scale, mean, variance)
        unused = xp.zeros(0, dtype=scale.dtype)
        if x.size == 0:
            zeros = xp.zeros_like(scale)
            return xp.zeros_like(x), zeros, xp.zeros_like(scale), unused, unused
        if not (is_training or takes_inference):
            raise InvalidArgumentError(
                "The implementation of FusedBatchNormGrad with is_training=False only supports NHWC"
            )
        dy, wide_x = (t.astype(scale.dtype, copy=False) for t in (y_backprop, x))
        inverse_deviation = 1 / xp.sqrt(variance + epsilon)
        centered = wide_x - channels.spread(mean, x)
        offset_backprop = channels.sums(dy)
        products = channels.sums(dy * centered)
        factor = channels.spread(scale * inverse_deviation, x)
        if is_training:
            count = x.size // scale.size
            slope = inverse_deviation * inverse_deviation * (products / count)
            centered *= channels.spread(slope, x)
            dx = dy - channels.spread(offset_backprop / count, x)
            dx -= centered
            dx *= factor
        else:
            dx = dy * factor
        scale_backprop = products * inverse_deviation
        return dx.astype(x.dtype, copy=False), scale_backprop, offset_backprop, unused, unused

    return kernel


def _check(
    channels: Channels, y_backprop: Any, x: Any, scale: Any, mean: Any, variance: Any
) -> None:
    channels.axis(y_backprop)
    count = x.shape[channels.axis(x)]
    vectors = {"scale": scale, "reserve_space_1": mean, "reserve_space_2": variance}
    for name, vector in vectors.items():
        check_vector(name, vector)
    require_equal(
        [*x.shape],
        [*y_backprop.shape],
        "x and y_backprop must have same shape, but x has shape {} and y_backprop has shape {}",
    )
    for name, vector in vectors.items():
        check_length(name, vector, count)


register_kernel(FUSED_BATCH_NORM_GRAD, types={"T": DataType.DT_FLOAT}, factory=True)(_gradient)
register_kernel(
    FUSED_BATCH_NORM_GRAD_V2, FUSED_BATCH_NORM_GRAD_V3, types=MIXED_TYPES, factory=True
)(_gradient)


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
