"""SparseReorder and SparseReshape, and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_reorder_op.cc, reshape_util.cc.
"""

import math
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.kernel_types import ALL
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import check_entries, check_parts, check_rank, sorted_order
from opkernel.types import DataType, TensorShape

SPARSE_REORDER = register_op(
    "SparseReorder",
    inputs=["input_indices: int64", "input_values: T", "input_shape: int64"],
    outputs=["output_indices: int64", "output_values: T"],
    attrs=["T: type"],
    shape_fn=shape_rule("[?, ?], [?], [?] -> in0, in1"),
    doc="The entries of a sparse tensor sorted by their indices, the first dimension first.",
)


@register_kernel(SPARSE_REORDER, types={"T": ALL}, kind="view")
def sparse_reorder(
    input_indices: Any, input_values: Any, input_shape: Any, *, T: DataType
) -> tuple[Any, Any]:
    check_parts(input_indices, input_values, input_shape, "input_")
    order = sorted_order(input_indices)
    if order is None:
        return input_indices, input_values
    check_entries(len(input_indices), input_indices.shape[1], T)
    return input_indices[order], input_values[order]


SPARSE_RESHAPE = register_op(
    "SparseReshape",
    inputs=["input_indices: int64", "input_shape: int64", "new_shape: int64"],
    outputs=["output_indices: int64", "output_shape: int64"],
    shape_fn=shape_rule("[n, ?], [?], [rank] -> [n, rank], in2"),
    doc="The indices and the shape of a sparse tensor in another shape, of which one size may be -1.",
)


@register_kernel(SPARSE_RESHAPE, kind="view")
def sparse_reshape(input_indices: Any, input_shape: Any, new_shape: Any) -> tuple[Any, Any]:
    check_rank(2, input_indices=input_indices)
    check_rank(1, input_shape=input_shape, new_shape=new_shape)
    if input_indices.shape[1] != len(input_shape):
        raise InvalidArgumentError("Input tensor rank must match input shape length.")
    before = TensorShape(input_shape.tolist())
    after = _completed(new_shape.tolist(), before)
    if before == after:
        return input_indices, input_shape
    count = len(input_indices)
    if count and not before.num_elements():
        raise InvalidArgumentError(
            f"Input tensor has {count} non zero elements but input shape ({before}) or output shape "
            f"({after}) is empty"
        )
    check_allocation((count, len(after)), DataType.DT_INT64)
    return _reshaped(input_indices, before, after), np.array(after, np.int64)


def _completed(sizes: list[int], before: TensorShape) -> TensorShape:
    """The new shape, with the size that is given as -1."""
    for size in sizes:
        if size < -1:
            raise InvalidArgumentError(f"Size {size} of the new shape must be non-negative or -1")
    unknown = [axis for axis, size in enumerate(sizes) if size == -1]
    if len(unknown) > 1:
        raise InvalidArgumentError(
            f"only one output dimension may be -1, not both {unknown[0]} and {unknown[1]}"
        )
    known = TensorShape([size for size in sizes if size != -1]).num_elements()
    total = before.num_elements()
    if unknown:
        if not known:
            raise InvalidArgumentError(
                "reshape cannot infer the missing input size for an empty tensor unless all specified "
                "input sizes are non-zero"
            )
        if total % known:
            raise InvalidArgumentError(
                f"Input to reshape is a SparseTensor with {total} dense values, but the requested "
                f"shape requires a multiple of {known}. input_shape={before} output_shape={sizes}"
            )
        sizes = [total // known if size == -1 else size for size in sizes]
    after = TensorShape(sizes)
    if after.num_elements() != total:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has "
            f"{after.num_elements()}. input_shape={before} output_shape={after}"
        )
    return after


def _reshaped(indices: Any, before: TensorShape, after: TensorShape) -> Any:
    """The indices in the new shape; those out of bounds, too, are divided towards zero as in C++."""
    flat = indices @ np.array(_strides(before), np.int64)
    output = np.empty((len(indices), len(after)), np.int64)
    for axis, stride in enumerate(_strides(after)):
        quotient = np.abs(flat) // stride * np.sign(flat)
        output[:, axis] = quotient
        flat = flat - quotient * stride
    return output


def _strides(shape: TensorShape) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


@g.register_gradient("SparseReorder")
def sparse_reorder_gradient(op: g.Operation, _: g.Tensor, grad: g.Tensor) -> g.Gradients:
    indices, _, shape = op.inputs
    count = g.nodes.Size(op.inputs[1])
    _, places = g.nodes.SparseReorder(indices, g.nodes.Range(0, count, 1), shape)
    return [None, g.nodes.GatherV2(grad, g.nodes.InvertPermutation(places), 0), None]
