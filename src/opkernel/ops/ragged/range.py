"""RaggedRange: a row of numbers from each start to its limit.

Source: TensorFlow core/ops/ragged_math_ops.cc, core/kernels/ragged_range_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.input_checks import require_rank_at_most
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.ragged.rows import lengths_to_splits, ranges
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

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
    "RaggedRange",
    inputs=["starts: T", "limits: T", "deltas: T"],
    outputs=["rt_nested_splits: Tsplits", "rt_dense_values: T"],
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
    if len(sizes) > 1:
        raise InvalidArgumentError("starts, limits, and deltas must have the same shape")
    rows = (sizes.pop() if sizes else 1,)
    first, last, step = (np.broadcast_to(tensor, rows) for tensor in inputs.values())
    if (step == 0).any():
        raise InvalidArgumentError("Requires delta != 0")
    lengths = _lengths(first, last, step)
    limit = int(np.iinfo(Tsplits.numpy_dtype).max)
    if lengths.sum(dtype=np.float64) > limit or lengths.max(initial=0) > limit:
        raise InvalidArgumentError(
            f"Requires ((limit - start) / delta) <= {limit}, and no more values in all"
        )
    total = int(lengths.sum())
    check_allocation((total,), T)
    counts = lengths.astype(np.int64)
    return lengths_to_splits(counts, Tsplits), _values(first, step, counts)


def _lengths(starts: Any, limits: Any, deltas: Any) -> Any:
    """How many values each row has."""
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
        steps = ranges(np.zeros(counts.size, np.int64), counts).astype(starts.dtype)
        with np.errstate(over="ignore"):
            return np.repeat(starts, counts) + steps * np.repeat(deltas, counts)
    values = np.repeat(deltas, counts)
    ends = np.cumsum(counts)
    for start, a, b in in_time(zip(starts, ends - counts, ends, strict=True)):
        if a < b:
            values[a] = start
            np.add.accumulate(values[a:b], out=values[a:b])
    return values
