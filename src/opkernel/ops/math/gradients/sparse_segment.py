"""Gradients of reductions of segments of rows that indices choose."""

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g


def _gradient(dense: Callable[..., Any], sparse: Callable[..., Any]) -> g.GradientFunction:
    """The gradient function of a reduction, from the ops that give it whole and as rows."""

    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        data, indices, segment_ids, *others = op.inputs
        shape = g.nodes.Shape(data)
        rows = g.nodes.StridedSlice(shape, [0], [1], [1], shrink_axis_mask=1)
        constants = [None] * (2 + len(others))
        if not op.get_attr("sparse_gradient"):
            return [dense(grad, indices, segment_ids, rows), *constants]
        values, used = sparse(grad, indices, segment_ids, rows)
        return [g.IndexedSlices(values, used, shape), *constants]

    return gradient


for _name in ("Sum", "Mean", "SqrtN"):
    _dense = getattr(g.nodes, f"SparseSegment{_name}Grad")
    _sparse = getattr(g.nodes, f"SparseSegment{_name}GradV2")
    g.register_gradient(f"SparseSegment{_name}", f"SparseSegment{_name}WithNumSegments")(
        _gradient(_dense, _sparse)
    )
