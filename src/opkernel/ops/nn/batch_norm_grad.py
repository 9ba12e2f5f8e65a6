"""FusedBatchNormGrad and its versions: gradients of batch normalisation.

In training the mean and the variance depend on the batch, and the gradient passes through them, too;
in inference they are constants.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/fused_batch_norm_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import fused_batch_norm_grad_shape
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.nn.batch_norm import (
    IMAGES,
    MIXED_TYPES,
    T_AND_U,
    VOLUMES,
    Channels,
    check_length,
    check_vector,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def _declare(
    name: str,
    *,
    types: Sequence[str] = T_AND_U,
    data_format: str = IMAGES,
    reserve_spaces: int = 2,
) -> OpHandle:
    u, scale = ("U", "float") if len(types) == 2 else ("T", "T")
    first_unused = reserve_spaces + 1
    return register_op(
        name,
        inputs=[
            "y_backprop: T",
            "x: T",
            f"scale: {scale}",
            *(f"reserve_space_{i}: {u}" for i in range(1, first_unused)),
        ],
        outputs=[
            "x_backprop: T",
            f"scale_backprop: {u}",
            f"offset_backprop: {u}",
            f"reserve_space_{first_unused}: {u}",
            f"reserve_space_{first_unused + 1}: {u}",
        ],
        attrs=[*types, "epsilon: float = 0.0001", data_format, "is_training: bool = true"],
        shape_fn=fused_batch_norm_grad_shape,
        doc="""The gradient of batch normalisation.

        y_backprop: The gradient by the normalised tensor.
        reserve_space_1: The mean of the batch; in inference that of the population.
        reserve_space_2: The biased variance of the batch; in inference that of the population.
        """,
    )


FUSED_BATCH_NORM_GRAD = _declare("FusedBatchNormGrad", types=["T: {float}"])
FUSED_BATCH_NORM_GRAD_V2 = _declare("FusedBatchNormGradV2")
FUSED_BATCH_NORM_GRAD_V3 = _declare("FusedBatchNormGradV3", data_format=VOLUMES, reserve_spaces=3)


def _gradient(epsilon: float, data_format: str, is_training: bool, xp: Any) -> Callable[..., Any]:
    channels = Channels(data_format, xp)

    def kernel(y_backprop: Any, x: Any, scale: Any, mean: Any, variance: Any) -> Any:
        _check(channels, y_backprop, x, scale, mean, variance)
        unused = xp.zeros(0, dtype=scale.dtype)
        if x.size == 0:
            zeros = xp.zeros_like(scale)
            return xp.zeros_like(x), zeros, xp.zeros_like(scale), unused, unused
        if not is_training and channels.format is not TensorFormat.NHWC:
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
    if x.shape != y_backprop.shape:
        raise InvalidArgumentError(
            f"x and y_backprop must have same shape, but x has shape {list(x.shape)} and "
            f"y_backprop has shape {list(y_backprop.shape)}"
        )
    for name, vector in vectors.items():
        check_length(name, vector, count)


@from_attrs(gradient=_gradient)
def _kernel(*, gradient: Callable[..., Any]) -> Callable[..., Any]:
    return gradient


register_kernel(FUSED_BATCH_NORM_GRAD, types={"T": DataType.DT_FLOAT}, factory=True)(_kernel)
register_kernel(FUSED_BATCH_NORM_GRAD_V2, types=MIXED_TYPES, factory=True)(_kernel)


@register_kernel(FUSED_BATCH_NORM_GRAD_V3, types=MIXED_TYPES, factory=True)
@from_attrs(gradient=_gradient)
def fused_batch_norm_grad_v3(*, gradient: Callable[..., Any]) -> Callable[..., Any]:
    """The third reserve space is not read: only cuDNN has a use for it."""

    def kernel(dy: Any, x: Any, scale: Any, mean: Any, variance: Any, _unused: Any) -> Any:
        return gradient(dy, x, scale, mean, variance)

    return kernel
