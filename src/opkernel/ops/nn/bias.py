"""Bias: a vector added along the channels, and its gradient.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/bias_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import one_blas_thread
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import bias_add_grad_shape, bias_add_shape
from opkernel.ops.input_checks import require
from opkernel.ops.registration import NUMBERS, register_kernel
from opkernel.types import DataType

_DATA_FORMAT = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_NARROW = (DataType.DT_BFLOAT16, DataType.DT_HALF)
LANES = 512
"""Elements of a row up to which adding one takes about the same time."""
_MANY = 1 << 14
"""Elements from which on a product with ones begins late but is faster than adding."""

BIAS_ADD = register_op(
    "BiasAdd(value: T, bias: T) -> output: T",
    attrs=["T: numbertype", _DATA_FORMAT],
    shape_fn=bias_add_shape,
    traits="cannot_fail images=?-:? cost=linear row_rule=first_alone function_gradient=yes",
    doc="`value` plus the vector `bias` along the last dimension, for NCHW along the second.",
)

BIAS_ADD_V1 = register_op(
    "BiasAddV1(value: T, bias: T) -> output: T",
    attrs=["T: numbertype"],
    shape_fn=bias_add_shape,
    doc="`value` plus the vector `bias` along the last dimension.",
)

BIAS_ADD_GRAD = register_op(
    "BiasAddGrad(out_backprop: T) -> output: T",
    attrs=["T: numbertype", _DATA_FORMAT],
    shape_fn=bias_add_grad_shape,
    traits="images=?:-",
    doc="The sums of `out_backprop` for each channel: the gradient of BiasAdd by its bias.",
)


@register_kernel(BIAS_ADD, types={"T": NUMBERS}, factory=True)
def bias_add(*, data_format: str, xp: Any) -> Callable[[Any, Any], Any]:
    return _channels_first(xp) if data_format == "NCHW" else _channels_last(xp)


@register_kernel(BIAS_ADD_V1, types={"T": NUMBERS}, factory=True)
def bias_add_v1(*, xp: Any) -> Callable[[Any, Any], Any]:
    return _channels_last(xp)


def _channels_last(xp: Any) -> Callable[[Any, Any], Any]:
    add = xp.add

    def biased(value: Any, bias: Any) -> Any:
        if value.ndim < 2 or value.shape[-1:] != bias.shape:
            _refuse(value, bias, -1)
        return add(value, bias)

    return biased


def _channels_first(xp: Any) -> Callable[[Any, Any], Any]:
    def biased(value: Any, bias: Any) -> Any:
        if value.ndim < 2 or value.shape[1:2] != bias.shape:
            _refuse(value, bias, 1)
        return xp.add(value, bias.reshape(-1, *(1,) * (value.ndim - 2)))

    return biased


def _refuse(value: Any, bias: Any, axis: int) -> None:
    """Raise the InvalidArgumentError for a value and a bias that do not fit."""
    require(value.ndim >= 2, f"Input tensor must be at least 2D: {list(value.shape)}")
    require(bias.ndim == 1, f"Biases must be 1D: {list(bias.shape)}")
    raise InvalidArgumentError(
        f"Must provide as many biases as dimension {axis} of the input tensor: "
        f"{list(bias.shape)} vs. {list(value.shape)}"
    )


@register_kernel(BIAS_ADD_GRAD, types={"T": NUMBERS}, factory=True)
def bias_add_grad(*, data_format: str, T: DataType, xp: Any) -> Callable[[Any], Any]:
    """Integers wrap around. Half and bfloat16 are rounded where TensorFlow rounds them.

    Half is added up in float; bfloat16 is not, except inside of one image of NCHW.
    """
    dtype = T.numpy_dtype
    in_float = np.dtype(np.float32) if T in _NARROW else dtype
    over_rows = in_float if T == DataType.DT_HALF else dtype

    def channels_last(x: Any) -> Any:
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        if T not in _NARROW:
            return _sum_of_rows(_folded(rows, xp), xp)
        return xp.sum(rows, axis=0, dtype=over_rows).astype(dtype, copy=False)

    def channels_first(x: Any) -> Any:
        of_images = xp.sum(x, axis=tuple(range(2, x.ndim)), dtype=in_float).astype(dtype)
        return xp.sum(of_images, axis=0, dtype=dtype)

    sums = channels_first if data_format == "NCHW" else channels_last

    def kernel(out_backprop: Any) -> Any:
        if out_backprop.ndim < 2:
            shape = list(out_backprop.shape)
            raise InvalidArgumentError(f"Input tensor must be at least 2D: {shape}")
        return sums(out_backprop)

    return kernel


def _folded(rows: Any, xp: Any) -> Any:
    """Fewer rows with the same sum: short rows are added up several at a time."""
    count, width = rows.shape
    together = LANES // max(width, 1)
    if together < 2 or count < 16 * together:
        return rows
    whole = count - count % together
    sums = _sum_of_rows(rows[:whole].reshape(-1, together * width), xp)
    return xp.concat([sums.reshape(together, width), rows[whole:]])


def _sum_of_rows(rows: Any, xp: Any) -> Any:
    if xp is np and rows.dtype.char in "fd" and rows.size > _MANY:
        with one_blas_thread():  # BLAS adds up several rows at a time
            return np.ones(len(rows), rows.dtype) @ rows
    return xp.sum(rows, axis=0, dtype=rows.dtype)


@g.register_gradient("BiasAdd")
def bias_add_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return grad, g.nodes.BiasAddGrad(grad, **g.attrs_of(op, "data_format"))


@g.register_gradient("BiasAddV1")
def bias_add_v1_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    axes = g.nodes.Range(0, g.nodes.Sub(g.nodes.Rank(grad), 1), 1)
    return grad, g.nodes.Sum(grad, axes)


@g.register_gradient("BiasAddGrad")
def bias_add_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The bias repeated along all other axes."""
    shape, size = g.nodes.Shape(op.inputs[0]), g.nodes.Shape(grad)
    is_second = op.get_attr("data_format") == b"NCHW"
    before = _part(shape, 1, begin=0) if is_second else _part(shape, -1, begin=0)
    behind = [_part(shape, None, begin=2)] if is_second else []
    ones = [g.nodes.OnesLike(part) for part in behind]
    column = g.nodes.Reshape(grad, g.nodes.ConcatV2([g.nodes.OnesLike(before), size, *ones], 0))
    return g.nodes.Tile(column, g.nodes.ConcatV2([before, [1], *behind], 0))


def _part(shape: g.Tensor, end: int | None, *, begin: int) -> Any:
    """Some sizes of a shape, to its end if `end` is None."""
    return g.nodes.StridedSlice(shape, [begin], [end or 0], [1], end_mask=int(end is None))
