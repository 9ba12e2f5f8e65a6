"""RaggedGather: rows of a ragged tensor.

Source: TensorFlow core/ops/ragged_array_ops.cc, core/kernels/ragged_gather_op.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks, set_outputs
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.ragged.rows import VALUE_TYPES, lengths_to_splits, nested_rows
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_ARRAYS = 4
"""So many arrays tell the places of the rows."""


def ragged_gather_shape(c: InferenceContext) -> None:
    """Splits for the dimensions of the indices and of the rows, values of unknown number."""
    params_rank, splits = c.get_attr("PARAMS_RAGGED_RANK"), c.get_attr("OUTPUT_RAGGED_RANK")
    c.with_rank(c.input(params_rank + 1), splits - params_rank + 1)
    check_input_ranks(c, *[1] * params_rank)
    values = c.with_rank_at_least(c.input(params_rank), 1)
    gathered = c.concatenate(c.vector(None), c.subshape(values, 1))
    set_outputs(c, [*[c.vector(None) for _ in range(splits)], gathered])


RAGGED_GATHER = register_op(
    "RaggedGather",
    inputs=[
        "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits",
        "params_dense_values: Tvalues",
        "indices: Tindices",
    ],
    outputs=["output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits", "output_dense_values: Tvalues"],
    attrs=[
        "Tvalues: type",
        "Tindices: {int32, int64}",
        "Tsplits: {int32, int64} = DT_INT64",
        "PARAMS_RAGGED_RANK: int >= 1",
        "OUTPUT_RAGGED_RANK: int >= 0",
    ],
    shape_fn=ragged_gather_shape,
    doc="The rows of a ragged tensor at `indices`.",
)


@register_kernel(RAGGED_GATHER, types={"Tvalues": VALUE_TYPES, "Tindices": INDEX, "Tsplits": INDEX})
def ragged_gather(
    nested_splits: list[Any],
    values: Any,
    indices: Any,
    *,
    Tsplits: DataType,
    OUTPUT_RAGGED_RANK: int,
) -> tuple[list[Any], Any]:
    if any(level.ndim == 0 for level in nested_splits):
        raise InvalidArgumentError("Split tensors must not be scalars")
    splits = [level.reshape(-1).astype(np.int64) for level in nested_splits]
    if values.ndim == 0 or any(level.size == 0 for level in splits):
        raise InvalidArgumentError("Splits and values must have rows")
    _check_indices(indices, nested_splits[0].shape[0] - 1)
    _check_splits(splits, values.shape[0])
    if len(splits) + indices.ndim - 1 != OUTPUT_RAGGED_RANK:
        raise InvalidArgumentError(
            f"OUTPUT_RAGGED_RANK is {OUTPUT_RAGGED_RANK}, but {len(splits)} splits and indices of "
            f"rank {indices.ndim} give {len(splits) + indices.ndim - 1}"
        )
    _check_size(splits, indices.reshape(-1))
    lengths, rows = nested_rows(splits, indices.reshape(-1))
    outer = _dense_splits(indices.shape, Tsplits)
    inner = [lengths_to_splits(one, Tsplits) for one in lengths]
    return [*outer, *inner[indices.ndim == 0 :]], values[rows]


def _check_indices(indices: Any, rows: int) -> None:
    wrong = (indices < 0) | (indices >= rows)
    if wrong.any():
        where = np.argwhere(wrong)[0].tolist()
        raise InvalidArgumentError(
            f"indices{where} = {indices[tuple(where)]} is not in [0, {rows})"
        )


def _check_splits(splits: list[Any], size: int) -> None:
    sizes = [*(level.size - 1 for level in splits[1:]), size]
    for level, limit in zip(splits, sizes, strict=True):
        if (level < 0).any():
            raise InvalidArgumentError("Ragged splits must be non-negative")
        if (np.diff(level) < 0).any():
            raise InvalidArgumentError("Ragged splits must be sorted")
        if level[-1] > limit:
            raise InvalidArgumentError("Ragged splits must not point past values")


def _check_size(splits: Sequence[Any], rows: Any) -> None:
    """Refuse results that fit no memory, before they are made."""
    begins = np.arange(splits[0].size)
    for level in splits:
        begins = level[begins]
        total = (begins[rows + 1] - begins[rows]).sum() if rows.size else 0
        check_allocation((_ARRAYS, int(total)), DataType.DT_INT64)


def _dense_splits(shape: tuple[int, ...], dtype: DataType) -> list[Any]:
    """Splits for the dimensions of a tensor after the first."""
    rows = np.cumprod([1, *shape]).tolist()
    return [
        (np.arange(rows[i] + 1) * shape[i]).astype(dtype.numpy_dtype) for i in range(1, len(shape))
    ]


@g.register_gradient("RaggedGather")
def ragged_gather_gradient(op: g.Operation, *grads: Any) -> g.Gradients:
    splits, values, indices = op.inputs[:-2], op.inputs[-2], op.inputs[-1]
    begins = splits[0]
    for level in splits[1:]:
        begins = g.nodes.GatherV2(level, begins, 0)
    rows = g.nodes.Reshape(indices, [-1])
    starts = g.nodes.GatherV2(begins, rows, 0)
    limits = g.nodes.GatherV2(begins, g.nodes.Add(rows, 1), 0)
    places = g.nodes.RaggedRange(starts, limits, g.ones_like(starts)).rt_dense_values
    count = g.nodes.GatherV2(g.nodes.Shape(values), 0, 0)
    grad = g.nodes.UnsortedSegmentSum(grads[-1], places, count)
    return *[None] * len(splits), grad, None
