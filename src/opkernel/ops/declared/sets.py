"""Shapes of ops on sets: the last dimension of a dense tensor holds the members of one set.

Source: TensorFlow core/ops/set_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    DimensionHandle,
    InferenceContext,
    OpShapeInferenceFn,
    unknown_shape,
    validate_sparse_tensor,
)
from opkernel.ops.declared.rules import set_outputs


def _set_result(c: InferenceContext, rank: DimensionHandle) -> None:
    """The outputs are a sparse tensor of this rank."""
    set_outputs(c, [c.matrix(None, rank), c.vector(None), c.vector(rank)])


def _dense_to_dense(c: InferenceContext) -> None:
    first = c.with_rank_at_least(c.input(0), 2)
    if c.rank_known(first):
        rank = c.rank(first)
        second = c.with_rank(c.input(1), rank)
        c.merge(c.subshape(first, 0, rank - 1), c.subshape(second, 0, rank - 1))
    else:
        rank = c.rank(c.with_rank_at_least(c.input(1), 2))
    _set_result(c, c.make_dim(rank))


def _dense_to_sparse(c: InferenceContext) -> None:
    shape_of_second = c.input(3)
    validate_sparse_tensor(c, c.input(1), c.input(2), shape_of_second)
    rank = c.dim(shape_of_second, 0)
    first = c.with_rank_at_least(c.input(0), 2)
    if c.rank_known(first):
        c.with_value(rank, c.rank(first))
        rank = c.make_dim(c.rank(first))
    _set_result(c, rank if c.value_known(rank) else c.unknown_dim())


def _sparse_to_sparse(c: InferenceContext) -> None:
    ranks = []
    for index in (0, 3):
        shape = c.input(index + 2)
        validate_sparse_tensor(c, c.input(index), c.input(index + 1), shape)
        ranks.append(c.dim(shape, 0))
    known = [i for i, rank in enumerate(ranks) if c.value_known(rank)]
    if not known:
        _set_result(c, c.unknown_dim())
        return
    rank = ranks[known[0]]
    if rank.value < 2:
        raise InvalidArgumentError(f"Input {known[0]}, expected rank >= 2, got {rank.value}.")
    c.with_value(ranks[1], rank.value)
    _set_result(c, rank)


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "DenseToDenseSetOperation": _dense_to_dense,
    "DenseToSparseSetOperation": _dense_to_sparse,
    "SetSize": unknown_shape,
    "SparseToSparseSetOperation": _sparse_to_sparse,
}
