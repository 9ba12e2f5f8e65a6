"""Quantisation there and back: floats rounded to the values that a range of integers stands for.

Unlike FakeQuant*, these ops take the range of the tensor where no range is given. And 0 stays exactly 0:
one end of the range sets the scale, and the other end moves.

QuantizeAndDequantizeV4Grad: the gradient of QuantizeAndDequantizeV4.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/quantize_and_dequantize_op.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpHandle, ShapeHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.input_checks import require, require_equal, require_scalar, require_vector
from opkernel.ops.math.elementwise import in_blocks
from opkernel.ops.registration import WIDE_FLOATS, register_kernel
from opkernel.types import Array, DataType

_MAX_BITS = 62


def _range_shape(c: InferenceContext, *, first: int, is_gradient: bool = False) -> ShapeHandle:
    """The shape that the ends of the range share: a scalar, or a vector as long as the dimension `axis`.

    The gradient merges the other way around, which only its messages show.
    """
    axis, order = c.get_attr("axis"), -1 if is_gradient else 1
    ends = [c.with_rank(c.input(first), 0 if axis == -1 else 1), c.input(first + 1)]
    shape = c.merge(*ends[::order])
    require(axis >= -1, f"axis should be at least -1, got {axis}")
    if axis != -1:
        inputs = c.with_rank_at_least(c.input(0), axis + 1)
        c.merge(*[c.dim(inputs, axis), c.dim(shape, 0)][::order])
    return shape


def quantize_and_dequantize_shape(c: InferenceContext) -> None:
    """Input 0; the range is scalars, or vectors as long as the dimension `axis`."""
    _range_shape(c, first=1)
    if c.num_inputs() == 4:
        c.with_rank(c.input(3), 0)
    c.set_output(0, c.input(0))


def _declare(version: str, num_bits: str, attrs: Sequence[str]) -> OpHandle:
    return register_op(
        f"QuantizeAndDequantize{version}(input: T, input_min: T, input_max: T{num_bits}) -> output: T",
        attrs=attrs,
        shape_fn=quantize_and_dequantize_shape,
        doc="""Round to the values that integers of `num_bits` bits can stand for.

        input_min, input_max: The range, where `range_given`; else it is that of `input`.
        signed_input: The integers are signed.
        narrow_range: Of the signed integers, the lowest is left out.
        axis: Each slice along this dimension has a range of its own; -1 for one range.
        """,
    )


_T = "T: {bfloat16, half, float, double}"
_NARROW_AXIS = ("narrow_range: bool = false", "axis: int = -1")
_ATTRS = (
    "signed_input: bool = true",
    "num_bits: int = 8",
    "range_given: bool = false",
    _T,
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'",
    *_NARROW_AXIS,
)
QUANTIZE_AND_DEQUANTIZE_V2 = _declare("V2", "", _ATTRS)
QUANTIZE_AND_DEQUANTIZE_V3 = _declare(
    "V3",
    ", num_bits: int32",
    ["signed_input: bool = true", "range_given: bool = true", _T, *_NARROW_AXIS],
)
QUANTIZE_AND_DEQUANTIZE_V4 = _declare("V4", "", _ATTRS)


QUANTIZE_AND_DEQUANTIZE = register_op(
    "QuantizeAndDequantize(input: T) -> output: T",
    attrs=[
        "signed_input: bool = true",
        "num_bits: int = 8",
        "range_given: bool = false",
        "input_min: float = 0",
        "input_max: float = 0",
        _T,
    ],
    shape_fn=unchanged_shape,
    deprecated=(22, "Replaced by QuantizeAndDequantizeV2"),
    doc="QuantizeAndDequantizeV2 with the range in attrs, for graphs of old versions.",
)


class Integers(NamedTuple):
    """The integers that stand for the values."""

    low: int
    high: int

    @classmethod
    def of(cls, num_bits: int, signed: bool, narrow: bool) -> Integers:
        """The range of integers of so many bits.

        Raises:
            InvalidArgumentError: it is no sensible number of bits.
        """
        message = f"num_bits is out of range: {num_bits} with signed_input_ {int(signed)}"
        require(0 < num_bits < _MAX_BITS + (not signed), message)
        if not signed:
            return cls(0, 2**num_bits - 1)
        return cls(-(2 ** (num_bits - 1)) + narrow, 2 ** (num_bits - 1) - 1)

    def of_type(self, dtype: np.dtype[Any]) -> tuple[Any, Any]:
        """The integers as numbers of a type."""
        return dtype.type(self.low), dtype.type(self.high)


class Range(NamedTuple):
    """The lowest and the highest value of each slice, in a shape to be broadcast."""

    low: Array
    high: Array

    def scaled_to(self, low: Any, high: Any, xp: Any) -> tuple[Range, Array, Array]:
        """The range with one end moved, how many integers from `low` to `high` there are for 1, and the inverse."""
        unlimited = np.finfo(self.low.dtype).max
        from_low = xp.where(low * self.low > 0, low / self.low, unlimited)
        from_high = xp.where(high * self.high > 0, high / self.high, unlimited)
        by_low = from_low < from_high
        step = xp.where(by_low, self.low / low, self.high / high)
        moved = Range(
            xp.where(by_low, self.low, low * step), xp.where(by_low, high * step, self.high)
        )
        return moved, xp.where(by_low, from_low, from_high), step


def _range_of(tensor: Array, axis: int) -> Range:
    """The range of the values of each slice; NaN counts for nothing."""
    others = tuple(i for i in range(tensor.ndim) if i != axis)
    low, high = (f.reduce(tensor, axis=others, keepdims=True) for f in (np.fmin, np.fmax))
    return Range(np.asarray(low), np.asarray(high))


def given_range(tensor: Array, low: Array, high: Array, axis: int) -> Range:
    """A range that is given: scalars, or with an axis vectors.

    Raises:
        InvalidArgumentError: they have other shapes.
    """
    if axis != -1:
        for name, end in (("min", low), ("max", high)):
            require_vector(
                end, f"Shape must be rank 1 for input_{name}_tensor when the axis is specified"
            )
            message = f"input_{name}_tensor has {{}} elements for {{}} slices"
            require_equal(end.size, tensor.shape[axis], message)
        shape = [-1 if i == axis else 1 for i in range(tensor.ndim)]
        return Range(low.reshape(shape), high.reshape(shape))
    require(low.size == 1 and high.size == 1, "input_min and input_max must have one element")
    return Range(low.reshape(()), high.reshape(()))


def _known_range(tensor: Array, low: Array, high: Array, axis: int) -> Range:
    """A range that is given, whose ends are not exchanged."""
    low, high = map(np.asarray, given_range(tensor, low, high, axis))
    is_range = low <= high  # NaN is no end of one
    if not is_range.all():
        at = np.argmin(is_range)
        raise InvalidArgumentError(
            f"Invalid range: input_min {low.flat[at]:g} > input_max {high.flat[at]:g}"
        )
    return Range(low, high)


def rounded(
    tensor: Array, ends: Range, integers: tuple[Any, Any], xp: Any, *, limited: bool, half_up: bool
) -> Array:
    """The values rounded to what integers stand for; with `limited`, those beyond the ends become these."""
    limits, scale, step = ends.scaled_to(*integers, xp)
    is_one_range = xp is np and scale.size == 1
    if is_one_range:
        limits = Range(*(end.reshape(()) for end in limits))
        scale, step = scale.reshape(()), step.reshape(())

    def limit(tensor: Array) -> Array:
        if is_one_range and limits.low <= limits.high:
            return np.clip(tensor, *limits)  # the same in one step
        limited: Array = xp.maximum(xp.minimum(tensor, limits.high), limits.low)
        return limited

    def round_trip(tensor: Array) -> Array:
        if limited:
            tensor = limit(tensor)
        scaled = tensor * scale
        whole = xp.floor(scaled + tensor.dtype.type(0.5)) if half_up else xp.rint(scaled)
        result: Array = whole * step
        return result

    return in_blocks(round_trip)(tensor) if is_one_range else round_trip(tensor)


def _round_trip(
    tensor: Array, given: Range | None, axis: int, integers: Integers, half_up: bool
) -> Array:
    """The values rounded; those beyond a given range become its ends."""
    if tensor.size == 0:
        return tensor.copy()
    ends = given or _range_of(tensor, axis)
    return rounded(
        tensor, ends, integers.of_type(tensor.dtype), np, limited=given is not None, half_up=half_up
    )


def _check_axis(axis: int) -> None:
    if axis < -1:
        raise InvalidArgumentError(f"Axis must be at least -1. Found {axis}")


def quantize_and_dequantize(
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int,
) -> Callable[[Any, Any, Any], Any]:
    """A given range is scalars here, so that there is none along an axis."""
    _check_axis(axis)
    integers = Integers.of(num_bits, signed_input, narrow_range)

    def kernel(tensor: Any, input_min: Any, input_max: Any) -> Any:
        message = f"Shape must be at least rank {axis + 1} but is rank {tensor.ndim}"
        require(axis < tensor.ndim, message)
        given = None
        if range_given:
            for name, end in (("min", input_min), ("max", input_max)):
                require_scalar(end, f"input_{name} must be a scalar.")
            given = _known_range(tensor, input_min, input_max, axis)
        return _round_trip(tensor, given, axis, integers, round_mode == "HALF_UP")

    return kernel


for _op in (QUANTIZE_AND_DEQUANTIZE_V2, QUANTIZE_AND_DEQUANTIZE_V4):
    register_kernel(_op, types={"T": WIDE_FLOATS}, factory=True)(quantize_and_dequantize)


@register_kernel(QUANTIZE_AND_DEQUANTIZE, types={"T": WIDE_FLOATS}, factory=True)
def quantize_and_dequantize_v1(
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    input_min: float,
    input_max: float,
    T: DataType,
) -> Callable[[Any], Any]:
    integers = Integers.of(num_bits, signed_input, narrow=False)
    low, high = (np.asarray(end, T.numpy_dtype) for end in (input_min, input_max))
    given = _known_range(low, low, high, axis=-1) if range_given else None
    return lambda tensor: _round_trip(tensor, given, -1, integers, half_up=False)


@register_kernel(QUANTIZE_AND_DEQUANTIZE_V3, types={"T": WIDE_FLOATS}, factory=True)
def quantize_and_dequantize_v3(
    *, signed_input: bool, range_given: bool, narrow_range: bool, axis: int
) -> Callable[[Any, Any, Any, Any], Any]:
    _check_axis(axis)

    def kernel(tensor: Any, input_min: Any, input_max: Any, num_bits: Any) -> Any:
        if max(axis, 0) >= tensor.ndim:
            raise InvalidArgumentError(
                f"Axis requested is larger than input dimensions. Axis: {axis} Input Dimensions: {tensor.ndim}"
            )
        if num_bits.ndim:
            raise InvalidArgumentError(
                f"Invalid shape. The `num_bits` tensor should be a scalar. Got dimensions: {num_bits.ndim}"
            )
        integers = Integers.of(int(num_bits), signed_input, narrow_range)
        # Only the ends of one range for all are compared, as in TensorFlow.
        range_of = _known_range if axis == -1 else given_range
        given = range_of(tensor, input_min, input_max, axis) if range_given else None
        return _round_trip(tensor, given, axis, integers, half_up=False)

    return kernel


@g.register_gradient(
    "QuantizeAndDequantize",
    "QuantizeAndDequantizeV2",
    "QuantizeAndDequantizeV3",
    not_derivative="it passes the rounding unchanged",
)
def quantize_and_dequantize_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return [grad, *[None] * (len(op.inputs) - 1)]


@g.register_gradient("QuantizeAndDequantizeV4", not_derivative="it passes the rounding unchanged")
def quantize_and_dequantize_v4_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.QuantizeAndDequantizeV4Grad(grad, *op.inputs, **g.attrs_of(op, "axis"))


def quantize_and_dequantize_grad_shape(c: InferenceContext) -> None:
    """The gradients of the input and of its range, which may have a value for each of `axis`."""
    shape = _range_shape(c, first=2, is_gradient=True)
    set_outputs(c, [c.merge(c.input(0), c.input(1)), shape, shape])


QUANTIZE_AND_DEQUANTIZE_V4_GRAD = register_op(
    "QuantizeAndDequantizeV4Grad(gradients: T, input: T, input_min: T, input_max: T) "
    "-> input_backprop: T, input_min_backprop: T, input_max_backprop: T",
    attrs=[_T, "axis: int = -1"],
    shape_fn=quantize_and_dequantize_grad_shape,
    doc="The gradient where `input` is in its range, 0 elsewhere and for the range.",
)


@register_kernel(QUANTIZE_AND_DEQUANTIZE_V4_GRAD, types={"T": WIDE_FLOATS}, factory=True)
def quantize_and_dequantize_v4_grad(*, axis: int, xp: Any) -> Callable[..., Any]:
    _check_axis(axis)

    def kernel(gradients: Any, tensor: Any, input_min: Any, input_max: Any) -> Any:
        require_equal(gradients.shape, tensor.shape, "gradient and input must be the same size")
        low, high = (
            _end(name, end, tensor.shape, axis)
            for name, end in (("input_min", input_min), ("input_max", input_max))
        )
        inside = xp.astype((tensor >= low) & (tensor <= high), gradients.dtype)
        return gradients * inside, xp.zeros_like(input_min), xp.zeros_like(input_max)

    return kernel


def _end(name: str, end: Any, shape: tuple[int, ...], axis: int) -> Any:
    """An end of the range, to be broadcast.

    Raises:
        InvalidArgumentError: it is not a scalar, or not one value for each slice along `axis`.
    """
    if axis == -1:
        require_scalar(end, f"{name} must be a scalar if axis is unspecified")
        return end
    if axis >= len(shape):
        raise InvalidArgumentError(
            f"Axis should be -1 or 0 or a positive value less than {len(shape)} but given axis value was {axis}"
        )
    if end.shape != (shape[axis],):
        raise InvalidArgumentError(f"{name} must have one value for each of {shape[axis]} slices")
    return end.reshape([-1 if i == axis else 1 for i in range(len(shape))])


@g.register_gradient("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_v4_grad_gradient(
    op: g.Operation, grad: g.Tensor, *_: g.Tensor
) -> g.Gradients:
    quantized = op.inputs[1:]
    backprop = g.nodes.QuantizeAndDequantizeV4Grad(grad, *quantized, **g.attrs_of(op, "axis"))
    return backprop.input_backprop, None, None, None
