"""Sparse tensors made, changed and reduced.

Source: TensorFlow python/ops/sparse_ops.py, math_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.sparse._parts import is_sparse, sparse_parts
from opkernel.endpoints.sparse.tensor import SparseTensor
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    like,
    static_shape,
)
from opkernel.ops.registration import REAL_OF
from opkernel.types import DataType, as_dtype


@composed
def from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements of a tensor that are not zero (not empty, for strings)."""
    x = convert(tensor)
    zero = b"" if dtype_of(x) == DataType.DT_STRING else np.zeros((), dtype_of(x).numpy_dtype)
    indices = raw_ops.Where(condition=raw_ops.NotEqual(x=x, y=zero))
    values = raw_ops.GatherNd(params=x, indices=indices)
    return SparseTensor(indices, values, raw_ops.Shape(input=x, out_type=DataType.DT_INT64))


@composed
def to_dense(
    sp_input: Any,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Any:
    """A tensor with the elements of a sparse one, and `default_value` (0 if None) elsewhere.

    Raises:
        InvalidArgumentError: indices are out of order, occur twice, or are out of range.
    """
    x = sparse_parts(sp_input)
    dtype = dtype_of(x.values)
    empty = np.array(b"" if dtype == DataType.DT_STRING else 0, dtype.numpy_dtype)
    default = empty if default_value is None else like(default_value, dtype)
    return raw_ops.SparseToDense(
        sparse_indices=x.indices,
        output_shape=x.dense_shape,
        sparse_values=x.values,
        default_value=default,
        validate_indices=validate_indices,
    )


@composed
def eye(
    num_rows: int,
    num_columns: int | None = None,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
) -> SparseTensor:
    """The identity matrix, as a sparse tensor."""
    rows = cast_to(num_rows, DataType.DT_INT64)
    columns = rows if num_columns is None else cast_to(num_columns, DataType.DT_INT64)
    size = raw_ops.Minimum(x=rows, y=columns)
    numbers = raw_ops.Range(start=np.int64(0), limit=size, delta=np.int64(1))
    values = raw_ops.Fill(
        dims=raw_ops.Reshape(tensor=size, shape=np.array([1], np.int32)),
        value=np.array(1, as_dtype(dtype).numpy_dtype),
    )
    indices = raw_ops.Pack(values=[numbers, numbers], axis=1)
    return SparseTensor(indices, values, raw_ops.Pack(values=[rows, columns]))


@composed
def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The elements in the order of rows."""
    x = sparse_parts(sp_input)
    found = raw_ops.SparseReorder(
        input_indices=x.indices, input_values=x.values, input_shape=x.dense_shape
    )
    return SparseTensor(found[0], found[1], x.dense_shape)


@composed
def reshape(sp_input: Any, shape: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements in another shape, of which one size may be -1."""
    x = sparse_parts(sp_input)
    found = raw_ops.SparseReshape(
        input_indices=x.indices,
        input_shape=x.dense_shape,
        new_shape=cast_to(shape, DataType.DT_INT64),
    )
    return SparseTensor(found[0], x.values, found[1])


@composed
def slice(
    sp_input: Any, start: TensorLike, size: TensorLike, name: str | None = None
) -> SparseTensor:
    """The elements of a part, which begins at `start`."""
    x = sparse_parts(sp_input)
    found = raw_ops.SparseSlice(
        indices=x.indices,
        values=x.values,
        shape=x.dense_shape,
        start=cast_to(start, DataType.DT_INT64),
        size=cast_to(size, DataType.DT_INT64),
    )
    return SparseTensor(*found)


@composed
def split(
    sp_input: Any = None,
    num_split: int | None = None,
    axis: TensorLike | None = None,
    name: str | None = None,
) -> list[SparseTensor]:
    """A sparse tensor cut into `num_split` parts along an axis; the first parts are larger.

    Raises:
        ValueError: an argument is missing.
    """
    if sp_input is None or num_split is None or axis is None:
        raise ValueError("sparse.split takes sp_input, num_split and axis")
    x = sparse_parts(sp_input)
    found = raw_ops.SparseSplit(
        split_dim=cast_to(axis, DataType.DT_INT64),
        indices=x.indices,
        values=x.values,
        shape=x.dense_shape,
        num_split=num_split,
    )
    return [SparseTensor(*part) for part in zip(found[0], found[1], found[2], strict=True)]


@composed
def concat(
    axis: int,
    sp_inputs: Sequence[Any],
    expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Sparse tensors joined along an axis.

    Args:
        axis: the axis.
        sp_inputs: the tensors.
        expand_nonconcat_dims: make their other sizes equal to the largest one.
        name: a name for the scope of nodes in a graph.
    """
    parts = [sparse_parts(part) for part in sp_inputs]
    if len(parts) == 1:
        return parts[0]
    shapes = [part.dense_shape for part in parts]
    if expand_nonconcat_dims:
        largest = raw_ops.Max(input=raw_ops.Pack(values=shapes), axis=np.array([0], np.int32))
        rank = (static_shape(shapes[0]) or [0])[0] or 0
        kept = np.arange(rank) == axis % max(rank, 1)
        shapes = [raw_ops.SelectV2(condition=kept, t=shape, e=largest) for shape in shapes]
    found = raw_ops.SparseConcat(
        indices=[part.indices for part in parts],
        values=[part.values for part in parts],
        shapes=shapes,
        concat_dim=axis,
    )
    return SparseTensor(*found)


@composed
def add(a: Any, b: Any, threshold: TensorLike = 0) -> Any:
    """The sum of two tensors of one shape, of which one is sparse at least.

    Args:
        a: a SparseTensor or a tensor.
        b: a SparseTensor or a tensor.
        threshold: the size below which sums of sparse tensors are dropped.

    Returns:
        A SparseTensor if both are; otherwise a tensor.

    Raises:
        TypeError: none is sparse.
    """
    if not is_sparse(a) and not is_sparse(b):
        raise TypeError("sparse.add takes one SparseTensor at least")
    if not is_sparse(a):
        a, b = b, a
    x = sparse_parts(a)
    if is_sparse(b):
        y = sparse_parts(b)
        real = REAL_OF.get(dtype_of(x.values), dtype_of(x.values))
        found = raw_ops.SparseAdd(
            a_indices=x.indices,
            a_values=x.values,
            a_shape=x.dense_shape,
            b_indices=y.indices,
            b_values=y.values,
            b_shape=y.dense_shape,
            thresh=like(threshold, real),
        )
        return SparseTensor(*found)
    return raw_ops.SparseTensorDenseAdd(
        a_indices=x.indices,
        a_values=x.values,
        a_shape=x.dense_shape,
        b=like(b, dtype_of(x.values)),
    )


@composed
def expand_dims(sp_input: Any, axis: int | None = None, name: str | None = None) -> SparseTensor:
    """A new axis of size 1 at `axis`, the last one if None.

    Raises:
        ValueError: the axis is out of range.
    """
    x = sparse_parts(sp_input)
    rank = (static_shape(x.dense_shape) or [0])[0] or 0
    place = -1 if axis is None else axis
    if not -rank - 1 <= place <= rank:
        raise ValueError(f"axis is from {-rank - 1} to {rank}, and not {axis}")
    place %= rank + 1
    one = np.ones(1, np.int64)
    shape = raw_ops.ConcatV2(values=[x.dense_shape[:place], one, x.dense_shape[place:]], axis=0)
    return reshape(x, shape)


@composed
def fill_empty_rows(
    sp_input: Any, default_value: TensorLike, name: str | None = None
) -> tuple[SparseTensor, Any]:
    """A sparse matrix with `default_value` in the first column of empty rows; and which rows they are."""
    x = sparse_parts(sp_input)
    found = raw_ops.SparseFillEmptyRows(
        indices=x.indices,
        values=x.values,
        dense_shape=x.dense_shape,
        default_value=like(default_value, dtype_of(x.values)),
    )
    return SparseTensor(found[0], found[1], x.dense_shape), found[2]


def _together(op: Callable[..., Any], sp_a: Any, sp_b: Any) -> SparseTensor:
    x, y = sparse_parts(sp_a), sparse_parts(sp_b)
    found = op(
        a_indices=x.indices,
        a_values=x.values,
        a_shape=x.dense_shape,
        b_indices=y.indices,
        b_values=y.values,
        b_shape=y.dense_shape,
    )
    return SparseTensor(found[0], found[1], x.dense_shape)


@composed
def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger element of two sparse tensors at each place, with 0 where one has none."""
    return _together(raw_ops.SparseSparseMaximum, sp_a, sp_b)


@composed
def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller element of two sparse tensors at each place, with 0 where one has none."""
    return _together(raw_ops.SparseSparseMinimum, sp_a, sp_b)


def _reduced(ops: tuple[Any, Any], sp_input: Any, axis: Any, keepdims: Any, is_sparse: bool) -> Any:
    x = sparse_parts(sp_input)
    rank = (static_shape(x.dense_shape) or [0])[0] or 0
    axes = np.arange(rank, dtype=np.int32) if axis is None else axis
    found = ops[is_sparse](
        input_indices=x.indices,
        input_values=x.values,
        input_shape=x.dense_shape,
        reduction_axes=axes,
        keep_dims=bool(keepdims),
    )
    return SparseTensor(*found) if is_sparse else found


@composed
def reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The sum over axes, all if None; a tensor, or a SparseTensor if `output_is_sparse`."""
    ops = raw_ops.SparseReduceSum, raw_ops.SparseReduceSumSparse
    return _reduced(ops, sp_input, axis, keepdims, output_is_sparse)


@composed
def reduce_max(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The largest element that is there, over axes; a tensor, or a SparseTensor if `output_is_sparse`."""
    ops = raw_ops.SparseReduceMax, raw_ops.SparseReduceMaxSparse
    return _reduced(ops, sp_input, axis, keepdims, output_is_sparse)


@composed
def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Softmax of the elements that are there, along the last axis."""
    x = sparse_parts(sp_input)
    values = raw_ops.SparseSoftmax(sp_indices=x.indices, sp_values=x.values, sp_shape=x.dense_shape)
    return SparseTensor(x.indices, values, x.dense_shape)


@composed
def sparse_dense_matmul(
    sp_a: Any,
    b: Any,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Any:
    """The product of two matrices, one of which is sparse.

    Args:
        sp_a: a SparseTensor, or a tensor if `b` is sparse.
        b: a tensor, or a SparseTensor.
        adjoint_a: take the conjugate transpose of the first.
        adjoint_b: take the conjugate transpose of the second.
        name: a name for the scope of nodes in a graph.
    """
    if is_sparse(b) and not is_sparse(sp_a):
        from opkernel.endpoints.linalg.products import adjoint

        turned = _multiplied(b, convert(sp_a), not adjoint_b, not adjoint_a)
        return adjoint(turned)
    return _multiplied(sp_a, b, adjoint_a, adjoint_b)


def _multiplied(sp_a: Any, b: Any, adjoint_a: bool, adjoint_b: bool) -> Any:
    x = sparse_parts(sp_a)
    return raw_ops.SparseTensorDenseMatMul(
        a_indices=x.indices,
        a_values=x.values,
        a_shape=x.dense_shape,
        b=like(b, dtype_of(x.values)),
        adjoint_a=adjoint_a,
        adjoint_b=adjoint_b,
    )


@composed
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor with its axes in another order, by default the opposite one."""
    x = sparse_parts(sp_input)
    rank = (static_shape(x.dense_shape) or [0])[0] or 0
    order = np.arange(rank - 1, -1, -1, dtype=np.int32) if perm is None else convert(perm)
    indices = raw_ops.GatherV2(params=x.indices, indices=order, axis=1)
    shape = raw_ops.GatherV2(params=x.dense_shape, indices=order, axis=0)
    return reorder(SparseTensor(indices, x.values, shape))


@composed
def to_indicator(sp_input: Any, vocab_size: int, name: str | None = None) -> Any:
    """A tensor of bools that says which numbers, below `vocab_size`, each row has.

    The numbers are the elements; the last axis of the sparse tensor is replaced.
    """
    x = sparse_parts(sp_input)
    shape = raw_ops.ConcatV2(
        values=[x.dense_shape[:-1], raw_ops.Pack(values=[np.int64(vocab_size)])], axis=0
    )
    numbers = raw_ops.ExpandDims(input=cast_to(x.values, DataType.DT_INT64), axis=1)
    indices = raw_ops.ConcatV2(values=[x.indices[:, :-1], numbers], axis=1)
    true = raw_ops.Fill(dims=raw_ops.Shape(input=x.values), value=np.True_)
    found = reorder(SparseTensor(indices, true, shape))
    return to_dense(found, default_value=False, validate_indices=False)
