"""Borders of one value around tensors: Pad, PadV2.

Mirror images around tensors: MirrorPad, MirrorPadGrad.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/pad_op.cc, core/kernels/mirror_pad_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.kernel_types import INDEX, NUMBERS, POD_OR_STRING, QUANTIZED
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

_PAD_TYPES = (*POD_OR_STRING, *QUANTIZED)
_TPADDINGS = "Tpaddings: {int32, int64} = DT_INT32"

_Paddings = Sequence[Sequence[int]]


def pad_shape(c: InferenceContext) -> None:
    """Each dimension and its row of `paddings`."""
    paddings = c.with_rank(c.input(1), 2)
    c.with_value(c.dim(paddings, 1), 2)
    tensor, rows = c.input(0), c.dim(paddings, 0)
    if c.value_known(rows):
        tensor = c.with_rank(tensor, c.value(rows))
    elif c.rank_known(tensor):
        rows = c.with_value(rows, c.rank(tensor))
    values = c.input_tensor(1)
    if values is None:
        c.set_output(0, c.unknown_shape_of_rank(c.value(rows)))
        return
    tensor = c.with_rank(tensor, len(values.tolist()))
    dims = []
    for i, (before, after) in enumerate(values.tolist()):
        if before < 0 or after < 0:
            raise InvalidArgumentError("Paddings must be non-negative")
        dims.append(c.add(c.dim(tensor, i), before + after))
    c.set_output(0, c.make_shape(dims))


PAD = register_op(
    "Pad",
    inputs=["input: T", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=["T: type", _TPADDINGS],
    shape_fn=pad_shape,
    doc="`input` with `paddings[i]` zeros before and after it in dimension i.",
    traits="cost=linear row_rule=filled",
)

PAD_V2 = register_op(
    "PadV2",
    inputs=["input: T", "paddings: Tpaddings", "constant_values: T"],
    outputs=["output: T"],
    attrs=["T: type", _TPADDINGS],
    shape_fn=pad_shape,
    doc="`input` with `constant_values`, `paddings[i]` before and after it in dimension i.",
    traits="cost=linear row_rule=filled",
)


@register_kernel(
    PAD, types={"T": _PAD_TYPES, "Tpaddings": INDEX}, host_memory=["paddings"], factory=True
)
def pad(*, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    zero = zeros((), T)
    return lambda tensor, paddings: padded(tensor, _checked_paddings(tensor, paddings), zero, T, xp)


@register_kernel(
    PAD_V2,
    types={"T": _PAD_TYPES, "Tpaddings": INDEX},
    host_memory=["paddings", "constant_values"],
    factory=True,
)
def pad_v2(*, T: DataType, xp: Any) -> Callable[[Any, Any, Any], Any]:
    def pad_with(tensor: Any, paddings: Any, constant_values: Any) -> Any:
        require_scalar(constant_values, "constant_values must be a scalar. Found: {}")
        return padded(tensor, _checked_paddings(tensor, paddings), constant_values, T, xp)

    return pad_with


def _checked_paddings(tensor: Any, paddings: Any) -> list[list[int]]:
    check_paddings_shape(tensor, paddings)
    rows: list[list[int]] = paddings.tolist()
    for before, after in rows:
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {before} {after}")
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
    return _inside(op, grad), None


@g.register_gradient("PadV2", not_derivative="constant_values count as constant")
def pad_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return _inside(op, grad), None, None


def _inside(op: g.Operation, grad: g.Tensor) -> Any:
    x, paddings = op.inputs[:2]
    before = g.nodes.StridedSlice(
        paddings, [0, 0], [0, 1], [1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2
    )
    return g.nodes.Slice(grad, before, g.nodes.Shape(x, out_type=before.dtype))


_ATTRS = [
    "T: type",
    "Tpaddings: {int32, int64} = DT_INT32",
    "mode: {'REFLECT', 'SYMMETRIC'}",
]

MIRROR_PAD = register_op(
    "MirrorPad",
    inputs=["input: T", "paddings: Tpaddings"],
    outputs=["output: T"],
    attrs=_ATTRS,
    shape_fn=pad_shape,
    traits="cost=linear",
    doc="""`input` with its mirror image around it, `paddings[i]` in dimension i.

    REFLECT leaves the elements at the border out of the image, SYMMETRIC repeats them.""",
)


@register_kernel(
    MIRROR_PAD,
    types={"T": (*POD_OR_STRING, *QUANTIZED), "Tpaddings": INDEX},
    host_memory=["paddings"],
    factory=True,
)
def mirror_pad(*, mode: str, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    offset = mirror_offset(mode)

    def pad(tensor: Any, paddings: Any) -> Any:
        rows = list(_paddings(tensor, paddings))
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


def _paddings(tensor: Any, paddings: Any) -> Iterator[tuple[int, int]]:
    check_paddings_shape(tensor, paddings)
    for before, after in paddings.tolist():
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"paddings must be non-negative: {before} {after}")
        yield before, after


def _check_within(before: int, after: int, size: int, offset: int, what: str) -> None:
    """The mirror image must not be larger than the part that it mirrors."""
    if max(before, after) + offset > size:
        rule, but = (
            ("less than", "not less than") if offset else ("no greater than", "greater than")
        )
        raise InvalidArgumentError(
            f"paddings must be {rule} the {what}: {before}, {after} {but} {size}"
        )


def _mirrored(size: int, before: int, after: int, offset: int) -> np.ndarray[Any, Any]:
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
    values = c.input_tensor(1)
    if values is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    dims = []
    for i, (before, after) in enumerate(values.tolist()):
        if before < 0 or after < 0:
            raise InvalidArgumentError("Paddings must be non-negative")
        dims.append(c.subtract(c.dim(tensor, i), before + after))
    c.set_output(0, c.make_shape(dims))


MIRROR_PAD_GRAD = register_op(
    "MirrorPadGrad",
    inputs=["input: T", "paddings: Tpaddings"],
    outputs=["output: T"],
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
        for axis, (before, after) in enumerate(folded_paddings(tensor, paddings, offset)):
            if before or after:
                output = _folded(output, axis, before, after, offset)
        return tensor.copy() if output is tensor else output

    return fold


def folded_paddings(tensor: Any, paddings: Any, offset: int) -> list[tuple[int, int]]:
    """How much MirrorPadGrad folds back at the beginning and the end of each dimension.

    Raises:
        InvalidArgumentError: there is too little inside for it.
    """
    rows = list(_paddings(tensor, paddings))
    for size, (before, after) in zip(tensor.shape, rows, strict=True):
        if before + after >= size:
            raise InvalidArgumentError(
                "Total paddings must be less than the input dimension size: "
                f"{before + after} was not less than {size}"
            )
        inside = size - before - after
        _check_within(before, after, inside, offset, "output dimension size")
    return rows


def _folded(tensor: Any, axis: int, before: int, after: int, offset: int) -> Any:
    """The inside along `axis`, plus the images on both sides."""
    lines = np.moveaxis(tensor, axis, 0)
    stop = len(lines) - after
    inside = lines[before:stop].copy()
    size = len(inside)
    inside[offset : offset + before] += lines[:before][::-1]
    inside[size - offset - after : size - offset] += lines[stop:][::-1]
    return np.moveaxis(inside, 0, axis)


@g.register_gradient("MirrorPad")
def mirror_pad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.MirrorPadGrad(grad, op.inputs[1], **g.attrs_of(op, "mode")), None


@g.register_gradient("MirrorPadGrad")
def mirror_pad_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.MirrorPad(grad, op.inputs[1], **g.attrs_of(op, "mode")), None
