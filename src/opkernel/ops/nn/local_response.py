"""Local response normalisation: each channel damped by the squares of its neighbours.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/lrn_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank
from opkernel.ops.input_checks import require, require_rank
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_ATTRS = [
    "depth_radius: int = 5",
    "bias: float = 1.0",
    "alpha: float = 1.0",
    "beta: float = 0.5",
    "T: {half, bfloat16, float} = DT_FLOAT",
]
_TYPES = {"T": (DataType.DT_HALF, DataType.DT_FLOAT)}
_MAX_INT = 2**31 - 1

LRN = register_op(
    "LRN(input: T) -> output: T",
    attrs=_ATTRS,
    shape_fn=unchanged_shape_with_rank(4),
    doc="""input / (bias + alpha * sum(input ** 2)) ** beta.

    The sum is over the channels that are at most `depth_radius` away.
    """,
)


def lrn_grad_shape(c: InferenceContext) -> None:
    """All three inputs, of rank 4, have one shape."""
    shape = c.with_rank(c.input(0), 4)
    shape = c.merge(shape, c.input(1))
    c.set_output(0, c.merge(shape, c.input(2)))


LRN_GRAD = register_op(
    "LRNGrad(input_grads: T, input_image: T, output_image: T) -> output: T",
    attrs=_ATTRS,
    shape_fn=lrn_grad_shape,
    doc="The gradient of LRN, from that of its result, its input and its result.",
)


def _check_radius(radius: int) -> None:
    if not 0 <= radius < _MAX_INT:
        raise InvalidArgumentError(f"depth_radius = {radius} larger than int max, or negative")


def _near(depth: int, radius: int, xp: Any) -> Any:
    """The matrix that says which channels are near each other."""
    channel = xp.arange(depth)
    near = xp.abs(channel[:, None] - channel[None, :]) <= min(radius, depth)
    return near.astype(np.float32)


@register_kernel(LRN, types=_TYPES, factory=True)
def lrn(
    *, depth_radius: int, bias: float, alpha: float, beta: float, xp: Any
) -> Callable[[Any], Any]:
    """The sums are a matrix product: one infinite channel makes all others of its place NaN.

    Each step is rounded to the type of the image: in half, squares beyond 65504 are infinite.
    """
    _check_radius(depth_radius)

    def kernel(image: Any) -> Any:
        require_rank(image, 4, "in must be 4-dimensional, got {}")
        squares = (image * image).astype(np.float32, copy=False)
        sums = xp.matmul(squares, _near(image.shape[-1], depth_radius, xp))
        norm = sums.astype(image.dtype, copy=False) * alpha + bias
        return image * _power(norm, -beta, xp)

    return kernel


def _power(norm: Any, exponent: float, xp: Any) -> Any:
    """A power; NaN for -inf, as for other negative numbers, unless the exponent is whole."""
    if exponent == 0:  # there by a logarithm: NaN for 0 and infinities, too
        return xp.where(xp.isfinite(norm) & (norm > 0), norm.dtype.type(1), norm.dtype.type(np.nan))
    power = norm**exponent
    return power if exponent.is_integer() else xp.where(norm < 0, norm.dtype.type(np.nan), power)


@register_kernel(LRN_GRAD, types=_TYPES, factory=True)
def lrn_grad(
    *, depth_radius: int, bias: float, alpha: float, beta: float, xp: Any
) -> Callable[[Any, Any, Any], Any]:
    _check_radius(depth_radius)

    def neighbours(x: Any) -> range:
        reach = min(depth_radius, x.shape[-1] - 1)
        return range(-reach, reach + 1)

    def kernel(input_grads: Any, input_image: Any, output_image: Any) -> Any:
        _check_images(input_grads, input_image, output_image)
        if input_grads.size == 0:
            return xp.zeros_like(input_grads)
        squares = input_image * input_image
        norm = (
            sum(_shifted(squares, d, 0, xp) for d in in_time(neighbours(squares), SLOW)) * alpha
            + bias
        )
        power = norm**-beta
        number = input_image.dtype.type
        damping = output_image * (number(-2) * number(alpha) * number(beta))
        total = xp.zeros_like(input_grads)
        for d in in_time(neighbours(input_image), SLOW):
            slope = _shifted(damping, d, 0, xp) * input_image / _shifted(norm, d, 1, xp)
            slope = slope + power if d == 0 else slope
            grads = _shifted(input_grads, d, 0, xp)
            total = total + xp.where(grads == 0, grads, slope * grads)
        return total

    return kernel


def _shifted(x: Any, distance: int, fill: float, xp: Any) -> Any:
    """In each channel, the value of the channel `distance` further on, or `fill` beyond the last one."""
    if distance == 0:
        return x
    padding = xp.full((*x.shape[:-1], abs(distance)), fill, dtype=x.dtype)
    parts = [x[..., distance:], padding] if distance > 0 else [padding, x[..., :distance]]
    return xp.concatenate(parts, axis=-1)


def _check_images(input_grads: Any, input_image: Any, output_image: Any) -> None:
    require(input_grads.ndim == 4 and input_image.ndim == 4, "inputs must be 4-dimensional")
    if not input_grads.shape == input_image.shape == output_image.shape:
        raise InvalidArgumentError(
            "input_grads, input_image, and out_image should have the same shape, got "
            f"{list(input_grads.shape)}, {list(input_image.shape)} and {list(output_image.shape)}"
        )


@g.register_gradient("LRN")
def lrn_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    attrs = g.attrs_of(op, "depth_radius", "bias", "alpha", "beta")
    return g.nodes.LRNGrad(grad, op.inputs[0], op.outputs[0], **attrs)
