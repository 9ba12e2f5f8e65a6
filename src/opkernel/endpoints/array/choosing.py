"""Elements chosen by index, by mask and by value: gather, where, sort, search, clip.

Source: TensorFlow python/ops/array_ops.py, sort_ops.py, clip_ops.py, histogram_ops.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    DTypeLike,
    TensorLike,
    all_axes,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
    on_last_axis,
    pair,
    shape_of,
    static_shape,
)
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType, as_dtype


@composed
def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: bool | None = None,
    axis: TensorLike | None = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Any:
    """The entries of `params` along an axis at these indices.

    Args:
        params: the tensor; a variable counts as its value.
        indices: integers of any shape, which takes the place of the axis in the result.
        validate_indices: ignored; indices are always checked.
        axis: the axis; `batch_dims` if None.
        batch_dims: how many leading axes `params` and `indices` share.
        name: a name for the scope of nodes in a graph.
    """
    wanted = batch_dims if axis is None else axis
    return raw_ops.GatherV2(
        params=params, indices=convert(indices), axis=wanted, batch_dims=batch_dims
    )


@composed
def gather_nd(
    params: TensorLike,
    indices: TensorLike,
    batch_dims: int = 0,
    name: str | None = None,
    bad_indices_policy: str = "",
) -> Any:
    """The entries of `params` at indices with a number for each of the first axes.

    Args:
        params: the tensor.
        indices: integers; their last axis is an index.
        batch_dims: how many leading axes `params` and `indices` share.
        name: a name for the scope of nodes in a graph.
        bad_indices_policy: "", "ERROR" or "IGNORE" (zeros for indices out of range).
    """
    x, at = convert(params), convert(indices)
    if batch_dims:
        at = _with_batch_indices(at, shape_of(x), batch_dims)
    return raw_ops.GatherNd(params=x, indices=at, bad_indices_policy=bad_indices_policy)


def _with_batch_indices(indices: Any, shape: Any, batch_dims: int) -> Any:
    """Indices with the index of their batch before them."""
    dtype = dtype_of(indices)
    rank = known_rank(indices, "gather_nd with batch_dims")
    if not 0 <= batch_dims < rank:
        raise ValueError(
            f"batch_dims is less than the rank of indices, {rank}, and not {batch_dims}"
        )
    outer = raw_ops.Shape(input=indices)[:-1]
    ones = [1] * (rank - 1)
    parts = []
    for axis in range(batch_dims):
        sizes = [*ones]
        sizes[axis] = -1
        numbers = raw_ops.Range(start=0, limit=shape[axis], delta=1)
        numbers = raw_ops.Reshape(tensor=numbers, shape=np.array(sizes, np.int32))
        parts.append(raw_ops.BroadcastTo(input=cast_to(numbers, dtype), shape=outer))
    return raw_ops.ConcatV2(values=[raw_ops.Pack(values=parts, axis=-1), indices], axis=-1)


@composed
def boolean_mask(
    tensor: TensorLike, mask: TensorLike, axis: int | None = None, name: str | None = "boolean_mask"
) -> Any:
    """The entries of a tensor where a mask is true.

    Args:
        tensor: the tensor.
        mask: bools, whose axes are those of the tensor from `axis` on. Its rank is known.
        axis: the first axis of the mask; 0 if None.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the mask is a scalar.
    """
    x, chosen = convert(tensor), convert(mask)
    rank = known_rank(chosen, "boolean_mask")
    if rank == 0:
        raise ValueError("The mask of boolean_mask has to have an axis")
    first = 0 if axis is None else axis % known_rank(x, "boolean_mask")
    shape = shape_of(x)
    _check_mask(x, chosen, first, rank)
    size = raw_ops.Prod(input=shape[first : first + rank], axis=np.array([0], np.int32))
    size = raw_ops.Reshape(tensor=size, shape=np.array([1], np.int32))
    flat = raw_ops.ConcatV2(values=[shape[:first], size, shape[first + rank :]], axis=0)
    row = raw_ops.Reshape(tensor=chosen, shape=np.array([-1], np.int32))
    indices = raw_ops.Squeeze(input=raw_ops.Where(condition=row), axis=[1])
    return raw_ops.GatherV2(
        params=raw_ops.Reshape(tensor=x, shape=flat), indices=indices, axis=first
    )


def _check_mask(x: Any, mask: Any, first: int, rank: int) -> None:
    sizes, wanted = static_shape(mask), (static_shape(x) or [])[first : first + rank]
    if sizes is None or len(wanted) != rank or any(
        None not in (a, b) and a != b for a, b in zip(sizes, wanted, strict=True)
    ):  # fmt: skip
        raise ValueError(f"The mask has the shape {sizes}, and the tensor {wanted} there")


@composed
def where(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """`x` where a condition is true and `y` where not, with broadcasting; without them, its indices.

    Args:
        condition: bools; without `x` and `y` numbers too, which are true unless 0.
        x: the elements where it is true.
        y: the elements where it is false, of the same type.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: one of `x` and `y` is given only.
    """
    if x is None and y is None:
        return raw_ops.Where(condition=convert(condition))
    if x is None or y is None:
        raise ValueError("where takes both x and y, or neither")
    chosen, other = pair(x, y)
    return raw_ops.SelectV2(condition=convert(condition), t=chosen, e=other)


@composed
def clip_by_value(
    t: TensorLike,
    clip_value_min: TensorLike,
    clip_value_max: TensorLike,
    name: str | None = None,
) -> Any:
    """Each element, but at least `clip_value_min` and at most `clip_value_max`."""
    x = convert(t)
    smaller = raw_ops.Minimum(x=x, y=like(clip_value_max, dtype_of(x)))
    return raw_ops.Maximum(x=smaller, y=like(clip_value_min, dtype_of(x)))


@composed
def clip_by_norm(
    t: TensorLike, clip_norm: TensorLike, axes: Any = None, name: str | None = None
) -> Any:
    """A tensor scaled down so that its norm over axes is at most `clip_norm`; all axes if None."""
    x = convert(t)
    limit = like(clip_norm, dtype_of(x))
    over = all_axes(x) if axes is None else axes
    squares = raw_ops.Sum(input=raw_ops.Mul(x=x, y=x), axis=over, keep_dims=True)
    positive = raw_ops.Greater(x=squares, y=np.array(0, dtype_of(x).numpy_dtype))
    safe = raw_ops.SelectV2(condition=positive, t=squares, e=raw_ops.OnesLike(x=squares))
    norm = raw_ops.SelectV2(condition=positive, t=raw_ops.Sqrt(x=safe), e=squares)
    return raw_ops.RealDiv(x=raw_ops.Mul(x=x, y=limit), y=raw_ops.Maximum(x=norm, y=limit))


@composed
def clip_by_global_norm(
    t_list: Any, clip_norm: TensorLike, use_norm: TensorLike | None = None, name: str | None = None
) -> tuple[list[Any], Any]:
    """Tensors scaled down together so that their global norm is at most `clip_norm`.

    Args:
        t_list: the tensors; None stays None.
        clip_norm: the limit, a scalar.
        use_norm: their global norm, where it is known.
        name: a name for the scope of nodes in a graph.

    Returns:
        The list of tensors, and their global norm before. All are NaN where it is not finite.
    """
    from opkernel.endpoints.linalg.norms import global_norm

    norm = convert(global_norm(t_list) if use_norm is None else use_norm)
    one = np.array(1, dtype_of(norm).numpy_dtype)
    limit = like(clip_norm, dtype_of(norm))
    least = raw_ops.Minimum(x=raw_ops.RealDiv(x=one, y=norm), y=raw_ops.RealDiv(x=one, y=limit))
    scale = raw_ops.Mul(x=limit, y=least)
    scale = raw_ops.AddV2(x=scale, y=raw_ops.Sub(x=norm, y=norm))  # NaN where it is not finite
    clipped = [
        None if t is None else raw_ops.Mul(x=t, y=cast_to(scale, dtype_of(convert(t))))
        for t in t_list
    ]
    return clipped, norm


def _sorted_indices(values: Any, direction: str) -> tuple[Any, Any]:
    """The elements of the last axis in order, and their indices."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f'direction is "ASCENDING" or "DESCENDING", and not {direction!r}')
    size = raw_ops.Shape(input=values)[-1]
    turned = _turned(values) if direction == "ASCENDING" else values
    found = raw_ops.TopKV2(input=turned, k=size)
    ordered = _turned(found[0]) if direction == "ASCENDING" else found[0]
    return ordered, found[1]


def _turned(x: Any) -> Any:
    """Numbers in the opposite order: `-x`, and for integers `-1 - x`, which cannot overflow."""
    dtype = dtype_of(x)
    if dtype.is_unsigned:
        return raw_ops.Sub(x=np.array(dtype.max, dtype.numpy_dtype), y=x)
    if dtype.is_integer:
        return raw_ops.Sub(x=np.array(-1, dtype.numpy_dtype), y=x)
    return raw_ops.Neg(x=x)


@composed
def sort(
    values: TensorLike, axis: int = -1, direction: str = "ASCENDING", name: str | None = None
) -> Any:
    """The elements along an axis in order, "ASCENDING" or "DESCENDING"."""
    return on_last_axis(convert(values), axis, lambda x: _sorted_indices(x, direction)[0])


@composed
def argsort(
    values: TensorLike,
    axis: int = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Any:
    """The int32 indices that put the elements along an axis in order; equal ones keep theirs."""
    return on_last_axis(convert(values), axis, lambda x: _sorted_indices(x, direction)[1])


@composed
def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike = DataType.DT_INT32,
    name: str | None = None,
) -> Any:
    """Where each value belongs in a sorted sequence: the last axis, the others are batches.

    Args:
        sorted_sequence: numbers in ascending order along the last axis.
        values: numbers of the same type, with the same leading axes.
        side: "left" for the first place, "right" for the last one.
        out_type: int32 or int64.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: `side` is something else.
    """
    if side not in ("left", "right"):
        raise ValueError(f'side is "left" or "right", and not {side!r}')
    op = raw_ops.LowerBound if side == "left" else raw_ops.UpperBound
    rows, wanted = convert(sorted_sequence), convert(values)
    length = raw_ops.Shape(input=rows)[-1]
    count = raw_ops.Shape(input=wanted)[-1]
    found = op(
        sorted_inputs=raw_ops.Reshape(tensor=rows, shape=raw_ops.Pack(values=[-1, length])),
        values=raw_ops.Reshape(tensor=wanted, shape=raw_ops.Pack(values=[-1, count])),
        out_type=as_dtype(out_type),
    )
    return raw_ops.Reshape(tensor=found, shape=raw_ops.Shape(input=wanted))


@composed
def histogram_fixed_width_bins(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = DataType.DT_INT32,
    name: str | None = None,
) -> Any:
    """The number of each value's bin, out of `nbins` equal ones; values beyond go to the outer bins.

    Raises:
        InvalidArgumentError: `nbins` is not positive.
    """
    x = convert(values)
    if isinstance(nbins, int | np.integer) and nbins <= 0:
        raise InvalidArgumentError(f"nbins should be a positive number, but got {nbins}")
    limits = like(value_range, dtype_of(x))
    count = cast_to(nbins, DataType.DT_INT32)
    width = raw_ops.Sub(x=limits[1], y=limits[0])
    scaled = raw_ops.RealDiv(
        x=cast_to(raw_ops.Sub(x=x, y=limits[0]), _quotient(x)), y=cast_to(width, _quotient(x))
    )
    number = raw_ops.Floor(x=raw_ops.Mul(x=cast_to(count, dtype_of(scaled)), y=scaled))
    last = cast_to(raw_ops.Sub(x=count, y=np.int32(1)), dtype_of(scaled))
    clipped = raw_ops.Maximum(
        x=raw_ops.Minimum(x=number, y=last), y=np.array(0, dtype_of(scaled).numpy_dtype)
    )
    return cast_to(clipped, dtype)


def _quotient(x: Any) -> DataType:
    return DataType.DT_DOUBLE if dtype_of(x).is_integer else dtype_of(x)


@composed
def histogram_fixed_width(
    values: TensorLike,
    value_range: TensorLike,
    nbins: TensorLike = 100,
    dtype: DTypeLike = DataType.DT_INT32,
    name: str | None = None,
) -> Any:
    """How many values fall in each of `nbins` equal bins; those beyond count in the outer bins."""
    return raw_ops.HistogramFixedWidth(
        values=convert(values), value_range=value_range, nbins=nbins, dtype=dtype
    )
