"""Gradients of ops that merge the entries of two sparse tensors."""

import opkernel.gradients as g
from opkernel.errors import UnimplementedError


@g.register_gradient("SparseAdd")
def sparse_add_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    found = g.nodes.SparseAddGrad(grads[1], op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, found[0], None, None, found[1], None, None]


@g.register_gradient("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_sparse_extreme_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    raise UnimplementedError(f"{op.type} has no gradient, as in TensorFlow")
