"""Choosing elements by a condition, finding them, and bounding them.

Source: TensorFlow core/ops/math_ops.cc, array_ops.cc (Where), core/kernels/cwise_op_select.cc,
cwise_op_clip.cc, where_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeAndType, ShapeHandle, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_output_shape, unchanged_shape
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.ops.kernel_types import ALL, COMPLEX, FLOATS, POD
from opkernel.ops.math.complex_numbers import complex_from_parts
from opkernel.ops.math.elementwise import flush_subnormals
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def _set_held_resources(c: InferenceContext) -> None:
    """The resource that the output holds, if `t` and `e` hold the same."""
    held = c.input_handle_shapes_and_types(1)
    other = c.input_handle_shapes_and_types(2)
    if not held or not other:
        return
    if len(held) != len(other):
        raise InvalidArgumentError(
            "Trying to merge handles pointing to different numbers of shapes and types."
        )
    merged = []
    for one, another in zip(held, other, strict=True):
        require_equal(one.dtype, another.dtype, "Trying to merge handles of type {} and {}")
        merged.append(ShapeAndType(c.merge(one.shape, another.shape), one.dtype))
    c.set_output_handle_shapes_and_types(0, merged)


def select_shape(c: InferenceContext) -> None:
    """`t` and `e` have one shape; the condition has it too, or is a scalar or one bool a row."""
    _set_held_resources(c)
    condition, shape = c.input(0), c.merge(c.input(1), c.input(2))
    if c.rank_known(condition) and c.rank_known(shape):
        if c.rank(condition) == 1:
            c.merge(c.vector(c.dim(shape, 0)) if c.rank(shape) else shape, condition)
        elif c.rank(condition) > 1:
            shape = c.merge(shape, condition)
    c.set_output(0, shape)


SELECT = register_op(
    "Select",
    inputs=["condition: bool", "t: T", "e: T"],
    outputs=["output: T"],
    attrs=["T: type"],
    shape_fn=select_shape,
    traits="value_rule=select cost=linear function_gradient=yes",
    doc="Elements of `t` where `condition` is true, of `e` elsewhere. `condition` has their shape, "
    "or is a scalar, or a vector that chooses whole rows.",
)


def select_v2_shape(c: InferenceContext) -> None:
    """All three inputs broadcast."""
    _set_held_resources(c)
    branches: ShapeHandle = broadcast_binary_op_output_shape(c, c.input(1), c.input(2))
    c.set_output(0, broadcast_binary_op_output_shape(c, c.input(0), branches))


SELECT_V2 = register_op(
    "SelectV2",
    inputs=["condition: bool", "t: T", "e: T"],
    outputs=["output: T"],
    attrs=["T: type"],
    shape_fn=select_v2_shape,
    traits="pointwise cannot_fail value_rule=select_v2 cost=linear",
    doc="Elements of `t` where `condition` is true, of `e` elsewhere; all three are broadcast.",
)


@register_kernel(SELECT, types={"T": ALL})
def select(condition: Any, t: Any, e: Any, *, xp: Any) -> Any:
    if condition.ndim == 0:
        _check_same_size(t, e)
    elif condition.ndim == 1 and not condition.shape == t.shape == e.shape:
        _check_rows(condition, t, e)
        condition = condition.reshape(-1, *[1] * (t.ndim - 1))
    else:
        _check_same_shape(condition, t, e)
    return xp.where(condition, t, e)


def _check_same_size(t: Any, e: Any) -> None:
    require_equal(
        t.shape, e.shape, "'then' and 'else' must have the same size.  but received: {} vs. {}"
    )


def _check_rows(condition: Any, t: Any, e: Any) -> None:
    require_rank_at_least(t, 1, "'then' must be at least a vector, but saw shape: []")
    if t.shape[0] != condition.size:
        raise InvalidArgumentError(
            "Number of batches of 'then' must match size of 'cond', but saw: "
            f"{t.shape[0]} vs. {condition.size}"
        )
    _check_same_size(t, e)


def _check_same_shape(condition: Any, t: Any, e: Any) -> None:
    for i, branch in ((1, t), (2, e)):
        if branch.shape != condition.shape:
            raise InvalidArgumentError(
                "Inputs to operation Select must have the same size and shape.  Input 0: "
                f"{list(condition.shape)} != input {i}: {list(branch.shape)}"
            )


@register_kernel(SELECT_V2, types={"T": ALL}, kind="elementwise")
def select_v2(condition: Any, t: Any, e: Any, *, xp: Any) -> Any:
    try:
        return xp.where(condition, t, e)
    except ValueError as error:
        raise InvalidArgumentError(
            f"condition {list(condition.shape)}, then {list(t.shape)}, and else {list(e.shape)} "
            "must be broadcastable"
        ) from error


def where_shape(c: InferenceContext) -> None:
    """The indices of each element found, a row each; the number of rows is unknown."""
    shape = c.input(0)
    columns = c.rank(shape) if c.rank_known(shape) else c.unknown_dim()
    c.set_output(0, c.matrix(c.unknown_dim(), columns))


WHERE = register_op(
    "Where",
    inputs=["input: T"],
    outputs=["index: int64"],
    attrs=["T: {numbertype, bool} = DT_BOOL"],
    shape_fn=where_shape,
    doc="The indices of the elements that are true or not 0, in row-major order, one a row.",
    traits="cost=linear clustering=dynamic",
)

_MAX_RANK_OF_WHERE = 8


@register_kernel(WHERE, types={"T": POD}, factory=True)
def where(*, T: DataType) -> Any:
    def indices(tensor: Any) -> Any:
        if T == DataType.DT_HALF:
            raise UnimplementedError("No WhereOp available for float16/half type on CPU")
        if not 1 <= tensor.ndim <= _MAX_RANK_OF_WHERE:
            raise InvalidArgumentError(f"WhereOp : Unhandled input dimensions: {tensor.ndim}")
        found = flush_subnormals(tensor, np) if T in FLOATS else tensor
        check_allocation((int(np.count_nonzero(found)), found.ndim), DataType.DT_INT64)
        return np.argwhere(found).astype(np.int64, copy=False)

    return indices


CLIP_BY_VALUE = register_op(
    "ClipByValue",
    inputs=["t: T", "clip_value_min: T", "clip_value_max: T"],
    outputs=["output: T"],
    attrs=["T: numbertype"],
    shape_fn=unchanged_shape,
    doc="`t` with what is above `clip_value_max` or below `clip_value_min` set to that bound. A "
    "bound is a scalar or has the shape of `t`; one that is NaN bounds nothing. Complex numbers "
    "are clipped part by part.",
    traits="cost=linear",
)

_CLIPPED_INTEGERS = (
    DataType.DT_INT8,
    DataType.DT_INT16,
    DataType.DT_INT32,
    DataType.DT_INT64,
    DataType.DT_UINT8,
    DataType.DT_UINT16,
)


@register_kernel(CLIP_BY_VALUE, types={"T": _CLIPPED_INTEGERS})
def clip_integers(t: Any, clip_value_min: Any, clip_value_max: Any, *, xp: Any) -> Any:
    _check_bounds(t, clip_value_min, clip_value_max)
    return xp.maximum(xp.minimum(t, clip_value_max), clip_value_min)


@register_kernel(CLIP_BY_VALUE, types={"T": FLOATS})
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, *, xp: Any) -> Any:
    _check_bounds(t, clip_value_min, clip_value_max)
    return _clip(t, clip_value_min, clip_value_max, xp)


@register_kernel(CLIP_BY_VALUE, types={"T": COMPLEX})
def clip_complex(t: Any, clip_value_min: Any, clip_value_max: Any, *, xp: Any) -> Any:
    _check_bounds(t, clip_value_min, clip_value_max)
    real = _clip(t.real, clip_value_min.real, clip_value_max.real, xp)
    imag = _clip(t.imag, clip_value_min.imag, clip_value_max.imag, xp)
    return complex_from_parts(real, imag, xp)


def _clip(t: Any, low: Any, high: Any, xp: Any) -> Any:
    infinity = xp.asarray(np.inf, dtype=t.dtype)
    high = xp.where(xp.isnan(high), infinity, high)
    low = xp.where(xp.isnan(low), -infinity, low)
    return xp.maximum(xp.minimum(t, high), low)


def _check_bounds(t: Any, low: Any, high: Any) -> None:
    if any(bound.ndim and bound.shape != t.shape for bound in (low, high)):
        raise InvalidArgumentError(
            "clip_value_min and clip_value_max must be either of the same shape as input, or a "
            f"scalar. input shape: {list(t.shape)}clip_value_min shape: {list(low.shape)}"
            f"clip_value_max shape: {list(high.shape)}"
        )
