"""Means and maxima over windows, and their gradients, by `lax.reduce_window`.

Maxima that are given back with their place, or whose gradient is asked for, are reduced together with their flat
index. Layouts with the channels first are turned, which the compiler leaves out again.

Source: TensorFlow compiler/tf2xla/kernels/pooling_ops.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.ops.kernel_types import NARROW_FLOATS
from opkernel.ops.nn.geometry import check_rank, check_shape, sizes_from_tensor
from opkernel.ops.nn.max_pool import check_depth_windows
from opkernel.ops.nn.pooling import (
    Pool,
    padded_pool_in_layout,
    pool_from_attrs,
    pool_in_layout,
    sizes_in_tensor,
)
from opkernel.ops.nn.window_reductions import lowest, window_sizes
from opkernel.ops.nn.windows import Geometry, overlaps
from opkernel.types import DataType, as_dtype
from opkernel.xla.jax_numpy import jax, jnp, lax
from opkernel.xla.kernels.window_elements import (
    are_apart,
    first_largest_in_windows,
    given_to_windows,
)
from opkernel.xla.register_kernel import register_xla_kernel


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
    geometry = pool.geometry(x.shape)
    wide = x.astype(np.float32) if as_dtype(x.dtype) in NARROW_FLOATS else x
    zero = np.zeros((), wide.dtype)
    sums = lax().reduce_window(wide, zero, lax().add, **_windows(geometry))
    counts: Any = math.prod(geometry.window)
    if geometry.is_padded:
        counts = window_sizes(geometry, x.shape[1:-1])
    return (sums / np.asarray(counts, wide.dtype)).astype(x.dtype)


def _avg_pool(rank: int) -> Callable[..., Any]:
    @from_attrs(pool=partial(pool_in_layout, rank=rank))
    def avg_pool(*, pool: Pool) -> Callable[[Any], Any]:
        pool.refuse_depth("Pooling")
        return _in_layout(pool, lambda x: _mean(x, pool))

    return avg_pool


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
            compute = _in_layout(pool, lambda gradient: _mean_gradient(sizes, gradient, pool))
            return compute(gradient)

        return gradient_by_input

    return avg_pool_grad


for _suffix, _rank in (("", 4), ("3D", 5)):
    register_xla_kernel(f"AvgPool{_suffix}", factory=True)(_avg_pool(_rank))
    register_xla_kernel(
        f"AvgPool{_suffix}Grad", compile_time_constants=["orig_input_shape"], factory=True
    )(_avg_pool_grad(_rank))


def _largest(x: Any, pool: Pool) -> Any:
    """The maxima; NaN counts as absent, and an empty window has the least finite value."""
    geometry = pool.geometry(x.shape)
    least = np.asarray(lowest(x.dtype), x.dtype)
    if as_dtype(x.dtype).is_floating:
        x = jnp().where(jnp().isnan(x), least, x)
    return lax().reduce_window(x, least, lax().max, **_windows(geometry, pool.depth))


def _max_pool_of(x: Any, pool: Pool) -> Any:
    check_rank("tensor_in", x, pool.rank)
    check_depth_windows(pool, x.shape[-1])
    return _largest(x, pool)


@register_xla_kernel("MaxPool", factory=True)
@from_attrs(pool=padded_pool_in_layout)
def max_pool(*, pool: Pool) -> Callable[[Any], Any]:
    return _in_layout(pool, lambda x: _max_pool_of(x, pool))


@register_xla_kernel("MaxPoolV2", compile_time_constants=["ksize", "strides"], factory=True)
def max_pool_v2(*, padding: str, data_format: str) -> Callable[[Any, Any, Any], Any]:
    def pooled(x: Any, ksize: Any, strides: Any) -> Any:
        sizes, steps = sizes_in_tensor(ksize), sizes_in_tensor(strides)
        pool = pool_from_attrs(sizes, steps, padding, data_format=data_format)
        return _in_layout(pool, lambda x: _max_pool_of(x, pool))(x)

    return pooled


@register_xla_kernel("MaxPool3D", factory=True)
@from_attrs(pool=partial(pool_in_layout, rank=5))
def max_pool_3d(*, pool: Pool) -> Callable[[Any], Any]:
    pool.refuse_depth("Pooling")
    return _in_layout(pool, lambda x: _max_pool_of(x, pool))


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


_Gradient = Callable[[Any, Any, Any, Pool], Any]


def _with_attrs(compute: _Gradient, rank: int) -> Callable[..., Any]:
    """The kernel of a gradient whose windows are attrs."""

    @from_attrs(pool=partial(pool_in_layout, rank=rank))
    def kernel(*, pool: Pool) -> Callable[[Any, Any, Any], Any]:
        return _in_layout(pool, lambda x, y, gradient: compute(x, y, gradient, pool))

    return kernel


def _with_sizes(compute: _Gradient) -> Callable[..., Any]:
    """The kernel of a gradient whose windows are inputs."""

    def kernel(*, padding: str, data_format: str) -> Callable[..., Any]:
        def computed(x: Any, y: Any, gradient: Any, ksize: Any, strides: Any) -> Any:
            sizes, steps = sizes_in_tensor(ksize), sizes_in_tensor(strides)
            pool = pool_from_attrs(sizes, steps, padding, data_format=data_format)
            inner = _in_layout(pool, lambda x, y, gradient: compute(x, y, gradient, pool))
            return inner(x, y, gradient)

        return computed

    return kernel


@register_xla_kernel("MaxPoolGrad", factory=True)
@from_attrs(pool=padded_pool_in_layout)
def max_pool_grad(*, pool: Pool) -> Callable[[Any, Any, Any], Any]:
    return _in_layout(pool, lambda x, y, gradient: _max_pool_grad(x, y, gradient, pool))


for _op, _compute, _rank in (
    ("MaxPoolGradGrad", _max_pool_grad_grad, 4),
    ("MaxPool3DGrad", _max_pool_3d_gradient, 5),
    ("MaxPool3DGradGrad", _max_pool_grad_grad, 5),
):
    register_xla_kernel(_op, factory=True)(_with_attrs(_compute, _rank))

for _op, _compute in (
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
