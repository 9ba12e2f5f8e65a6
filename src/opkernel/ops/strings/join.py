"""Strings of a tensor joined: ReduceJoin, UnsortedSegmentJoin.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/reduce_join_op.cc, unsorted_segment_join_op.cc.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opkernel.device.string_tensors import joining, string_tensor
from opkernel.device.work_clock import in_time, parts_work
from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import check_allocation
from opkernel.opdef import (
    reduction_shape,
    register_op,
    segment_reduction_with_num_segments_shape,
)
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType

REDUCE_JOIN = register_op(
    "ReduceJoin",
    inputs=["inputs: string", "reduction_indices: int32"],
    outputs=["output: string"],
    attrs=["keep_dims: bool = false", "separator: string = ''"],
    shape_fn=reduction_shape,
    doc="The strings along dimensions joined, those of the first of `reduction_indices` next to one another.",
)


@register_kernel(REDUCE_JOIN, factory=True)
def reduce_join(*, keep_dims: bool, separator: str) -> Callable[[Any, Any], Any]:
    glue = separator.encode("utf-8", "surrogateescape")

    def join(inputs: Any, reduction_indices: Any) -> Any:
        reduced = _reduced_dims(reduction_indices.reshape(-1).tolist(), inputs.ndim)
        kept = [i for i in range(inputs.ndim) if i not in reduced]
        shape = tuple(inputs.shape[i] for i in kept)
        if keep_dims:
            output = tuple(1 if i in reduced else n for i, n in enumerate(inputs.shape))
        else:
            output = shape
        if not reduced:
            return inputs.copy()
        count = int(np.prod(shape))
        rows = inputs.transpose([*kept, *reduced[::-1]]).reshape(
            count, inputs.size // max(count, 1)
        )
        return string_tensor(output, map(joining(glue), in_time(rows.tolist(), parts_work)))

    return join


def _reduced_dims(indices: list[int], rank: int) -> list[int]:
    dims: list[int] = []
    for index in indices:
        if not -rank <= index < rank:
            raise OutOfRangeError(
                f"Invalid reduction dimension {index} for input with {rank} dimension(s)"
            )
        dim = index % rank
        if dim in dims:
            raise InvalidArgumentError(f"Duplicate reduction dimension {dim}")
        dims.append(dim)
    return dims


UNSORTED_SEGMENT_JOIN = register_op(
    "UnsortedSegmentJoin",
    inputs=["inputs: string", "segment_ids: Tindices", "num_segments: Tnumsegments"],
    outputs=["output: string"],
    attrs=[
        "separator: string = ''",
        "Tindices: {int32, int64}",
        "Tnumsegments: {int32, int64} = DT_INT32",
    ],
    shape_fn=segment_reduction_with_num_segments_shape,
    doc="The strings of each segment joined, in their order.",
)


@register_kernel(
    UNSORTED_SEGMENT_JOIN, types={"Tindices": INDEX, "Tnumsegments": INDEX}, factory=True
)
def unsorted_segment_join(*, separator: str) -> Callable[[Any, Any, Any], Any]:
    glue = separator.encode("utf-8", "surrogateescape")

    def join(inputs: Any, segment_ids: Any, num_segments: Any) -> Any:
        count = _check_segments(inputs, segment_ids, num_segments)
        inner = inputs.shape[segment_ids.ndim :]
        shape = check_allocation((count, *inner), DataType.DT_STRING)
        columns = inputs.reshape(segment_ids.size, int(np.prod(inner))).T
        ids = segment_ids.reshape(-1)
        order = stable_order(ids)
        ends = np.cumsum(np.bincount(ids, minlength=count)).tolist()

        def segments() -> Iterator[list[bytes]]:
            for column in columns:
                strings = column[order].tolist()
                for begin, end in zip([0, *ends], ends, strict=False):
                    yield _after_empty(strings[begin:end])

        joined = map(joining(glue), in_time(segments(), parts_work))
        return string_tensor((len(columns), count), joined).T.reshape(shape)

    return join


def _after_empty(strings: list[bytes]) -> list[bytes]:
    """The strings from the first that is not empty on: before it stands no separator."""
    first = next((i for i, text in enumerate(strings) if text), len(strings))
    return strings[first:]


def _check_segments(inputs: Any, segment_ids: Any, num_segments: Any) -> int:
    """The number of segments, if the inputs fit together."""
    require_scalar(num_segments, "Number of segments must be a scalar")
    count = int(num_segments)
    if count < 0:
        raise InvalidArgumentError(f"Number of segments must be non-negative but got {count}")
    rank = segment_ids.ndim
    if rank == 0:
        raise InvalidArgumentError("Segment_id cannot have rank 0")
    if rank > inputs.ndim:
        raise OutOfRangeError(
            f"Invalid segment_id rank {rank} for input with {inputs.ndim} dimension(s)"
        )
    for i, (ids, values) in enumerate(zip(segment_ids.shape, inputs.shape, strict=False)):
        if ids != values:
            raise InvalidArgumentError(
                f"Segment dimension is {ids} while input dimension is {values} in rank {i}"
            )
    if segment_ids.size and not 0 <= segment_ids.min() <= segment_ids.max() < count:
        raise InvalidArgumentError(
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        )
    return count
