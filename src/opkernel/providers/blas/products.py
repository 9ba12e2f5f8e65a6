"""Matrix products on several threads, block by block, and by matrices that stay, which are stored in panels.

A large product is cut along its rows or its columns, whichever there are more of, and `shard` has threads compute the
parts. Small ones are left to one thread: waking a second takes as long.

Before it multiplies, BLAS copies both matrices into an order of its own; where one of them is small that takes long beside
the product. For products of up to 10**6 multiplications OpenBLAS has, on processors with AVX-512, kernels that take the
matrices as they lie. So a tall matrix is multiplied by so many rows at a time as make products of that size.

For few rows the copy takes as long as the product, or longer. So a matrix that stays is stored once more, as panels
`[splits, panels, terms / splits, width]` that make products of the size that these kernels are for; where the sums are
long they are split, and the partial sums added up.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from opkernel.kernel import (
    allocate,
    cut,
    intra_op_threads,
    one_blas_thread,
    openblas_functions,
    scratch,
    shard,
)
from opkernel.ops.nn.fused_matmul import Epilogue
from opkernel.providers.blas import BLAS
from opkernel.providers.blas.epilogue import finish
from opkernel.types import Array, as_dtype

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


_ROWS = range(2, 65)
"""The numbers of rows for which panels pay; with more rows the copies matter less."""
_WIDTHS = (64, 32)
_PARTS = 4
"""For each thread."""


def layout_of_panels(rows: int, terms: int, columns: int) -> tuple[int, int] | None:
    """How often sums are split, and the panels' width; None where panels do not pay."""
    if rows not in _ROWS or rows * terms * columns <= LARGEST or not has_small_kernels():
        return None
    widths = [width for width in _WIDTHS if columns % width == 0]
    for width in widths:
        if rows * terms * width <= LARGEST:
            return 1, width
    least = -(-rows * terms * _WIDTHS[-1] // LARGEST)
    splits = next((n for n in range(least, 2 * least) if terms % n == 0), None)
    return (splits, _WIDTHS[-1]) if widths and splits is not None else None


def to_panels(matrix: Array, splits: int, width: int) -> Array:
    """The panels of matrices `[..., terms, columns]`: `[..., splits, panels, terms / splits, width]`."""
    *outer, terms, columns = matrix.shape
    parts = matrix.reshape(*outer, splits, terms // splits, columns // width, width)
    return np.array(parts.swapaxes(-2, -3), order="C")  # a copy: the matrix may be changed


def _panels(weights: Array, splits: int, width: int) -> Array:
    """The panels of weights, taken as a matrix with their last dimension's columns."""
    return to_panels(weights.reshape(-1, weights.shape[-1]), splits, width)


def panels_of(weights: Array, rows: int) -> Array | None:
    """The panels of weights, taken as a matrix with their last dimension's columns.

    Args:
        weights: an operand as a kernel gets it.
        rows: the number of rows of the matrix that is to be multiplied by it.

    Returns:
        None where panels do not pay, or the weights may be others in each step, or are of another type
        than float.
    """
    if weights.dtype.char != "f" or rows not in _ROWS:
        return None
    columns = weights.shape[-1]
    layout = layout_of_panels(rows, weights.size // columns, columns)
    panels: Array | None = None if layout is None else BLAS.prepared((_panels, *layout), weights)
    return panels


def parts_of_panels(panels: Array, count: int) -> list[tuple[Array, slice]]:
    """Panels in parts for so many threads, and the columns of the product that each part gives.

    Several for each thread: until the second one is awake, the first has done some of them. A single
    panel, which is the whole matrix, is cut into narrower ones.
    """
    number, width = panels.shape[-3], panels.shape[-1]
    if number == 1:
        step = -(-width // (16 * count)) * 16
        cuts = [slice(at, min(at + step, width)) for at in range(0, width, step)]
        return [(panels[..., columns], columns) for columns in cuts]
    step = -(-number // (_PARTS * count if count > 1 else 1))
    return [
        (panels[..., at : at + step, :, :], slice(at * width, min(at + step, number) * width))
        for at in range(0, number, step)
    ]


def multiply_by_panels(a: Array, panels: Array, out: Array) -> None:
    """Compute the products of matrices by panels, which may be some of them.

    Args:
        a: `[..., rows, terms]`.
        panels: `[..., splits, panels, terms / splits, width]`.
        out: `[..., rows, panels * width]`.
    """
    splits, _, terms, width = panels.shape[-4:]
    if splits == 1:
        panels = panels[..., 0, :, :, :]
        np.matmul(a[..., np.newaxis, :, :], panels, out=_in_panels(out, width))
        return
    *outer, rows, _ = a.shape
    parts = a.reshape(*outer, rows, splits, 1, terms).swapaxes(-4, -3).swapaxes(-3, -2)
    sums = scratch("partial sums", (*outer, splits, *out.shape[-2:]), out.dtype)
    np.matmul(parts, panels, out=_in_panels(sums, width))
    np.add.reduce(sums, -3, out=out)


def _in_panels(matrix: Array, width: int) -> Array:
    """A view of matrices `[..., rows, columns]` as `[..., panels, rows, width]`."""
    return matrix.reshape(*matrix.shape[:-1], -1, width).swapaxes(-2, -3)
