"""Dilation2D, the grayscale morphological dilation, and its gradients.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/dilation_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import UnimplementedError
from opkernel.kernel import KernelRegistry, allocate, from_attrs
from opkernel.opdef import DimensionHandle, InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.rules import outputs_as_inputs
from opkernel.opdef.common_shapes.windows import Padding, get_windowed_output_size_verbose
from opkernel.ops.input_checks import require_equal
from opkernel.ops.nn.pooling import lowest
from opkernel.ops.nn.windows import (
    Geometry,
    check_length,
    check_rank,
    check_shape,
    geometry_along,
    overlaps,
)
from opkernel.ops.registration import REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType, as_dtype


@dataclass(frozen=True, slots=True)
class _Rule:
    """How the filter slides: steps and gaps of rows and columns. A rate need not be positive."""

    strides: tuple[int, ...]
    rates: tuple[int, ...]
    padding: Padding

    def geometry(self, spatial: Sequence[int], window: Sequence[int]) -> Geometry:
        """Where the windows lie; InvalidArgumentError where they do not fit."""
        along = [
            get_windowed_output_size_verbose(
                spatial[i],
                window[i] + (window[i] - 1) * (self.rates[i] - 1),
                1,
                self.strides[i],
                self.padding,
            )
            for i in (0, 1)
        ]
        return geometry_along(along, window, self.strides, self.rates)


def _dilation2d_shape(c: InferenceContext) -> None:
    image, filter_ = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 3)
    strides, rates = c.get_attr("strides"), c.get_attr("rates")
    for name, values in (("stride", strides), ("rates", rates)):
        message = f"Dilation2D requires the {name} attribute to contain 4 values, but got: {{}}"
        require_equal(len(values), 4, message)
    sizes = [c.dim(image, 1), c.dim(image, 2), c.dim(filter_, 0), c.dim(filter_, 1)]
    space: list[DimensionHandle | int | None] = [None, None]
    if all(c.value_known(size) for size in sizes):
        c.merge(c.dim(image, 3), c.dim(filter_, 2))
        rule = _Rule(
            tuple(strides[1:3]), tuple(rates[1:3]), Padding.from_string(c.get_attr("padding"))
        )
        values = [c.value(size) for size in sizes]
        space = [*rule.geometry(values[:2], values[2:]).output]
    c.set_output(0, c.make_shape([c.dim(image, 0), *space, c.dim(filter_, 2)]))


_declare = partial(
    register_op,
    attrs=[
        "T: realnumbertype",
        "strides: list(int) >= 4",
        "rates: list(int) >= 4",
        "padding: {'SAME', 'VALID'}",
    ],
)
DILATION2D = _declare(
    "Dilation2D(input: T, filter: T) -> output: T",
    shape_fn=_dilation2d_shape,
    doc="For each window of images, the maximum of the sums of its elements and those of a filter "
    "[rows, columns, channels].",
)
BACKPROP_INPUT = _declare(
    "Dilation2DBackpropInput(input: T, filter: T, out_backprop: T) -> in_backprop: T",
    shape_fn=unchanged_shape,
    doc="The gradient of Dilation2D by its input.",
)
BACKPROP_FILTER = _declare(
    "Dilation2DBackpropFilter(input: T, filter: T, out_backprop: T) -> filter_backprop: T",
    shape_fn=outputs_as_inputs(1),
    doc="The gradient of Dilation2D by its filter.",
)


def _rule(strides: Sequence[int], rates: Sequence[int], padding: str) -> _Rule:
    for name, values in (("stride", strides), ("rates", rates)):
        check_length(name, values, 4)
        if values[0] != 1 or values[3] != 1:
            raise UnimplementedError(f"{name} is only supported across spatial dimensions.")
    return _Rule(tuple(strides[1:3]), tuple(rates[1:3]), Padding.from_string(padding))


def _checked_geometry(x: Array, filters: Array, rule: _Rule) -> Geometry:
    check_rank("input", x, 4)
    check_rank("filter", filters, 3)
    require_equal(
        x.shape[3], filters.shape[2], "input and filter must have the same depth: {} vs {}"
    )
    return rule.geometry(x.shape[1:3], filters.shape[:2])


@register_kernel(DILATION2D, types={"T": REAL_NUMBERS}, factory=True)
@from_attrs(rule=_rule)
def dilation2d(*, rule: _Rule) -> Callable[[Array, Array], Array]:
    """Sums that are NaN, or not above the least finite value, count as absent."""

    def dilated(x: Array, filters: Array) -> Array:
        geometry = _checked_geometry(x, filters, rule)
        out = allocate((len(x), *geometry.output, x.shape[3]), as_dtype(x.dtype))
        out.fill(lowest(x.dtype))
        for offset, windows, elements in overlaps(geometry, x.shape[1:3]):
            np.fmax(out[windows], x[elements] + filters[offset], out=out[windows])
        return out

    return dilated


def _largest_terms(x: Array, filters: Array, geometry: Geometry) -> Array:
    """For each window, the number of the filter element that gives the first of the largest sums, or -1."""
    shape = (len(x), *geometry.output, x.shape[3])
    best, chosen = np.full(shape, lowest(x.dtype), x.dtype), np.full(shape, -1)
    for offset, windows, elements in overlaps(geometry, x.shape[1:3]):
        sums = x[elements] + filters[offset]
        better = sums > best[windows]
        np.copyto(best[windows], sums, where=better)
        np.copyto(chosen[windows], offset[0] * geometry.window[1] + offset[1], where=better)
    return chosen


def _give_to_first_elements(out: Array, gradient: Array, geometry: Geometry) -> None:
    """Add the gradient of each window to the first element that it has in the input."""
    images, rows, columns, channels = np.nonzero(gradient)
    first_rows = np.maximum(rows * geometry.strides[0] - geometry.padding[0][0], 0)
    first_columns = np.maximum(columns * geometry.strides[1] - geometry.padding[1][0], 0)
    inside = (first_rows < out.shape[1]) & (first_columns < out.shape[2])
    places = (images, first_rows, first_columns, channels)
    values = gradient[images, rows, columns, channels]
    np.add.at(out, tuple(place[inside] for place in places), values[inside])


_AT_ONCE = 1 << 18
"""About so many elements are looked at together: they stay in the processor's cache."""
Share = Callable[[Array, Array, Array, Array, Array], object]
"""A function as `share_with_input`."""


def share_with_input(x: Array, filters: Array, gradient: Array, places: Array, out: Array) -> None:
    """Add the gradient of each window to the element with the first of its largest sums.

    A window without a largest sum gives its gradient to its first element.

    Args:
        x: [images, height, width, channels].
        filters: [rows, columns, channels].
        gradient: [images, windows, windows, channels].
        places: int64 [3, 2]: the strides and the rates of rows and columns, and the padding before the image.
        out: Of the shape of `x`, to which is added.
    """
    geometry = _geometry(filters, gradient, places)
    chosen, zero = _largest_terms(x, filters, geometry), gradient.dtype.type(0)
    for offset, windows, elements in overlaps(geometry, x.shape[1:3]):
        here = chosen[windows] == offset[0] * geometry.window[1] + offset[1]
        out[elements] += np.where(here, gradient[windows], zero)
    _give_to_first_elements(out, np.where(chosen < 0, gradient, zero), geometry)


def share_with_filters(
    x: Array, filters: Array, gradient: Array, places: Array, out: Array
) -> None:
    """As `share_with_input`, to the elements of the filter; without a largest sum to the first one."""
    geometry = _geometry(filters, gradient, places)
    chosen = np.maximum(_largest_terms(x, filters, geometry), 0)
    for offset in in_time(np.ndindex(*geometry.window), SLOW):
        here = chosen == offset[0] * geometry.window[1] + offset[1]
        shares = np.where(here, gradient, gradient.dtype.type(0))
        out[offset] += shares.sum(axis=(0, 1, 2), dtype=gradient.dtype)


def _geometry(filters: Array, gradient: Array, places: Array) -> Geometry:
    strides, rates, before = (tuple(pair) for pair in places.tolist())
    padding = tuple((number, 0) for number in before)
    return Geometry(filters.shape[:2], strides, rates, padding, gradient.shape[1:3])


def register_dilation2d_gradients(
    with_input: Share,
    with_filters: Share,
    types: Sequence[DataType] = REAL_NUMBERS,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernels of both gradients with functions that share out gradients of windows."""

    def register(op: OpHandle, share: Share, to_input: bool) -> None:
        @from_attrs(rule=_rule)
        def backprop(*, rule: _Rule) -> Callable[[Array, Array, Array], Array]:
            def shared(x: Array, filters: Array, gradient: Array) -> Array:
                geometry = _checked_geometry(x, filters, rule)
                check_rank("out_backprop", gradient, 4)
                shape = (len(x), *geometry.output, x.shape[3])
                check_shape("out_backprop", gradient.shape, shape)
                out = np.zeros(x.shape if to_input else filters.shape, gradient.dtype)
                before = [padding[0] for padding in geometry.padding]
                places = np.array([geometry.strides, geometry.dilations, before])
                x, filters, gradient = map(np.ascontiguousarray, (x, filters, gradient))
                if out.size and gradient.size:
                    at_once = max(_AT_ONCE // x[0].size, 1)
                    for start in in_time(range(0, len(x), at_once), SLOW):
                        some = slice(start, start + at_once)
                        own = out[some] if to_input else out
                        share(x[some], filters, gradient[some], places, own)
                return out

            return shared

        register_kernel(op, types={"T": types}, factory=True, registry=registry)(backprop)

    register(BACKPROP_INPUT, with_input, True)
    register(BACKPROP_FILTER, with_filters, False)


register_dilation2d_gradients(share_with_input, share_with_filters)


@g.register_gradient("Dilation2D")
def dilation2d_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    attrs = g.attrs_of(op, "strides", "rates", "padding")
    return (
        g.nodes.Dilation2DBackpropInput(*op.inputs, grad, **attrs),
        g.nodes.Dilation2DBackpropFilter(*op.inputs, grad, **attrs),
    )
