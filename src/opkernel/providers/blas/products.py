"""Matrix products on several threads.

A large product is cut along its rows or its columns, whichever there are more of, and `shard` has
threads compute the parts. Small ones are left to one thread: waking a second takes as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.kernel import allocate, cut, intra_op_threads, one_blas_thread, shard
from opkernel.ops.nn.epilogue import Epilogue
from opkernel.providers.blas.epilogue import finish
from opkernel.providers.blas.panels import multiply_by_panels, panels_of, parts_of_panels
from opkernel.providers.blas.small_kernels import multiply
from opkernel.types import as_dtype

Array = np.ndarray[Any, Any]

SMALL_PRODUCT = 1 << 18
_TINY_WITH_VECTOR = 9000
"""Multiplications up to which OpenBLAS uses one thread; fewer where a matrix is a vector."""
_SMALL = 20 << 20
"""Multiplications of floats, about 200 us of one thread, up to which a second does not pay.

It takes long to wake, and finds nothing in its own cache.
"""
_PART = 1 << 28
"""Multiplications in a part at most: a thread that is held up holds up no more than that."""
_LANES = 64
"""Parts begin at multiples of this: the width of a register, or of several."""


def _is_tiny(rows: int, columns: int, multiplications: int) -> bool:
    """Whether OpenBLAS leaves a product to one thread by itself."""
    return multiplications <= (SMALL_PRODUCT if rows > 1 < columns else _TINY_WITH_VECTOR)


def threads_for(multiplications: int) -> int:
    """How many parts a product of so many multiplications should be cut into.

    One where BLAS cannot be held to one thread: then the threads are its own business.
    """
    threads = intra_op_threads()
    if multiplications <= _SMALL or not one_blas_thread.holds:
        return 1
    return threads * max(1, round(multiplications / (threads * _PART)))


def product(a: Array, b: Array, epilogue: Epilogue | None = None) -> Array:
    """The product of two matrices, then the epilogue.

    Args:
        a: `[m, k]`.
        b: `[k, n]`; panels are made of it if it stays from step to step.
        epilogue: the steps applied to the product.
    """
    (rows, terms), columns = a.shape, b.shape[1]
    count = rows * terms * columns
    if count <= SMALL_PRODUCT:
        result = small_product(a, b, count)
        if epilogue is not None:
            finish(result, (slice(None), slice(None)), epilogue)
        return result
    out = allocate((rows, columns), as_dtype(a.dtype))
    panels = panels_of(b, rows)
    if panels is not None:
        _product_by_panels(a, panels, out, epilogue)
        return out

    def compute(where: tuple[slice, slice]) -> None:
        part = out[where]
        multiply(a[where[0]], b[:, where[1]], part)
        finish(part, where, epilogue)

    shard(compute, _parts(rows, columns, threads_for(count)))
    return out


def _product_by_panels(a: Array, panels: Array, out: Array, epilogue: Epilogue | None) -> None:
    def compute(part: tuple[Array, slice]) -> None:
        some, columns = part
        multiply_by_panels(a, some, out[:, columns])
        finish(out[:, columns], (slice(0, len(out)), columns), epilogue)

    shard(compute, parts_of_panels(panels, threads_for(out.size * a.shape[1])))


def small_product(a: Array, b: Array, multiplications: int) -> Array:
    """The product of two matrices with at most `SMALL_PRODUCT` multiplications."""
    if one_blas_thread.blocks or _is_tiny(len(a), b.shape[1], multiplications):
        result: Array = a.dot(b) if a.dtype.kind in "fc" else np.matmul(a, b)  # begins later
        return result
    with one_blas_thread():
        return small_product(a, b, multiplications)


def _parts(rows: int, columns: int, count: int) -> list[tuple[slice, slice]]:
    """About so many parts of a matrix, cut along the longer dimension."""
    if columns >= rows:
        return [(slice(0, rows), piece) for piece in cut(columns, count, _LANES)]
    return [(piece, slice(0, columns)) for piece in cut(rows, count, _LANES)]


def batch_product(x: Array, y: Array) -> Array:
    """The products of matrices `[..., m, k]` by `[..., k, n]`, their batches broadcast."""
    if y.ndim == 2 and x.ndim > 2 and x.flags.c_contiguous:
        return product(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[-1])
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    shape = (*batch, x.shape[-2], y.shape[-1])
    count = math.prod(shape) * x.shape[-1]
    if _is_tiny(shape[-2], shape[-1], count):
        small: Array = np.matmul(x, y)
        return small
    if math.prod(batch) == 1:
        matrix = product(x.reshape(x.shape[-2:]), y.reshape(y.shape[-2:]))
        return matrix.reshape(shape)
    out = allocate(shape, as_dtype(x.dtype))
    if count > _PART * math.prod(batch):  # each of them is cut
        left, right = (np.broadcast_to(one, (*batch, *one.shape[-2:])) for one in (x, y))
        for at in np.ndindex(batch):
            out[at] = product(left[at], right[at])
        return out
    axis = max(range(len(batch)), key=batch.__getitem__)
    from_end = axis - len(shape)

    def part(piece: slice) -> None:
        np.matmul(
            _along(x, from_end, piece), _along(y, from_end, piece), out=_along(out, from_end, piece)
        )

    shard(part, cut(batch[axis], threads_for(count)))
    return out


def _along(array: Array, axis: int, piece: slice) -> Array:
    """A piece of an array along an axis, which counts from the end; the whole array if it is broadcast there."""
    if array.ndim < -axis or array.shape[axis] == 1:
        return array
    index: Sequence[slice] = [slice(None)] * (array.ndim + axis)
    return array[(*index, piece)]
