"""SparseToDense, and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_to_dense_op.cc.
"""

import math
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_held_by
from opkernel.ops.input_checks import (
    require_equal,
    require_rank_at_most,
    require_scalar,
    require_vector,
)
from opkernel.ops.kernel_types import INDEX, POD_OR_STRING
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import check_indices, in_bounds
from opkernel.types import DataType, TensorShape

SPARSE_TO_DENSE = register_op(
    "SparseToDense",
    inputs=[
        "sparse_indices: Tindices",
        "output_shape: Tindices",
        "sparse_values: T",
        "default_value: T",
    ],
    outputs=["dense: T"],
    attrs=["validate_indices: bool = true", "T: type", "Tindices: {int32, int64}"],
    shape_fn=shape_held_by(1),
    doc="The tensor with the values at the indices, and the default value everywhere else.",
    traits="cost=linear",
)
_TYPES = (
    *POD_OR_STRING,
    DataType.DT_QINT8,
    DataType.DT_QUINT8,
    DataType.DT_QINT16,
    DataType.DT_QUINT16,
)


@register_kernel(SPARSE_TO_DENSE, types={"T": _TYPES, "Tindices": INDEX})
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any,
    *,
    validate_indices: bool,
    T: DataType,
) -> Any:
    rows, shape = rows_and_shape(sparse_indices, output_shape, sparse_values, default_value, T)
    if validate_indices:
        check_indices(rows, shape)
    elif not in_bounds(rows, shape).all():
        raise InvalidArgumentError(f"Indices are not valid (out of bounds). Shape: {shape}")
    dense = np.full(math.prod(shape), default_value, default_value.dtype)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    dense[rows.astype(np.int64) @ np.array(strides, np.int64)] = sparse_values
    return dense.reshape(shape)


def rows_and_shape(
    sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any, T: DataType
) -> tuple[Any, tuple[int, ...]]:
    """The indices as a matrix, and the shape of the output.

    Raises:
        InvalidArgumentError: the shapes of the inputs do not fit.
    """
    rows = _rows(sparse_indices)
    _check_shapes(rows, output_shape, sparse_values, default_value)
    return rows, check_allocation(TensorShape(output_shape.tolist()), T)


def _rows(indices: Any) -> Any:
    """The indices as a matrix: a scalar is one index of a vector, a vector many."""
    require_rank_at_most(
        indices, 2, "sparse_indices should be a scalar, vector, or matrix, got shape {}"
    )
    return indices if indices.ndim == 2 else indices.reshape(-1, 1)


def _check_shapes(rows: Any, output_shape: Any, values: Any, default_value: Any) -> None:
    count, rank = rows.shape
    require_vector(output_shape, "output_shape must be rank 1, got shape {}")
    require_equal(
        len(output_shape), rank, "output_shape has incorrect number of elements: {} should be: {}"
    )
    if values.ndim and values.shape != (count,):
        raise InvalidArgumentError(
            f"sparse_values has incorrect shape {TensorShape(values.shape)}, "
            f"should be [] or [{count}]"
        )
    require_scalar(default_value, "default_value should be a scalar, but has shape {}")


@g.register_gradient("SparseToDense")
def sparse_to_dense_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values = g.nodes.GatherNd(grad, op.inputs[0])
    default = g.nodes.Sub(_total(grad), _total(values))
    return [None, None, values, default]


def _total(tensor: g.Tensor) -> Any:
    return g.nodes.Sum(tensor, g.nodes.Range(0, g.nodes.Rank(tensor), 1))
