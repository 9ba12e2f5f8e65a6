"""Tensors joined to one: Concat, ConcatV2, ConcatOffset, Pack, ParallelConcat, and gradients.

Many tensors are joined some at a time: nothing interrupts NumPy.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/concat_op.cc, pack_op.cc, inplace_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, explicit_shape, register_op, unchanged_shape
from opkernel.opdef.common_shapes import concat_shape, concat_v2_shape
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require, require_equal, require_scalar, require_vector
from opkernel.ops.registration import (
    ALL,
    ALL_QUANTIZED,
    FLOAT8,
    INDEX,
    POD_OR_STRING,
    register_kernel,
)
from opkernel.types import DataType, PartialTensorShape, TensorShape

__all__ = ["concatenated", "stacked"]


_AT_ONCE = 1 << 12


def concatenated(tensors: Sequence[Any]) -> Any:
    """Tensors of one type, one after the other; there is at least one."""
    if len(tensors) <= _AT_ONCE:
        return np.concatenate(tensors)
    first = tensors[0]
    output = np.empty((sum(map(len, tensors)), *first.shape[1:]), first.dtype)
    end = 0
    for some in _some_at_a_time(tensors):
        start, end = end, end + sum(map(len, some))
        np.concatenate(some, out=output[start:end])
    return output


def stacked(tensors: Sequence[Any]) -> Any:
    """Tensors of one type and shape as the rows of one; there is at least one."""
    first = tensors[0]
    shape = (len(tensors), *first.shape)
    if len(tensors) <= _AT_ONCE:
        return np.concatenate(tensors).reshape(shape) if first.shape else np.stack(tensors)
    output, end = np.empty(shape, first.dtype), 0
    for some in _some_at_a_time(tensors):
        start, end = end, end + len(some)
        np.stack(some, out=output[start:end])
    return output


def _some_at_a_time(tensors: Sequence[Any]) -> Any:
    starts = in_time(range(0, len(tensors), _AT_ONCE), SLOW, "joining tensors")
    return (tensors[start : start + _AT_ONCE] for start in starts)


_CONCAT_TYPES = (*POD_OR_STRING, *FLOAT8, *ALL_QUANTIZED)

CONCAT = register_op(
    "Concat(concat_dim: int32, values: N * T) -> output: T",
    attrs=["N: int >= 2", "T: type"],
    shape_fn=concat_shape,
    traits="value_rule=concat_v1 cost=linear int32_on_host function_gradient=yes",
    doc="`values` one after the other along dimension `concat_dim`.",
)

CONCAT_V2 = register_op(
    "ConcatV2(values: N * T, axis: Tidx) -> output: T",
    attrs=["N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32"],
    shape_fn=concat_v2_shape,
    traits="cannot_fail value_rule=concat cost=linear row_rule=joined int32_on_host function_gradient=yes",
    doc="`values` one after the other along dimension `axis`, from the end if negative.",
)


@register_kernel(CONCAT, types={"T": _CONCAT_TYPES}, host_memory=["concat_dim"], factory=True)
def concat(*, xp: Any) -> Callable[[Any, list[Any]], Any]:
    concatenated = _concatenation("concat_dim", xp)
    return lambda concat_dim, values: concatenated(values, concat_dim)


@register_kernel(CONCAT_V2, types={"T": _CONCAT_TYPES}, host_memory=["axis"], factory=True)
def concat_v2(*, xp: Any) -> Callable[[list[Any], Any], Any]:
    return _concatenation("axis", xp)


def _concatenation(axis_name: str, xp: Any) -> Callable[[list[Any], Any], Any]:
    def concatenated(values: list[Any], axis: Any) -> Any:
        place, rank = int(_scalar(axis, axis_name) if axis.ndim else axis), values[0].ndim
        if not -rank <= place < rank:  # NumPy takes -2**31 for "flatten"
            raise _out_of_range(place, rank)
        try:
            return xp.concatenate(values, axis=place)
        except (ValueError, TypeError):
            check_concat([value.shape for value in values], place)
            raise

    return concatenated


def _scalar(axis: Any, axis_name: str) -> Any:
    """The number in a vector, as old graphs write it."""
    require_equal(
        axis.shape, (1,), f"{axis_name} tensor should be a scalar integer, but got shape {{}}"
    )
    return axis[0]


def _out_of_range(axis: int, rank: int) -> InvalidArgumentError:
    if rank == 0:
        return InvalidArgumentError("ConcatOp : Can't concatenate scalars (use tf.stack instead)")
    return InvalidArgumentError(
        f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}"
    )


def check_concat(shapes: Sequence[tuple[int, ...]], axis: int) -> None:
    """Raise InvalidArgumentError if tensors of these shapes cannot be concatenated."""
    first, rank = shapes[0], len(shapes[0])
    for i, shape in enumerate(shapes):
        got = f"shape[0] = {TensorShape(first)} vs. shape[{i}] = {TensorShape(shape)}"
        require(len(shape) == rank, f"ConcatOp : Ranks of all input tensors should match: {got}")
        for dim in range(rank):
            if dim != axis % rank and shape[dim] != first[dim]:
                raise InvalidArgumentError(
                    f"ConcatOp : Dimension {dim} in both shapes must be equal: {got}"
                )


def concat_offset_shape(c: InferenceContext) -> None:
    """Each offset is a vector as long as its shape."""
    for i in range(1, c.num_inputs()):
        c.set_output(i - 1, c.input(i))


CONCAT_OFFSET = register_op(
    "ConcatOffset(concat_dim: int32, shape: N * shape_type) -> offset: N * shape_type",
    attrs=["N: int >= 2", "shape_type: {int32, int64} = DT_INT32"],
    shape_fn=concat_offset_shape,
    doc="Where tensors of the given shapes start in what Concat makes of them.",
)


@register_kernel(CONCAT_OFFSET, types={"shape_type": INDEX})
def concat_offset(concat_dim: Any, shapes: list[Any]) -> list[Any]:
    require_scalar(concat_dim, "Concat dim tensor should be a scalar integer, but got shape {}")
    for i, shape in enumerate(shapes):
        require_vector(shape, f"input {i} should be a vector, but got shape {{}}")
    axis, rank = concat_dim.item(), len(shapes[0])
    require(-rank <= axis < rank, f"Concat dim is out of range: {axis} vs. {rank}")
    axis %= rank
    offsets = []
    start = 0
    for i, shape in enumerate(shapes):
        _check_offset_shape(shapes[0], shape, axis, i)
        offset = np.zeros(rank, shape.dtype)
        offset[axis] = start
        start += shape[axis]
        offsets.append(offset)
    return offsets


def _check_offset_shape(first: Any, shape: Any, axis: int, index: int) -> None:
    require_equal(
        len(first), len(shape), f"input {index} should contain {{}} elements, but got {{}}"
    )
    differs = shape != first
    differs[axis] = False
    if differs.any():
        have, want = (" ".join(map(str, sizes.tolist())) for sizes in (shape, first))
        raise InvalidArgumentError(
            f"All dimensions except {axis} must match. Input {index} has shape [{have}] and "
            f"doesn't match input 0 with shape [{want}]."
        )


def pack_shape(c: InferenceContext) -> None:
    """All inputs merged, with a dimension as long as their number at `axis`."""
    last = c.num_inputs() - 1
    merged = c.input(last)
    for i in reversed(range(last)):
        try:
            merged = c.merge(c.input(i), merged)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{error.message}\n\tFrom merging shape {i} with other shapes."
            ) from error
    if merged.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    axis = pack_axis(c, len(merged.dims) + 1)
    c.set_output(0, c.make_shape((*merged.dims[:axis], c.num_inputs(), *merged.dims[axis:])))
    for i in range(c.num_inputs()):
        held = c.input_handle_shapes_and_types(i)
        if held is not None and not c.relax_output_handle_shapes_and_merge_types(0, held):
            c.set_output_handle_shapes_and_types(0, [])
            break


def pack_axis(c: InferenceContext, rank: int) -> int:
    """The attr `axis` of Pack and Unpack, from the front, for a packed tensor of this rank."""
    axis: int = c.get_attr("axis")
    require(-rank <= axis < rank, f"Invalid axis: {axis}; must be in [{-rank},{rank})")
    return axis % rank


PACK = register_op(
    "Pack(values: N * T) -> output: T",
    attrs=["N: int >= 1", "T: type", "axis: int = 0"],
    shape_fn=pack_shape,
    traits="cannot_fail value_rule=pack cost=linear int32_on_host function_gradient=yes",
    doc="`values` stacked along a new dimension `axis`.",
)


@register_kernel(PACK, types={"T": (*ALL, *FLOAT8, *ALL_QUANTIZED)}, factory=True)
def pack(*, axis: int, T: DataType, xp: Any) -> Callable[[list[Any]], Any]:
    dtype = T.numpy_dtype
    makes_scalars_directly = xp is np and not dtype.hasobject

    def stack(values: list[Any]) -> Any:
        shape = values[0].shape
        rank = len(shape) + 1
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"axis = {axis} not in [{-rank}, {rank})")
        for i, value in enumerate(values):
            if value.shape != shape:
                raise InvalidArgumentError(
                    "Shapes of all inputs must match: values[0].shape = "
                    f"{TensorShape(shape)} != values[{i}].shape = {TensorShape(value.shape)}"
                )
        if not shape and makes_scalars_directly:
            return np.array(values, dtype)
        at = axis % rank
        column = (*shape[:at], 1, *shape[at:])
        return xp.concatenate([value.reshape(column) for value in values], axis=at)

    return stack


def parallel_concat_shape(c: InferenceContext) -> None:
    """The attr `shape`: inputs with a first dimension of 1, one after the other."""
    shape = c.make_shape_from_partial_shape(c.get_attr("shape"))
    require(c.fully_defined(shape), "shape attr must be fully defined.")
    merged = c.replace_dim(shape, 0, 1)
    for i in range(c.num_inputs()):
        one = c.input(i)
        require(c.fully_defined(one), "All input shapes must be fully defined.")
        if c.rank(one) == 0:
            raise InvalidArgumentError(
                f"The rank of all input shapes must be greater than 0, but input {i} had rank 0."
            )
        require(c.dim(one, 0).value == 1, "Size of first dimension must be 1.")
        try:
            merged = c.merge(one, merged)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{error.message} From merging shape {i} with other shapes."
            ) from error
    c.set_output(0, shape)


PARALLEL_CONCAT = register_op(
    "ParallelConcat(values: N * T) -> output: T",
    attrs=["N: int >= 1", "T: type", "shape: shape"],
    shape_fn=parallel_concat_shape,
    doc="The rows `values`, one after the other. Their shapes must be known when the graph is built.",
    traits="cost=linear",
)


@register_kernel(PARALLEL_CONCAT, types={"T": POD_OR_STRING}, factory=True)
def parallel_concat(*, T: DataType, shape: PartialTensorShape) -> Callable[[list[Any]], Any]:
    sizes = [size for size in shape.as_list() if size is not None] if shape.rank else []
    require(sizes and shape.is_fully_defined(), f"shape must be known and have rows; got {shape}")

    def concatenated(values: list[Any]) -> Any:
        for place, value in enumerate(values):
            _check_row(sizes, place, value.shape)
        if len(values) == sizes[0]:
            return np.concatenate(values)
        output = zeros(check_allocation(sizes, T), T)
        output[: len(values)] = np.concatenate(values)  # TensorFlow leaves the other rows open
        return output

    return concatenated


PARALLEL_CONCAT_START = register_op(
    "_ParallelConcatStart() -> output: dtype",
    attrs=["shape: shape", "dtype: type"],
    shape_fn=explicit_shape,
    is_stateful=True,
    doc="Memory for the rows that `_ParallelConcatUpdate` sets.",
)


@register_kernel(PARALLEL_CONCAT_START, types={"dtype": POD_OR_STRING}, factory=True)
def parallel_concat_start(*, shape: PartialTensorShape, dtype: DataType) -> Callable[[], Any]:
    sizes = shape.as_tensor_shape().as_list()
    return lambda: zeros(check_allocation(sizes, dtype), dtype)


PARALLEL_CONCAT_UPDATE = register_op(
    "_ParallelConcatUpdate(value: T, update: T) -> output: T",
    attrs=["T: type", "loc: int"],
    shape_fn=unchanged_shape,
    traits="cost=linear",
    doc="`value` with `update` as the row of number `loc`.",
)


@register_kernel(PARALLEL_CONCAT_UPDATE, types={"T": POD_OR_STRING})
def parallel_concat_update(value: Any, update: Any, *, loc: int) -> Any:
    require(value.ndim > 0, "value should be at least rank 1.")
    rows = len(value)
    require(loc < rows, f"0th dimension of value = {rows} must be greater than loc_ = {loc}")
    _check_row(list(value.shape), loc, update.shape)
    output = value.copy()
    if rows:
        output[loc % rows] = update[0]
    return output


def _check_row(shape: list[int], place: int, row: tuple[int, ...]) -> None:
    """Raise InvalidArgumentError where an input is no row of the output."""
    both = f"{TensorShape(shape)} vs. {TensorShape(row)}"
    require_equal(len(row), len(shape), f"value and update shape doesn't match: {both}")
    if row[1:] != tuple(shape[1:]):
        raise InvalidArgumentError(f"value and update shape doesn't match in the rows: {both}")
    if row[0] != 1:
        raise InvalidArgumentError(f"update shape doesn't match: {TensorShape(row)}")
    if place >= shape[0]:
        raise InvalidArgumentError(f"row {place} is beyond the {shape[0]} rows of the attr shape")


@g.register_gradient("Pack")
def pack_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Unpack(grad, num=op.get_attr("N"), **g.attrs_of(op, "axis"))


@g.register_gradient("Concat")
def concat_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    axis, *values = op.inputs
    return [None, *_parts(values, axis, grad)]


@g.register_gradient("ConcatV2")
def concat_v2_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    *values, axis = op.inputs
    return [*_parts(values, axis, grad), None]


def _parts(values: Sequence[g.Tensor], axis: g.Tensor, grad: g.Gradient) -> Sequence[Any]:
    """The part of the gradient that belongs to each of the values."""
    if len(values) == 1:
        return [grad]
    shapes = [g.shape_of(value) for value in values]
    along = _from_front(axis, values[0])
    if isinstance(grad, g.IndexedSlices) and isinstance(along, int):
        return _parts_of_rows(shapes, along, grad) if along else _ranges_of_rows(shapes, grad)
    offsets = g.nodes.ConcatOffset(along, shapes)
    return [g.nodes.Slice(grad, *part) for part in zip(offsets, shapes, strict=True)]


def _from_front(axis: g.Tensor, value: g.Tensor) -> Any:
    """The axis counted from the front: an int if it is known, else a tensor of int32."""
    rank, known = value.shape.rank, g.constant_value(axis)
    if rank is not None and known is not None:
        return int(known) % max(rank, 1)
    rank = g.nodes.Rank(value)
    return g.nodes.FloorMod(g.nodes.Cast(axis, DstT=DataType.DT_INT32), rank)


def _parts_of_rows(shapes: Sequence[g.Tensor], axis: int, grad: g.IndexedSlices) -> Sequence[Any]:
    """The parts along an axis inside the rows."""
    rows = [g.nodes.ConcatV2([[-1], g.nodes.Slice(shape, [1], [-1])], 0) for shape in shapes]
    offsets = g.nodes.ConcatOffset(axis, shapes)
    return [
        g.IndexedSlices(g.nodes.Slice(grad.values, offset, size), grad.indices, shape)
        for offset, size, shape in zip(offsets, rows, shapes, strict=True)
    ]


def _ranges_of_rows(shapes: Sequence[g.Tensor], grad: g.IndexedSlices) -> Sequence[Any]:
    """The rows that come from each of the values."""
    parts, start = [], g.nodes.Cast(0, DstT=grad.indices.dtype)
    for shape in shapes:
        size = g.nodes.StridedSlice(shape, [0], [1], [1], shrink_axis_mask=1)
        end = g.nodes.AddV2(start, g.nodes.Cast(size, DstT=grad.indices.dtype))
        is_in = g.nodes.LogicalAnd(
            g.nodes.GreaterEqual(grad.indices, start), g.nodes.Less(grad.indices, end)
        )
        places = g.nodes.Squeeze(g.nodes.Where(is_in), squeeze_dims=[1])
        indices = g.nodes.Sub(g.nodes.GatherV2(grad.indices, places, 0), start)
        parts.append(g.IndexedSlices(g.nodes.GatherV2(grad.values, places, 0), indices, shape))
        start = end
    return parts
