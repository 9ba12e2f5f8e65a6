"""Shapes of ops on sparse tensors: the three tensors indices [n, r], values [n] and shape [r].

Source: TensorFlow core/ops/sparse_ops.cc, data_flow_ops.cc.
"""

from functools import partial

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
)
from opkernel.ops.declared.rules import (
    fixed_shapes,
    set_outputs,
)

_SPARSE_RANKS = (2, 1, 1)
_UNKNOWN_SPARSE = ((None, None), (None,), (None,))


def _deserialize_sparse(c: InferenceContext) -> None:
    serialized = c.with_rank_at_least(c.input(0), 1)
    c.with_value(c.dim(serialized, -1), 3)
    set_outputs(c, map(c.make_shape, _UNKNOWN_SPARSE))


def _deserialize_many_sparse(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 2)
    _deserialize_sparse(c)


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


_matrix_of_two_columns = fixed_shapes((None, 2), (None,), (2,))
_serialize = partial(fixed_shapes, input_ranks=_SPARSE_RANKS)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AddManySparseToTensorsMap": _serialize((None,)),
    "AddSparseToTensorsMap": _serialize(()),
    "DenseCountSparseOutput": _dense_count,
    "DeserializeManySparse": _deserialize_many_sparse,
    "DeserializeSparse": _deserialize_sparse,
    "RaggedCountSparseOutput": _ragged_count,
    "SerializeManySparse": _serialize((None, 3)),
    "SerializeSparse": _serialize((3,)),
    "SparseCountSparseOutput": _sparse_count,
    "SparseCross": _matrix_of_two_columns,
    "SparseCrossHashed": _matrix_of_two_columns,
    "SparseCrossV2": _matrix_of_two_columns,
    "TakeManySparseFromTensorsMap": fixed_shapes(*_UNKNOWN_SPARSE, input_ranks=(1,)),
}
