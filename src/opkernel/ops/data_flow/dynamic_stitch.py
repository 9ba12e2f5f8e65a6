"""DynamicStitch, ParallelDynamicStitch: rows of several tensors put into one by index.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/dynamic_stitch_op.cc.
"""

from __future__ import annotations

from typing import Any

import opkernel.gradients as g
from opkernel.device.work_clock import array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.array.zeros import zeros
from opkernel.ops.kernel_types import POD_OR_STRING, QUANTIZED
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape


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
    PARALLEL_DYNAMIC_STITCH, device="CPU", types={"T": _TYPES}, host_memory=["indices"]
)
@register_kernel(DYNAMIC_STITCH, device="CPU", types={"T": _TYPES}, host_memory=["indices"])
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
