"""Bias: a vector added along the channels, and its gradient.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/bias_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import register_kernel
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import bias_add_grad_shape, bias_add_shape
from opkernel.ops.kernel_types import NUMBERS
from opkernel.types import DataType

_DATA_FORMAT = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_NARROW = (DataType.DT_BFLOAT16, DataType.DT_HALF)

BIAS_ADD = register_op(
    "BiasAdd",
    inputs=["value: T", "bias: T"],
    outputs=["output: T"],
    attrs=["T: numbertype", _DATA_FORMAT],
    shape_fn=bias_add_shape,
    doc="`value` plus the vector `bias` along the last dimension, for NCHW along the second.",
)

BIAS_ADD_V1 = register_op(
    "BiasAddV1",
    inputs=["value: T", "bias: T"],
    outputs=["output: T"],
    attrs=["T: numbertype"],
    shape_fn=bias_add_shape,
    doc="`value` plus the vector `bias` along the last dimension.",
)

BIAS_ADD_GRAD = register_op(
    "BiasAddGrad",
    inputs=["out_backprop: T"],
    outputs=["output: T"],
    attrs=["T: numbertype", _DATA_FORMAT],
    shape_fn=bias_add_grad_shape,
    doc="The sums of `out_backprop` for each channel: the gradient of BiasAdd by its bias.",
)


@register_kernel(
    BIAS_ADD, device="CPU", types={"T": NUMBERS}, kind="elementwise", factory=True
)
def bias_add(*, data_format: str, xp: Any) -> Callable[[Any, Any], Any]:
    return _channels_first(xp) if data_format == "NCHW" else _channels_last(xp)


@register_kernel(BIAS_ADD_V1, device="CPU", types={"T": NUMBERS}, kind="elementwise", factory=True)
def bias_add_v1(*, xp: Any) -> Callable[[Any, Any], Any]:
    return _channels_last(xp)


def _channels_last(xp: Any) -> Callable[[Any, Any], Any]:
    add = xp.add

    def biased(value: Any, bias: Any) -> Any:
        if value.ndim < 2 or value.shape[-1:] != bias.shape:
            _refuse(value, bias, -1)
        return add(value, bias)

    return biased


def _channels_first(xp: Any) -> Callable[[Any, Any], Any]:
    def biased(value: Any, bias: Any) -> Any:
        if value.ndim < 2 or value.shape[1:2] != bias.shape:
            _refuse(value, bias, 1)
        return xp.add(value, bias.reshape(-1, *(1,) * (value.ndim - 2)))

    return biased


def _refuse(value: Any, bias: Any, axis: int) -> None:
    """Raise the InvalidArgumentError for a value and a bias that do not fit."""
    if value.ndim < 2:
        raise InvalidArgumentError(f"Input tensor must be at least 2D: {list(value.shape)}")
    if bias.ndim != 1:
        raise InvalidArgumentError(f"Biases must be 1D: {list(bias.shape)}")
    raise InvalidArgumentError(
        f"Must provide as many biases as dimension {axis} of the input tensor: "
        f"{list(bias.shape)} vs. {list(value.shape)}"
    )


@register_kernel(BIAS_ADD_GRAD, device="CPU", types={"T": NUMBERS}, factory=True)
def bias_add_grad(*, data_format: str, T: DataType, xp: Any) -> Callable[[Any], Any]:
    """The types half and bfloat16 accumulate in float; integers wrap around."""
    accumulator = np.dtype(np.float32) if T in _NARROW else T.numpy_dtype

    def sums(out_backprop: Any) -> Any:
        rank = out_backprop.ndim
        if rank < 2:
            shape = list(out_backprop.shape)
            raise InvalidArgumentError(f"Input tensor must be at least 2D: {shape}")
        axes = (0, *range(2, rank)) if data_format == "NCHW" else tuple(range(rank - 1))
        return xp.sum(out_backprop, axis=axes, dtype=accumulator).astype(T.numpy_dtype)

    return sums
