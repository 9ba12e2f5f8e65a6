"""Sums of products of int32, as TensorFlow's loops over int32 give them: those that overflow wrap around."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opkernel.ops.quantized.conversion import Array, to_int32

__all__ = ["sums_in_float", "wrapped_sums"]

_EXACT_IN_DOUBLE, _EXACT_IN_FLOAT = 2**53, 2**24


def _largest(x: Array) -> int:
    return max(-int(x.min(initial=0)), int(x.max(initial=0)))


def wrapped_sums(
    product: Callable[[Array, Array], Array], left: Array, right: Array, terms: int
) -> Array:
    """A product of int32 arrays whose elements are sums of `terms` products each.

    Double holds most such sums exactly, and its products are much faster than those of integers.
    """
    if _largest(left) * _largest(right) * terms < _EXACT_IN_DOUBLE:
        sums = product(left.astype(np.float64), right.astype(np.float64))
        return sums.astype(np.int64).astype(np.int32)
    return product(left, right)


def sums_in_float(left: Array, right: Array) -> Array:
    """The product of two int32 matrices, where each partial sum is rounded to a float."""
    sizes = (np.abs(x.astype(np.float64)) for x in (left, right))
    if np.matmul(*sizes).max(initial=0) < _EXACT_IN_FLOAT:
        return wrapped_sums(np.matmul, left, right, len(right))
    sums = np.zeros((len(left), right.shape[1]), np.int32)
    for column, row in zip(left.T, right, strict=True):
        products = np.multiply.outer(column, row).astype(np.float32)
        sums = to_int32(sums.astype(np.float32) + products)
    return sums
