"""FractionalAvgPool, FractionalMaxPool and their gradients: pooling by a ratio that need not be whole.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/fractional_avg_pool_op.cc,
core/kernels/fractional_max_pool_op.cc; Graham, Fractional max-pooling (2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import KernelRegistry, check_allocation
from opkernel.opdef import DimensionHandle, InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.ops.input_checks import require, require_equal, require_rank, require_vector
from opkernel.ops.nn.fractional_regions import RegionSource
from opkernel.ops.nn.pooling import lowest
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, as_dtype

_TYPES = [DataType.DT_FLOAT, DataType.DT_DOUBLE, DataType.DT_INT32, DataType.DT_INT64]
_T = "T: {float, double, int32, int64}"
_POOL_ATTRS = [
    "pooling_ratio: list(float) >= 4",
    "pseudo_random: bool = false",
    "overlapping: bool = false",
    "deterministic: bool = false",
    "seed: int = 0",
    "seed2: int = 0",
    _T,
]
_SEQUENCES = "row_pooling_sequence: int64, col_pooling_sequence: int64"


def _fractional_pool_shape(c: InferenceContext) -> None:
    """Images divided by `pooling_ratio`, and where their windows begin.

    The kernel gives also where the last window ends, which TensorFlow's shape function does not count.
    """
    images = c.with_rank(c.input(0), 4)
    ratios = c.get_attr("pooling_ratio")
    require_equal(len(ratios), 4, "pooling_ratio field must specify 4 dimensions")
    dims = [_pooled(c, c.dim(images, i), ratio, i) for i, ratio in enumerate(ratios)]
    set_outputs(c, [c.make_shape(dims), c.vector(dims[1]), c.vector(dims[2])])
    c.doubt_output(1)
    c.doubt_output(2)


def _pooled(c: InferenceContext, dim: DimensionHandle, ratio: float, i: int) -> DimensionHandle:
    if not ratio >= 1:  # NaN is not
        raise InvalidArgumentError(f"pooling_ratio should be larger than 1, got {ratio}")
    if not c.value_known(dim):
        return c.unknown_dim()
    return c.make_dim(math.floor(np.float32(dim.value) / np.float32(ratio)))


def _fractional_avg_pool_grad_shape(c: InferenceContext) -> None:
    """The shape that input 0 holds."""
    if c.input_tensor(0) is None:
        c.set_output(0, c.unknown_shape_of_rank(4))
    else:
        c.set_output(0, c.make_shape_from_shape_tensor(0))


FRACTIONAL_AVG_POOL, FRACTIONAL_MAX_POOL = (
    register_op(
        f"Fractional{kind}Pool(value: T) -> output: T, {_SEQUENCES}",
        attrs=_POOL_ATTRS,
        shape_fn=_fractional_pool_shape,
        doc=f"The {word} of windows of two sizes, and the rows and columns where they begin.",
    )
    for kind, word in (("Avg", "mean"), ("Max", "largest values"))
)
FRACTIONAL_AVG_POOL_GRAD = register_op(
    f"FractionalAvgPoolGrad(orig_input_tensor_shape: int64, out_backprop: T, {_SEQUENCES}) -> output: T",
    attrs=["overlapping: bool = false", _T],
    shape_fn=_fractional_avg_pool_grad_shape,
    doc="The gradient of FractionalAvgPool: each window gives its elements equal parts.",
)
FRACTIONAL_MAX_POOL_GRAD = register_op(
    f"FractionalMaxPoolGrad(orig_input: T, orig_output: T, out_backprop: T, {_SEQUENCES}) -> output: T",
    attrs=["overlapping: bool = false", _T],
    shape_fn=unchanged_shape_with_rank(4),
    doc="The gradient of FractionalMaxPool: each window gives all to its first largest element.",
)


def _check_pool(ratios: list[float], deterministic: bool, seed: int, seed2: int) -> None:
    require_equal(len(ratios), 4, "pooling_ratio field must specify 4 dimensions")
    for ratio in ratios:
        if not ratio >= 1:
            raise InvalidArgumentError(f"pooling_ratio cannot be smaller than 1, got: {ratio:g}")
    if ratios[0] != 1 or ratios[3] != 1:
        raise UnimplementedError(
            "Fractional pooling is not yet supported on the batch nor channel dimension."
        )
    if not deterministic and (seed or seed2):
        raise InvalidArgumentError("Both seed and seed2 should be 0 if deterministic is false.")


def _pool(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def factory(
        *,
        pooling_ratio: list[float],
        pseudo_random: bool,
        overlapping: bool,
        deterministic: bool,
        seed: int,
        seed2: int,
    ) -> Callable[[Any], tuple[Any, Any, Any]]:
        _check_pool(pooling_ratio, deterministic, seed, seed2)

        def pool(value: Any) -> tuple[Any, Any, Any]:
            counts = _counts(value, pooling_ratio)
            source = RegionSource(seed, seed2, pseudo_random)
            rows, columns = (source.regions(value.shape[axis], counts[axis]) for axis in (1, 2))
            output = reduce(value, _windows(rows, overlapping), _windows(columns, overlapping))
            return output, rows, columns

        return pool

    return factory


def _counts(value: Any, ratios: list[float]) -> list[int]:
    require_rank(value, 4, "tensor_in must be 4-dimensional{}")
    counts = []
    for axis, (size, ratio) in enumerate(zip(value.shape, ratios, strict=True)):
        if size < ratio:
            raise InvalidArgumentError(
                f"Pooling ratio is higher than input dimension size for dimension {axis}. "
                f"Input dim size: {size} pooling ratio: {ratio:g}"
            )
        counts.append(math.floor(np.float32(size) / np.float32(ratio)))
    return counts


def _windows(regions: Any, overlapping: bool) -> tuple[Any, Any]:
    """The first and the last index of each window; windows that overlap share their edges."""
    last = regions[1:] if overlapping else regions[1:] - 1
    return regions[:-1], np.minimum(last, regions[-1] - 1)


def _steps(firsts: Any, lasts: Any) -> Iterator[tuple[Any, Any]]:
    """For each place in a window, its index for all windows, and which windows have it."""
    for step in in_time(range(int((lasts - firsts).max(initial=-1)) + 1), SLOW):
        yield np.minimum(firsts + step, lasts), firsts + step <= lasts


_AT_ONCE = 1 << 16
"""About so many elements are pooled together: they stay in the processor's cache."""
PoolWindows = Callable[[Any, Any, Any, Any], Any]
"""A function as `sum_of_windows`."""


def sum_of_windows(images: Any, rows: Any, columns: Any, out: Any) -> None:
    """Add up windows row by row.

    Args:
        images: [images, height, width, channels].
        rows: [2, windows], int64: the first and the last row of each window.
        columns: [2, windows], int64.
        out: [images, windows, windows, channels], of the type of the images: what to begin with, which is changed.
    """
    for row, has_row in _steps(*rows):
        lines = images.take(row, 1)
        for column, has_column in _steps(*columns):
            is_part = (has_row[:, np.newaxis] & has_column)[..., np.newaxis]
            if is_part.all():
                out += lines.take(column, 2)
            else:
                out += np.where(is_part, lines.take(column, 2), out.dtype.type(0))


def largest_of_windows(images: Any, rows: Any, columns: Any, out: Any) -> None:
    """As `sum_of_windows`, with the largest numbers; TensorFlow begins with the lowest finite one, and passes over NaN."""
    parts = [images.take(row, 1) for row, _ in _steps(*rows)]
    lines = np.fmax.reduce(parts)
    for column, _ in _steps(*columns):
        np.fmax(out, lines.take(column, 2), out=out)


def _pooled_images(
    pool: PoolWindows, least: Any, value: Any, rows: tuple[Any, Any], columns: tuple[Any, Any]
) -> Any:
    rows_of, columns_of = np.stack(rows), np.stack(columns)
    shape = (len(value), rows_of.shape[1], columns_of.shape[1], value.shape[3])
    out = np.full(shape, least, value.dtype)
    for some in _some_images(value):
        pool(value[some], rows_of, columns_of, out[some])
    return out


def _some_images(images: Any) -> Iterable[slice]:
    at_once = max(_AT_ONCE // max(images[:1].size, 1), 1)
    starts = in_time(range(0, len(images), at_once), SLOW, "pooling images")
    return (slice(first, first + at_once) for first in starts)


def _mean(total: Any, rows: tuple[Any, Any], columns: tuple[Any, Any]) -> Any:
    dtype = total.dtype
    counts = (_sizes(rows)[:, None, None] * _sizes(columns)[None, :, None]).astype(dtype)
    if dtype.kind == "f":
        return total / counts
    return ((total - np.fmod(total, counts)) // counts).astype(dtype)


def _sizes(windows: tuple[Any, Any]) -> Any:
    firsts, lasts = windows
    return lasts - firsts + 1


def register_fractional_pools(
    add: PoolWindows, largest: PoolWindows, registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of FractionalAvgPool and FractionalMaxPool with functions that pool one image."""

    def mean(value: Any, *windows: tuple[Any, Any]) -> Any:
        return _mean(_pooled_images(add, 0, value, *windows), *windows)

    def maximum(value: Any, *windows: tuple[Any, Any]) -> Any:
        return _pooled_images(largest, lowest(value.dtype), value, *windows)

    of_types = partial(register_kernel, types={"T": _TYPES}, factory=True, registry=registry)
    of_types(FRACTIONAL_AVG_POOL)(_pool(mean))
    of_types(FRACTIONAL_MAX_POOL)(_pool(maximum))


register_fractional_pools(sum_of_windows, largest_of_windows)


_Windows = tuple[Any, Any]
"""The first and the last index of each window."""


def _given_windows(
    sequences: Sequence[Any], outputs: tuple[int, ...], inputs: tuple[int, ...], overlapping: bool
) -> tuple[_Windows, _Windows]:
    """The windows along rows and columns that sequences tell, clipped to the input."""
    rows, columns = sequences
    return (
        _windows_along("row", rows, outputs[1], inputs[1], overlapping),
        _windows_along("col", columns, outputs[2], inputs[2], overlapping),
    )


def _windows_along(name: str, sequence: Any, count: int, size: int, overlapping: bool) -> _Windows:
    require_vector(sequence, f"{name}_pooling_sequence must be a vector, received shape {{}}")
    message = f"must have at least {count + 1} elements, but got {len(sequence)}"
    require(len(sequence) > count, f"{name}_seq_tensor {message}")
    if sequence.min(initial=0) < 0:
        raise InvalidArgumentError(
            f"{name} sequence tensor values must not be negative, got {sequence.tolist()}"
        )
    firsts, ends = sequence[:count], sequence[1 : count + 1]
    lasts = np.minimum(ends if overlapping else ends - 1, size - 1)
    if (firsts > lasts).any() or (firsts >= size).any():
        raise InvalidArgumentError(
            f"{name}_pooling_sequence {sequence.tolist()} has windows that the input of size {size} lacks"
        )
    return firsts, lasts


def _original_shape(original: Any, grad: Any) -> tuple[int, ...]:
    require_equal(
        original.shape, (4,), "original input tensor shape must be 1-dimensional and 4 elements"
    )
    require_rank(grad, 4, "out_backprop must be 4-dimensional{}")
    if not grad.size:
        raise InvalidArgumentError(f"out_backprop must be positive for all dimension, got:{0}")
    shape: list[int] = original.tolist()
    if min(shape) < 1:
        raise InvalidArgumentError(f"Dimensions of the original input must not be 0, got {shape}")
    if (shape[0], shape[3]) != (grad.shape[0], grad.shape[3]):
        raise InvalidArgumentError(
            f"out_backprop {list(grad.shape)} has another batch or depth than the input {shape}"
        )
    return check_allocation(shape, as_dtype(grad.dtype))


Spread = Callable[[Any, Any, Any, Any], Any]
"""A function as `spread_over_windows`."""


def spread_over_windows(parts: Any, rows: Any, columns: Any, total: Any) -> None:
    """Add to each element what its windows give it, window by window.

    Args:
        parts: [images, windows, windows, channels], float64: what windows give to each of their elements.
        rows: [2, windows], int64: the first and the last row of each window.
        columns: [2, windows], int64.
        total: [images, height, width, channels], float64.
    """
    (from_row, to_row), (from_column, to_column) = map(_pairs, (rows, columns))
    given = parts.transpose(1, 2, 0, 3)[from_row[:, None], from_column]
    np.add.at(total.transpose(1, 2, 0, 3), (to_row[:, None], to_column), given)


def _pairs(windows: tuple[Any, Any]) -> tuple[Any, Any]:
    """The number of a window and the index of an element of it, for all there are."""
    firsts, _ = windows
    sizes = _sizes(windows)
    numbers = np.repeat(np.arange(len(firsts)), sizes)
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return numbers, firsts[numbers] + np.arange(len(numbers)) - begins[numbers]


GiveToLargest = Callable[[Any, Any, Any, Any, Any, Any], bool]
"""A function as `give_to_largest`."""


def give_to_largest(value: Any, y: Any, grad: Any, rows: Any, columns: Any, total: Any) -> bool:
    """Add each gradient to the first of the largest elements of its window.

    Args:
        value: [images, height, width, channels].
        y: [images, windows, windows, channels]: the largest elements.
        grad: Of the shape of `y`.
        rows: [2, windows], int64: the first and the last row of each window.
        columns: [2, windows], int64.
        total: Of the shape of `value`.

    Returns:
        Whether `y` has the largest elements.
    """
    best = value[:, rows[0]][:, :, columns[0]]
    where = np.zeros((2, *grad.shape), np.intp)
    where[0], where[1] = rows[0][:, None, None], columns[0][None, :, None]
    for row, has_row in _steps(*rows):
        for column, has_column in _steps(*columns):
            found = value[:, row][:, :, column]
            more = (found > best) & has_row[:, None, None] & has_column[None, :, None]
            best = np.where(more, found, best)
            where[0] = np.where(more, row[:, None, None], where[0])
            where[1] = np.where(more, column[None, :, None], where[1])
    batch, depth = np.ogrid[: grad.shape[0], : grad.shape[3]]
    index = (batch[:, None, None, :1], where[0], where[1], depth[:, None, None, :])
    np.add.at(total, index, grad)
    return bool((best == y).all())


def register_fractional_pool_gradients(
    spread: Spread, give: GiveToLargest, registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of both gradients with functions that share out gradients of windows."""

    def fractional_avg_pool_grad(*, overlapping: bool) -> Callable[..., Any]:
        def by_input(original: Any, grad: Any, *sequences: Any) -> Any:
            shape = _original_shape(original, grad)
            rows, columns = _given_windows(sequences, grad.shape, shape, overlapping)
            counts = _sizes(rows)[:, None, None] * _sizes(columns)[None, :, None]
            parts = grad.astype(np.float64) / counts
            total = np.zeros(shape, np.float64)
            for some in _some_images(total):
                spread(parts[some], np.stack(rows), np.stack(columns), total[some])
            return total.astype(grad.dtype, copy=False)

        return by_input

    def fractional_max_pool_grad(*, overlapping: bool) -> Callable[..., Any]:
        def by_input(x: Any, y: Any, grad: Any, *sequences: Any) -> Any:
            _check_max_pool_grad(x, y, grad)
            rows, columns = _given_windows(sequences, y.shape, x.shape, overlapping)
            total = np.zeros(x.shape, grad.dtype)
            edges = np.stack(rows), np.stack(columns)
            for some in _some_images(total):
                is_right = give(x[some], y[some], grad[some], *edges, total[some])
                require(is_right, "orig_output has not the largest elements of orig_input")
            return total

        return by_input

    of_types = partial(register_kernel, types={"T": _TYPES}, factory=True, registry=registry)
    of_types(FRACTIONAL_AVG_POOL_GRAD)(fractional_avg_pool_grad)
    of_types(FRACTIONAL_MAX_POOL_GRAD)(fractional_max_pool_grad)


def _check_max_pool_grad(x: Any, y: Any, grad: Any) -> None:
    for name, tensor in (("orig_input", x), ("orig_output", y)):
        require_rank(tensor, 4, f"{name} should be a tensor of rank 4, got {{}}")
    if grad.shape != y.shape or not grad.size or not x.size:
        raise InvalidArgumentError(
            f"out_backprop {list(grad.shape)} should have the shape of orig_output "
            f"{list(y.shape)}, which may not be empty"
        )
    if (x.shape[0], x.shape[3]) != (y.shape[0], y.shape[3]):
        raise InvalidArgumentError("orig_input and orig_output differ in batch or depth")


register_fractional_pool_gradients(spread_over_windows, give_to_largest)


@g.register_gradient("FractionalMaxPool")
def fractional_max_pool_gradient(op: g.Operation, grad: g.Tensor, *_: Any) -> g.Gradients:
    attrs = g.attrs_of(op, "overlapping")
    return g.nodes.FractionalMaxPoolGrad(
        op.inputs[0], op.outputs[0], grad, op.outputs[1], op.outputs[2], **attrs
    )


@g.register_gradient("FractionalAvgPool")
def fractional_avg_pool_gradient(op: g.Operation, grad: g.Tensor, *_: Any) -> g.Gradients:
    shape = g.nodes.Shape(op.inputs[0], out_type="int64")
    attrs = g.attrs_of(op, "overlapping")
    return g.nodes.FractionalAvgPoolGrad(shape, grad, op.outputs[1], op.outputs[2], **attrs)
