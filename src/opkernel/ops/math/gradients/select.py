"""Gradients of ops that choose between tensors."""

import opkernel.gradients as g
from opkernel.graph import constant


@g.register_gradient("Select")
def select_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    condition, x, _ = op.inputs
    zeros = g.zeros_like(x)
    return None, g.nodes.Select(condition, grad, zeros), g.nodes.Select(condition, zeros, grad)


@g.register_gradient("SelectV2")
def select_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    condition, x, y = op.inputs
    (z,) = op.outputs
    zero = constant(0, grad.dtype)
    for_x, _ = g.sum_to_operands(x, z, g.nodes.SelectV2(condition, grad, zero), None)
    for_y, _ = g.sum_to_operands(y, z, g.nodes.SelectV2(condition, zero, grad), None)
    return None, for_x, for_y


@g.register_gradient("ClipByValue")
def clip_by_value_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, low, high = op.inputs
    zeros = g.zeros_like(grad)
    is_below, is_above = g.nodes.Less(x, low), g.nodes.Greater(x, high)
    is_outside = g.nodes.LogicalOr(is_below, is_above)
    for_x = g.nodes.SelectV2(is_outside, zeros, grad)
    for_low, _ = g.sum_to_operands(low, x, g.nodes.SelectV2(is_below, grad, zeros), None)
    for_high, _ = g.sum_to_operands(high, x, g.nodes.SelectV2(is_above, grad, zeros), None)
    return for_x, for_low, for_high
