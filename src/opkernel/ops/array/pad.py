"""Borders of one value around tensors: Pad, PadV2.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/pad_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.array.zeros import zeros
from opkernel.ops.kernel_types import INDEX, POD_OR_STRING, QUANTIZED
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
    PAD,
    device="CPU",
    types={"T": _PAD_TYPES, "Tpaddings": INDEX},
    host_memory=["paddings"],
    factory=True,
)
def pad(*, T: DataType, xp: Any) -> Callable[[Any, Any], Any]:
    zero = zeros((), T)
    return lambda tensor, paddings: padded(tensor, _checked_paddings(tensor, paddings), zero, T, xp)


@register_kernel(
    PAD_V2,
    device="CPU",
    types={"T": _PAD_TYPES, "Tpaddings": INDEX},
    host_memory=["paddings", "constant_values"],
    factory=True,
)
def pad_v2(*, T: DataType, xp: Any) -> Callable[[Any, Any, Any], Any]:
    def pad_with(tensor: Any, paddings: Any, constant_values: Any) -> Any:
        if constant_values.ndim != 0:
            raise InvalidArgumentError(
                f"constant_values must be a scalar. Found: {TensorShape(constant_values.shape)}"
            )
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
