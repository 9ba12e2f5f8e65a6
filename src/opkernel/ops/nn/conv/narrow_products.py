"""Matrix products of half and bfloat16 that round each partial sum.

TensorFlow does not widen these types in gradients of convolutions and in three-dimensional convolutions.
There Eigen rounds after every term, which shows wherever terms cancel. For columns that fill packets of
8, it rounds the product and then the sum; for the columns left over, it rounds once for both. Here long
sums and single rows are computed in float. Eigen adds them up in several parts, whose number depends on
caches and threads; float is nearest to all of these results.

Source: Eigen src/Core/products/GeneralBlockPanelKernel.h, arch/Default/Half.h.
"""

from collections.abc import Callable

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.ops.kernel_types import NARROW_FLOATS
from opkernel.ops.nn.windows import Array
from opkernel.types import as_dtype

__all__ = ["STEPWISE_LIMIT", "Product", "add_product", "product_for"]

Product = Callable[..., object]
"""`product(a, b, out)`: a product of matrices."""

_PACKET = 8
STEPWISE_LIMIT = 1 << 20
"""Multiplications up to which each is rounded; each takes about 10 ns."""
_LONG_SUM = 256


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
