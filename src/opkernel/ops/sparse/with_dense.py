"""Sparse tensors and dense ones: elementwise arithmetic, SparseToDense, SparseTensorDenseMatMul, and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_tensor_dense_add_op.cc,
sparse_dense_binary_op_shared.cc, core/kernels/sparse_to_dense_op.cc,
core/kernels/sparse_tensor_dense_matmul_op.cc.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import constant
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import (
    check_input_ranks,
    outputs_as_inputs,
    shape_held_by,
    shape_rule,
)
from opkernel.ops.input_checks import (
    require,
    require_equal,
    require_rank_at_most,
    require_scalar,
    require_vector,
)
from opkernel.ops.registration import (
    ALL_QUANTIZED,
    COMPLEX,
    FLOATS,
    INDEX,
    NARROW_FLOATS,
    NUMBERS,
    POD_OR_STRING,
    REAL_NUMBERS,
    register_kernel,
)
from opkernel.ops.sparse.matrix import sparse_times_dense
from opkernel.ops.sparse.tensors import (
    check_indices,
    check_parts,
    check_rank,
    check_sparse,
    in_bounds,
)
from opkernel.types import DataType, TensorShape

_MAX_RANK = 5

SPARSE_TENSOR_DENSE_ADD = register_op(
    "SparseTensorDenseAdd(a_indices: Tindices, a_values: T, a_shape: Tindices, b: T) -> output: T",
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
    _check_rank_of(b.ndim)
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


def _check_rank_of(rank: int) -> None:
    if not 1 <= rank <= _MAX_RANK:
        raise InvalidArgumentError(
            f"Only tensors with ranks between 1 and {_MAX_RANK} are currently supported.  Tensor rank: "
            f"{rank}"
        )


def _register(name: str, compute: Callable[[Any, Any], Any], doc: str) -> None:
    op = register_op(
        f"{name}(sp_indices: int64, sp_values: T, sp_shape: int64, dense: T) -> output: T",
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
    require(shape, "The shape argument requires at least one element.")
    sizes = (1,) * (len(shape) - dense.ndim) + dense.shape
    if dense.ndim > len(shape) or not all(
        size == 1 <= full or size == full for size, full in zip(sizes, shape, strict=True)
    ):
        raise InvalidArgumentError(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"{shape} vs. {TensorShape(dense.shape)}"
        )
    _check_rank_of(len(shape))
    if not in_bounds(indices, shape).all():
        raise InvalidArgumentError(
            "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape"
        )
    places = [0 if size == 1 else indices[:, axis] for axis, size in enumerate(sizes)]
    return np.broadcast_to(dense.reshape(sizes)[tuple(places)], len(indices))


def _quotient(values: Any, divisors: Any) -> Any:
    require(
        divisors.all(), "SparseDenseCwiseDiv cannot divide by zero, but the dense tensor has a zero"
    )
    if values.dtype.kind not in "iu":
        with np.errstate(divide="ignore", invalid="ignore"):
            return values / divisors
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


SPARSE_TO_DENSE = register_op(
    "SparseToDense(sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, "
    "default_value: T) -> dense: T",
    attrs=["validate_indices: bool = true", "T: type", "Tindices: {int32, int64}"],
    shape_fn=shape_held_by(1),
    doc="The tensor with the values at the indices, and the default value everywhere else.",
    traits="cost=linear",
)
_TYPES = tuple(one for one in (*POD_OR_STRING, *ALL_QUANTIZED) if one != DataType.DT_QINT32)


@register_kernel(SPARSE_TO_DENSE, types={"T": _TYPES, "Tindices": INDEX})
def sparse_to_dense(
    indices: Any, shape: Any, values: Any, default: Any, *, validate_indices: bool, T: DataType
) -> Any:
    rows, sizes = rows_and_shape(indices, shape, values, default, T)
    if validate_indices:
        check_indices(rows, sizes)
    elif not in_bounds(rows, sizes).all():
        raise InvalidArgumentError(f"Indices are not valid (out of bounds). Shape: {sizes}")
    dense = np.full(math.prod(sizes), default, default.dtype)
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    dense[rows.astype(np.int64) @ np.array(strides, np.int64)] = values
    return dense.reshape(sizes)


def rows_and_shape(
    sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any, T: DataType
) -> tuple[Any, tuple[int, ...]]:
    """The indices as a matrix, and the shape of the output.

    Raises:
        InvalidArgumentError: the shapes of the inputs do not fit.
    """
    require_rank_at_most(
        sparse_indices, 2, "sparse_indices should be a scalar, vector, or matrix, got shape {}"
    )
    # a scalar is one index of a vector, a vector many
    rows = sparse_indices if sparse_indices.ndim == 2 else sparse_indices.reshape(-1, 1)
    count, rank = rows.shape
    require_vector(output_shape, "output_shape must be rank 1, got shape {}")
    require_equal(
        len(output_shape), rank, "output_shape has incorrect number of elements: {} should be: {}"
    )
    if sparse_values.ndim and sparse_values.shape != (count,):
        raise InvalidArgumentError(
            f"sparse_values has incorrect shape {TensorShape(sparse_values.shape)}, "
            f"should be [] or [{count}]"
        )
    require_scalar(default_value, "default_value should be a scalar, but has shape {}")
    return rows, check_allocation(TensorShape(output_shape.tolist()), T)


@g.register_gradient("SparseToDense")
def sparse_to_dense_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    values = g.nodes.GatherNd(grad, op.inputs[0])
    default = g.nodes.Sub(_total(grad), _total(values))
    return [None, None, values, default]


def _total(tensor: g.Tensor) -> Any:
    return g.nodes.Sum(tensor, g.nodes.Range(0, g.nodes.Rank(tensor), 1))


def sparse_tensor_dense_matmul_shape(c: InferenceContext) -> None:
    """The shape of the product; input 2 holds the shape of the sparse matrix."""
    check_input_ranks(c, 2, 1)
    a = c.with_rank(c.make_shape_from_shape_tensor(2), 2)
    b = c.with_rank(c.input(3), 2)
    adjoint_a, adjoint_b = c.get_attr("adjoint_a"), c.get_attr("adjoint_b")
    rows, columns = c.dim(a, 1 if adjoint_a else 0), c.dim(b, 0 if adjoint_b else 1)
    c.merge(c.dim(a, 0 if adjoint_a else 1), c.dim(b, 1 if adjoint_b else 0))
    c.set_output(0, c.matrix(rows, columns))


SPARSE_TENSOR_DENSE_MATMUL = register_op(
    "SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64, b: T) -> product: T",
    attrs=[
        "T: type",
        "Tindices: {int32, int64} = DT_INT64",
        "adjoint_a: bool = false",
        "adjoint_b: bool = false",
    ],
    shape_fn=sparse_tensor_dense_matmul_shape,
    doc="The product of a sparse matrix, whose entries may come in any order, with a dense one.",
)


@register_kernel(
    SPARSE_TENSOR_DENSE_MATMUL,
    types={"T": (*FLOATS, *COMPLEX, DataType.DT_INT32), "Tindices": INDEX},
    host_memory=["a_shape"],
)
def sparse_tensor_dense_matmul(
    indices: Any, values: Any, shape: Any, b: Any, *, T: DataType, adjoint_a: bool, adjoint_b: bool
) -> Any:
    _check(indices, values, shape, b)
    rows, columns = indices[:, 0], indices[:, 1]
    height, width = TensorShape(shape.tolist())
    if adjoint_a:
        rows, columns, height, width = columns, rows, width, height
        values = values.conj() if T in COMPLEX else values
    if adjoint_b:
        b = b.conj().T if T in COMPLEX else b.T
    if len(b) != width:
        raise InvalidArgumentError(
            f"Cannot multiply A and B because inner dimension does not match: {width} vs. {len(b)}.  "
            "Did you forget a transpose?"
        )
    sizes = check_allocation((height, b.shape[1]), T)
    if not values.size or not height * b.shape[1]:
        return np.zeros(sizes, b.dtype)
    _check_bounds("k", columns, width, 0 if adjoint_a else 1)
    _check_bounds("m", rows, height, 1 if adjoint_a else 0)
    if T in NARROW_FLOATS:  # added up in float
        narrow, values, b = b.dtype, values.astype(np.float32), b.astype(np.float32)
        return sparse_times_dense(rows, columns, values, b, height).astype(narrow)
    return sparse_times_dense(rows, columns, values, np.ascontiguousarray(b), height)


def _check(indices: Any, values: Any, shape: Any, b: Any) -> None:
    check_rank(1, a_shape=shape, a_values=values)
    check_rank(2, a_indices=indices, b=b)
    require_equal(len(shape), 2, "Tensor 'a_shape' must have 2 elements")
    if len(indices) != len(values):
        raise InvalidArgumentError(
            "Number of rows of a_indices does not match number of entries in a_values"
        )
    if indices.shape[1] != 2:
        raise InvalidArgumentError(
            "Number of columns of a_indices does not match number of entries in a_shape"
        )


def _check_bounds(name: str, numbers: Any, size: int, column: int) -> None:
    outside = (numbers < 0) | (numbers >= size)
    if outside.any():
        at = int(np.argmax(outside))
        raise InvalidArgumentError(
            f"{name} ({numbers[at]}) from index[{at},{column}] out of bounds (>={size})"
        )


@g.register_gradient("SparseTensorDenseMatMul")
def sparse_tensor_dense_matmul_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    b_grad = g.nodes.SparseTensorDenseMatMul(indices, values, shape, grad, adjoint_a=not adjoint_a)
    if adjoint_b:
        b_grad = g.nodes.ConjugateTranspose(b_grad, [1, 0])
    return [None, _entries_of_product(indices, grad, b, adjoint_a, adjoint_b), None, b_grad]


def _entries_of_product(
    indices: g.Tensor, grad: g.Tensor, b: g.Tensor, adjoint_a: bool, adjoint_b: bool
) -> g.Tensor:
    """The gradient of the entries of `a`: of `grad` times the adjoint of `b` only what they need."""
    rows, columns = g.nodes.Unpack(indices, num=2, axis=1)
    if adjoint_a:
        rows, columns = columns, rows
    of_b = g.nodes.Transpose(b, [1, 0]) if adjoint_b else g.conj(b)
    products = g.nodes.Mul(g.nodes.GatherV2(grad, rows, 0), g.nodes.GatherV2(of_b, columns, 0))
    entries = g.nodes.Sum(products, 1)
    return g.conj(entries) if adjoint_a else entries
