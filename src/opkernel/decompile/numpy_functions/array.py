"""Ops that make, cut and move arrays as plain NumPy functions."""

from typing import Any

import numpy as np

__all__ = ["FUNCTIONS", "NEEDED_ATTRS"]


def passed_on(x: Any, *others: Any) -> Any:
    return x


def all_passed_on(inputs: Any) -> Any:
    return inputs


def shape_of(x: Any, *, out_type: str = "int32") -> Any:
    return np.array(x.shape, out_type)


def shapes_of(inputs: Any, *, out_type: str = "int32") -> Any:
    return [np.array(x.shape, out_type) for x in inputs]


def size_of(x: Any, *, out_type: str = "int32") -> Any:
    return np.array(x.size, out_type)


def rank_of(x: Any) -> Any:
    return np.array(x.ndim, np.int32)


def zeros_like(x: Any) -> Any:
    return np.zeros_like(x)


def ones_like(x: Any) -> Any:
    return np.ones_like(x)


def fill(dims: Any, value: Any) -> Any:
    return np.full(tuple(dims.tolist()), value)


def range_of(start: Any, limit: Any, delta: Any) -> Any:
    return np.arange(start, limit, delta, dtype=start.dtype)


def lin_space(start: Any, stop: Any, num: Any) -> Any:
    return np.linspace(start, stop, int(num), dtype=start.dtype)


def one_hot(indices: Any, depth: Any, on: Any, off: Any, *, axis: int = -1) -> Any:
    at = np.moveaxis(indices[..., np.newaxis] == np.arange(depth), -1, axis)
    return np.where(at, on, off)


def reshape(x: Any, shape: Any) -> Any:
    return x.reshape(tuple(shape.tolist()))


def squeeze(x: Any, *, squeeze_dims: Any = ()) -> Any:
    return np.squeeze(x, squeeze_dims or None)


def expand_dims(x: Any, axis: Any) -> Any:
    return np.expand_dims(x, int(np.ravel(axis)[0]))


def transpose(x: Any, perm: Any) -> Any:
    return np.asarray(np.transpose(x, perm.tolist()), order="C")


def invert_permutation(x: Any) -> Any:
    return np.argsort(x).astype(x.dtype)


def broadcast_to(x: Any, shape: Any) -> Any:
    return np.broadcast_to(x, tuple(shape.tolist()))


def broadcast_args(first: Any, second: Any) -> Any:
    return np.array(np.broadcast_shapes(tuple(first), tuple(second)), first.dtype)


def broadcast_gradient_args(first: Any, second: Any) -> Any:
    """The axes of the broadcast shape that each of two shapes is repeated along."""
    if np.array_equal(first, second):
        return first[:0], second[:0]
    rank = max(first.size, second.size)
    a, b = (np.concatenate([np.ones(rank - s.size, s.dtype), s]) for s in (first, second))
    both = (a == 1) & (b == 1)
    return tuple(np.flatnonzero((s == 1) & ((a != b) | both)).astype(s.dtype) for s in (a, b))


def concat(arrays: Any, axis: Any) -> Any:
    return np.concatenate(arrays, int(axis))


def concat_v1(axis: Any, arrays: Any) -> Any:
    return np.concatenate(arrays, int(axis))


def pack(arrays: Any, *, axis: int = 0) -> Any:
    return np.stack(arrays, axis)


def unpack(x: Any, *, axis: int = 0) -> Any:
    return list(np.moveaxis(x, axis, 0))


def split(axis: Any, x: Any, *, num_split: int) -> Any:
    return np.split(x, num_split, int(axis))


def split_v(x: Any, sizes: Any, axis: Any) -> Any:
    known = sum(size for size in sizes.tolist() if size >= 0)
    sizes = np.where(sizes < 0, x.shape[int(axis)] - known, sizes)
    return np.split(x, np.cumsum(sizes)[:-1], int(axis))


def tile(x: Any, multiples: Any) -> Any:
    return np.tile(x, tuple(multiples.tolist()))


def pad(x: Any, paddings: Any, value: Any = 0) -> Any:
    return np.pad(x, paddings.tolist(), constant_values=value) if x.ndim else x


def mirror_pad(x: Any, paddings: Any, *, mode: Any) -> Any:
    return np.pad(x, paddings.tolist(), mode.lower()) if x.ndim else x


def slice_of(x: Any, begin: Any, size: Any) -> Any:
    return x[
        tuple(
            slice(start, None if count < 0 else start + count)
            for start, count in zip(begin.tolist(), size.tolist(), strict=True)
        )
    ]


def strided_index(
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Any:
    index: list[Any] = []
    for i, (start, stop, step) in enumerate(
        zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)
    ):
        if ellipsis_mask >> i & 1:
            index.append(...)
        elif new_axis_mask >> i & 1:
            index.append(None)
        elif shrink_axis_mask >> i & 1:
            index.append(0 if begin_mask >> i & 1 else start)
        else:
            start = None if begin_mask >> i & 1 else start
            index.append(slice(start, None if end_mask >> i & 1 else stop, step))
    return tuple(index)


def strided_slice(
    x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Any:
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    return x[strided_index(begin, end, strides, *masks)]


def strided_slice_grad(
    shape: Any,
    begin: Any,
    end: Any,
    strides: Any,
    gradient: Any,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Any:
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    result = np.zeros(tuple(shape.tolist()), gradient.dtype)
    result[strided_index(begin, end, strides, *masks)] = gradient
    return result


def reverse(x: Any, dims: Any) -> Any:
    return np.flip(x, tuple(np.flatnonzero(dims).tolist()))


def reverse_v2(x: Any, axis: Any) -> Any:
    return np.flip(x, tuple(np.ravel(axis).tolist()))


def reverse_sequence(x: Any, lengths: Any, *, seq_dim: int, batch_dim: int = 0) -> Any:
    result = x.copy()
    rows = np.moveaxis(result, (batch_dim, seq_dim), (0, 1))
    for row, length in zip(rows, lengths.tolist(), strict=True):
        row[:length] = row[:length][::-1].copy()
    return result


def roll(x: Any, shift: Any, axis: Any) -> Any:
    return np.roll(x, tuple(np.ravel(shift).tolist()), tuple(np.ravel(axis).tolist()))


def gather_rows(params: Any, indices: Any) -> Any:
    return np.take(params, indices, 0)


def gather(params: Any, indices: Any, axis: Any, *, batch_dims: int = 0) -> Any:
    if batch_dims < 0:
        batch_dims += indices.ndim
    if batch_dims == 0:
        return np.take(params, indices, int(axis))
    inner = int(axis) - 1 if axis > 0 else int(axis)
    rows = [
        gather(p, i, np.int32(inner), batch_dims=batch_dims - 1)
        for p, i in zip(params, indices, strict=True)
    ]
    return np.stack(rows)


def gather_nd(params: Any, indices: Any) -> Any:
    rows = params[tuple(np.moveaxis(indices, -1, 0))]
    return np.broadcast_to(rows, indices.shape[:-1] + params.shape[indices.shape[-1] :])


def scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    return tensor_scatter_add(np.zeros(tuple(shape.tolist()), updates.dtype), indices, updates)


def tensor_scatter_update(x: Any, indices: Any, updates: Any) -> Any:
    result = x.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return result


def scattered(ufunc: Any, x: Any, indices: Any, updates: Any) -> Any:
    result = x.copy()
    ufunc.at(result, tuple(np.moveaxis(indices, -1, 0)), updates)
    return result


def tensor_scatter_add(x: Any, indices: Any, updates: Any) -> Any:
    return scattered(np.add, x, indices, updates)


def tensor_scatter_sub(x: Any, indices: Any, updates: Any) -> Any:
    return scattered(np.subtract, x, indices, updates)


def tensor_scatter_max(x: Any, indices: Any, updates: Any) -> Any:
    return scattered(np.maximum, x, indices, updates)


def tensor_scatter_min(x: Any, indices: Any, updates: Any) -> Any:
    return scattered(np.minimum, x, indices, updates)


def unravel_index(indices: Any, dims: Any) -> Any:
    return np.stack(np.unravel_index(indices, dims)).astype(dims.dtype)


def where(condition: Any) -> Any:
    return np.argwhere(condition)


def unique(x: Any, *, out_idx: str = "int32") -> Any:
    """The different elements of a vector, as they first appear, and the index of each element."""
    values, first, inverse = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return values[order], np.argsort(order)[inverse].astype(out_idx)


def dynamic_partition(data: Any, partitions: Any, *, num_partitions: int) -> Any:
    return [data[partitions == i] for i in range(num_partitions)]


def dynamic_stitch(indices: Any, data: Any) -> Any:
    rows = data[0].shape[indices[0].ndim :]
    count = max((int(i.max()) + 1 for i in indices if i.size), default=0)
    result = np.zeros((count, *rows), data[0].dtype)
    for places, values in zip(indices, data, strict=True):
        result[places] = values
    return result


def space_to_batch_nd(x: Any, block_shape: Any, paddings: Any) -> Any:
    blocks, count = block_shape.tolist(), len(block_shape)
    x = np.pad(x, [(0, 0), *paddings.tolist(), *[(0, 0)] * (x.ndim - 1 - count)])
    batch, rest = x.shape[0], x.shape[1 + count :]
    split = [part for size, b in zip(x.shape[1:], blocks, strict=False) for part in (size // b, b)]
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    x = x.reshape(batch, *split, *rest)
    x = x.transpose(*inner, 0, *outer, *range(2 * count + 1, x.ndim))
    return x.reshape(-1, *split[::2], *rest)


def batch_to_space_nd(x: Any, block_shape: Any, crops: Any) -> Any:
    blocks, count = block_shape.tolist(), len(block_shape)
    spatial, rest = x.shape[1 : 1 + count], x.shape[1 + count :]
    x = x.reshape(*blocks, -1, *spatial, *rest)
    order = [axis for i in range(count) for axis in (count + 1 + i, i)]
    x = x.transpose(count, *order, *range(2 * count + 1, x.ndim))
    x = x.reshape(x.shape[0], *[size * b for size, b in zip(spatial, blocks, strict=False)], *rest)
    kept = [
        slice(start, size - stop)
        for size, (start, stop) in zip(x.shape[1:], crops.tolist(), strict=False)
    ]
    return x[(slice(None), *kept)]


def space_to_depth(x: Any, *, block_size: int) -> Any:
    batch, high, wide, depth = x.shape
    x = x.reshape(batch, high // block_size, block_size, wide // block_size, block_size, depth)
    x = x.transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(*x.shape[:3], block_size * block_size * depth)


def depth_to_space(x: Any, *, block_size: int) -> Any:
    batch, high, wide, depth = x.shape
    x = x.reshape(batch, high, wide, block_size, block_size, depth // block_size**2)
    x = x.transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(batch, high * block_size, wide * block_size, depth // block_size**2)


FUNCTIONS = {
    "Concat": concat_v1,
    "ConcatV2": concat,
    "DeepCopy": passed_on,
    "EnsureShape": passed_on,
    "Gather": gather_rows,
    "GatherV2": gather,
    "GuaranteeConst": passed_on,
    "Identity": passed_on,
    "IdentityN": all_passed_on,
    "PadV2": pad,
    "ParallelDynamicStitch": dynamic_stitch,
    "PreventGradient": passed_on,
    "Range": range_of,
    "Rank": rank_of,
    "Shape": shape_of,
    "ShapeN": shapes_of,
    "Size": size_of,
    "Slice": slice_of,
    "Snapshot": passed_on,
    "StopGradient": passed_on,
}

NEEDED_ATTRS = {op: {"data_format": "NHWC"} for op in ("DepthToSpace", "SpaceToDepth")}
