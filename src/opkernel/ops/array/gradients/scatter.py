"""Gradients of ops that put elements at indices."""

from typing import Any

import opkernel.gradients as g


@g.register_gradient("ScatterNd")
def scatter_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return None, g.nodes.GatherNd(grad, op.inputs[0]), None


@g.register_gradient("ScatterNdNonAliasingAdd", "TensorScatterAdd")
def scatter_add_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return grad, None, g.nodes.GatherNd(grad, op.inputs[1])


@g.register_gradient("TensorScatterSub")
def tensor_scatter_sub_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return grad, None, g.nodes.Neg(g.nodes.GatherNd(grad, op.inputs[1]))


@g.register_gradient(
    "TensorScatterUpdate", not_derivative="an index that is there twice counts twice"
)
def tensor_scatter_update_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, indices, updates = op.inputs
    rest = g.nodes.TensorScatterUpdate(grad, indices, g.zeros_like(updates))
    return rest, None, g.nodes.GatherNd(grad, indices)


@g.register_gradient("TensorScatterMax", "TensorScatterMin")
def tensor_scatter_extreme_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Equal elements share the gradient."""
    x, indices, updates = op.inputs
    policy = g.attrs_of(op, "bad_indices_policy")

    def at_indices(tensor: g.Tensor) -> Any:
        return g.nodes.GatherNd(tensor, indices, **policy)

    result = op.outputs[0]
    is_x = g.nodes.Cast(g.nodes.Equal(x, result), DstT=grad.dtype)
    is_update = g.nodes.Cast(g.nodes.Equal(updates, at_indices(result)), DstT=grad.dtype)
    shape = g.nodes.Shape(x, out_type=indices.dtype)
    number = g.nodes.AddV2(is_x, g.nodes.ScatterNd(indices, is_update, shape, **policy))
    for_x = g.nodes.RealDiv(g.nodes.Mul(grad, is_x), number)
    return for_x, None, g.nodes.Mul(at_indices(g.nodes.RealDiv(grad, number)), is_update)
