"""Functions of the elements of sparse tensors.

Source: TensorFlow python/ops/sparse_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.sparse._parts import is_sparse, sparse_parts
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import TensorLike, cast_to, convert, static_value
from opkernel.types import DataType


def retain(sp_input: Any, to_retain: TensorLike) -> SparseTensor:
    """The elements for which a vector of bools is true."""
    x = sparse_parts(sp_input)
    places = raw_ops.Where(condition=convert(to_retain))
    places = raw_ops.Reshape(tensor=places, shape=np.array([-1], np.int32))
    indices = raw_ops.GatherV2(params=x.indices, indices=places, axis=0)
    values = raw_ops.GatherV2(params=x.values, indices=places, axis=0)
    return SparseTensor(indices, values, x.dense_shape)


def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The elements in a shape that is at least as large, or the smallest that has them all if None.

    Raises:
        ValueError: the shape has another rank, or is too small.
    """
    x = sparse_parts(sp_input)
    if new_shape is None:
        axis = np.array([0], np.int32)
        highest = raw_ops.Max(input=x.indices, axis=axis)
        shape = raw_ops.Maximum(x=highest + np.int64(1), y=np.int64(0))
        return SparseTensor(x.indices, x.values, shape)
    shape = cast_to(new_shape, DataType.DT_INT64)
    old, new = static_value(x.dense_shape), static_value(shape)
    if old is not None and new is not None and (len(old) != len(new) or (new < old).any()):
        raise ValueError(
            f"The shape {new.tolist()} is smaller than {old.tolist()}, or of another rank"
        )
    return SparseTensor(x.indices, x.values, shape)


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """A function of the elements of sparse tensors, which have the same indices.

    Args:
        op: the function.
        args: its arguments; sparse ones give their elements.
        kwargs: its keywords.

    Raises:
        ValueError: no argument is sparse.
    """
    given = [value for value in [*args, *kwargs.values()] if is_sparse(value)]
    if not given:
        raise ValueError("sparse.map_values takes one SparseTensor at least")
    found = op(
        *(sparse_parts(value).values if is_sparse(value) else value for value in args),
        **{
            key: sparse_parts(value).values if is_sparse(value) else value
            for key, value in kwargs.items()
        },
    )
    return sparse_parts(given[0])._replace(values=found)
