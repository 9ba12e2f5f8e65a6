"""Gradient of SparseFillEmptyRows."""

import opkernel.gradients as g


@g.register_gradient("SparseFillEmptyRows")
def sparse_fill_empty_rows_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    values, default = g.nodes.SparseFillEmptyRowsGrad(op.outputs[3], grads[1])
    return [None, values, None, default]
