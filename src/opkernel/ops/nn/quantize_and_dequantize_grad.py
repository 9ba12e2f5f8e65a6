"""QuantizeAndDequantizeV4Grad: the gradient of QuantizeAndDequantizeV4.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/quantize_and_dequantize_op.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def quantize_and_dequantize_grad_shape(c: InferenceContext) -> None:
    """The gradients of the input and of its range, which may have a value for each of `axis`."""
    axis = c.get_attr("axis")
    range_shape = c.merge(c.input(3), c.with_rank(c.input(2), 0 if axis == -1 else 1))
    if axis < -1:
        raise InvalidArgumentError(f"axis should be at least -1, got {axis}")
    if axis != -1:
        values = c.with_rank_at_least(c.input(0), axis + 1)
        c.merge(c.dim(range_shape, 0), c.dim(values, axis))
    c.set_output(0, c.merge(c.input(0), c.input(1)))
    c.set_output(1, range_shape)
    c.set_output(2, range_shape)


QUANTIZE_AND_DEQUANTIZE_V4_GRAD = register_op(
    "QuantizeAndDequantizeV4Grad",
    inputs=["gradients: T", "input: T", "input_min: T", "input_max: T"],
    outputs=["input_backprop: T", "input_min_backprop: T", "input_max_backprop: T"],
    attrs=["T: {bfloat16, half, float, double}", "axis: int = -1"],
    shape_fn=quantize_and_dequantize_grad_shape,
    doc="The gradient where `input` is in its range, 0 elsewhere and for the range.",
)


@register_kernel(
    QUANTIZE_AND_DEQUANTIZE_V4_GRAD,
    device="CPU",
    types={"T": (DataType.DT_FLOAT, DataType.DT_DOUBLE)},
    factory=True,
)
def quantize_and_dequantize_v4_grad(*, axis: int, xp: Any) -> Callable[..., Any]:
    if axis < -1:
        raise InvalidArgumentError(f"Axis must be at least -1. Found {axis}")

    def kernel(gradients: Any, tensor: Any, input_min: Any, input_max: Any) -> Any:
        if gradients.shape != tensor.shape:
            raise InvalidArgumentError("gradient and input must be the same size")
        low, high = (
            _end(name, end, tensor.shape, axis)
            for name, end in (("input_min", input_min), ("input_max", input_max))
        )
        inside = xp.astype((tensor >= low) & (tensor <= high), gradients.dtype)
        return gradients * inside, xp.zeros_like(input_min), xp.zeros_like(input_max)

    return kernel


def _end(name: str, end: Any, shape: tuple[int, ...], axis: int) -> Any:
    """An end of the range, to be broadcast.

    Raises:
        InvalidArgumentError: it is not a scalar, or not one value for each slice along `axis`.
    """
    if axis == -1:
        if end.ndim:
            raise InvalidArgumentError(f"{name} must be a scalar if axis is unspecified")
        return end
    if axis >= len(shape):
        raise InvalidArgumentError(
            f"Axis should be -1 or 0 or a positive value less than {len(shape)} "
            f"but given axis value was {axis}"
        )
    if end.shape != (shape[axis],):
        raise InvalidArgumentError(f"{name} must have one value for each of {shape[axis]} slices")
    return end.reshape([-1 if i == axis else 1 for i in range(len(shape))])


@g.register_gradient("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_v4_grad_gradient(
    op: g.Operation, grad: g.Tensor, *_: g.Tensor
) -> g.Gradients:
    quantized = op.inputs[1:]
    backprop = g.nodes.QuantizeAndDequantizeV4Grad(grad, *quantized, **g.attrs_of(op, "axis"))
    return backprop.input_backprop, None, None, None
