"""Gradients of reductions."""

import opkernel.gradients as g
from opkernel.ops.math.gradients.reduced_shape import (
    number_reduced,
    positive_axes,
    with_kept_dims,
)


@g.register_gradient("Sum")
def sum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.BroadcastTo(with_kept_dims(op, grad), g.shape_of(op.inputs[0])), None


@g.register_gradient("Mean")
def mean_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    spread, _ = sum_gradient(op, grad)
    number = number_reduced(op)
    if isinstance(number, g.Tensor):
        number = g.nodes.Cast(number, DstT=grad.dtype)
    return g.nodes.RealDiv(spread, number), None


@g.register_gradient("Max", "Min")
def extreme_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Equal elements share the gradient."""
    x, axes = op.inputs
    chosen = g.nodes.Cast(g.nodes.Equal(with_kept_dims(op, op.outputs[0]), x), DstT=grad.dtype)
    number = g.nodes.Sum(chosen, axes, keep_dims=True)
    return g.nodes.Mul(g.nodes.RealDiv(chosen, number), with_kept_dims(op, grad)), None


@g.register_gradient("Prod")
def prod_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Each element's is the product of all others, made without division: there may be zeros.

    The reduced axes are moved to the front and made one, along which products of those before and
    those behind each element are accumulated.
    """
    x, axes = op.inputs
    shape, rank = g.shape_of(x), g.nodes.Rank(x)
    spread = g.nodes.BroadcastTo(with_kept_dims(op, grad), shape)
    reduced = positive_axes(axes, rank)
    others, _ = g.nodes.ListDiff(g.nodes.Range(0, rank, 1), reduced)
    order = g.nodes.ConcatV2([reduced, others], 0)
    moved = g.nodes.Transpose(x, order)
    table = g.nodes.Pack(
        [g.nodes.Prod(g.nodes.GatherV2(shape, part, 0), [0]) for part in (reduced, others)]
    )
    columns = g.nodes.Reshape(moved, table)
    before = g.nodes.Cumprod(columns, 0, exclusive=True)
    behind = g.nodes.Cumprod(columns, 0, exclusive=True, reverse=True)
    rest = g.nodes.Reshape(g.nodes.Mul(g.conj(before), g.conj(behind)), g.nodes.Shape(moved))
    return g.nodes.Mul(spread, g.nodes.Transpose(rest, g.nodes.InvertPermutation(order))), None


@g.register_gradient(
    "EuclideanNorm", not_derivative="it leaves out the conjugates of complex numbers"
)
def euclidean_norm_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    norm, spread = with_kept_dims(op, op.outputs[0]), with_kept_dims(op, grad)
    return g.nodes.Mul(op.inputs[0], g.nodes.RealDiv(spread, norm)), None


@g.register_gradient("L2Loss")
def l2_loss_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Mul(op.inputs[0], grad)
