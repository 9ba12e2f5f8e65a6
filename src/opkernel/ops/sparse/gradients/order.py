"""Gradient of SparseReorder."""

import opkernel.gradients as g


@g.register_gradient("SparseReorder")
def sparse_reorder_gradient(op: g.Operation, _: g.Tensor, grad: g.Tensor) -> g.Gradients:
    indices, _, shape = op.inputs
    count = g.nodes.Size(op.inputs[1])
    _, places = g.nodes.SparseReorder(indices, g.nodes.Range(0, count, 1), shape)
    return [None, g.nodes.GatherV2(grad, g.nodes.InvertPermutation(places), 0), None]
