"""Comparisons, the logic of truth values and of bits; Select, Where and ClipByValue, and gradients.

Source: TensorFlow core/ops/math_ops.cc, bitwise_ops.cc, array_ops.cc (Where), core/kernels/cwise_op_equal_to_1.cc and
its siblings, cwise_op_less.cc, cwise_op_logical_and.cc, cwise_op_bitwise_and.cc and its siblings,
population_count_op.cc, cwise_op_select.cc, cwise_op_clip.cc, where_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import constant
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, ShapeAndType, ShapeHandle, register_op
from opkernel.opdef.common_shapes import (
    broadcast_binary_op_output_shape,
    broadcast_binary_op_shape,
    unchanged_shape,
)
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.ops.math.elementwise import (
    POINTWISE,
    binary_op,
    complex_from_parts,
    flush_subnormals,
    register_body,
    register_ufunc,
    unary_op,
)
from opkernel.ops.registration import (
    ALL,
    ALL_QUANTIZED,
    COMPLEX,
    FLOATS,
    INTEGERS,
    POD,
    POD_OR_STRING,
    REAL_NUMBERS,
    SIGNED_INTEGERS,
    WIDE_FLOATS,
    register_kernel,
)
from opkernel.types import DataType

_ORDERINGS = {
    "Less": (np.less, "less", "Whether `x < y`."),
    "LessEqual": (np.less_equal, "less_equal", "Whether `x <= y`."),
    "Greater": (np.greater, "greater", "Whether `x > y`."),
    "GreaterEqual": (np.greater_equal, "greater_equal", "Whether `x >= y`."),
}

for _name, (_ufunc, _rule, _doc) in _ORDERINGS.items():
    _traits = f"value_rule={_rule} int32_on_host function_gradient=none"
    _op = binary_op(_name, "realnumbertype", _doc, output="bool", traits=_traits)
    register_ufunc(_op, _ufunc, REAL_NUMBERS)


def equality_shape(c: InferenceContext) -> None:
    """The inputs broadcast; where they cannot be and that is no error, a scalar."""
    strict = bool(c.get_attr("incompatible_shape_error"))
    c.set_output(0, broadcast_binary_op_output_shape(c, c.input(0), c.input(1), strict))


_EQUALITY_TYPES = (*POD_OR_STRING, *ALL_QUANTIZED)


def _register_equality(name: str, ufunc: np.ufunc, doc: str, of_other_shapes: bool) -> None:
    """An op whose answer is `of_other_shapes` where the shapes cannot be broadcast."""
    op = register_op(
        f"{name}(x: T, y: T) -> z: bool",
        attrs=["T: type", "incompatible_shape_error: bool = true"],
        shape_fn=equality_shape,
        traits=f"cannot_fail value_rule={ufunc.__name__} int32_on_host function_gradient=none",
        is_commutative=True,
        doc=doc,
    )

    @register_kernel(op, types={"T": _EQUALITY_TYPES}, factory=True)
    def make(*, incompatible_shape_error: bool, xp: Any) -> Callable[[Any, Any], Any]:
        compare: Callable[[Any, Any], Any] = getattr(xp, ufunc.__name__)
        if incompatible_shape_error:
            return compare

        def compare_any_shapes(x: Any, y: Any) -> Any:
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return xp.asarray(of_other_shapes)
            return compare(x, y)

        return compare_any_shapes


_register_equality("Equal", np.equal, "Whether `x == y`.", False)
_register_equality("NotEqual", np.not_equal, "Whether `x != y`.", True)


APPROXIMATE_EQUAL = register_op(
    "ApproximateEqual(x: T, y: T) -> z: bool",
    attrs=["T: numbertype", "tolerance: float = 0.00001"],
    shape_fn=shape_rule("[...], [...] -> in0"),
    is_commutative=True,
    doc="Whether `x` and `y`, of the same shape, differ by no more than `tolerance`.",
)


@register_kernel(APPROXIMATE_EQUAL, types={"T": WIDE_FLOATS}, factory=True)
def approximate_equal(*, T: DataType, tolerance: float, xp: Any) -> Callable[[Any, Any], Any]:
    bound = T.numpy_dtype.type(tolerance)

    def compare(x: Any, y: Any) -> Any:
        require_equal(
            x.shape, y.shape, "x and y must be of the same shape. x shape: {}. y shape: {}"
        )
        return xp.abs(x - y) <= bound

    return compare


def _register_logical(signature: str, ufunc: np.ufunc, doc: str, traits: str = "") -> None:
    is_unary = ufunc.nin == 1
    op = register_op(
        f"{signature}: bool",
        shape_fn=unchanged_shape if is_unary else broadcast_binary_op_shape,
        traits=f"{POINTWISE} {traits} value_rule={ufunc.__name__} function_gradient=none",
        is_commutative=not is_unary,
        doc=doc,
    )
    register_kernel(op, kind="elementwise")(ufunc)


_BOTH = "(x: bool, y: bool) -> z"
_register_logical(f"LogicalAnd{_BOTH}", np.logical_and, "Whether both `x` and `y` are true.")
_register_logical(f"LogicalOr{_BOTH}", np.logical_or, "Whether `x` or `y` or both are true.")
_register_logical("LogicalNot(x: bool) -> y", np.logical_not, "Whether `x` is false.", "involution")


_SPEC = "int8, int16, int32, int64, uint8, uint16, uint32, uint64"

for _name, _bitwise, _doc in (
    ("BitwiseAnd", np.bitwise_and, "The bits set in `x` and in `y`."),
    ("BitwiseOr", np.bitwise_or, "The bits set in `x` or in `y`."),
    ("BitwiseXor", np.bitwise_xor, "The bits set in just one of `x` and `y`."),
):
    register_ufunc(binary_op(_name, _SPEC, _doc, is_commutative=True), _bitwise, INTEGERS)

LEFT_SHIFT = binary_op(
    "LeftShift",
    _SPEC,
    "The bits of `x` moved up by `y`, which is taken for 0 if negative and for the highest bit's place if beyond.",
)
RIGHT_SHIFT = binary_op(
    "RightShift",
    _SPEC,
    "The bits of `x` moved down by `y`, keeping the sign; `y` is bounded as for LeftShift.",
)
INVERT = unary_op("Invert", _SPEC, "The bits that are not set in `x`.", traits="cheap involution")
POPULATION_COUNT = unary_op(
    "PopulationCount", _SPEC, "The number of bits set in `x`.", output="uint8"
)


def _bounded(places: Any, xp: Any) -> Any:
    return xp.clip(places, 0, places.dtype.itemsize * 8 - 1)


register_ufunc(INVERT, np.invert, INTEGERS)
register_body(LEFT_SHIFT, lambda x, y, *, xp: x << _bounded(y, xp), INTEGERS)
register_body(RIGHT_SHIFT, lambda x, y, *, xp: x >> _bounded(y, xp), INTEGERS)


@register_kernel(POPULATION_COUNT, types={"T": INTEGERS}, kind="elementwise")
def population_count(x: Any) -> Any:
    """Of negative numbers NumPy counts the bits of the absolute value."""
    x = np.asarray(x)
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}"))


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
    "Select(condition: bool, t: T, e: T) -> output: T",
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
    "SelectV2(condition: bool, t: T, e: T) -> output: T",
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
            f"Number of batches of 'then' must match size of 'cond', but saw: {t.shape[0]} vs. {condition.size}"
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
            f"condition {list(condition.shape)}, then {list(t.shape)}, and else {list(e.shape)} must be broadcastable"
        ) from error


def where_shape(c: InferenceContext) -> None:
    """The indices of each element found, a row each; the number of rows is unknown."""
    shape = c.input(0)
    columns = c.rank(shape) if c.rank_known(shape) else c.unknown_dim()
    c.set_output(0, c.matrix(c.unknown_dim(), columns))


WHERE = register_op(
    "Where(input: T) -> index: int64",
    attrs=["T: {numbertype, bool} = DT_BOOL"],
    shape_fn=where_shape,
    doc="The indices of the elements that are true or not 0, in row-major order, one a row.",
    traits="cost=linear clustering=dynamic",
)

_MAX_RANK_OF_WHERE = 8


@register_kernel(WHERE, types={"T": POD})
def where(tensor: Any, *, T: DataType) -> Any:
    if T == DataType.DT_HALF:
        raise UnimplementedError("No WhereOp available for float16/half type on CPU")
    if not 1 <= tensor.ndim <= _MAX_RANK_OF_WHERE:
        raise InvalidArgumentError(f"WhereOp : Unhandled input dimensions: {tensor.ndim}")
    found = flush_subnormals(tensor, np) if T in FLOATS else tensor
    check_allocation((int(np.count_nonzero(found)), found.ndim), DataType.DT_INT64)
    return np.argwhere(found).astype(np.int64, copy=False)


CLIP_BY_VALUE = register_op(
    "ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> output: T",
    attrs=["T: numbertype"],
    shape_fn=unchanged_shape,
    doc="`t` with what is above `clip_value_max` or below `clip_value_min` set to that bound. A "
    "bound is a scalar or has the shape of `t`; one that is NaN bounds nothing. Complex numbers "
    "are clipped part by part.",
    traits="cost=linear",
)

_CLIPPED_INTEGERS = (*SIGNED_INTEGERS, DataType.DT_UINT8, DataType.DT_UINT16)


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
    is_plain = xp is np and t.dtype.kind in "fiu" and not low.ndim and not high.ndim
    if is_plain and low <= high and low != 0 != high:
        return np.clip(t, low, high)  # faster than two steps; it would keep the sign of 0
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


@g.register_gradient("Select")
def select_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    condition, x, _ = op.inputs
    zeros = g.zeros_like(x)
    return None, g.nodes.Select(condition, grad, zeros), g.nodes.Select(condition, zeros, grad)


@g.register_gradient("SelectV2")
def select_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    condition, x, y = op.inputs
    (z,) = op.outputs
    zero = constant(0, grad.dtype)
    for_x, _ = g.sum_to_operands(x, z, g.nodes.SelectV2(condition, grad, zero), None)
    for_y, _ = g.sum_to_operands(y, z, g.nodes.SelectV2(condition, zero, grad), None)
    return None, for_x, for_y


@g.register_gradient("ClipByValue")
def clip_by_value_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, low, high = op.inputs
    zeros = g.zeros_like(grad)
    is_below, is_above = g.nodes.Less(x, low), g.nodes.Greater(x, high)
    is_outside = g.nodes.LogicalOr(is_below, is_above)
    for_x = g.nodes.SelectV2(is_outside, zeros, grad)
    for_low, _ = g.sum_to_operands(low, x, g.nodes.SelectV2(is_below, grad, zeros), None)
    for_high, _ = g.sum_to_operands(high, x, g.nodes.SelectV2(is_above, grad, zeros), None)
    return for_x, for_low, for_high
