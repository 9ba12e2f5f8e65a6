"""Tensors joined, cut, stacked, padded and turned.

Source: TensorFlow python/ops/array_ops.py, array_ops_stack.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import (
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    known_rank,
    like,
    static_rank,
    static_shape,
    static_value,
)
from opkernel.types import DataType, TensorShape


@composed
def concat(values: Any, axis: TensorLike, name: str | None = "concat") -> Any:
    """Tensors joined along an axis that they have. The other sizes are equal.

    Args:
        values: a list of tensors of one type, or one tensor, which is the result.
        axis: the axis, a scalar integer.
        name: a name for the scope of nodes in a graph.
    """
    if not isinstance(values, list | tuple):
        values = [values]
    if len(values) == 1:
        return raw_ops.Identity(input=convert(values[0]))
    return raw_ops.ConcatV2(values=[*values], axis=axis)


@composed
def stack(values: Any, axis: int = 0, name: str | None = "stack") -> Any:
    """Tensors of one shape along a new axis."""
    if not isinstance(values, list | tuple):
        values = unstack(values)
    return raw_ops.Pack(values=[*values], axis=axis)


@composed
def unstack(
    value: TensorLike, num: int | None = None, axis: int = 0, name: str | None = "unstack"
) -> list[Any]:
    """The parts of a tensor along an axis, without that axis.

    Args:
        value: the tensor.
        num: how many parts there are; it need not be given where the shape is known.
        axis: the axis.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the size of the axis is not known, or `axis` is not one of the tensor's.
    """
    x = convert(value)
    if num is None:
        sizes = static_shape(x)
        if sizes is not None and not -len(sizes) <= axis < len(sizes):
            raise ValueError(
                f"axis is in the range from {-len(sizes)} to {len(sizes) - 1}, and not {axis}"
            )
        num = None if sizes is None else sizes[axis]
        if num is None:
            raise ValueError(f"The size of axis {axis} is unknown: give num")
    return raw_ops.Unpack(value=x, num=num, axis=axis)


@composed
def split(
    value: TensorLike,
    num_or_size_splits: Any,
    axis: TensorLike = 0,
    num: int | None = None,
    name: str | None = "split",
) -> list[Any]:
    """A tensor cut along an axis.

    Args:
        value: the tensor.
        num_or_size_splits: how many equal parts, or the sizes of the parts, of which one may be -1.
        axis: the axis, a scalar.
        num: the number of parts, where the length of `num_or_size_splits` is not known.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: the number of parts is not known, or `num_or_size_splits` has more than one axis.
    """
    if isinstance(num_or_size_splits, int | np.integer):
        return raw_ops.Split(axis=axis, value=value, num_split=int(num_or_size_splits))
    sizes = convert(num_or_size_splits)
    rank = static_rank(sizes)
    if rank == 0:
        raise ValueError("Rank-0 tensors are not supported as the num_or_size_splits argument")
    if num is None:
        lengths = static_shape(sizes)
        num = None if lengths is None else lengths[0]
        if num is None:
            raise ValueError("The number of parts is unknown: give num")
    return raw_ops.SplitV(value=value, size_splits=sizes, axis=axis, num_split=num)


@composed
def squeeze(input: TensorLike, axis: Any = None, name: str | None = None) -> Any:
    """A tensor without its axes of size 1; with `axis`, without these only."""
    axes = [] if axis is None else np.ravel(np.asarray(axis)).tolist()
    return raw_ops.Squeeze(input=convert(input), axis=axes)


@composed
def transpose(
    a: TensorLike, perm: Any = None, conjugate: bool = False, name: str | None = "transpose"
) -> Any:
    """A tensor with its axes in another order, by default the opposite one.

    Args:
        a: the tensor.
        perm: for each axis of the result, the axis of `a`.
        conjugate: take the complex conjugate too.
        name: a name for the scope of nodes in a graph.
    """
    x = convert(a)
    if perm is None:
        rank = static_rank(x)
        if rank is None:
            last = raw_ops.Sub(x=raw_ops.Rank(input=x), y=np.int32(1))
            perm = raw_ops.Range(start=last, limit=np.int32(-1), delta=np.int32(-1))
        else:
            perm = np.arange(rank - 1, -1, -1, dtype=np.int32)
    op = raw_ops.ConjugateTranspose if conjugate and dtype_of(x).is_complex else raw_ops.Transpose
    return op(x=x, perm=perm)


@composed
def pad(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    constant_values: TensorLike = 0,
    name: str | None = None,
) -> Any:
    """A tensor with more elements before and after each axis.

    Args:
        tensor: the tensor.
        paddings: a row for each axis: how many elements before, how many after.
        mode: "CONSTANT", "REFLECT" (without the edge) or "SYMMETRIC" (with it); case is ignored.
        constant_values: the new elements of mode "CONSTANT", a scalar.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: there is no such mode.
    """
    x = convert(tensor)
    kind = mode.upper()
    if kind == "CONSTANT":
        if static_value(constant_values) != 0:
            value = like(constant_values, dtype_of(x))
            return raw_ops.PadV2(input=x, paddings=paddings, constant_values=value)
        return raw_ops.Pad(input=x, paddings=paddings)
    if kind in ("REFLECT", "SYMMETRIC"):
        mirrored: Any = kind
        return raw_ops.MirrorPad(input=x, paddings=paddings, mode=mirrored)
    raise ValueError(f'mode is "CONSTANT", "REFLECT" or "SYMMETRIC", and not {mode!r}')


@composed
def repeat(
    input: TensorLike, repeats: TensorLike, axis: int | None = None, name: str | None = None
) -> Any:
    """Each element several times along an axis; of all elements in a row if `axis` is None.

    Args:
        input: the tensor.
        repeats: how often: a number for all, or for each entry along the axis one.
        axis: the axis.
        name: a name for the scope of nodes in a graph.
    """
    x = convert(input)
    if axis is None:
        x, axis = raw_ops.Reshape(tensor=x, shape=np.array([-1], np.int32)), 0
    counts = convert(repeats)
    counts = cast_to(counts, DataType.DT_INT64)
    size = raw_ops.GatherV2(params=raw_ops.Shape(input=x), indices=np.int32(axis % max(
        known_rank(x, "repeat"), 1)), axis=0)  # fmt: skip
    counts = raw_ops.BroadcastTo(
        input=raw_ops.Reshape(tensor=counts, shape=np.array([-1], np.int32)),
        shape=raw_ops.Reshape(tensor=size, shape=np.array([1], np.int32)),
    )
    ends = raw_ops.Cumsum(x=counts, axis=0)
    total = raw_ops.Sum(input=counts, axis=np.array([0], np.int32))
    places = raw_ops.Range(start=np.int64(0), limit=total, delta=np.int64(1))
    indices = raw_ops.UpperBound(
        sorted_inputs=raw_ops.ExpandDims(input=ends, axis=0),
        values=raw_ops.ExpandDims(input=places, axis=0),
    )
    return raw_ops.GatherV2(params=x, indices=raw_ops.Squeeze(input=indices, axis=[0]), axis=axis)


@composed
def strided_slice(
    input_: TensorLike,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: None = None,
    name: str | None = None,
) -> Any:
    """`input_[begin:end:strides]`, for vectors with a number for each axis.

    Args:
        input_: the tensor.
        begin: where each axis begins; negative numbers count from its end.
        end: where it ends, without the element there.
        strides: the steps; 1 if None.
        begin_mask: a bit for each axis whose `begin` is ignored.
        end_mask: a bit for each axis whose `end` is ignored.
        ellipsis_mask: the bit of the place that stands for all axes that are left.
        new_axis_mask: a bit for each place with a new axis of size 1.
        shrink_axis_mask: a bit for each axis that is dropped; only its `begin` counts.
        var: None.
        name: a name for the scope of nodes in a graph.
    """
    if strides is None:
        strides = raw_ops.OnesLike(x=convert(begin))
    return raw_ops.StridedSlice(
        input=input_,
        begin=begin,
        end=end,
        strides=strides,
        begin_mask=begin_mask,
        end_mask=end_mask,
        ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
    )


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape that two shapes are broadcast to; both a TensorShape or a sequence of sizes.

    Raises:
        ValueError: they cannot be broadcast.
    """
    try:
        return TensorShape(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)))
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}") from None


def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> Any:
    """The shape that two shapes, given as vectors, are broadcast to."""
    return raw_ops.BroadcastArgs(s0=shape_x, s1=shape_y)


def required_space_to_batch_paddings(
    input_shape: TensorLike,
    block_shape: TensorLike,
    base_paddings: TensorLike | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The paddings that make sizes multiples of blocks, and the crops that take them away again.

    Args:
        input_shape: the sizes of the axes that are cut into blocks.
        block_shape: the sizes of the blocks.
        base_paddings: rows of paddings before and after that there are at least.
        name: a name for the scope of nodes in a graph.

    Returns:
        Two int32 arrays with a row for each axis; tensors where an argument has no value before the graph runs.
    """
    sizes, blocks = static_value(input_shape), static_value(block_shape)
    given = None if base_paddings is None else static_value(base_paddings)
    if sizes is None or blocks is None or (given is None and base_paddings is not None):
        return _space_to_batch_paddings(input_shape, block_shape, base_paddings)
    base = np.zeros((len(blocks), 2), np.int32) if given is None else given
    full = sizes + base.sum(axis=1)
    extra = (-full) % blocks
    paddings = np.stack([base[:, 0], base[:, 1] + extra], axis=1)
    crops = np.stack([np.zeros_like(extra), extra], axis=1)
    return paddings.astype(np.int32), crops.astype(np.int32)


def _space_to_batch_paddings(sizes: Any, blocks: Any, base: Any) -> tuple[Any, Any]:
    """The paddings and crops of shapes that the graph computes."""
    given, block = (cast_to(one, DataType.DT_INT32) for one in (sizes, blocks))
    none = raw_ops.ZerosLike(x=block)
    before, after = (none, none) if base is None else (base[:, 0], base[:, 1])
    full = raw_ops.AddN(inputs=[given, before, after])
    extra = raw_ops.FloorMod(x=raw_ops.Neg(x=full), y=block)
    paddings = raw_ops.Pack(values=[before, raw_ops.AddV2(x=after, y=extra)], axis=1)
    return paddings, raw_ops.Pack(values=[none, extra], axis=1)
