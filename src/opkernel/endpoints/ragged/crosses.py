"""Crosses of features: all combinations of one value of each.

Source: TensorFlow python/ops/ragged/ragged_array_ops.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel import raw_ops
from opkernel.endpoints.ragged._rows import as_ragged, is_ragged
from opkernel.endpoints.ragged.tensor import RaggedTensor
from opkernel.endpoints.sparse._parts import is_sparse, sparse_parts
from opkernel.endpoints.tensors import cast_to, composed, dtype_of, known_rank
from opkernel.types import DataType

_HASH_KEY = 0xDECAFCAFFE


@composed
def cross(inputs: Sequence[Any], name: str | None = None) -> RaggedTensor:
    """The crosses of the values of features in each row, as texts `a_X_b`.

    Args:
        inputs: matrices of integers or texts: arrays, tensors, SparseTensors, RaggedTensors of two axes.
        name: a name for the scope of nodes in a graph.

    Raises:
        TypeError: `inputs` is no list.
        ValueError: a type or a rank is another.
    """
    return _crossed(inputs, is_hashed=False, num_buckets=0, hash_key=None)


@composed
def cross_hashed(
    inputs: Sequence[Any],
    num_buckets: int = 0,
    hash_key: int | None = None,
    name: str | None = None,
) -> RaggedTensor:
    """The crosses of the values of features in each row, as hashes; the arguments are those of `cross`.

    Args:
        inputs: the features.
        num_buckets: how many numbers there are; the hashes themselves if 0.
        hash_key: an unsigned number that the hashes depend on.
        name: a name for the scope of nodes in a graph.
    """
    return _crossed(inputs, is_hashed=True, num_buckets=num_buckets, hash_key=hash_key)


def _crossed(
    inputs: Any, *, is_hashed: bool, num_buckets: int, hash_key: int | None
) -> RaggedTensor:
    if not isinstance(inputs, list | tuple) or is_ragged(inputs) or is_sparse(inputs):
        raise TypeError(f"A cross takes a list of features, and got {type(inputs).__name__}")
    key = _HASH_KEY if hash_key is None else hash_key
    ragged, sparse, dense, order = [], [], [], ""
    for index, one in enumerate(inputs):
        if is_ragged(one):
            feature = as_ragged(one)
            if is_ragged(feature.values) or known_rank(feature.values, "A feature") != 1:
                raise ValueError(
                    f"A RaggedTensor of a cross has two axes, and input {index} has more"
                )
            ragged.append(feature._replace(values=_values(feature.values, index)))
            order += "R"
        elif is_sparse(one):
            feature = sparse_parts(one)
            sparse.append(feature._replace(values=_values(feature.values, index)))
            order += "S"
        else:
            dense.append(_values(as_ragged(one), index))
            order += "D"
    splits = [feature.row_splits for feature in ragged]
    types = {dtype_of(one) for one in splits} or {DataType.DT_INT64}
    kind = DataType.DT_INT64 if DataType.DT_INT64 in types else DataType.DT_INT32
    found = raw_ops.RaggedCross(
        ragged_values=[feature.values for feature in ragged],
        ragged_row_splits=[cast_to(one, kind) for one in splits],
        sparse_indices=[feature.indices for feature in sparse],
        sparse_values=[feature.values for feature in sparse],
        sparse_shape=[feature.dense_shape for feature in sparse],
        dense_inputs=dense,
        input_order=order,
        hashed_output=is_hashed,
        num_buckets=num_buckets,
        hash_key=key - (1 << 64) if key >= 1 << 63 else key,
        out_values_type=DataType.DT_INT64 if is_hashed else DataType.DT_STRING,
        out_row_splits_type=kind,
    )
    return RaggedTensor(*found)


def _values(values: Any, index: int) -> Any:
    kind = dtype_of(values)
    if kind.is_integer:
        return cast_to(values, DataType.DT_INT64)
    if kind != DataType.DT_STRING:
        raise ValueError(f"Features are integers or texts, and input {index} is {kind.tf_name}")
    return values
