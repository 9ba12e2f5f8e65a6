"""Counts and crosses, as sparse tensors.

Source: TensorFlow python/ops/sparse_ops.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.sparse._parts import is_sparse, sparse_parts
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
)
from opkernel.types import DataType


@composed
def bincount(
    values: Any,
    weights: TensorLike | None = None,
    axis: int | None = 0,
    minlength: int | None = None,
    maxlength: int | None = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """How often each number from 0 on occurs, or the sum of its weights, without those that do not.

    Args:
        values: integers, none negative: a tensor, or a SparseTensor with `axis` -1.
        weights: a number for each, which is counted instead of 1.
        axis: 0 or None to count the whole tensor, -1 to count each row of a matrix.
        minlength: the least length of the result.
        maxlength: the greatest; larger numbers are not counted.
        binary_output: count a number once only.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: `axis` is another number.
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"bincount takes axis None, 0 or -1, and got {axis}")
    attrs: dict[str, Any] = {
        "minlength": -1 if minlength is None else minlength,
        "maxlength": -1 if maxlength is None else maxlength,
        "binary_output": binary_output,
    }
    row = np.array([-1], np.int32)
    if is_sparse(values) and axis == -1:
        x = sparse_parts(values)
        given = weights[1] if isinstance(weights, tuple) else weights
        counted = _weights(given, x.values)
        found = raw_ops.SparseCountSparseOutput(
            indices=x.indices, values=x.values, dense_shape=x.dense_shape, weights=counted, **attrs
        )
        return SparseTensor(*found)
    numbers = sparse_parts(values).values if is_sparse(values) else convert(values)
    counted = _weights(weights, numbers)
    if axis != -1:
        numbers = raw_ops.Reshape(tensor=numbers, shape=row)
        counted = raw_ops.Reshape(tensor=counted, shape=row)
    return SparseTensor(*raw_ops.DenseCountSparseOutput(values=numbers, weights=counted, **attrs))


def _weights(weights: Any, numbers: Any) -> Any:
    """The weights; an empty vector of the type of the numbers counts each as 1."""
    if weights is None:
        return np.zeros(0, dtype_of(numbers).numpy_dtype)
    return convert(weights)


_KEY = 956888297470
"""TensorFlow's key of hashes, where none is given."""


def _crossed(inputs: Sequence[Any], *, is_hashed: bool, **attrs: Any) -> SparseTensor:
    kind = DataType.DT_INT64 if is_hashed else DataType.DT_STRING
    return SparseTensor(
        *raw_ops.SparseCross(
            hashed_output=is_hashed,
            out_type=kind,
            internal_type=kind,
            **_parts_of_cross(inputs),
            **attrs,
        )
    )


def _parts_of_cross(inputs: Sequence[Any]) -> dict[str, Any]:
    """The inputs of an op that crosses.

    Raises:
        TypeError: they are no list.
    """
    if not isinstance(inputs, list | tuple) or is_sparse(inputs):
        raise TypeError("The inputs of a cross are a list")
    sparse = [sparse_parts(value) for value in inputs if is_sparse(value)]
    return {
        "indices": [part.indices for part in sparse],
        "values": [_text_or_int64(part.values) for part in sparse],
        "shapes": [part.dense_shape for part in sparse],
        "dense_inputs": [_text_or_int64(convert(one)) for one in inputs if not is_sparse(one)],
    }


def _text_or_int64(x: Any) -> Any:
    return x if dtype_of(x) == DataType.DT_STRING else cast_to(x, DataType.DT_INT64)


@composed
def cross(
    inputs: Sequence[Any], name: str | None = None, separator: str | None = None
) -> SparseTensor:
    """All combinations of the elements of each row of several matrices, as strings.

    Args:
        inputs: matrices or sparse matrices of integers or strings.
        name: a name for the scope of nodes in a graph.
        separator: what stands between the parts of a string; "_X_" if None.
    """
    if separator is None:
        return _crossed(inputs, is_hashed=False, num_buckets=0, hash_key=_KEY)
    text = np.array(separator.encode(), object)
    return SparseTensor(*raw_ops.SparseCrossV2(**_parts_of_cross(inputs), sep=text))


@composed
def cross_hashed(
    inputs: Sequence[Any],
    num_buckets: int = 0,
    hash_key: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """All combinations of the elements of each row of several matrices, as int64 hashes.

    Args:
        inputs: matrices or sparse matrices of integers or strings.
        num_buckets: the number that hashes are less than; 0 for any.
        hash_key: the key of the hashes.
        name: a name for the scope of nodes in a graph.
    """
    key = _KEY if hash_key is None else hash_key
    return _crossed(inputs, is_hashed=True, num_buckets=num_buckets, hash_key=key)
