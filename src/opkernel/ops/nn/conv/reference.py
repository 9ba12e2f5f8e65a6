"""Convolutions as their definition says: windows of the input, multiplied by the filters.

These kernels compute a convolution where no provider does, and are the reference for the kernels of
providers. Windows of the input are the rows of a matrix, so that a convolution is one matrix product. The
view with these rows (`windows_of`) copies nothing: each element of the input is in many rows.

Arrays are `[batch, *spatial, channels]`, filters `[*window, in, out]`, with any number of spatial
dimensions. The arguments were checked, and have elements.

Matrix products of half and bfloat16 that round each partial sum.

TensorFlow does not widen these types in gradients of convolutions and in three-dimensional convolutions.
There Eigen rounds after every term, which shows wherever terms cancel. For columns that fill packets of
8, it rounds the product and then the sum; for the columns left over, it rounds once for both. Here long
sums and single rows are computed in float. Eigen adds them up in several parts, whose number depends on
caches and threads; float is nearest to all of these results.

Source: TensorFlow Eigen src/Core/products/GeneralBlockPanelKernel.h, arch/Default/Half.h.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.kernel import allocate
from opkernel.ops.nn.fused_matmul import Epilogue, finished
from opkernel.ops.nn.windows import Geometry, pad, spread, windows_of
from opkernel.ops.registration import NARROW_FLOATS
from opkernel.records import dataclass
from opkernel.types import Array, as_dtype

__all__ = [
    "REFERENCE",
    "STEPWISE_LIMIT",
    "Algorithms",
    "correlate",
    "depthwise",
    "depthwise_by_filters",
    "depthwise_by_input",
    "product_for",
]


Product = Callable[..., object]
"""`product(a, b, out)`: a product of matrices."""

_PACKET = 8
STEPWISE_LIMIT = 1 << 20
"""Multiplications up to which each is rounded; each takes about 10 ns."""
_LONG_SUM = 256
_AT_ONCE = 1 << 20
"""So many elements, of some channels, are computed together."""


def add_product(total: Array, a: Array, b: Array, dtype: np.dtype[np.generic]) -> Array:
    """`total + a * b`, all of them float or wider, rounded once to a type."""
    sum_: Array = (total + a * b).astype(dtype, copy=False).astype(total.dtype, copy=False)
    return sum_


def _narrow_matmul(a: Array, b: Array, out: Array) -> None:
    """`out = a @ b`."""
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    rows, terms = a.shape
    if rows == 1 or terms > _LONG_SUM or out.size * terms > STEPWISE_LIMIT:
        out[...] = wide_a @ wide_b
        return
    packed = out.shape[1] // _PACKET * _PACKET
    total = np.zeros(out.shape, np.float32)
    for left, right in in_time(zip(wide_a.T, wide_b, strict=True), SLOW):
        term = np.multiply.outer(left, right)
        term[:, :packed] = term[:, :packed].astype(out.dtype)
        total = (total + term).astype(out.dtype).astype(np.float32)
    out[...] = total


def product_for(dtype: np.dtype[np.generic], product: Product = np.matmul) -> Product:
    """The product of matrices of a type: `product` for the types that TensorFlow does not round."""
    if dtype.char in "fd":  # to look the type up takes longer than small products
        return product
    return _narrow_matmul if as_dtype(dtype) in NARROW_FLOATS else product


class Forward(Protocol):
    """Computes a convolution."""

    def __call__(
        self, x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None = None, /
    ) -> Array:
        """The convolution `[batch, *output, out]`, then the epilogue."""


ByInput = Callable[[Sequence[int], Array, Array, Geometry], Array]
"""The gradient by an input of a shape, from the filters and the gradient by the output."""

ByFilters = Callable[[Array, Sequence[int], Array, Geometry], Array]
"""The gradient by filters of a shape, from the input and the gradient by the output."""


@dataclass(frozen=True)
class Algorithms:
    """A way to compute convolutions and their gradients.

    Attributes:
        convolve: A convolution, in groups where the filters have fewer channels than the input.
        by_input: Its gradient by the input.
        by_filters: Its gradient by the filters.
        depthwise: A convolution of each channel by itself, filters `[*window, channels, multiplier]`.
        depthwise_by_input: Its gradient by the input.
        depthwise_by_filters: Its gradient by the filters.
        prepares: Whether `convolve` asks for what is prepared of the filters.
    """

    convolve: Forward
    by_input: ByInput
    by_filters: ByFilters
    depthwise: Forward
    depthwise_by_input: ByInput
    depthwise_by_filters: ByFilters
    prepares: bool = False


def convolve(
    x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None = None, /
) -> Array:
    """The windows as rows, times the filters as a matrix."""
    groups = x.shape[-1] // filters.shape[-2]
    if groups > 1:
        pairs = zip(np.split(x, groups, -1), np.split(filters, groups, -1), strict=True)
        parts = [convolve(channels, some, geometry) for channels, some in pairs]
        return finished(np.concatenate(parts, -1), epilogue)
    result = _product(_rows(x, geometry), filters.reshape(-1, filters.shape[-1]))
    return finished(result.reshape(len(x), *geometry.output, -1), epilogue)


def by_input(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    """The gradient by the input: each element gets the sum of its shares in the windows that hold it."""
    depth = filters.shape[-1]
    padded = _zeros(geometry.padded_shape(input_shape), gradient.dtype)
    shares = _product(gradient.reshape(-1, depth), filters.reshape(-1, depth).T)
    windows = windows_of(padded, geometry)
    shares = shares.reshape(windows.shape)
    for offset in in_time(reversed(list(np.ndindex(*geometry.window))), SLOW):
        windows[(..., *offset, slice(None))] += shares[(..., *offset, slice(None))]
    return padded[geometry.inner(input_shape)]


def by_filters(x: Array, filter_shape: Sequence[int], gradient: Array, geometry: Geometry) -> Array:
    """The windows as columns, times the gradient: of images; of volumes as TensorFlow does it."""
    if len(geometry.window) == 3:
        return correlate(x, filter_shape, gradient, geometry)
    rows = gradient.reshape(-1, filter_shape[-1])
    return _product(_rows(x, geometry).T, rows).reshape(filter_shape)


def correlate(x: Array, filter_shape: Sequence[int], gradient: Array, geometry: Geometry) -> Array:
    """The gradient by filters as a sum over the elements of the input, not over the windows.

    The same, unless there are values that are not finite: here each input element is multiplied by
    each filter element, by zero where no window has the two.
    """
    *window, channels, depth = filter_shape
    laid_out, places = spread(gradient, geometry, x.shape[1:-1])
    found = _product(x.reshape(-1, channels).T, _rows(laid_out, places))
    turned = np.flip(found.reshape(channels, *window, depth), tuple(range(1, len(window) + 1)))
    return np.moveaxis(turned, 0, -2)


def _rows(x: Array, geometry: Geometry) -> Array:
    """The windows of an input as rows `[window * channels]`."""
    windows = windows_of(pad(x, geometry), geometry)
    rows = allocate(windows.shape, as_dtype(x.dtype))
    np.copyto(rows, windows)
    return rows.reshape(len(x) * math.prod(geometry.output), -1)


def _product(a: Array, b: Array) -> Array:
    result = allocate((len(a), b.shape[1]), as_dtype(a.dtype))
    product_for(a.dtype)(a, b, out=result)
    return result


def _zeros(shape: Sequence[int], dtype: np.dtype[np.generic]) -> Array:
    zeros = allocate(shape, as_dtype(dtype))
    zeros.fill(0)
    return zeros


def depthwise(
    x: Array, filters: Array, geometry: Geometry, epilogue: Epilogue | None = None, /
) -> Array:
    """One element of the window after the other, each sum rounded to the type."""
    return finished(_depthwise(x, filters, geometry, list(np.ndindex(*geometry.window))), epilogue)


def _depthwise(
    x: Array, filters: Array, geometry: Geometry, offsets: Sequence[tuple[int, ...]]
) -> Array:
    channels, multiplier = filters.shape[-2:]
    out = _zeros((len(x), *geometry.output, channels, multiplier), x.dtype)
    at_once = max(_AT_ONCE * channels // max(out.size, 1), 1)
    for start in range(0, channels if out.size else 0, at_once):
        some = slice(start, start + at_once)
        out[..., some, :] = _of_channels(x[..., some], filters[..., some, :], geometry, offsets)
    return out.reshape(*out.shape[:-2], channels * multiplier)


def _of_channels(
    x: Array, filters: Array, geometry: Geometry, offsets: Sequence[tuple[int, ...]]
) -> Array:
    wide = np.float32 if as_dtype(x.dtype) in NARROW_FLOATS else x.dtype
    windows = windows_of(pad(x, geometry), geometry)
    total = _zeros((len(x), *geometry.output, *filters.shape[-2:]), np.dtype(wide))
    for offset in in_time(offsets, SLOW):
        place: tuple[Any, ...] = (..., *offset, slice(None))
        seen = windows[place].astype(wide)[..., np.newaxis]
        total = add_product(total, seen, filters[offset].astype(wide), x.dtype)
    return total


def depthwise_by_input(
    input_shape: Sequence[int], filters: Array, gradient: Array, geometry: Geometry
) -> Array:
    """The convolution of the gradient, spread out, with the filters turned round."""
    *window, channels, multiplier = filters.shape
    laid_out, places = spread(gradient, geometry, input_shape[1:-1])
    turned = filters[::-1, ::-1].reshape(*window, channels * multiplier, 1)
    shares = _depthwise(laid_out, turned, places, list(np.ndindex(*window))[::-1])
    shares = shares.reshape(*input_shape, multiplier)
    return sum((shares[..., i] for i in range(1, multiplier)), shares[..., 0])


def depthwise_by_filters(
    x: Array, filter_shape: Sequence[int], gradient: Array, geometry: Geometry
) -> Array:
    """The sum over all windows; of half and bfloat16 one window after the other, while these are few."""
    windows = windows_of(pad(x, geometry), geometry)
    gradient = gradient.reshape(*gradient.shape[:-1], *filter_shape[2:])
    is_narrow = as_dtype(x.dtype) in NARROW_FLOATS
    if is_narrow:
        windows, gradient = windows.astype(np.float32), gradient.astype(np.float32)
    if not is_narrow or math.prod(filter_shape) * math.prod(gradient.shape[:3]) > STEPWISE_LIMIT:
        sums: Array = np.einsum("nhwijc,nhwcm->ijcm", windows, gradient)
        return sums.astype(x.dtype, copy=False)
    out = np.zeros(filter_shape, x.dtype)
    for seen, gradients in zip(windows, gradient, strict=True):
        total = np.zeros(filter_shape, np.float32)
        for place in in_time(np.ndindex(*geometry.output), SLOW):
            total = add_product(total, seen[place][..., np.newaxis], gradients[place], x.dtype)
        out += total.astype(x.dtype)
    return out


REFERENCE = Algorithms(
    convolve, by_input, by_filters, depthwise, depthwise_by_input, depthwise_by_filters
)
"""As the definition says."""
