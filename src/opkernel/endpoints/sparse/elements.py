"""Functions of the elements of sparse tensors.

Source: TensorFlow python/ops/sparse_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.array.choosing import gather_nd
from opkernel.endpoints.linalg.products import matrix_transpose
from opkernel.endpoints.sparse._parts import is_sparse, sparse_parts
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
    static_shape,
    static_value,
)
from opkernel.gradients import IndexedSlices, IndexedSlicesValue
from opkernel.types import DataType, as_dtype


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


@composed
def mask(a: Any, mask_indices: TensorLike, name: str | None = None) -> Any:
    """The rows of IndexedSlices without those of some indices.

    Args:
        a: an IndexedSlices, or an IndexedSlicesValue.
        mask_indices: the indices to leave out, a vector of the type of the indices.
        name: a name for the scope of nodes in a graph.

    Raises:
        TypeError: `a` is something else.
    """
    if not isinstance(a, IndexedSlices | IndexedSlicesValue):
        raise TypeError(f"sparse.mask takes an IndexedSlices, and got {type(a).__name__}")
    indices = convert(a.indices)
    kept, places = raw_ops.ListDiff(x=indices, y=like(mask_indices, dtype_of(indices)))
    values = raw_ops.GatherV2(params=convert(a.values), indices=places, axis=np.int32(0))
    return type(a)(values, kept, a.dense_shape)


@composed
def sampled_addmm(
    indices: TensorLike,
    values: TensorLike,
    dense_shape: TensorLike,
    mat1: TensorLike,
    mat2: TensorLike,
    beta: TensorLike = 1.0,
    alpha: TensorLike = 1.0,
    output_type: DTypeLike = DataType.DT_FLOAT,
) -> tuple[Any, Any, Any]:
    """Some elements of `alpha * mat1 @ mat2`, and `beta` times given values.

    Args:
        indices: where the elements are, [..., n, rank].
        values: what to add to them, [..., n].
        dense_shape: the shape of the product, without axes of the batch.
        mat1: [..., rows, inner].
        mat2: [..., inner, columns].
        beta: the factor of the values.
        alpha: the factor of the product.
        output_type: the type of values and matrices.

    Returns:
        The indices, the elements and `dense_shape`.

    Raises:
        ValueError: `dense_shape` is not the shape of the product.
    """
    where, kind = convert(indices), as_dtype(output_type)
    added, one, other = (convert(part, kind) for part in (values, mat1, mat2))
    shape = like(dense_shape, DataType.DT_INT32)
    rank = known_rank(one, "sampled_addmm")
    known, wanted = (static_shape(one) or [None, None])[-2], (static_shape(other) or [None])[-1]
    given = static_value(shape)
    if given is not None and None not in (known, wanted) and given.tolist() != [known, wanted]:
        raise ValueError(
            f"dense_shape is {given.tolist()}, and the product has the shape {[known, wanted]}"
        )
    columns = raw_ops.ConcatV2(values=[where[..., :-2], where[..., -1:]], axis=np.int32(-1))
    parts = [
        gather_nd(one, where[..., :-1], batch_dims=rank - 2),
        gather_nd(matrix_transpose(other), columns, batch_dims=rank - 2),
    ]
    product = raw_ops.Mul(x=parts[0], y=parts[1])
    dots = raw_ops.Sum(input=product, axis=np.array([-1], np.int32))
    first, second = (convert(like(factor, kind)) for factor in (alpha, beta))
    total = raw_ops.AddV2(x=raw_ops.Mul(x=dots, y=first), y=raw_ops.Mul(x=added, y=second))
    return where, total, shape
