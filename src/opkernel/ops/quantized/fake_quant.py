"""Fake quantisation: floats rounded to the values that a quantised type could hold.

The range is first nudged, so that 0 is one of the values: `_Grid`.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/fake_quant_ops_functor.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import cut, from_attrs, shard
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.rules import set_outputs, shape_rule
from opkernel.ops.input_checks import require, require_equal, require_rank
from opkernel.ops.math.elementwise import flush_subnormals
from opkernel.ops.nn.activation import check_same_shape
from opkernel.ops.registration import register_kernel

_ATTRS = ["num_bits: int = 8", "narrow_range: bool = false"]
_UNCHANGED = "it passes the rounding unchanged"
_RANGE_ATTRS = ["min: float = -6.0", "max: float = 6.0", *_ATTRS]
_DOC = """Rounds to the nearest of 2 ** num_bits evenly spaced values between min and max.

    {of} min and max, moved so that 0 is one of the values.
    narrow_range: There is one value less, at the lower end.
    """


def _gradient_shape(c: InferenceContext, rank: int) -> None:
    """Gradients and inputs have one shape; the range is two scalars, or vectors, a value for each channel."""
    inputs = c.merge(c.with_rank_at_least(c.input(0), rank), c.input(1))
    minimum = c.with_rank(c.input(2), rank)
    if rank:
        minimum = c.merge(minimum, c.vector(c.dim(inputs, -1)))
    maximum = c.merge(c.with_rank(c.input(3), rank), minimum)
    set_outputs(c, [inputs, maximum, maximum])


FAKE_QUANT_ARGS = register_op(
    "FakeQuantWithMinMaxArgs(inputs: float) -> outputs: float",
    attrs=_RANGE_ATTRS,
    shape_fn=unchanged_shape,
    doc=_DOC.format(of="The attrs"),
)
FAKE_QUANT_ARGS_GRADIENT = register_op(
    "FakeQuantWithMinMaxArgsGradient(gradients: float, inputs: float) -> backprops: float",
    attrs=_RANGE_ATTRS,
    shape_fn=unchanged_shape,
    doc="The gradients where the inputs are in the range, 0 elsewhere.",
    traits="function_gradient=none",
)
_GRADIENTS = "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float"

FAKE_QUANT_VARS = register_op(
    "FakeQuantWithMinMaxVars(inputs: float, min: float, max: float) -> outputs: float",
    attrs=_ATTRS,
    shape_fn=shape_rule("_, [], [] -> in0"),
    doc=_DOC.format(of="The scalars"),
)


FAKE_QUANT_VARS_GRADIENT = register_op(
    f"FakeQuantWithMinMaxVarsGradient(gradients: float, inputs: float, min: float, max: float) -> {_GRADIENTS}",
    attrs=_ATTRS,
    shape_fn=partial(_gradient_shape, rank=0),
    doc="""The gradients where the inputs are in the range, 0 elsewhere.

    backprop_wrt_min: The sum of the gradients where the inputs are below the range.
    backprop_wrt_max: The sum of the gradients where the inputs are above the range.
    """,
    traits="function_gradient=none",
)
FAKE_QUANT_PER_CHANNEL = register_op(
    "FakeQuantWithMinMaxVarsPerChannel(inputs: float, min: float, max: float) -> outputs: float",
    attrs=_ATTRS,
    shape_fn=shape_rule("[..., channels], [channels], [channels] -> in0"),
    doc=_DOC.format(of="The vectors, with one entry for each place of the last dimension,"),
)
FAKE_QUANT_PER_CHANNEL_GRADIENT = register_op(
    "FakeQuantWithMinMaxVarsPerChannelGradient(gradients: float, inputs: float, min: float, "
    f"max: float) -> {_GRADIENTS}",
    attrs=_ATTRS,
    shape_fn=partial(_gradient_shape, rank=1),
    doc="As FakeQuantWithMinMaxVarsGradient, for each place of the last dimension.",
    traits="function_gradient=none",
)


class _Grid(NamedTuple):
    """The values that can be held: from `low` to `high`, `scale` apart."""

    low: Any
    high: Any
    scale: Any
    inverse_scale: Any

    @staticmethod
    def nudged(low: Any, high: Any, bounds: tuple[int, int], xp: Any) -> _Grid:
        """The range moved so that 0 is on the grid of the integers between `bounds`."""
        first, last = bounds
        scale = (high - low) / (last - first)
        zero = first - low / scale
        whole = xp.where(zero == zero, xp.floor(zero + 0.5), 0)
        zero = xp.where(zero < first, first, xp.where(zero > last, last, whole))
        zero = zero.astype(np.float32)
        # Not 1 / scale: it is rounded otherwise, which 16 bits show.
        inverse_scale = (last - first) / (high - low)
        return _Grid((first - zero) * scale, (last - zero) * scale, scale, inverse_scale)

    def quantize(self, inputs: Any, xp: Any) -> Any:
        """Each input as the nearest value of the grid."""
        zero = xp.floor(-self.low * self.inverse_scale + 0.5)
        if xp is not np:
            shifted = xp.maximum(xp.minimum(inputs, self.high), self.low) - self.low
            return xp.floor(shifted * self.inverse_scale - zero + 0.5) * self.scale
        result = np.empty(inputs.shape, np.float32)
        given, rows = self.rows(inputs), self.rows(result)

        def compute(some: slice) -> None:
            part = rows[some]
            if not np.ndim(zero) and self.low <= self.high:  # in one step
                np.clip(given[some], self.low, self.high, out=part)
            else:
                np.minimum(given[some], self.high, out=part)
                np.maximum(part, self.low, out=part)
            part -= self.low
            part *= self.inverse_scale
            part -= zero
            part += np.float32(0.5)
            np.floor(part, out=part)
            part *= self.scale

        shard(compute, _parts(rows))
        return result

    def rows(self, tensor: Any) -> Any:
        """The tensor as rows of channels, or as elements [n], as the range is given."""
        shape = np.shape(self.low)
        return tensor.reshape(tensor.size // max(math.prod(shape), 1), *shape)

    def contains(self, inputs: Any) -> Any:
        """Which inputs are in the range."""
        return (inputs >= self.low) & (inputs <= self.high)


_AT_ONCE = 1 << 15
"""So many elements stay in the processor's cache between the steps."""


def _parts(rows: Any) -> list[slice]:
    """Some rows at a time."""
    return cut(len(rows), -(-rows.size // _AT_ONCE) or 1)


def _bounds(num_bits: int, narrow_range: bool) -> tuple[int, int]:
    require(2 <= num_bits <= 16, f"num_bits must be between 2 and 16, inclusive, got {num_bits}")
    return int(narrow_range), 2**num_bits - 1


def _grid_of_attrs(min: float, max: float, num_bits: int, narrow_range: bool, xp: Any) -> _Grid:
    bounds = _bounds(num_bits, narrow_range)
    require(min < max, f"min has to be smaller than max, was: {min:g} >= {max:g}")
    return _Grid.nudged(np.float32(min), np.float32(max), bounds, xp)


@register_kernel(FAKE_QUANT_ARGS, kind="elementwise", factory=True)
@from_attrs(grid=_grid_of_attrs)
def fake_quant_args(*, grid: _Grid, xp: Any) -> Callable[[Any], Any]:
    return lambda inputs: grid.quantize(inputs, xp)


@register_kernel(FAKE_QUANT_ARGS_GRADIENT, factory=True)
@from_attrs(grid=_grid_of_attrs)
def fake_quant_args_gradient(*, grid: _Grid) -> Callable[[Any, Any], Any]:

    def kernel(gradients: Any, inputs: Any) -> Any:
        check_same_shape(FAKE_QUANT_ARGS_GRADIENT.name, gradients, inputs)
        return gradients * grid.contains(inputs)

    return kernel


def _check_range(rank: int, inputs: Any, low: Any, high: Any) -> None:
    for name, limit in (("min", low), ("max", high)):
        require_rank(limit, rank, f"`{name}` must be rank {rank} but is rank {limit.ndim}")
        if rank and inputs.shape[-1:] != limit.shape:
            expected = inputs.shape[-1] if inputs.ndim else "an input of rank 1 or more"
            raise InvalidArgumentError(
                f"{name} has incorrect size, expected {expected} was {limit.size}"
            )


_LONG = 1 << 6


def _in_long_rows(low: Any, high: Any, inputs: Any) -> tuple[Any, Any]:
    """The range of a few channels, repeated for as many rows of the inputs as are taken for one."""
    if not low.ndim or not 0 < low.size < _LONG:
        return low, high
    times = math.gcd(inputs.size // low.size, _LONG)
    return np.tile(low, times), np.tile(high, times)


def _quantize(rank: int) -> Callable[..., Callable[..., Any]]:
    """Makes the kernels for a range given as scalars (rank 0) or as vectors."""

    @from_attrs(bounds=_bounds)
    def make(*, bounds: tuple[int, int], xp: Any) -> Callable[..., Any]:
        def kernel(inputs: Any, low: Any, high: Any) -> Any:
            _check_range(rank, inputs, low, high)
            low, high = (flush_subnormals(limit, xp) for limit in (low, high))
            wide = _in_long_rows(low, high, inputs) if xp is np else (low, high)
            outputs = _Grid.nudged(*wide, bounds, xp).quantize(inputs, xp)
            is_empty = (low == 0) & (high == 0)
            if xp is np and not is_empty.any():
                return outputs
            return xp.where(is_empty, xp.zeros_like(inputs), outputs)

        return kernel

    return make


def _gradients_by_parts(
    gradients: Any, inputs: Any, low: Any, high: Any, bounds: tuple[int, int]
) -> tuple[Any, Any, Any]:
    """The gradients by inputs in the range, and the sums of those below and above it; of an empty range by all inputs."""
    shape = low.shape
    low, high = _in_long_rows(low, high, inputs)
    grid, is_empty = _Grid.nudged(low, high, bounds, np), (low == 0) & (high == 0)
    inside = np.empty(gradients.shape, np.float32)
    given, values, passed = map(grid.rows, (gradients, inputs, inside))
    parts = _parts(given)
    sums = np.zeros((2, len(parts), *np.shape(grid.low)), np.float32)

    def compute(number: int) -> None:
        some = parts[number]
        part, x = given[some], values[some]
        np.multiply(part, grid.contains(x), out=passed[some])
        for total, outside in zip(sums, (x < grid.low, x > grid.high), strict=True):
            total[number] = (part * outside).sum(axis=0)

    shard(compute, range(len(parts)))
    np.copyto(passed, given, where=is_empty)
    below, above = np.where(is_empty, np.float32(0), sums.sum(axis=1)).reshape(
        2, low.size // max(math.prod(shape), 1), *shape
    )
    return inside, below.sum(axis=0), above.sum(axis=0)


def _gradient(rank: int) -> Callable[..., Callable[..., Any]]:
    """Makes the gradients for a range given as scalars (rank 0) or as vectors."""

    @from_attrs(bounds=_bounds)
    def make(*, bounds: tuple[int, int], xp: Any) -> Callable[..., Any]:
        def kernel(gradients: Any, inputs: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
            require_equal(
                gradients.shape,
                inputs.shape,
                "gradient and input must be the same size, got {} and {}",
            )
            _check_range(rank, inputs, low, high)
            low, high = (flush_subnormals(limit, xp) for limit in (low, high))
            if xp is np:
                return _gradients_by_parts(gradients, inputs, low, high, bounds)
            grid = _Grid.nudged(low, high, bounds, xp)
            is_empty = (low == 0) & (high == 0)
            axes = tuple(range(inputs.ndim - rank))

            def sums(where: Any) -> Any:
                products = xp.where(is_empty, xp.zeros_like(gradients), gradients * where)
                return xp.sum(products, axis=axes)

            inside = xp.where(is_empty, gradients, gradients * grid.contains(inputs))
            return inside, sums(inputs < grid.low), sums(inputs > grid.high)

        return kernel

    return make


for _rank, _op, _gradient_op in (
    (0, FAKE_QUANT_VARS, FAKE_QUANT_VARS_GRADIENT),
    (1, FAKE_QUANT_PER_CHANNEL, FAKE_QUANT_PER_CHANNEL_GRADIENT),
):
    register_kernel(_op, factory=True)(_quantize(_rank))
    register_kernel(_gradient_op, factory=True)(_gradient(_rank))


@g.register_gradient("FakeQuantWithMinMaxArgs", not_derivative=_UNCHANGED)
def args_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    attrs = g.attrs_of(op, "min", "max", "num_bits", "narrow_range")
    return g.nodes.FakeQuantWithMinMaxArgsGradient(grad, op.inputs[0], **attrs)


def _of_vars(gradient: str) -> g.GradientFunction:
    """The gradient function of an op whose range is inputs."""

    def passed_on(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        attrs = g.attrs_of(op, "num_bits", "narrow_range")
        return getattr(g.nodes, gradient)(grad, *op.inputs, **attrs)

    return passed_on


for _op in (FAKE_QUANT_VARS, FAKE_QUANT_PER_CHANNEL):
    g.register_gradient(_op, not_derivative=_UNCHANGED)(_of_vars(f"{_op.name}Gradient"))
