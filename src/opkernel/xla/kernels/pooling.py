"""Means and maxima over windows, and their gradients, by `lax.reduce_window`.

Maxima that are given back with their place, or whose gradient is asked for, are reduced together with their flat
index. Layouts with the channels first are turned, which the compiler leaves out again.

XLA's own windows of several values, and its scatters, are slow on CPUs. So windows are taken apart: for each place in a
window, what all windows have there is a slice of the padded input. Such slices are computed with element by element.

Source: TensorFlow compiler/tf2xla/kernels/pooling_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.ops.nn.max_pool import check_depth_windows
from opkernel.ops.nn.pooling import (
    Pool,
    lowest,
    padded_pool_in_layout,
    pool_from_attrs,
    pool_in_layout,
    sizes_in_tensor,
    window_sizes,
)
from opkernel.ops.nn.windows import Geometry, check_rank, check_shape, overlaps, sizes_from_tensor
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.types import DataType, as_dtype
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

_MOST = 64
"""Windows of more elements make large programs."""


def are_apart(geometry: Geometry) -> bool:
    """Whether windows have no element in common, and few elements."""
    extents = zip(geometry.strides, geometry.window, strict=True)
    return all(step >= size for step, size in extents) and math.prod(geometry.window) <= _MOST


def elements_of_windows(geometry: Geometry) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """For each place in a window: the place, and where the spatial dimensions of the padded input have it."""
    along = list(zip(geometry.dilations, geometry.output, geometry.strides, strict=True))
    for place in np.ndindex(*geometry.window):
        first = [at * gap for at, (gap, _, _) in zip(place, along, strict=True)]
        slices = [
            slice(start, start + (count - 1) * step + 1, step)
            for start, (_, count, step) in zip(first, along, strict=True)
        ]
        yield place, tuple(slices)


def first_largest_in_windows(x: Any, geometry: Geometry) -> Any:
    """Which element of each window is the first largest one: its number in the window, int32; -1 for none.

    A NaN is taken where it comes first, and else passed over. `x` is `[batch, *spatial, channels]`.
    """
    padding = ((0, 0), *geometry.padding, (0, 0))
    padded, inside = jnp().pad(x, padding), np.pad(np.ones((1, *x.shape[1:-1], 1), bool), padding)
    best, found = np.zeros((), x.dtype), np.int32(-1)
    for number, (_, spatial) in enumerate(elements_of_windows(geometry)):
        value, is_there = padded[:, *spatial], inside[:, *spatial, :1]
        wins = is_there & ((found < 0) | (best < value))
        best, found = jnp().where(wins, value, best), jnp().where(wins, np.int32(number), found)
    return found


def given_to_windows(numbers: Any, values: Any, geometry: Geometry, shape: tuple[int, ...]) -> Any:
    """Zeros of a shape, but for the element of each window that has a number: it has the window's value."""
    zero = np.zeros((), values.dtype)
    padded = geometry.padded_shape(shape)
    total: Any = zero
    for number, (_, spatial) in enumerate(elements_of_windows(geometry)):
        taken = jnp().where(numbers == number, values, zero)
        edges = [
            (part.start, size - part.stop, part.step - 1)
            for part, size in zip(spatial, padded[1:-1], strict=True)
        ]
        total = total + lax().pad(taken, zero, [(0, 0, 0), *edges, (0, 0, 0)])
    return total[geometry.inner(shape)]


def _windows(geometry: Geometry, depth: int = 1) -> dict[str, Any]:
    """The windows of a channels-last input as `lax.reduce_window` takes them."""
    return {
        "window_dimensions": (1, *geometry.window, depth),
        "window_strides": (1, *geometry.strides, depth),
        "padding": ((0, 0), *geometry.padding, (0, 0)),
    }


def _in_layout(pool: Pool, compute: Callable[..., Any]) -> Callable[..., Any]:
    """A computation on channels-last arrays as one on arrays in the layout of the windows."""
    if pool.windows.channels_last:
        return compute

    def turned(*arrays: Any) -> Any:
        for array in arrays:
            check_rank("tensor_in", array, pool.rank)
        result = compute(*(jnp().moveaxis(array, 1, -1) for array in arrays))
        return jnp().moveaxis(result, -1, 1)

    return turned


def _mean(x: Any, pool: Pool) -> Any:
    """The sums over windows, divided by how many elements each sees; narrow floats in float."""
    pool.refuse_depth("Pooling")
    geometry = pool.geometry(x.shape)
    wide = x.astype(np.float32) if as_dtype(x.dtype) in NARROW_FLOATS else x
    zero = np.zeros((), wide.dtype)
    sums = lax().reduce_window(wide, zero, lax().add, **_windows(geometry))
    counts: Any = math.prod(geometry.window)
    if geometry.is_padded:
        counts = window_sizes(geometry, x.shape[1:-1])
    return (sums / np.asarray(counts, wide.dtype)).astype(x.dtype)


def _mean_gradient(sizes: Sequence[int], gradient: Any, pool: Pool) -> Any:
    """The transpose of `_mean`."""
    check_rank("out_backprop", gradient, pool.rank)
    check_shape("out_backprop", gradient.shape, pool.output_shape(sizes))
    if 0 in sizes or not gradient.size:
        return jnp().zeros(sizes, gradient.dtype)
    narrow = as_dtype(gradient.dtype) in NARROW_FLOATS
    wide = gradient.astype(np.float32) if narrow else gradient
    spec = jax().ShapeDtypeStruct(tuple(sizes), wide.dtype)
    (result,) = jax().linear_transpose(lambda x: _mean(x, pool), spec)(wide)
    return result.astype(gradient.dtype)


def _avg_pool_grad(rank: int) -> Callable[..., Any]:
    @from_attrs(pool=partial(pool_in_layout, rank=rank))
    def avg_pool_grad(*, pool: Pool) -> Callable[[Any, Any], Any]:
        pool.refuse_depth("Pooling")

        def gradient_by_input(orig_input_shape: Any, gradient: Any) -> Any:
            sizes = sizes_from_tensor("orig_input_shape", orig_input_shape)
            if len(sizes) != rank:
                raise InvalidArgumentError(
                    f"orig_input_shape must have {rank} elements, got {len(sizes)}"
                )
            if not pool.windows.channels_last:
                sizes = (sizes[0], *sizes[2:], sizes[1])
            return _in_layout(pool, partial(_mean_gradient, sizes, pool=pool))(gradient)

        return gradient_by_input

    return avg_pool_grad


for _suffix, _rank in (("", 4), ("3D", 5)):
    register_xla_kernel(
        f"AvgPool{_suffix}Grad", compile_time_constants=["orig_input_shape"], factory=True
    )(_avg_pool_grad(_rank))


def _max_pool(x: Any, pool: Pool) -> Any:
    """The maxima; NaN counts as absent, and an empty window has the least finite value."""
    check_rank("tensor_in", x, pool.rank)
    check_depth_windows(pool, x.shape[-1])
    geometry = pool.geometry(x.shape)
    least = np.asarray(lowest(x.dtype), x.dtype)
    if as_dtype(x.dtype).is_floating:
        x = jnp().where(jnp().isnan(x), least, x)
    return lax().reduce_window(x, least, lax().max, **_windows(geometry, pool.depth))


def _max_pool_3d(x: Any, pool: Pool) -> Any:
    pool.refuse_depth("Pooling")
    return _max_pool(x, pool)


def _first_largest(x: Any, pool: Pool) -> tuple[Any, Any]:
    """The first largest element of each window, and its index in the flat input; -1 for none.

    A NaN is taken where it comes first, and else passed over.
    """
    geometry = pool.geometry(x.shape)
    narrow = x.size < 2**31
    places = jnp().arange(x.size, dtype=np.int32 if narrow else np.int64).reshape(x.shape)

    def better(one: Any, other: Any) -> Any:
        (value, place), (value2, place2) = one, other
        is_first = place < place2
        wins = jnp().where(is_first, value < value2, ~(value2 < value))
        second = (place < 0) | ((place2 >= 0) & wins)
        return jnp().where(second, value2, value), jnp().where(second, place2, place)

    start = (np.asarray(lowest(x.dtype), x.dtype), places.dtype.type(-1))
    windows = _windows(geometry)
    found: tuple[Any, Any] = lax().reduce_window((x, places), start, better, **windows)
    return found


@register_xla_kernel("MaxPoolWithArgmax", factory=True)
@from_attrs(pool=pool_from_attrs)
def max_pool_with_argmax(
    *, pool: Pool, include_batch_in_index: bool, Targmax: DataType
) -> Callable[[Any], tuple[Any, Any]]:
    def pooled(x: Any) -> tuple[Any, Any]:
        pool.geometry(x.shape)  # checks the shape
        if x.size == 0:
            raise InvalidArgumentError(f"tensor_in must not be empty, got shape {list(x.shape)}")
        check_depth_windows(pool, x.shape[-1])  # which do not count, as on the CPU
        values, places = _first_largest(x, pool)
        if not include_batch_in_index:
            places = places % (x.size // len(x))
        return values, places.astype(Targmax.numpy_dtype)

    return pooled


def _added_at(places: Any, values: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of this shape, with values added at flat indices; those that lie outside are dropped."""
    size = math.prod(shape)
    inside = jnp().where(places < 0, size, places).reshape(-1)
    zeros = jnp().zeros(size, values.dtype)
    return zeros.at[inside].add(values.reshape(-1), mode="drop").reshape(shape)


def _check_pooled(x: Any, y: Any, pool: Pool) -> None:
    check_rank("tensor_in", x, pool.rank)
    check_rank("tensor_out", y, pool.rank)
    check_shape("orig_output", y.shape, pool.output_shape(x.shape))


def _max_pool_grad(x: Any, y: Any, gradient: Any, pool: Pool) -> Any:
    """The gradient of each window for its first largest element."""
    pool.refuse_depth("MaxPoolingGrad")
    _check_pooled(x, y, pool)
    check_shape("grad", gradient.shape, y.shape)
    if not gradient.size:
        return jnp().zeros(x.shape, gradient.dtype)
    geometry = pool.geometry(x.shape)
    if are_apart(geometry):
        return given_to_windows(first_largest_in_windows(x, geometry), gradient, geometry, x.shape)
    return _added_at(_first_largest(x, pool)[1], gradient, x.shape)


def _max_pool_grad_grad(x: Any, y: Any, gradient: Any, pool: Pool) -> Any:
    """For each window, the gradient of its first element that is the maximum; zero without one."""
    pool.refuse_depth("MaxPoolingGradGrad")
    _check_pooled(x, y, pool)
    check_shape("grad", gradient.shape, x.shape)
    if not y.size or not x.size:
        return jnp().zeros(y.shape, gradient.dtype)
    values, places = _first_largest(x, pool)
    taken = gradient.reshape(-1)[places]
    return jnp().where((places >= 0) & (values == y), taken, gradient.dtype.type(0))


def _max_pool_3d_gradient(x: Any, y: Any, gradient: Any, pool: Pool) -> Any:
    """The gradient of each window for all of its elements that are the maximum, as on the CPU."""
    pool.refuse_depth("Pooling")
    _check_pooled(x, y, pool)
    check_shape("grad", gradient.shape, y.shape)
    out = jnp().zeros(x.shape, gradient.dtype)
    zero = gradient.dtype.type(0)
    for _, windows, elements in overlaps(pool.geometry(x.shape), x.shape[1:-1]):
        largest = x[elements] == y[windows]
        out = out.at[elements].add(jnp().where(largest, gradient[windows], zero))
    return out


_Compute = Callable[..., Any]
"""Takes arrays with the channels last, and the Pool."""


def _with_attrs(compute: _Compute, pool_of: Callable[..., Pool]) -> Callable[..., Any]:
    """The kernel of a computation whose windows are attrs."""

    @from_attrs(pool=pool_of)
    def kernel(*, pool: Pool) -> Callable[..., Any]:
        return _in_layout(pool, partial(compute, pool=pool))

    return kernel


def _with_sizes(compute: _Compute) -> Callable[..., Any]:
    """The kernel of a computation whose windows are inputs."""

    def kernel(*, padding: str, data_format: str) -> Callable[..., Any]:
        def computed(*inputs: Any) -> Any:
            *arrays, ksize, strides = inputs
            sizes, steps = sizes_in_tensor(ksize), sizes_in_tensor(strides)
            pool = pool_from_attrs(sizes, steps, padding, data_format=data_format)
            return _in_layout(pool, partial(compute, pool=pool))(*arrays)

        return computed

    return kernel


_VOLUMES = partial(pool_in_layout, rank=5)
for _op, _compute, _pool_of in (
    ("AvgPool", _mean, pool_in_layout),
    ("AvgPool3D", _mean, _VOLUMES),
    ("MaxPool", _max_pool, padded_pool_in_layout),
    ("MaxPool3D", _max_pool_3d, _VOLUMES),
    ("MaxPoolGrad", _max_pool_grad, padded_pool_in_layout),
    ("MaxPoolGradGrad", _max_pool_grad_grad, pool_in_layout),
    ("MaxPool3DGrad", _max_pool_3d_gradient, _VOLUMES),
    ("MaxPool3DGradGrad", _max_pool_grad_grad, _VOLUMES),
):
    register_xla_kernel(_op, factory=True)(_with_attrs(_compute, _pool_of))

for _op, _compute in (
    ("MaxPoolV2", _max_pool),
    ("MaxPoolGradV2", _max_pool_grad),
    ("MaxPoolGradGradV2", _max_pool_grad_grad),
):
    register_xla_kernel(_op, compile_time_constants=["ksize", "strides"], factory=True)(
        _with_sizes(_compute)
    )


@register_xla_kernel("MaxPoolGradWithArgmax", factory=True)
@from_attrs(pool=pool_from_attrs)
def max_pool_grad_with_argmax(
    *, pool: Pool, include_batch_in_index: bool
) -> Callable[[Any, Any, Any], Any]:
    """Indices that lie outside the input are dropped."""

    def gradient_by_input(x: Any, gradient: Any, argmax: Any) -> Any:
        expected = pool.output_shape(x.shape)
        check_depth_windows(pool, x.shape[-1])
        check_shape("grad", gradient.shape, expected)
        check_shape("argmax", argmax.shape, expected)
        if argmax.size and not include_batch_in_index:
            images = np.arange(len(x)).reshape(-1, 1, 1, 1)
            argmax = argmax + images * (x.size // len(x))
        return _added_at(argmax, gradient, x.shape)

    return gradient_by_input
