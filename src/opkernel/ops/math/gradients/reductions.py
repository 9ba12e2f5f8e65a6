"""Gradients of reductions.

The shape of a reduction's result with its axes kept, which gradients need.
"""

from typing import Any

import opkernel.gradients as g
from opkernel.graph import constant
from opkernel.types import DataType


def kept_dims_shape(op: g.Operation) -> Any:
    """The shape of the input of a reduction, with size 1 along the axes that were reduced."""
    x, axes = op.inputs
    dims, known_axes = x.shape.dims, g.constant_value(axes)
    if dims is not None and known_axes is not None:
        reduced = {int(axis) % len(dims) for axis in known_axes.reshape(-1)}
        kept = [1 if axis in reduced else size for axis, size in enumerate(dims)]
        if None not in kept:
            return constant(kept, DataType.DT_INT32)
    rank = g.nodes.Rank(x)
    sizes = g.nodes.Shape(x)
    reduced_axes = positive_axes(axes, rank)
    ones = g.nodes.Fill(g.nodes.Shape(reduced_axes), 1)
    return g.nodes.DynamicStitch([g.nodes.Range(0, rank, 1), reduced_axes], [sizes, ones])


def positive_axes(axes: g.Tensor, rank: g.Tensor) -> Any:
    """The axes as a vector of int32, counted from the front."""
    flat = g.nodes.Reshape(axes, [-1])
    if flat.dtype != DataType.DT_INT32:
        flat = g.nodes.Cast(flat, DstT=DataType.DT_INT32)
    return g.nodes.FloorMod(g.nodes.AddV2(flat, rank), rank)


def with_kept_dims(op: g.Operation, tensor: g.Tensor) -> Any:
    """A tensor of the shape of a reduction's result, with size 1 along the reduced axes."""
    return tensor if op.get_attr("keep_dims") else g.nodes.Reshape(tensor, kept_dims_shape(op))


def number_reduced(op: g.Operation) -> Any:
    """How many elements make one of the result, as an int or a scalar of int32."""
    before, after = op.inputs[0].shape, op.outputs[0].shape
    if before.is_fully_defined() and after.is_fully_defined():
        return (before.num_elements() or 0) // max(after.num_elements() or 0, 1)
    size, results = g.nodes.Size(op.inputs[0]), g.nodes.Size(op.outputs[0])
    return g.nodes.FloorDiv(size, g.nodes.Maximum(results, 1))


def input_shape(op: g.Operation) -> g.Tensor:
    """The shape of the reduced tensor."""
    return g.shape_of(op.inputs[0])


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
