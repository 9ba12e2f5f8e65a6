"""Rows of sparse tensors reduced, as by SparseReduceSum, or filled, as by SparseFillEmptyRows; and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_reduce_op.cc, sparse_softmax_op.cc,
core/kernels/fill_empty_rows_functor.h.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import constant
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op, sparse_reduce_shape, unknown_shape
from opkernel.opdef.common_shapes.rules import check_input_ranks, set_outputs, shape_rule
from opkernel.ops.input_checks import (
    require,
    require_equal,
    require_rank_at_most,
    require_scalar,
    require_vector,
)
from opkernel.ops.math.gradients.reductions import positive_axes
from opkernel.ops.registration import ALL, NARROW_FLOATS, NUMBERS, REAL_NUMBERS, register_kernel
from opkernel.ops.sparse.tensors import (
    check_entries,
    check_parts,
    check_rank,
    check_sparse,
    run_starts,
    sorted_order,
    sparse_keys,
)
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape, as_dtype

_SPARSE_OUTPUTS = "output_indices: int64, output_values: T, output_shape: int64"


class _Groups(NamedTuple):
    """The reduced values, one for each group of entries that differ in reduced dimensions only.

    Attributes:
        indices: Of each group, in the dimensions that are kept.
        values: The reduced value of each group.
        kept: The dimensions that are kept.
        shape: The shape of the result.
    """

    indices: Any
    values: Any
    kept: list[int]
    shape: TensorShape


def _reduced(reduce: np.ufunc, inputs: Sequence[Any], keep_dims: bool) -> _Groups:
    indices, values, shape, axes = inputs
    require_vector(shape, "Expected input_shape to be a vector; got shape: {}")
    require_rank_at_most(
        axes, 1, "Expected reduction_axes to be a scalar or a vector; got shape: {}"
    )
    check_parts(indices, values, shape, "input_")
    sizes = TensorShape(shape.tolist())
    kept = _kept(axes.reshape(-1).tolist(), len(sizes))
    result = [1] * len(sizes)
    for axis in kept:
        result[axis] = sizes[axis]
    result_shape = TensorShape(result if keep_dims else [sizes[axis] for axis in kept])
    order, starts = _grouped(indices, kept)
    check_allocation((len(starts),), as_dtype(values.dtype))
    is_narrow = as_dtype(values.dtype) in NARROW_FLOATS  # these are reduced as float
    ordered = values[order].astype(np.float32 if is_narrow else values.dtype, copy=False)
    found = reduce.reduceat(ordered, starts) if len(starts) else ordered[:0]
    groups = indices[order[starts]][:, kept]
    return _Groups(groups, found.astype(values.dtype), kept, result_shape)


def _kept(axes: list[int], rank: int) -> list[int]:
    for axis in axes:
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                f"Invalid reduction dimension {axis}, for input with {rank} dimensions."
            )
    reduced = {axis % rank for axis in axes}
    return [axis for axis in range(rank) if axis not in reduced]


def _grouped(indices: Any, kept: list[int]) -> tuple[Any, Any]:
    """The order that sorts entries by kept dimensions, then by reduced ones; where each group starts."""
    reduced = sorted({*range(indices.shape[1])}.difference(kept))
    (keys,) = sparse_keys(indices[:, [*kept, *reduced]])
    order = stable_order(keys)
    if kept:
        return order, run_starts(indices[order][:, kept])
    return order, np.zeros(min(len(order), 1), np.int64)


def _dense_output(found: _Groups, input_shape: Any, keep_dims: bool, T: DataType) -> Any:
    output = np.zeros(check_allocation(found.shape, T), T.numpy_dtype)
    sizes = [int(input_shape[axis]) for axis in found.kept]
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    places = found.indices @ np.array(strides, np.int64)
    outside = (places < 0) | (places >= output.size)
    if outside.any():
        raise InternalError(
            f"Obtained a write index of {places[np.argmax(outside)]} which is outside of bounds of "
            f"[0, {output.size})"
        )
    output.reshape(-1)[places] = found.values
    return output


def _sparse_outputs(
    found: _Groups, input_shape: Any, keep_dims: bool, T: DataType
) -> tuple[Any, Any, Any]:
    check_entries(len(found.values), len(found.shape), T)
    indices = np.zeros((len(found.values), len(found.shape)), np.int64)
    indices[:, found.kept if keep_dims else slice(None)] = found.indices
    return indices, found.values, np.array(found.shape, np.int64)


def _register(
    name: str, what: str, type_set: str, types: Sequence[DataType], reduce: np.ufunc
) -> None:
    """Declare the two ops that reduce by a ufunc, with dense and with sparse output, and their kernels."""
    for suffix, outputs, shape_fn, doc, finish in (
        ("", "output: T", sparse_reduce_shape, "; 0 where there are none.", _dense_output),
        ("Sparse", _SPARSE_OUTPUTS, unknown_shape, ", as a sparse tensor.", _sparse_outputs),
    ):
        op = register_op(
            f"SparseReduce{name}{suffix}(input_indices: int64, input_values: T, "
            f"input_shape: int64, reduction_axes: int32) -> {outputs}",
            attrs=["keep_dims: bool = false", f"T: {type_set}"],
            shape_fn=shape_fn,
            doc=f"The {what} of the entries of a sparse tensor over the given dimensions{doc}",
        )
        register_kernel(op, types={"T": types}, factory=True)(_maker(reduce, finish))


def _maker(reduce: np.ufunc, finish: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """The maker of a kernel that reduces, and has `finish` make its outputs."""

    def make(*, keep_dims: bool, T: DataType) -> Callable[..., Any]:
        def reduced(*inputs: Any) -> Any:
            return finish(_reduced(reduce, inputs, keep_dims), inputs[2], keep_dims, T)

        return reduced

    return make


_register("Sum", "sum", "numbertype", NUMBERS, np.add)
_register("Max", "maximum", "realnumbertype", REAL_NUMBERS, np.fmax)


_SOFTMAX_TYPES = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)
SPARSE_SOFTMAX = register_op(
    "SparseSoftmax(sp_indices: int64, sp_values: T, sp_shape: int64) -> output: T",
    attrs=["T: {half, float, double}"],
    shape_fn=shape_rule("[?, ?], [?], [?] -> in1"),
    doc="The softmax over the entries of each row of the last dimension, in the order of sorted indices.",
)


@register_kernel(SPARSE_SOFTMAX, types={"T": _SOFTMAX_TYPES})
def sparse_softmax(sp_indices: Any, sp_values: Any, sp_shape: Any) -> Any:
    shape = check_sparse(sp_indices, sp_values, sp_shape, "sp_")
    if len(shape) < 2:
        raise InvalidArgumentError(f"Input should have rank >= 2, but received shape: {shape}")
    order = sorted_order(sp_indices)
    if order is not None:  # as TensorFlow has it, the result is sorted, too
        sp_indices, sp_values = sp_indices[order], sp_values[order]
    starts = run_starts(sp_indices[:, :-1])
    if not len(starts):
        return sp_values.copy()
    lengths = np.diff(starts, append=len(sp_values))
    with np.errstate(invalid="ignore"):
        largest = np.maximum.reduceat(sp_values, starts)
        powers = np.exp(sp_values - np.repeat(largest, lengths))
        return powers / np.repeat(np.add.reduceat(powers, starts), lengths)


_INT64 = DataType.DT_INT64


@g.register_gradient("SparseReduceSum")
def sparse_reduce_sum_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    indices, _, shape, axes = op.inputs
    rank = g.nodes.Size(shape)
    reduced = positive_axes(axes, rank)
    ones = g.nodes.Fill(g.nodes.Shape(reduced), constant(1, _INT64))
    kept = g.nodes.DynamicStitch([g.nodes.Range(0, rank, 1), reduced], [shape, ones])
    scale = g.nodes.FloorDiv(shape, g.nodes.Maximum(kept, constant(1, _INT64)))
    places = g.nodes.FloorDiv(indices, scale)
    return [None, g.nodes.GatherNd(g.nodes.Reshape(grad, kept), places), None, None]


@g.register_gradient("SparseSoftmax")
def sparse_softmax_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    indices, _, shape = op.inputs
    softmax = op.outputs[0]
    products = g.nodes.Mul(softmax, grad)
    sums = g.nodes.SparseReduceSum(indices, products, shape, [-1], keep_dims=True)
    centred = g.nodes.SparseDenseCwiseAdd(indices, grad, shape, g.nodes.Neg(sums))
    return [None, g.nodes.Mul(centred, softmax), None]


_WHERE = "empty_row_indicator: bool, reverse_index_map: int64"


def sparse_fill_empty_rows_shape(c: InferenceContext) -> None:
    """A truth value for each row of the dense shape, a place for each value."""
    indices, values, shape, _ = check_input_ranks(c, 2, 1, 1, 0)
    rows = c.merge(c.dim(indices, 0), c.dim(values, 0))
    c.merge(c.dim(indices, 1), c.dim(shape, 0))
    filled = [c.matrix(None, c.num_elements(shape)), c.vector(None)]
    dense = c.make_shape_from_shape_tensor(2)
    set_outputs(c, [*filled, c.vector(c.dim(dense, 0)), c.vector(rows)])


SPARSE_FILL_EMPTY_ROWS = register_op(
    "SparseFillEmptyRows(indices: int64, values: T, dense_shape: int64, default_value: T) "
    f"-> output_indices: int64, output_values: T, {_WHERE}",
    attrs=["T: type"],
    shape_fn=sparse_fill_empty_rows_shape,
    doc="A sparse tensor with the default value in the first column of each row without entries.",
)
RAGGED_FILL_EMPTY_ROWS = register_op(
    "RaggedFillEmptyRows(value_rowids: int64, values: T, nrows: int64, default_value: T) "
    f"-> output_value_rowids: int64, output_values: T, {_WHERE}",
    attrs=["T: type"],
    shape_fn=shape_rule("[n], [n], [], [] -> [?], [?], [?], [n]"),
    doc="The values in the order of their rows, with `default_value` in each row that had none.",
)
SPARSE_FILL_EMPTY_ROWS_GRAD, RAGGED_FILL_EMPTY_ROWS_GRAD = (
    register_op(
        f"{filled}Grad(reverse_index_map: int64, grad_values: T) "
        "-> d_values: T, d_default_value: T",
        attrs=["T: type"],
        shape_fn=shape_rule("[?], [?] -> in0, []"),
        doc=f"The gradients of the values and of the default value of {filled}.",
    )
    for filled in ("SparseFillEmptyRows", "RaggedFillEmptyRows")
)


@register_kernel(SPARSE_FILL_EMPTY_ROWS, types={"T": ALL})
def sparse_fill_empty_rows(
    indices: Any, values: Any, dense_shape: Any, default_value: Any, *, T: DataType
) -> tuple[Any, Any, Any, Any]:
    check_rank(0, default_value=default_value)
    check_parts(indices, values, dense_shape)
    require(len(dense_shape), "Dense shape cannot be empty.")
    return _fill_empty_rows(indices, values, dense_shape[0], default_value, T)


@register_kernel(RAGGED_FILL_EMPTY_ROWS, types={"T": ALL})
def ragged_fill_empty_rows(
    value_rowids: Any, values: Any, nrows: Any, default_value: Any, *, T: DataType
) -> tuple[Any, Any, Any, Any]:
    require_scalar(nrows, "nrows must be a scalar, saw: {}")
    require_vector(value_rowids, "value_rowids must be a vector, saw: {}")
    require_vector(values, "values must be a vector, saw: {}")
    require_equal(
        values.size,
        value_rowids.size,
        "The length of `values` ({}) must match the first dimension of `value_rowids` ({}).",
    )
    require_scalar(default_value, "default_value must be a scalar, saw: {}")
    indices = value_rowids.reshape(-1, 1)
    rows, *others = _fill_empty_rows(indices, values, nrows, default_value, T)
    return rows.reshape(-1), *others


_OF_ROW = 32
"""The bytes of a row's numbers while rows are put in order."""


def _check_rows(rows: Any, height: int) -> None:
    if len(rows) and not height:
        raise InvalidArgumentError(
            f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {len(rows)}"
        )
    outside = (rows < 0) | (rows >= height)
    if outside.any():
        at = int(np.argmax(outside))
        raise InvalidArgumentError(f"indices({at}, 0) is invalid: {rows[at]} >= {height}")


def _fill_empty_rows(
    indices: Any, values: Any, height: Any, default_value: Any, dtype: DataType
) -> tuple[Any, Any, Any, Any]:
    """The outputs of SparseFillEmptyRows, for a dense shape of which only the height matters."""
    (height,) = TensorShape([int(height)])
    columns = indices.shape[1]
    check_allocation((height, columns), DataType.DT_INT64)
    _check_rows(indices[:, 0], height)
    is_empty = np.ones(height, bool)
    is_empty[indices[:, 0]] = False
    missing = np.flatnonzero(is_empty)
    count = len(indices) + len(missing)
    check_entries(count, columns, dtype)
    with making_bytes("rows in order", (_OF_ROW + 8 * columns) * count):
        order = stable_order(np.concatenate((indices[:, 0], missing)))
        filled = np.zeros((len(missing), columns), np.int64)
        filled[:, 0] = missing
        defaults = np.full(len(missing), default_value, values.dtype)
        places = np.empty(count, np.int64)
        places[order] = np.arange(count)
        rows, filled_values = (
            np.concatenate(both)[order] for both in ((indices, filled), (values, defaults))
        )
        return rows, filled_values, is_empty, places[: len(indices)]


@register_kernel(SPARSE_FILL_EMPTY_ROWS_GRAD, RAGGED_FILL_EMPTY_ROWS_GRAD, types={"T": NUMBERS})
def fill_empty_rows_grad(reverse_index_map: Any, grad_values: Any) -> tuple[Any, Any]:
    """The default's gradient is summed one value after another, as TensorFlow does."""
    require_vector(reverse_index_map, "reverse_index_map must be a vector, saw: {}")
    require_vector(grad_values, "grad_values must be a vector, saw: {}")
    outside = (reverse_index_map < 0) | (reverse_index_map >= len(grad_values))
    if outside.any():
        raise InvalidArgumentError(
            f"Elements in reverse index must be in [0, {len(grad_values)}) but got "
            f"{reverse_index_map[np.argmax(outside)]}"
        )
    is_default = np.ones(len(grad_values), bool)
    is_default[reverse_index_map] = False
    addends = np.concatenate((np.zeros(1, grad_values.dtype), grad_values[is_default]))
    return grad_values[reverse_index_map], np.add.accumulate(addends, dtype=addends.dtype)[-1]


@g.register_gradient("SparseFillEmptyRows")
def sparse_fill_empty_rows_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    values, default = g.nodes.SparseFillEmptyRowsGrad(op.outputs[3], grads[1])
    return [None, values, None, default]


@g.register_gradient("RaggedFillEmptyRows")
def ragged_fill_empty_rows_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    values, default = g.nodes.RaggedFillEmptyRowsGrad(op.outputs[3], grads[1])
    return [None, values, None, default]
