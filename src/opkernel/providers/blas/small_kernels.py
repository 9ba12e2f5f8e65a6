"""Products by small matrices, block by block.

Before it multiplies, BLAS copies both matrices into an order of its own; where one of them is small that
takes long beside the product. For products of up to 10**6 multiplications OpenBLAS has, on processors
with AVX-512, kernels that take the matrices as they lie. So a tall matrix is multiplied by so many rows
at a time as make products of that size.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from opkernel.kernel import openblas_functions, scratch

Array = np.ndarray[Any, Any]

LARGEST = 10**6
"""Multiplications up to which those kernels are used."""
_CORES = (b"SkylakeX", b"Cooperlake", b"SapphireRapids")

_TYPES = (np.dtype(np.float32), np.dtype(np.float64))
_NARROW = 64
_SMALL_BYTES = 48 << 10
"""A factor that is neither narrow nor as small as this (the fastest cache) is better copied."""
_MULTIPLE = 8
_LEAST_ROWS = 16
_LEAST_ADDED = 96
"""Rows at a time from which on adding up their sums takes little of the time."""
_MOST_SUMS = 1 << 20


@cache
def has_small_kernels() -> bool:
    """Whether NumPy's BLAS is an OpenBLAS that has such kernels."""
    functions = openblas_functions("get_corename")
    if functions is None:
        return False
    (core_name,) = functions
    core_name.restype = ctypes.c_char_p
    return core_name() in _CORES


def multiply(a: Array, b: Array, out: Array) -> None:
    """Compute the product of two matrices, some rows of `a` at a time where `b` is small."""
    rows = _rows_at_a_time(a, b)
    if not rows:
        np.matmul(a, b, out=out)
        return
    if b.strides[1] != b.itemsize:  # such ones the small kernels are slow with
        b = np.ascontiguousarray(b)
    whole = len(a) // rows * rows
    np.matmul(_blocks(a[:whole], rows), b, out=_blocks(out[:whole], rows))
    if whole < len(a):
        np.matmul(a[whole:], b, out=out[whole:])


def _rows_at_a_time(a: Array, b: Array) -> int:
    """The rows of `a` to multiply with `b` at a time; 0 for all."""
    size, columns = b.size, b.shape[1]
    if len(a) * size <= LARGEST or columns == 1 or a.dtype not in _TYPES:
        return 0
    if columns > _NARROW and size * b.itemsize > _SMALL_BYTES:
        return 0
    rows = LARGEST // size // _MULTIPLE * _MULTIPLE
    return rows if rows >= _LEAST_ROWS and has_small_kernels() else 0


def multiply_transposed(a: Array, b: Array, out: Array) -> None:
    """Compute `a.T @ b`, as the sum over some rows at a time if that is faster."""
    rows = LARGEST // max(out.size, 1) // _MULTIPLE * _MULTIPLE
    count = len(a) // rows if rows >= _LEAST_ADDED and a.dtype in _TYPES else 0
    if not count or count * out.size > _MOST_SUMS or not has_small_kernels():
        np.matmul(a.T, b, out=out)
        return
    whole = count * rows
    sums = scratch("sums of blocks", (count, *out.shape), out.dtype)
    np.matmul(_blocks(a[:whole], rows).swapaxes(1, 2), _blocks(b[:whole], rows), out=sums)
    np.add.reduce(sums, 0, out=out)
    if whole < len(a):
        np.add(out, a[whole:].T @ b[whole:], out=out)


def _blocks(matrix: Array, rows: int) -> Array:
    """A view `[blocks, rows, columns]` of a matrix."""
    return matrix.reshape(-1, rows, matrix.shape[1])
