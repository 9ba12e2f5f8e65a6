"""SparseConcat, SparseSplit, SparseSlice, SparseReorder and SparseReshape, and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_concat_op.cc, sparse_split_op.cc,
sparse_slice_op.cc, core/kernels/sparse_reorder_op.cc, reshape_util.cc.
"""

import math
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes.rules import set_outputs, shape_rule
from opkernel.ops.input_checks import require
from opkernel.ops.registration import ALL, register_kernel
from opkernel.ops.sparse.tensors import (
    check_bounds,
    check_entries,
    check_parts,
    check_rank,
    check_sparse,
    sorted_order,
)
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape

_LARGEST = np.iinfo(np.int64).max


def sparse_concat_shape(c: InferenceContext) -> None:
    """As many rows as all inputs have together."""
    count = c.num_inputs() // 3
    rows, columns, shape = c.make_dim(0), c.unknown_dim(), c.unknown_shape()
    for i in range(count):
        indices = c.with_rank(c.input(i), 2)
        values = c.with_rank(c.input(count + i), 1)
        input_shape = c.with_rank(c.input(2 * count + i), 1)
        rows = c.add(rows, c.merge(c.dim(indices, 0), c.dim(values, 0)))
        columns = c.merge(columns, c.dim(indices, 1))
        shape = c.merge(shape, input_shape)
    set_outputs(c, [c.matrix(rows, columns), c.vector(rows), shape])


def _part_of(c: InferenceContext, shape: ShapeHandle) -> list[ShapeHandle]:
    """The three tensors of a sparse tensor of the rank that the vector `shape` has elements."""
    return [c.matrix(None, c.num_elements(shape)), c.vector(None), shape]


def sparse_split_shape(c: InferenceContext) -> None:
    """Parts of the rank of the input."""
    count = c.num_outputs() // 3
    set_outputs(c, [part for part in _part_of(c, c.input(3)) for _ in range(count)])


def sparse_slice_shape(c: InferenceContext) -> None:
    """A part of the rank of the input."""
    set_outputs(c, _part_of(c, c.input(2)))


SPARSE_CONCAT = register_op(
    "SparseConcat(indices: N * int64, values: N * T, shapes: N * int64) "
    "-> output_indices: int64, output_values: T, output_shape: int64",
    attrs=["concat_dim: int", "N: int >= 2", "T: type"],
    shape_fn=sparse_concat_shape,
    doc="Sparse tensors one after the other along a dimension.",
)
SPARSE_SPLIT = register_op(
    "SparseSplit(split_dim: int64, indices: int64, values: T, shape: int64) "
    "-> output_indices: num_split * int64, output_values: num_split * T, "
    "output_shape: num_split * int64",
    attrs=["num_split: int >= 1", "T: type"],
    shape_fn=sparse_split_shape,
    doc="A sparse tensor cut into `num_split` parts along a dimension, the first ones larger by 1.",
)
SPARSE_SLICE = register_op(
    "SparseSlice(indices: int64, values: T, shape: int64, start: int64, size: int64) "
    "-> output_indices: int64, output_values: T, output_shape: int64",
    attrs=["T: type"],
    shape_fn=sparse_slice_shape,
    doc="The part of a sparse tensor from `start` on, of `size` where the tensor is that large.",
)


@register_kernel(SPARSE_CONCAT, types={"T": ALL})
def sparse_concat(
    indices: list[Any], values: list[Any], shapes: list[Any], *, concat_dim: int
) -> tuple[Any, Any, Any]:
    for name, given, rank in (
        ("indices", indices, 2),
        ("values", values, 1),
        ("shapes", shapes, 1),
    ):
        check_rank(rank, **{f"{name}[{i}]": tensor for i, tensor in enumerate(given)})
    axis, sizes = _concat_axis(shapes, concat_dim)
    for position, parts in enumerate(zip(indices, values, shapes, strict=True)):
        check_sparse(*parts, f"[{position}] ")
    total = shapes[0].copy()
    total[axis] = min(sum(sizes), _LARGEST)
    _check_size(total)
    rows = np.concatenate(indices)
    offsets = [0, *accumulate(sizes[:-1])]
    rows[:, axis] += np.repeat(offsets, [len(part) for part in indices])
    all_values = np.concatenate(values)
    order = sorted_order(rows)
    if order is not None:
        rows, all_values = rows[order], all_values[order]
    return rows, all_values, total


def _check_size(shape: Any) -> None:
    try:
        TensorShape(shape.tolist())
    except InvalidArgumentError:
        raise InternalError("Encountered overflow from large input shape.") from None


def _concat_axis(shapes: list[Any], concat_dim: int) -> tuple[int, list[int]]:
    """The dimension to concatenate along and its sizes, if the shapes differ in nothing else."""
    for shape in shapes:
        _check_size(shape)
    rank = len(shapes[0])
    if not -rank <= concat_dim < rank:
        raise InvalidArgumentError(
            f"Concat dimension must be in range [{-rank}, {rank}), got {concat_dim}"
        )
    axis = concat_dim % rank
    for position, shape in enumerate(shapes):
        if len(shape) != rank:
            raise InvalidArgumentError(
                f"Ranks of all input tensors must match: expected {rank} but got {len(shape)} at "
                f"position {position}"
            )
        for i in np.flatnonzero(shape != shapes[0]).tolist():
            if i != axis:
                raise InvalidArgumentError(
                    f"Input shapes must match: expected {shapes[0][i]} for dimension {i} but got "
                    f"{shape[i]} at position {position}"
                )
    return axis, [int(shape[axis]) for shape in shapes]


@register_kernel(SPARSE_SPLIT, types={"T": ALL})
def sparse_split(
    split_dim: Any, indices: Any, values: Any, shape: Any, *, num_split: int
) -> tuple[list[Any], list[Any], list[Any]]:
    check_rank(0, split_dim=split_dim)
    sizes = check_sparse(indices, values, shape)
    axis = _split_axis(int(split_dim), sizes, num_split)
    check_bounds(indices, sizes)
    places = indices[:, axis]
    check_allocation((num_split, 3 * len(sizes)), DataType.DT_INT64)
    size, larger = divmod(sizes[axis], num_split)
    starts = [size * part + min(part, larger) for part in range(num_split + 1)]
    part_of = np.searchsorted(starts, places, side="right") - 1
    order = stable_order(part_of)
    cuts = np.searchsorted(part_of[order], np.arange(1, num_split))
    rows = indices[order]
    rows[:, axis] -= np.array(starts)[part_of[order]]
    shapes = []
    for start, end in in_time(pairwise(starts), SLOW):
        shapes.append(shape.copy())
        shapes[-1][axis] = end - start
    return np.split(rows, cuts), np.split(values[order], cuts), shapes


def _split_axis(split_dim: int, sizes: TensorShape, num_split: int) -> int:
    rank = len(sizes)
    if not -rank <= split_dim < rank:
        raise InvalidArgumentError(
            f"Input axis should be in range [{-rank}, {rank}), got {split_dim}"
        )
    axis = split_dim % rank
    if not 1 <= num_split <= sizes[axis]:
        raise InvalidArgumentError(
            f"Input num_split should be between 1 and the splitting dimension size ({sizes[axis]}), "
            f"got {num_split}"
        )
    return axis


_BLOCK = 1 << 12
"""Rows that stay in the processor's cache while their columns are compared."""


def rows_within(indices: Any, start: Any, end: Any) -> Any:
    """The places of the rows that are at or behind `start` and before `end` in each column."""
    widths = np.maximum(end, start).astype(np.uint64) - start.astype(np.uint64)
    found = [np.zeros(0, np.int64)]
    for first in in_time(range(0, len(indices), _BLOCK)):
        block = indices[first : first + _BLOCK].view(np.uint64)
        is_within = np.ones(len(block), bool)
        for column, (least, width) in enumerate(zip(start.astype(np.uint64), widths, strict=True)):
            is_within &= block[:, column] - least < width
        found.append(np.flatnonzero(is_within) + first)
    return np.concatenate(found)


RowFinder = Callable[[Any, Any, Any], Any]
"""A function as `rows_within`."""


def register_slices(find: RowFinder, registry: KernelRegistry | None = None) -> None:
    """Register the kernel of SparseSlice with a function that finds the rows."""

    @register_kernel(SPARSE_SLICE, types={"T": ALL}, registry=registry)
    def sparse_slice(
        indices: Any, values: Any, shape: Any, start: Any, size: Any, *, T: DataType
    ) -> tuple[Any, Any, Any]:
        sizes = check_sparse(indices, values, shape)
        check_rank(1, start=start, size=size)
        for name, given in (("start", start), ("size", size)):
            if len(given) != len(sizes):
                raise InvalidArgumentError(
                    f"Expected {name} to be a vector of length {len(sizes)} but got length {len(given)}"
                )
        if (size < 0).any():
            raise InvalidArgumentError(f"Expected a non-negative size, got {size.min()}")
        kept = find(indices, start, start + size)
        check_entries(len(kept), len(sizes), T)
        found = [
            max(min(length, full - first), 0)
            for first, length, full in zip(start.tolist(), size.tolist(), sizes, strict=True)
        ]
        return indices[kept] - start, values[kept], np.array(found, np.int64)


register_slices(rows_within)


@g.register_gradient("SparseSlice")
def sparse_slice_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    found = g.nodes.SparseSliceGrad(grads[1], op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, found, None, None, None]


SPARSE_REORDER = register_op(
    "SparseReorder(input_indices: int64, input_values: T, input_shape: int64) "
    "-> output_indices: int64, output_values: T",
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
    "SparseReshape(input_indices: int64, input_shape: int64, new_shape: int64) "
    "-> output_indices: int64, output_shape: int64",
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
        require(size >= -1, f"Size {size} of the new shape must be non-negative or -1")
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
