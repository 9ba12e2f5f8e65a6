"""The way back from broadcasting: gradients summed to the shapes of the operands.

Source: SmartBroadcastGradientArgs of TensorFlow python/ops/math_grad.py.
"""

from __future__ import annotations

from opkernel.gradients.indexed_slices import Gradient
from opkernel.gradients.node_methods import nodes
from opkernel.gradients.tensors import shape_of
from opkernel.graph import Tensor


def sum_to_operands(
    x: Tensor, y: Tensor, grad_x: Gradient | None, grad_y: Gradient | None
) -> tuple[Gradient | None, Gradient | None]:
    """The gradients of two operands, from gradients of the shape that they broadcast to.

    Args:
        x: the one operand.
        y: the other.
        grad_x: the gradient of `x` before summing; None stays None.
        grad_y: that of `y`.
    """
    axes = _reduced_axes(x, y)
    if axes is not None:
        return _summed_along(axes[0], grad_x, x, y), _summed_along(axes[1], grad_y, y, x)
    shapes = shape_of(x), shape_of(y)
    over_x, over_y = nodes.BroadcastGradientArgs(*shapes)
    return _summed(grad_x, over_x, shapes[0]), _summed(grad_y, over_y, shapes[1])


def _summed(gradient: Gradient | None, axes: Tensor, shape: Tensor) -> Gradient | None:
    return (
        None
        if gradient is None
        else nodes.Reshape(nodes.Sum(gradient, axes, keep_dims=True), shape)
    )


def _summed_along(
    axes: list[int], gradient: Gradient | None, operand: Tensor, other: Tensor
) -> Gradient | None:
    """As `_summed`, for axes that are known: first those that the operand lacks."""
    if gradient is None or not axes:
        return gradient
    lacking = max(0, len(other.shape) - len(operand.shape))
    if lacking == len(axes):
        total: Gradient = nodes.Sum(gradient, axes)
        return total
    total = nodes.Sum(gradient, axes, keep_dims=True)
    return nodes.Reshape(total, shape_of(operand)) if lacking else total


def _reduced_axes(x: Tensor, y: Tensor) -> tuple[list[int], list[int]] | None:
    """The axes along which each operand was repeated; None where only the values will tell.

    An axis of size 1 may be among them if nothing is known of the other operand: the sum along it
    changes nothing.
    """
    x_dims, y_dims = x.shape.dims, y.shape.dims
    if x_dims is None or y_dims is None:
        return None
    rank = max(len(x_dims), len(y_dims))
    x_sizes, y_sizes = _padded(x_dims, rank), _padded(y_dims, rank)
    pairs = list(zip(x_sizes, y_sizes, strict=True))
    if any(None in pair and 1 not in pair for pair in pairs):
        return None
    return (
        [i for i, (a, b) in enumerate(pairs) if i < rank - len(x_dims) or a == 1 != b],
        [i for i, (a, b) in enumerate(pairs) if i < rank - len(y_dims) or b == 1 != a],
    )


def _padded(dims: tuple[int | None, ...], rank: int) -> tuple[int | None, ...]:
    """The sizes of a shape that is given further axes in front."""
    return (1,) * (rank - len(dims)) + dims
