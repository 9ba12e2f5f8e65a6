"""Gradients of moves between space and batch: the move back."""

import opkernel.gradients as g


@g.register_gradient("SpaceToBatch")
def space_to_batch_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.BatchToSpace(grad, op.inputs[1], **g.attrs_of(op, "block_size")), None


@g.register_gradient("BatchToSpace")
def batch_to_space_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SpaceToBatch(grad, op.inputs[1], **g.attrs_of(op, "block_size")), None


@g.register_gradient("SpaceToBatchND")
def space_to_batch_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.BatchToSpaceND(grad, *op.inputs[1:]), None, None


@g.register_gradient("BatchToSpaceND")
def batch_to_space_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SpaceToBatchND(grad, *op.inputs[1:]), None, None
