"""SparseReduceSum, SparseReduceMax, the same with sparse results, SparseSoftmax; and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_reduce_op.cc, sparse_softmax_op.cc.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import constant
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op, sparse_reduce_shape, unknown_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_rank_at_most, require_vector
from opkernel.ops.kernel_types import NARROW_FLOATS, NUMBERS, REAL_NUMBERS
from opkernel.ops.math.gradients.reductions import positive_axes
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import (
    check_entries,
    check_parts,
    check_sparse,
    run_starts,
    sorted_order,
    sparse_keys,
)
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape, as_dtype


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


def _register(name: str, type_set: str, what: str, *, is_sparse: bool) -> Any:
    parts = ["output_indices: int64", "output_values: T", "output_shape: int64"]
    return register_op(
        name,
        inputs=[
            "input_indices: int64",
            "input_values: T",
            "input_shape: int64",
            "reduction_axes: int32",
        ],
        outputs=parts if is_sparse else ["output: T"],
        attrs=["keep_dims: bool = false", f"T: {type_set}"],
        shape_fn=unknown_shape if is_sparse else sparse_reduce_shape,
        doc=f"The {what} of the entries of a sparse tensor over the given dimensions"
        + (", as a sparse tensor." if is_sparse else "; 0 where there are none."),
    )


def _reduced(
    reduce: np.ufunc, indices: Any, values: Any, shape: Any, axes: Any, keep_dims: bool
) -> _Groups:
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
    ordered = values[order]
    found = reduce.reduceat(_wide(ordered), starts) if len(starts) else ordered[:0]
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


def _wide(values: Any) -> Any:
    """Narrow floats are reduced as float."""
    narrow = as_dtype(values.dtype) in NARROW_FLOATS
    return values.astype(np.float32) if narrow else values


def _make(reduce: np.ufunc, finish: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that reduces, and has `finish` make its outputs."""

    def kernel(
        input_indices: Any,
        input_values: Any,
        input_shape: Any,
        reduction_axes: Any,
        *,
        keep_dims: bool,
        T: DataType,
    ) -> Any:
        found = _reduced(
            reduce, input_indices, input_values, input_shape, reduction_axes, keep_dims
        )
        return finish(found, input_shape, keep_dims, T)

    return kernel


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


for _name, _set, _types, _reduce, _what in (
    ("Sum", "numbertype", NUMBERS, np.add, "sum"),
    ("Max", "realnumbertype", REAL_NUMBERS, np.fmax, "maximum"),
):
    _dense = _register(f"SparseReduce{_name}", _set, _what, is_sparse=False)
    register_kernel(_dense, types={"T": _types})(_make(_reduce, _dense_output))
    _sparse = _register(f"SparseReduce{_name}Sparse", _set, _what, is_sparse=True)
    register_kernel(_sparse, types={"T": _types})(_make(_reduce, _sparse_outputs))


_SOFTMAX_TYPES = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)
SPARSE_SOFTMAX = register_op(
    "SparseSoftmax",
    inputs=["sp_indices: int64", "sp_values: T", "sp_shape: int64"],
    outputs=["output: T"],
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
