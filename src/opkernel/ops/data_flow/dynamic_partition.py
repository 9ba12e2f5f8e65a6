"""Rows sent to several tensors and put together again: DynamicPartition, DynamicStitch, ParallelDynamicStitch.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/dynamic_partition_op.cc,
core/kernels/dynamic_stitch_op.cc.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unknown_shape
from opkernel.ops.array.fill import zeros
from opkernel.ops.kernel_types import ALL, POD_OR_STRING, QUANTIZED
from opkernel.ops.registration import register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape, as_dtype


def dynamic_partition_shape(c: InferenceContext) -> None:
    """Any number of rows each, of the shape of `data` after that of `partitions`."""
    data, partitions = c.input(0), c.input(1)
    if not c.rank_known(partitions):
        unknown_shape(c)
        return
    c.merge_prefix(data, partitions)
    row = c.subshape(data, c.rank(partitions))
    output = c.concatenate(c.vector(c.unknown_dim()), row)
    for index in range(c.num_outputs()):
        c.set_output(index, output)


DYNAMIC_PARTITION = register_op(
    "DynamicPartition",
    inputs=["data: T", "partitions: int32"],
    outputs=["outputs: num_partitions * T"],
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


_DOC = "A tensor whose row `indices[i][j]` is row j of `data[i]`; of several such the last."

DYNAMIC_STITCH, PARALLEL_DYNAMIC_STITCH = (
    register_op(
        name,
        inputs=["indices: N * int32", "data: N * T"],
        outputs=["merged: T"],
        attrs=["N: int >= 1", "T: type"],
        shape_fn=dynamic_stitch_shape,
        traits="cost=linear",
        doc=_DOC,
    )
    for name in ("DynamicStitch", "ParallelDynamicStitch")
)

_TYPES = (*POD_OR_STRING, *QUANTIZED, DataType.DT_VARIANT)


@register_kernel(
    PARALLEL_DYNAMIC_STITCH, DYNAMIC_STITCH, types={"T": _TYPES}, host_memory=["indices"]
)
def dynamic_stitch(indices: list[Any], data: list[Any], *, T: DataType) -> Any:
    """Rows that no index names are zeros; TensorFlow leaves them as the memory happens to be."""
    merged = zeros(merged_shape(indices, data, T), T)
    for places, rows in zip(in_time(indices, _work), data, strict=True):
        merged[places.reshape(-1)] = rows.reshape(places.size, *merged.shape[1:])
    return merged


def _work(places: Any) -> int:
    return array_work(places.size)


def merged_shape(indices: list[Any], data: list[Any], T: DataType) -> tuple[int, ...]:
    """The shape of what DynamicStitch makes of its inputs.

    Raises:
        InvalidArgumentError: their shapes do not fit, or an index is negative.
    """
    row = data[0].shape[indices[0].ndim :]
    highest = -1
    for i, places in enumerate(in_time(indices, _work)):
        _check_shapes(indices, data, i, row)
        if places.size:
            highest = max(highest, int(places.max()))
            if places.min() < 0:
                raise InvalidArgumentError(f"indices[{i}] is out of range")
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
