"""Elementwise arithmetic of a sparse tensor and a dense one, and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_tensor_dense_add_op.cc,
sparse_dense_binary_op_shared.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import constant
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import outputs_as_inputs
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.kernel_types import INDEX, NUMBERS, REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import check_parts, check_sparse, in_bounds
from opkernel.types import DataType, TensorShape

_MAX_RANK = 5

SPARSE_TENSOR_DENSE_ADD = register_op(
    "SparseTensorDenseAdd",
    inputs=["a_indices: Tindices", "a_values: T", "a_shape: Tindices", "b: T"],
    outputs=["output: T"],
    attrs=["T: numbertype", "Tindices: {int32, int64}"],
    shape_fn=outputs_as_inputs(3),
    doc="The sum of a sparse tensor and a dense one.",
)


@register_kernel(SPARSE_TENSOR_DENSE_ADD, types={"T": NUMBERS, "Tindices": INDEX})
def sparse_tensor_dense_add(a_indices: Any, a_values: Any, a_shape: Any, b: Any) -> Any:
    check_parts(a_indices, a_values, a_shape, "a_")
    if a_shape.tolist() != list(b.shape):
        raise InvalidArgumentError(
            f"Both operands must have the same shape; received: {a_shape.tolist()} and "
            f"{TensorShape(b.shape)}"
        )
    _check_rank_of(b)
    inside = in_bounds(a_indices, b.shape)
    if not inside.all():
        row = int(np.argmin(inside))
        raise InvalidArgumentError(
            f"Sparse tensor has an invalid index: a_indices[{row}] = {a_indices[row].tolist()}, "
            f"dense tensor shape: {TensorShape(b.shape)}"
        )
    output = b.copy()
    np.add.at(output, tuple(a_indices.T), a_values)
    return output


def _check_rank_of(tensor: Any) -> None:
    if not 1 <= tensor.ndim <= _MAX_RANK:
        raise InvalidArgumentError(
            f"Only tensors with ranks between 1 and {_MAX_RANK} are currently supported.  Tensor rank: "
            f"{tensor.ndim}"
        )


def _register(name: str, compute: Callable[[Any, Any], Any], doc: str) -> None:
    op = register_op(
        name,
        inputs=["sp_indices: int64", "sp_values: T", "sp_shape: int64", "dense: T"],
        outputs=["output: T"],
        attrs=["T: numbertype"],
        shape_fn=shape_rule("[n, ?] -> [n]"),
        doc=f"The values of a sparse tensor, {doc} the elements of a dense one at their places.",
    )

    @register_kernel(op, types={"T": REAL_NUMBERS})
    def elementwise(sp_indices: Any, sp_values: Any, sp_shape: Any, dense: Any) -> Any:
        shape = check_sparse(sp_indices, sp_values, sp_shape, "sp_")
        return compute(sp_values, _gathered(sp_indices, shape, dense))


def _gathered(indices: Any, shape: TensorShape, dense: Any) -> Any:
    """The elements of the dense tensor at the indices, as if broadcast to the shape."""
    if not shape:
        raise InvalidArgumentError("The shape argument requires at least one element.")
    sizes = (1,) * (len(shape) - dense.ndim) + dense.shape
    if dense.ndim > len(shape) or not all(
        size == 1 <= full or size == full for size, full in zip(sizes, shape, strict=True)
    ):
        raise InvalidArgumentError(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"{shape} vs. {TensorShape(dense.shape)}"
        )
    if len(shape) > _MAX_RANK:
        raise InvalidArgumentError(
            f"Only tensors with ranks between 1 and {_MAX_RANK} are currently supported.  Tensor rank: "
            f"{len(shape)}"
        )
    if not in_bounds(indices, shape).all():
        raise InvalidArgumentError(
            "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape"
        )
    places = [0 if size == 1 else indices[:, axis] for axis, size in enumerate(sizes)]
    return np.broadcast_to(dense.reshape(sizes)[tuple(places)], len(indices))


def _quotient(values: Any, divisors: Any) -> Any:
    if values.dtype.kind not in "iu":
        with np.errstate(divide="ignore", invalid="ignore"):
            return values / divisors
    if not divisors.all():
        raise InvalidArgumentError(
            "SparseDenseCwiseDiv cannot divide by zero, but the dense tensor has a zero"
        )
    quotient = values // divisors  # rounds down, C++ towards zero
    return quotient + ((quotient < 0) & (quotient * divisors != values)).astype(values.dtype)


_register("SparseDenseCwiseAdd", np.add, "plus")
_register("SparseDenseCwiseMul", np.multiply, "times")
_register("SparseDenseCwiseDiv", _quotient, "divided by")


_INT64 = DataType.DT_INT64


@g.register_gradient("SparseTensorDenseAdd")
def sparse_tensor_dense_add_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return [None, g.nodes.GatherNd(grad, op.inputs[0]), None, grad]


@g.register_gradient("SparseDenseCwiseMul")
def sparse_dense_cwise_mul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values = op.inputs[1]
    return _of_both(op, lambda dense: (g.nodes.Mul(grad, dense), g.nodes.Mul(grad, values)))


@g.register_gradient("SparseDenseCwiseDiv")
def sparse_dense_cwise_div_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values = op.inputs[1]

    def slopes(dense: g.Tensor) -> tuple[g.Tensor, g.Tensor]:
        quotient = g.nodes.RealDiv(g.nodes.Neg(values), g.nodes.Square(dense))
        return g.nodes.RealDiv(grad, dense), g.nodes.Mul(grad, quotient)

    return _of_both(op, slopes)


def _of_both(
    op: g.Operation, slopes: Callable[[g.Tensor], tuple[g.Tensor, g.Tensor]]
) -> g.Gradients:
    """The gradients, from those of the entries and of the dense elements at their places."""
    indices, _, shape, y = op.inputs
    y_shape = g.nodes.Shape(y, out_type=_INT64)
    added = g.nodes.ExpandDims(g.nodes.Sub(g.nodes.Size(shape), g.nodes.Size(y_shape)), 0)
    ones = g.nodes.Fill(added, constant(1, _INT64))
    scale = g.nodes.FloorDiv(shape, g.nodes.ConcatV2([ones, y_shape], 0))
    begin = g.nodes.ConcatV2([[0], added], 0)
    places = g.nodes.Slice(g.nodes.FloorDiv(indices, scale), begin, [-1, -1])
    values_grad, dense_grad = slopes(g.nodes.GatherNd(y, places))
    y_grad = g.nodes.SparseTensorDenseAdd(places, dense_grad, y_shape, g.nodes.ZerosLike(y))
    return [None, values_grad, None, y_grad]


@g.register_gradient("SparseDenseCwiseAdd")
def sparse_dense_cwise_add_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    raise UnimplementedError("SparseDenseCwiseAdd has no gradient, as in TensorFlow")
