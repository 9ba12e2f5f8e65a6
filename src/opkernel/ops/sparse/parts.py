"""SparseConcat, SparseSplit and SparseSlice, and gradients.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_concat_op.cc, sparse_split_op.cc,
sparse_slice_op.cc.
"""

from itertools import accumulate, pairwise
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeHandle, register_op
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.kernel_types import ALL
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import (
    check_bounds,
    check_entries,
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
    "SparseConcat",
    inputs=["indices: N * int64", "values: N * T", "shapes: N * int64"],
    outputs=["output_indices: int64", "output_values: T", "output_shape: int64"],
    attrs=["concat_dim: int", "N: int >= 2", "T: type"],
    shape_fn=sparse_concat_shape,
    doc="Sparse tensors one after the other along a dimension.",
)
SPARSE_SPLIT = register_op(
    "SparseSplit",
    inputs=["split_dim: int64", "indices: int64", "values: T", "shape: int64"],
    outputs=[
        "output_indices: num_split * int64",
        "output_values: num_split * T",
        "output_shape: num_split * int64",
    ],
    attrs=["num_split: int >= 1", "T: type"],
    shape_fn=sparse_split_shape,
    doc="A sparse tensor cut into `num_split` parts along a dimension, the first ones larger by 1.",
)
SPARSE_SLICE = register_op(
    "SparseSlice",
    inputs=["indices: int64", "values: T", "shape: int64", "start: int64", "size: int64"],
    outputs=["output_indices: int64", "output_values: T", "output_shape: int64"],
    attrs=["T: type"],
    shape_fn=sparse_slice_shape,
    doc="The part of a sparse tensor from `start` on, of `size` where the tensor is that large.",
)


@register_kernel(SPARSE_CONCAT, types={"T": ALL})
def sparse_concat(
    indices: list[Any], values: list[Any], shapes: list[Any], *, concat_dim: int
) -> tuple[Any, Any, Any]:
    for name, matrices, rank in (
        ("indices", indices, 2),
        ("values", values, 1),
        ("shapes", shapes, 1),
    ):
        check_rank(rank, **{f"{name}[{i}]": matrix for i, matrix in enumerate(matrices)})
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


@register_kernel(SPARSE_SLICE, types={"T": ALL})
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
    kept = ((indices >= start) & (indices < start + size)).all(axis=1)
    check_entries(int(kept.sum()), len(sizes), T)
    found = [
        max(min(length, full - first), 0)
        for first, length, full in zip(start.tolist(), size.tolist(), sizes, strict=True)
    ]
    return indices[kept] - start, values[kept], np.array(found, np.int64)


@g.register_gradient("SparseSlice")
def sparse_slice_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    found = g.nodes.SparseSliceGrad(grads[1], op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, found, None, None, None]
