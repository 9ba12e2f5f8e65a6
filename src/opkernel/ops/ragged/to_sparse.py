"""RaggedTensorToSparse: a ragged tensor as a sparse one.

Source: TensorFlow core/ops/ragged_conversion_ops.cc, core/kernels/ragged_tensor_to_sparse_kernel.cc.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks, set_outputs
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.ragged.rows import ranges
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def splits_and_values(c: InferenceContext, ragged_rank: int) -> ShapeHandle:
    """The shape of the flat values, the input after the splits; all splits are vectors."""
    values = c.with_rank_at_least(c.input(ragged_rank), 1)
    check_input_ranks(c, *[1] * ragged_rank)
    return values


def ragged_tensor_to_sparse_shape(c: InferenceContext) -> None:
    """An index and a value for each of the flat values."""
    ragged_rank = c.get_attr("RAGGED_RANK")
    values = splits_and_values(c, ragged_rank)
    rank = c.make_dim(c.rank(values) + ragged_rank if c.rank_known(values) else None)
    count = c.num_elements(values)
    set_outputs(c, [c.matrix(count, rank), c.vector(count), c.vector(rank)])


RAGGED_TENSOR_TO_SPARSE = register_op(
    "RaggedTensorToSparse",
    inputs=["rt_nested_splits: RAGGED_RANK * Tsplits", "rt_dense_values: T"],
    outputs=["sparse_indices: int64", "sparse_values: T", "sparse_dense_shape: int64"],
    attrs=["RAGGED_RANK: int >= 1", "T: type", "Tsplits: {int32, int64} = DT_INT64"],
    shape_fn=ragged_tensor_to_sparse_shape,
    doc="The values of a ragged tensor with their indices.",
)


@register_kernel(RAGGED_TENSOR_TO_SPARSE, types={"Tsplits": INDEX})
def ragged_tensor_to_sparse(nested_splits: list[Any], values: Any) -> tuple[Any, Any, Any]:
    splits = [one.reshape(-1) for one in nested_splits]
    _check(splits, values)
    columns, sizes = [np.arange(splits[0].size - 1)], [splits[0].size - 1]
    for level in splits:
        lengths = np.diff(level)
        columns = [np.repeat(column, lengths) for column in columns]
        columns.append(ranges(np.zeros(lengths.size, np.int64), lengths))
        sizes.append(int(lengths.max(initial=0)))
    inner = values.shape[1:]
    check_allocation((values.size, len(sizes) + len(inner)), DataType.DT_INT64)
    count = int(np.prod(inner))
    columns = [np.repeat(column, count) for column in columns]
    columns += [np.tile(one.reshape(-1), values.shape[0]) for one in np.indices(inner)]
    indices = np.stack(columns, axis=1).astype(np.int64)
    return indices, values.reshape(-1).copy(), np.array([*sizes, *inner], np.int64)


def _check(splits: list[Any], values: Any) -> None:
    """Raise InvalidArgumentError unless the splits fit one another and the values."""
    sizes = [level.size - 1 for level in splits[1:]]
    sizes.append(values.shape[0] if values.ndim else -1)
    for level, size in zip(splits, sizes, strict=True):
        if not level.size:
            raise InvalidArgumentError("ragged splits may not be empty.")
        if level[0] != 0:
            raise InvalidArgumentError("First value of ragged splits must be 0.")
        falls = np.flatnonzero(level[1:] < level[:-1])
        if falls.size:
            raise InvalidArgumentError(
                f"Ragged splits should be non decreasing, but we got {level[falls[0]]} followed "
                f"by {level[falls[0] + 1]}"
            )
        if level[-1] != size:
            raise InvalidArgumentError(
                "Final value of ragged splits must match the length the corresponding ragged array"
            )


@g.register_gradient("RaggedTensorToSparse")
def ragged_tensor_to_sparse_gradient(
    op: g.Operation, _indices: Any, grad: g.Tensor, _shape: Any
) -> g.Gradients:
    values = op.inputs[-1]
    return *[None] * (len(op.inputs) - 1), g.nodes.Reshape(grad, g.nodes.Shape(values))
