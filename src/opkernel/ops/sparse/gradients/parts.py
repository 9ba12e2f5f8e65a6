"""Gradient of SparseSlice."""

import opkernel.gradients as g


@g.register_gradient("SparseSlice")
def sparse_slice_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    found = g.nodes.SparseSliceGrad(grads[1], op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, found, None, None, None]
