"""Borders around tensors, and blocks of tensors: Pad, PadV2, MirrorPad, MirrorPadGrad, Slice, and gradients.

Pad puts one value around a tensor, MirrorPad the tensor's own mirror image. The gradient of Pad is a Slice, and that of
Slice a Pad.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/pad_op.cc, mirror_pad_op.cc, slice_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import DimensionHandle, InferenceContext, OpHandle, ShapeHandle, register_op
from opkernel.opdef.common_shapes import slice_shape
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require, require_scalar
from opkernel.ops.registration import (
    FLOAT8,
    INDEX,
    NUMBERS,
    POD_OR_STRING,
    QUANTIZED,
    register_kernel,
)
from opkernel.types import Array, DataType, TensorShape

_PAD_TYPES = (*POD_OR_STRING, *QUANTIZED)
_TPADDINGS = "Tpaddings: {int32, int64} = DT_INT32"

_Paddings = Sequence[Sequence[int]]
_Change = Callable[[DimensionHandle, int], DimensionHandle]


def pad_shape(c: InferenceContext) -> None:
    """Each dimension and its row of `paddings`."""
    paddings = c.with_rank(c.input(1), 2)
    c.with_value(c.dim(paddings, 1), 2)
    tensor, rows = c.input(0), c.dim(paddings, 0)
    if c.value_known(rows):
        tensor = c.with_rank(tensor, c.value(rows))
    elif c.rank_known(tensor):
        rows = c.with_value(rows, c.rank(tensor))
    _set_changed_sizes(c, tensor, c.value(rows), c.add)


def _set_changed_sizes(
    c: InferenceContext, tensor: ShapeHandle, rank: int, change: _Change
) -> None:
    """Each dimension changed by what its row of `paddings` holds, where that is known."""
    values = c.input_tensor(1)
    if values is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    tensor = c.with_rank(tensor, len(values.tolist()))
    dims = []
    for i, pair in enumerate(values.tolist()):
        require(min(pair) >= 0, "Paddings must be non-negative")
        dims.append(change(c.dim(tensor, i), sum(pair)))
    c.set_output(0, c.make_shape(dims))


def _declare(signature: str, doc: str) -> OpHandle:
    return register_op(
        f"{signature} -> output: T",
        attrs=["T: type", _TPADDINGS],
        shape_fn=pad_shape,
        doc=doc,
        traits="cost=linear row_rule=filled",
    )


PAD = _declare(
    "Pad(input: T, paddings: Tpaddings)",
    "`input` with `paddings[i]` zeros before and after it in dimension i.",
)
PAD_V2 = _declare(
    "PadV2(input: T, paddings: Tpaddings, constant_values: T)",
    "`input` with `constant_values`, `paddings[i]` before and after it in dimension i.",
)


@register_kernel(
    PAD, types={"T": _PAD_TYPES, "Tpaddings": INDEX}, host_memory=["paddings"], factory=True
)
def pad(*, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    zero = zeros((), T)
    return lambda tensor, paddings: padded(tensor, _checked_paddings(tensor, paddings), zero, T, xp)


@register_kernel(
    PAD_V2, types={"T": _PAD_TYPES, "Tpaddings": INDEX}, host_memory=["paddings", "constant_values"]
)
def pad_v2(tensor: Any, paddings: Any, constant_values: Any, *, T: DataType, xp: Any) -> Any:
    require_scalar(constant_values, "constant_values must be a scalar. Found: {}")
    return padded(tensor, _checked_paddings(tensor, paddings), constant_values, T, xp)


def _checked_paddings(tensor: Any, paddings: Any, what: str = "Paddings") -> list[list[int]]:
    check_paddings_shape(tensor, paddings)
    rows: list[list[int]] = paddings.tolist()
    for before, after in rows:
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"{what} must be non-negative: {before} {after}")
    return rows


def check_paddings_shape(tensor: Any, paddings: Any) -> None:
    """Raise InvalidArgumentError unless `paddings` has a pair for each dimension of `tensor`."""
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        raise InvalidArgumentError(
            f"paddings must be a matrix with 2 columns: {TensorShape(paddings.shape)}"
        )
    if len(paddings) != tensor.ndim:
        raise InvalidArgumentError(
            "The first dimension of paddings must be the rank of inputs"
            f"{TensorShape(paddings.shape)} {TensorShape(tensor.shape)}"
        )


def padded(tensor: Any, paddings: _Paddings, value: Any, dtype: DataType, xp: Any) -> Any:
    """`tensor` with `value`, `paddings[i]` before and after it in dimension i."""
    sizes = zip(paddings, tensor.shape, strict=True)
    shape = check_allocation((before + size + after for (before, after), size in sizes), dtype)
    if xp is not np:
        return xp.pad(tensor, paddings, constant_values=value) if paddings else tensor
    output = np.empty(shape, tensor.dtype)
    inside: list[Any] = []
    for axis, (before, _) in enumerate(paddings):
        stop = before + tensor.shape[axis]
        output[(*inside, slice(None, before), ...)] = value
        output[(*inside, slice(stop, None), ...)] = value
        inside.append(slice(before, stop))
    output[(*inside, ...)] = tensor
    return output


@g.register_gradient("Pad")
def pad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, paddings, *value = op.inputs
    before = g.nodes.StridedSlice(
        paddings, [0, 0], [0, 1], [1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2
    )
    inside = g.nodes.Slice(grad, before, g.nodes.Shape(x, out_type=before.dtype))
    return [inside, None, *[None for _ in value]]


g.register_gradient("PadV2", not_derivative="constant_values count as constant")(pad_gradient)


_ATTRS = ["T: type", _TPADDINGS, "mode: {'REFLECT', 'SYMMETRIC'}"]

MIRROR_PAD = register_op(
    "MirrorPad(input: T, paddings: Tpaddings) -> output: T",
    attrs=_ATTRS,
    shape_fn=pad_shape,
    traits="cost=linear",
    doc="""`input` with its mirror image around it, `paddings[i]` in dimension i.

    REFLECT leaves the elements at the border out of the image, SYMMETRIC repeats them.""",
)


@register_kernel(
    MIRROR_PAD, types={"T": _PAD_TYPES, "Tpaddings": INDEX}, host_memory=["paddings"], factory=True
)
def mirror_pad(*, mode: str, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    offset = mirror_offset(mode)

    def pad(tensor: Any, paddings: Any) -> Any:
        rows = _checked_paddings(tensor, paddings, "paddings")
        for size, (before, after) in zip(tensor.shape, rows, strict=True):
            _check_within(before, after, size, offset, "dimension size")
        sizes = zip(tensor.shape, rows, strict=True)
        check_allocation((size + sum(row) for size, row in sizes), T)
        output = tensor
        for axis, (before, after) in enumerate(rows):
            if before or after:
                index = _mirrored(tensor.shape[axis], before, after, offset)
                output = xp.take(output, index, axis=axis)
        return tensor.copy() if output is tensor else output

    return pad


def mirror_offset(mode: str) -> int:
    """How far from the border the mirror stands."""
    return {"SYMMETRIC": 0, "REFLECT": 1}[mode]


def _check_within(before: int, after: int, size: int, offset: int, what: str) -> None:
    """The mirror image must not be larger than the part that it mirrors."""
    if max(before, after) + offset > size:
        rule = "less than" if offset else "no greater than"
        but = "not less than" if offset else "greater than"
        raise InvalidArgumentError(
            f"paddings must be {rule} the {what}: {before}, {after} {but} {size}"
        )


def _mirrored(size: int, before: int, after: int, offset: int) -> Array:
    """For each place along the padded dimension the place that it shows."""
    inside = np.arange(size)
    left = inside[offset : offset + before][::-1]
    right = inside[size - offset - after : size - offset][::-1]
    return np.concatenate([left, inside, right])


def mirror_pad_grad_shape(c: InferenceContext) -> None:
    """Each dimension without its row of `paddings`."""
    paddings = c.with_rank(c.input(1), 2)
    rows = c.dim(paddings, 0)
    if not c.value_known(rows):
        c.set_output(0, c.unknown_shape())
        return
    rank = c.value(rows)
    tensor = c.with_rank(c.input(0), rank)
    c.merge(paddings, c.matrix(rank, 2))
    _set_changed_sizes(c, tensor, rank, c.subtract)


MIRROR_PAD_GRAD = register_op(
    "MirrorPadGrad(input: T, paddings: Tpaddings) -> output: T",
    attrs=_ATTRS,
    shape_fn=mirror_pad_grad_shape,
    doc="The gradient of MirrorPad: the image is added to what it is an image of.",
)


@register_kernel(
    MIRROR_PAD_GRAD,
    types={"T": NUMBERS, "Tpaddings": INDEX},
    host_memory=["paddings"],
    factory=True,
)
def mirror_pad_grad(*, mode: str) -> Callable[[Any, Any], Any]:
    offset = mirror_offset(mode)

    def fold(tensor: Any, paddings: Any) -> Any:
        output = tensor
        for axis, (before, after) in enumerate(_folded_paddings(tensor, paddings, offset)):
            if before or after:
                output = _folded(output, axis, before, after, offset)
        return tensor.copy() if output is tensor else output

    return fold


def _folded_paddings(tensor: Any, paddings: Any, offset: int) -> list[list[int]]:
    """How much MirrorPadGrad folds back at the beginning and the end of each dimension.

    Raises:
        InvalidArgumentError: there is too little inside for it.
    """
    rows = _checked_paddings(tensor, paddings, "paddings")
    for size, (before, after) in zip(tensor.shape, rows, strict=True):
        if before + after >= size:
            raise InvalidArgumentError(
                f"Total paddings must be less than the input dimension size: {before + after} was not less than {size}"
            )
        inside = size - before - after
        _check_within(before, after, inside, offset, "output dimension size")
    return rows


def _folded(tensor: Any, axis: int, before: int, after: int, offset: int) -> Any:
    """The inside along `axis`, plus the images on both sides."""
    lines = np.moveaxis(tensor, axis, 0)
    stop = len(lines) - after
    inside = lines[before:stop]
    inside = inside.copy(order="K") if isinstance(inside, np.ndarray) else inside.copy()
    size = len(inside)
    inside[offset : offset + before] += lines[:before][::-1]
    inside[size - offset - after : size - offset] += lines[stop:][::-1]
    return np.moveaxis(inside, 0, axis)


g.register_gradient("MirrorPad")(g.by_op("MirrorPadGrad", "mode"))
g.register_gradient("MirrorPadGrad")(g.by_op("MirrorPad", "mode"))


SLICE = register_op(
    "Slice(input: T, begin: Index, size: Index) -> output: T",
    attrs=["T: type", "Index: {int32, int64}"],
    shape_fn=slice_shape,
    traits="value_rule=slice cost=linear int32_on_host function_gradient=yes",
    doc="The block of `input` that starts at `begin` and has shape `size`; -1 is all that is left.",
)


@register_kernel(
    SLICE,
    types={"T": (*POD_OR_STRING, *FLOAT8, *QUANTIZED)},
    host_memory=["begin", "size"],
    kind="view",
)
def slice_of(tensor: Any, begin: Any, size: Any) -> Any:
    rank = tensor.ndim
    if not begin.shape == size.shape == (rank,):
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {rank}, but got shapes "
            f"{TensorShape(begin.shape)} and {TensorShape(size.shape)} instead."
        )
    index: list[Any] = [...]  # keeps a view of rank 0 an array
    block = zip(begin.tolist(), size.tolist(), tensor.shape, strict=True)
    for i, (start, length, limit) in enumerate(block):
        stop = limit if length == -1 else start + length
        if not 0 <= start <= stop <= limit:
            raise _out_of_bounds(i, (start, stop - start), limit)
        index.append(slice(start, stop))
    return tensor[tuple(index)]


def _out_of_bounds(axis: int, block: Sequence[int], limit: int) -> InvalidArgumentError:
    start, length = block
    if limit == 0:
        return InvalidArgumentError(
            f"Expected begin[{axis}] == 0 (got {start}) and size[{axis}] == 0 (got {length}) when "
            f"input.dim_size({axis}) == 0"
        )
    if not 0 <= start <= limit:
        return InvalidArgumentError(f"Expected begin[{axis}] in [0, {limit}], but got {start}")
    return InvalidArgumentError(f"Expected size[{axis}] in [0, {limit - start}], but got {length}")


@g.register_gradient("Slice")
def slice_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradient with zeros around it."""
    x, begin, _ = op.inputs
    size = g.nodes.Shape(op.outputs[0], out_type=begin.dtype)
    behind = g.nodes.Sub(g.nodes.Sub(g.nodes.Shape(x, out_type=begin.dtype), size), begin)
    return g.nodes.Pad(grad, g.nodes.Pack([begin, behind], axis=1)), None, None
