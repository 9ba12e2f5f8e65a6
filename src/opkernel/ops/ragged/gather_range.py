"""Rows of ragged tensors, by their splits; tensors of the rows of others, or of ranges: RaggedGather, RaggedRange.

Source: TensorFlow core/ops/ragged_array_ops.cc, core/kernels/ragged_gather_op.cc, core/ops/ragged_math_ops.cc,
core/kernels/ragged_range_op.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks, set_outputs
from opkernel.ops.input_checks import require, require_equal, require_rank_at_most
from opkernel.ops.registration import ALL_QUANTIZED, INDEX, POD_OR_STRING, register_kernel
from opkernel.types import DataType

VALUE_TYPES = (*POD_OR_STRING, *ALL_QUANTIZED)
"""The types of the values of most ops on ragged tensors."""


def check_splits(splits: Any, size: int) -> None:
    """Raise InvalidArgumentError unless splits go up from 0 to the number of values."""
    if not splits.size:
        raise InvalidArgumentError(
            "Invalid ragged splits: ragged splits must have at least one splits, but is empty"
        )
    require_equal(
        splits[0], 0, "Invalid ragged splits: first element of ragged splits must be 0 but is {}"
    )
    falls = np.flatnonzero(splits[1:] < splits[:-1])
    if falls.size:
        at = falls[0]
        raise InvalidArgumentError(
            "Invalid ragged splits: ragged splits must be monotonically increasing, but "
            f"ragged_splits[{at + 1}]={splits[at + 1]} is smaller than {splits[at]}"
        )
    if splits[-1] != size:
        raise InvalidArgumentError(
            "Invalid ragged splits: last element of ragged splits must be the number of ragged "
            f"values ({size}) but is {splits[-1]}"
        )


def lengths_to_splits(lengths: Any, dtype: DataType = DataType.DT_INT64) -> Any:
    """Where rows of these lengths begin, and the end."""
    splits = np.zeros(check_allocation((lengths.size + 1,), dtype), dtype.numpy_dtype)
    splits[1:] = np.cumsum(lengths)
    return splits


def ranges(starts: Any, lengths: Any) -> Any:
    """The integers of ranges, one range after the other."""
    shifts = lengths - np.cumsum(lengths)
    shifts += starts
    places = np.repeat(shifts, lengths)
    places += np.arange(places.size)
    return places


def nested_rows(splits: Sequence[Any], rows: Any) -> tuple[list[Any], Any]:
    """Choose rows of nested splits: the lengths at each level, and which flat values they have."""
    lengths = []
    for level in splits:
        lengths.append(level[rows + 1] - level[rows])
        rows = ranges(level[rows], lengths[-1])
    return lengths, rows


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
    "RaggedGather(params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, "
    "params_dense_values: Tvalues, indices: Tindices) "
    "-> output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues",
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
    nested: list[Any], values: Any, indices: Any, *, Tsplits: DataType, OUTPUT_RAGGED_RANK: int
) -> tuple[list[Any], Any]:
    require(not any(level.ndim == 0 for level in nested), "Split tensors must not be scalars")
    if Tsplits is not DataType.DT_INT64:
        check_allocation((sum(level.size for level in nested),), DataType.DT_INT64)
    splits = [level.reshape(-1).astype(np.int64, copy=False) for level in nested]
    if values.ndim == 0 or any(level.size == 0 for level in splits):
        raise InvalidArgumentError("Splits and values must have rows")
    _check_indices(indices, nested[0].shape[0] - 1)
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
    for level, limit in in_time([*zip(splits, sizes, strict=True)], SLOW):
        require(not (level < 0).any(), "Ragged splits must be non-negative")
        require(not (np.diff(level) < 0).any(), "Ragged splits must be sorted")
        require(level[-1] <= limit, "Ragged splits must not point past values")


def _check_size(splits: Sequence[Any], rows: Any) -> None:
    """Refuse results that fit no memory, before they are made."""
    begins = np.arange(splits[0].size)
    for level in in_time(splits, SLOW):
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


_INT64_MAX = 2**63 - 1


def ragged_range_shape(c: InferenceContext) -> None:
    """A split more than rows, values of unknown number."""
    limits = [c.with_rank_at_most(c.input(i), 1) for i in range(3)]
    rows = c.unknown_dim()
    for shape in limits:
        if c.rank(shape) == 1:
            rows = c.merge(c.dim(shape, 0), rows)
    if c.value_known(rows):
        splits: int | None = rows.value + 1
    else:
        splits = 2 if all(c.rank(shape) == 0 for shape in limits) else None
    set_outputs(c, [c.vector(splits), c.vector(None)])


RAGGED_RANGE = register_op(
    "RaggedRange(starts: T, limits: T, deltas: T) -> rt_nested_splits: Tsplits, rt_dense_values: T",
    attrs=[
        "T: {bfloat16, float, double, int32, int64} = DT_INT32",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    shape_fn=ragged_range_shape,
    doc="Rows from `starts` to below `limits` in steps of `deltas`; scalars serve all rows.",
)

_TYPES = (DataType.DT_FLOAT, DataType.DT_DOUBLE, *INDEX)


@register_kernel(RAGGED_RANGE, types={"T": _TYPES, "Tsplits": INDEX})
def ragged_range(
    starts: Any, limits: Any, deltas: Any, *, T: DataType, Tsplits: DataType
) -> tuple[Any, Any]:
    inputs = {"starts": starts, "limits": limits, "deltas": deltas}
    for name, tensor in inputs.items():
        require_rank_at_most(tensor, 1, f"{name} must be a scalar or vector")
    sizes = {tensor.size for tensor in inputs.values() if tensor.ndim}
    require(len(sizes) <= 1, "starts, limits, and deltas must have the same shape")
    rows = (sizes.pop() if sizes else 1,)
    first = np.broadcast_to(starts, rows)
    require(not (rows[0] and (deltas == 0).any()), "Requires delta != 0")
    lengths = np.broadcast_to(_lengths(*map(np.atleast_1d, inputs.values())), rows)
    limit = int(np.iinfo(Tsplits.numpy_dtype).max)
    if lengths.sum(dtype=np.float64) > limit or lengths.max(initial=0) > limit:
        raise InvalidArgumentError(
            f"Requires ((limit - start) / delta) <= {limit}, and no more values in all"
        )
    total = int(lengths.sum())
    check_allocation((total,), T)
    counts = lengths.astype(np.int64)
    return lengths_to_splits(counts, Tsplits), _values(first, deltas, counts)


def _lengths(starts: Any, limits: Any, deltas: Any) -> Any:
    """How many values each row has; a vector of one serves all rows."""
    is_empty = ((deltas > 0) & (starts >= limits)) | ((deltas < 0) & (starts <= limits))
    if starts.dtype.kind == "i":
        # As integers of 64 bits without a sign, differences are exact.
        first, last, step = (
            one.astype(np.int64).view(np.uint64) for one in (starts, limits, deltas)
        )
        rises = deltas > 0
        distance, size = np.where(rises, last - first, first - last), np.where(rises, step, -step)
        return np.where(is_empty, np.uint64(0), (distance - np.uint64(1)) // size + np.uint64(1))
    first, last, step = (one.astype(np.float64) for one in (starts, limits, deltas))
    sizes = np.where(is_empty, 0, np.ceil(np.abs((last - first) / step)))
    if not (sizes <= _INT64_MAX).all():
        raise InvalidArgumentError(f"Requires ((limit - start) / delta) <= {_INT64_MAX}")
    return sizes.astype(np.uint64)


def _values(starts: Any, deltas: Any, counts: Any) -> Any:
    """Each value is the one before and the delta: floats are rounded as they go."""
    if starts.dtype.kind == "i":
        begins = (np.cumsum(counts) - counts).astype(starts.dtype)
        values = np.arange(counts.sum()).astype(starts.dtype)
        with np.errstate(over="ignore"):
            values *= np.repeat(deltas, counts) if deltas.ndim else deltas
            values += np.repeat(starts - begins * deltas, counts)
        return values
    deltas = np.broadcast_to(deltas, counts.shape)
    values = np.repeat(deltas, counts)
    ends = np.cumsum(counts)
    for start, a, b in in_time(zip(starts, ends - counts, ends, strict=True)):
        if a < b:
            values[a] = start
            np.add.accumulate(values[a:b], out=values[a:b])
    return values
