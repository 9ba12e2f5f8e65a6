"""Shapes of ops on sparse tensors: the three tensors indices [n, r], values [n] and shape [r].

Source: TensorFlow core/ops/sparse_ops.cc, data_flow_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
)
from opkernel.ops.declared.rules import (
    set_outputs,
)


def _dense_count(c: InferenceContext) -> None:
    values, weights = c.input(0), c.input(1)
    if c.num_elements(weights).value != 0:
        values = c.merge(weights, values)
    _set_counts(c, c.rank(values))


def _sparse_count(c: InferenceContext) -> None:
    rank = c.dim(c.with_rank(c.input(0), 2), 1)
    set_outputs(c, [c.matrix(None, rank), c.vector(None), c.vector(rank)])


def _ragged_count(c: InferenceContext) -> None:
    rank = c.rank(c.input(1))
    _set_counts(c, rank + 1 if c.rank_known(c.input(1)) else rank)


def _set_counts(c: InferenceContext, rank: int) -> None:
    set_outputs(c, [c.matrix(None, rank), c.vector(None), c.vector(rank)])


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "DenseCountSparseOutput": _dense_count,
    "RaggedCountSparseOutput": _ragged_count,
    "SparseCountSparseOutput": _sparse_count,
}
