"""DynamicPartition: the rows of a tensor, sorted into several by number.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/dynamic_partition_op.cc.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unknown_shape
from opkernel.ops.kernel_types import ALL
from opkernel.ops.registration import register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import TensorShape, as_dtype


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


@register_kernel(DYNAMIC_PARTITION, device="CPU", types={"T": ALL})
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
