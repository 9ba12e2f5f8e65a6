"""Tensors taken apart: Split, SplitV, Unpack, DynamicPartition; and put together by index: DynamicStitch.

Source: TensorFlow core/ops/array_ops.cc, core/ops/data_flow_ops.cc, core/kernels/split_op.cc, split_v_op.cc,
unpack_op.cc, dynamic_partition_op.cc, dynamic_stitch_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unknown_shape
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.array.concat import pack_axis
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import (
    int32_attr,
    require,
    require_equal,
    require_scalar,
    require_vector,
)
from opkernel.ops.registration import ALL, FLOAT8, INDEX, POD_OR_STRING, QUANTIZED, register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape, as_dtype

_SPLIT_TYPES = (*ALL, *FLOAT8, DataType.DT_QUINT8, DataType.DT_INT4, DataType.DT_UINT4)
_CACHED_SHAPES = 64


def split_shape(c: InferenceContext) -> None:
    """The dimension that is split divided by the number of outputs."""
    tensor = c.input(1)
    axis = c.value(c.make_dim_for_scalar_input_with_negative_indexing(0, c.rank(tensor)))
    count = c.num_outputs()
    if axis < 0:
        out = c.unknown_shape_of_rank(c.rank(tensor))
    else:
        tensor = c.with_rank_at_least(tensor, axis + 1)
        try:
            size = c.divide(c.dim(tensor, axis), count, evenly_divisible=True)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{error.message}\n\tNumber of ways to split should evenly divide the split dimension"
            ) from error
        out = c.replace_dim(tensor, axis, size)
    set_outputs(c, [out] * count)


SPLIT = register_op(
    "Split(split_dim: int32, value: T) -> output: num_split * T",
    attrs=["num_split: int >= 1", "T: type"],
    shape_fn=split_shape,
    traits="value_rule=split cost=linear row_rule=parts function_gradient=yes",
    doc="`value` in `num_split` equal parts along dimension `split_dim`.",
)


@register_kernel(
    SPLIT, types={"T": _SPLIT_TYPES}, host_memory=["split_dim"], kind="view", factory=True
)
def split(*, num_split: int) -> Callable[[Any, Any], list[Any]]:
    @lru_cache(maxsize=_CACHED_SHAPES)
    def indices(axis: int, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
        axis = _split_axis(axis, len(shape))
        size = shape[axis]
        if size % num_split:
            raise InvalidArgumentError(
                "Number of ways to split should evenly divide the split dimension, but got "
                f"split_dim {axis} (size = {size}) and num_split {num_split}"
            )
        return _indices(axis, [size // num_split] * num_split)

    def parts(split_dim: Any, value: Any) -> list[Any]:
        require_scalar(split_dim, f"split_dim must be a scalar but has rank {split_dim.ndim}")
        return [value[index] for index in indices(int(split_dim), value.shape)]

    return parts


def _split_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {axis}"
        )
    return axis % rank


def _indices(axis: int, sizes: Iterable[int]) -> list[tuple[slice, ...]]:
    """The indices of views that follow one another along `axis`."""
    before = (slice(None),) * axis
    ends = accumulate(sizes, initial=0)
    return [(*before, slice(start, stop)) for start, stop in pairwise(ends)]


def split_v_shape(c: InferenceContext) -> None:
    """The sizes of the parts, which must fit the dimension; one of them may be -1."""
    tensor = c.input(0)
    axis = c.value(c.make_dim_for_scalar_input_with_negative_indexing(2, c.rank(tensor)))
    sizes = c.input_tensor(1)
    count = c.num_outputs()
    require(tensor.dims != (), "Can't split scalars")
    if tensor.dims is None or (axis < 0 and sizes is None):
        outputs = [c.unknown_shape_of_rank(c.rank(tensor)) for _ in range(count)]
    elif sizes is None:
        outputs = [c.replace_dim(tensor, axis, None) for _ in range(count)]
    else:
        tensor = c.with_rank_at_least(tensor, axis + 1)
        known = _known_split_sizes(sizes, count, c.value(c.dim(tensor, axis)))
        outputs = [c.replace_dim(tensor, axis, size) for size in known]
    for i, out in enumerate(outputs):
        c.set_output(i, out)
        if axis < 0 and sizes is not None:  # TensorFlow splits the last axis where it is unknown
            c.doubt_output(i)


def _known_split_sizes(size_splits: Any, count: int, total: int) -> list[int]:
    """The sizes of the parts of a dimension of size `total`; -1 for an unknown size."""
    require_vector(size_splits, f"Shape must be rank 1 but is rank {size_splits.ndim}")
    sizes: list[int] = size_splits.tolist()
    require_equal(len(sizes), count, "Length of size_splits should be equal to num_outputs")
    require(sizes.count(-1) <= 1, "size_splits can only have one -1")
    given = sum(size for size in sizes if size != -1)
    known = [total - given if size == -1 and total >= 0 else size for size in sizes]
    for i, size in enumerate(known):
        if size < (-1 if total < 0 else 0):
            raise InvalidArgumentError(f"Split size at index {i} must be >= 0. Got: {size}")
    if 0 <= total != sum(known):
        pieces = ",".join(map(str, sizes))
        raise InvalidArgumentError(
            f"can't split axis of size {total} into pieces of size [{pieces}]"
        )
    return known


SPLIT_V = register_op(
    "SplitV(value: T, size_splits: Tlen, split_dim: int32) -> output: num_split * T",
    attrs=["num_split: int >= 1", "T: type", "Tlen: {int8, int32, int64} = DT_INT64"],
    shape_fn=split_v_shape,
    traits="value_rule=split_v cost=linear function_gradient=yes",
    doc="`value` in parts of sizes `size_splits` along dimension `split_dim`; one may be -1.",
)


@register_kernel(
    SPLIT_V,
    types={"T": _SPLIT_TYPES, "Tlen": (DataType.DT_INT8, *INDEX)},
    host_memory=["size_splits", "split_dim"],
    kind="view",
)
def split_v(value: Any, size_splits: Any, split_dim: Any, *, num_split: int) -> list[Any]:
    require_equal(split_dim.size, 1, "split_dim_tensor must have exactly one element.")
    if size_splits.shape != (num_split,):
        raise InvalidArgumentError(
            "size of the split_tensor must be 1-D and have the same elements as outputs got "
            f"{size_splits.ndim} -D and {size_splits.size} elements"
        )
    axis = _split_axis(split_dim.item(), value.ndim)
    sizes = _split_sizes(size_splits.tolist(), value.shape[axis])
    return [value[index] for index in _indices(axis, sizes)]


def _split_sizes(sizes: list[int], total: int) -> list[int]:
    """The sizes of the parts with the one that is -1 filled in."""
    if len(sizes) == 1 and sizes[0] != total:
        raise InvalidArgumentError(
            "If there is only one output, it must have the same size as the input. "
            f"Input size: {total} output size: {sizes[0]}"
        )
    require(sizes.count(-1) <= 1, "There can only be one -1 in the input.")
    given = sum(size for size in sizes if size != -1)
    if given > total or (given < total and -1 not in sizes):
        raise InvalidArgumentError(
            "Determined shape must either match input shape along split_dim exactly if fully "
            "specified, or be less than the size of the input along split_dim if not fully "
            f"specified.  Got: {given}"
        )
    for i, size in enumerate(sizes):
        if size < -1:
            raise InvalidArgumentError(f"Split size at index {i} must be >= 0. Got: {size}")
    return [total - given if size == -1 else size for size in sizes]


def unpack_shape(c: InferenceContext) -> None:
    """Each output is the input without dimension `axis`."""
    dims = c.input(0).dims
    if dims is None:
        out = c.unknown_shape()
    else:
        axis = pack_axis(c, len(dims))
        c.with_value(dims[axis], c.num_outputs())
        out = c.make_shape(dims[:axis] + dims[axis + 1 :])
    set_outputs(c, [out] * c.num_outputs())


UNPACK = register_op(
    "Unpack(value: T) -> output: num * T",
    attrs=["num: int >= 0", "T: type", "axis: int = 0"],
    shape_fn=unpack_shape,
    traits="value_rule=unpack cost=linear int32_on_host function_gradient=yes",
    doc="`value` in slices along dimension `axis`, without that dimension.",
)


@register_kernel(UNPACK, types={"T": (*ALL, *FLOAT8)}, kind="view", factory=True)
def unpack(*, num: int, axis: int) -> Callable[[Any], list[Any]]:
    int32_attr("axis", axis)
    if num == 0:
        return lambda value: []

    def slices(value: Any) -> list[Any]:
        rank = value.ndim
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"axis = {axis} not in [{-rank}, {rank})")
        if value.shape[axis] != num:
            raise InvalidArgumentError(
                f"Input shape axis {axis % rank} must equal {num}, got shape {TensorShape(value.shape)}"
            )
        before = (slice(None),) * (axis % rank)
        return [value[(*before, i, ...)] for i in range(num)]

    return slices


g.register_gradient("Split")(lambda op, *grads: (None, _joined(grads, op.inputs[0])))
g.register_gradient("SplitV")(lambda op, *grads: (_joined(grads, op.inputs[2]), None, None))


def _joined(parts: Sequence[g.Tensor], axis: g.Tensor) -> g.Tensor:
    """The parts along the axis; ConcatV2 takes two at least."""
    if len(parts) == 1:
        return parts[0]
    joined: g.Tensor = g.nodes.ConcatV2(parts, axis)
    return joined


g.register_gradient("Unpack")(lambda op, *grads: g.nodes.Pack(grads, **g.attrs_of(op, "axis")))


def dynamic_partition_shape(c: InferenceContext) -> None:
    """Any number of rows each, of the shape of `data` after that of `partitions`."""
    data, partitions = c.input(0), c.input(1)
    if not c.rank_known(partitions):
        unknown_shape(c)
        return
    c.merge_prefix(data, partitions)
    row = c.subshape(data, c.rank(partitions))
    set_outputs(c, [c.concatenate(c.vector(c.unknown_dim()), row)] * c.num_outputs())


DYNAMIC_PARTITION = register_op(
    "DynamicPartition(data: T, partitions: int32) -> outputs: num_partitions * T",
    attrs=["num_partitions: int >= 1", "T: type"],
    shape_fn=dynamic_partition_shape,
    doc="Output i holds the parts of `data` where `partitions`, the leading dimensions, is i.",
    traits="cost=linear",
)


@register_kernel(DYNAMIC_PARTITION, types={"T": ALL})
def dynamic_partition(data: Any, partitions: Any, *, num_partitions: int) -> list[Any]:
    rank = partitions.ndim
    if data.shape[:rank] != partitions.shape:
        raise InvalidArgumentError(
            "data.shape must start with partitions.shape, got data.shape = "
            f"{TensorShape(data.shape)}, partitions.shape = {TensorShape(partitions.shape)}"
        )
    numbers = partitions.reshape(-1)
    _check_numbers(partitions, num_partitions)
    order = stable_order(numbers)
    check_allocation(data.shape, as_dtype(data.dtype))
    rows = data.reshape((numbers.size, *data.shape[rank:]))[order]
    ends = np.cumsum(np.bincount(numbers, minlength=num_partitions)).tolist()
    return [rows[start:stop] for start, stop in pairwise([0, *ends])]


def _check_numbers(partitions: Any, num_partitions: int) -> None:
    wrong = (partitions < 0) | (partitions >= num_partitions)
    if wrong.any():
        at = np.unravel_index(np.argmax(wrong), partitions.shape)
        place = f"[{','.join(map(str, at))}]" if at else ""
        raise InvalidArgumentError(
            f"partitions{place} = {np.asarray(partitions)[at]} is not in [0, {num_partitions})"
        )


@g.register_gradient("DynamicPartition")
def dynamic_partition_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    data, partitions = op.inputs
    shape = g.nodes.Shape(partitions)
    places = g.nodes.Reshape(g.nodes.Range(0, g.nodes.Size(partitions), 1), shape)
    moved = g.nodes.DynamicPartition(places, partitions, **g.attrs_of(op, "num_partitions"))
    return g.nodes.Reshape(g.nodes.ParallelDynamicStitch(moved, grads), g.shape_of(data)), None


def dynamic_stitch_shape(c: InferenceContext) -> None:
    """One row more than the highest index, if all are known, of what follows the indices."""
    count = c.get_attr("N")
    row, highest, all_known = c.unknown_shape(), -1, True
    for i in range(count):
        indices = c.input_tensor(i)
        all_known = all_known and indices is not None
        if not c.rank_known(c.input(i)):
            continue
        c.merge_prefix(c.input(count + i), c.input(i))
        row = c.merge(row, c.subshape(c.input(count + i), c.rank(c.input(i))))
        if indices is not None and indices.size:
            highest = max(highest, int(indices.max()))
    length = c.make_dim(highest + 1) if all_known else c.unknown_dim()
    c.set_output(0, c.concatenate(c.vector(length), row))


_STITCH_DOC = "A tensor whose row `indices[i][j]` is row j of `data[i]`; of several such the last."

DYNAMIC_STITCH, PARALLEL_DYNAMIC_STITCH = (
    register_op(
        f"{name}(indices: N * int32, data: N * T) -> merged: T",
        attrs=["N: int >= 1", "T: type"],
        shape_fn=dynamic_stitch_shape,
        traits="cost=linear",
        doc=_STITCH_DOC,
    )
    for name in ("DynamicStitch", "ParallelDynamicStitch")
)

_STITCH_TYPES = (*POD_OR_STRING, *QUANTIZED, DataType.DT_VARIANT)


@register_kernel(
    PARALLEL_DYNAMIC_STITCH, DYNAMIC_STITCH, types={"T": _STITCH_TYPES}, host_memory=["indices"]
)
def dynamic_stitch(indices: list[Any], data: list[Any], *, T: DataType) -> Any:
    """Rows that no index names are zeros; TensorFlow leaves them as the memory happens to be."""
    merged = zeros(merged_shape(indices, data, T), T)
    for places, rows in zip(in_time(indices, _work_of), data, strict=True):
        merged[places.reshape(-1)] = rows.reshape(places.size, *merged.shape[1:])
    return merged


_INT32_MAX = 2**31 - 1


def _work_of(places: Any) -> int:
    return array_work(places.size)


def merged_shape(indices: list[Any], data: list[Any], T: DataType) -> tuple[int, ...]:
    """The shape of what DynamicStitch makes of its inputs.

    Raises:
        InvalidArgumentError: their shapes do not fit, or an index is negative.
    """
    row = data[0].shape[indices[0].ndim :]
    highest = -1
    for i, places in enumerate(in_time(indices, _work_of)):
        _check_shapes(indices, data, i, row)
        if places.size:
            highest = max(highest, int(places.max()))
            if places.min() < 0:
                raise InvalidArgumentError(f"indices[{i}] is out of range")
    if highest == _INT32_MAX:
        raise InvalidArgumentError(f"indices give {highest + 1} rows, more than an int32 counts")
    return check_allocation((highest + 1, *row), T)


def _check_shapes(indices: list[Any], data: list[Any], i: int, row: tuple[int, ...]) -> None:
    rank, shape = indices[i].ndim, data[i].shape
    if shape[:rank] != indices[i].shape:
        raise InvalidArgumentError(
            f"data[{i}].shape = {TensorShape(shape)} does not start with indices[{i}].shape = "
            f"{TensorShape(indices[i].shape)}"
        )
    if shape[rank:] != row:
        raise InvalidArgumentError(
            f"Need data[0].shape[{indices[0].ndim}:] = data[{i}].shape[{rank}:], got "
            f"data[0].shape = {TensorShape(data[0].shape)}, "
            f"data[{i}].shape = {TensorShape(shape)}, "
            f"indices[0].shape = {TensorShape(indices[0].shape)}, "
            f"indices[{i}].shape = {TensorShape(indices[i].shape)}"
        )


@g.register_gradient(
    "DynamicStitch",
    "ParallelDynamicStitch",
    not_derivative="an index that is there twice counts twice",
)
def dynamic_stitch_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    number = len(op.inputs) // 2
    parts = [g.nodes.GatherV2(grad, indices, 0) for indices in op.inputs[:number]]
    return [*[None] * number, *parts]
