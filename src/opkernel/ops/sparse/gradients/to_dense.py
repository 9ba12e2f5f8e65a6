"""Gradient of SparseToDense."""

from typing import Any

import opkernel.gradients as g


@g.register_gradient("SparseToDense")
def sparse_to_dense_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values = g.nodes.GatherNd(grad, op.inputs[0])
    default = g.nodes.Sub(_total(grad), _total(values))
    return [None, None, values, default]


def _total(tensor: g.Tensor) -> Any:
    return g.nodes.Sum(tensor, g.nodes.Range(0, g.nodes.Rank(tensor), 1))
