"""Products of few rows by matrices that stay, which are stored in panels.

Before it multiplies, BLAS copies both matrices into an order of its own; for few rows that takes as
long as the product, or longer. The kernels of `small_kernels` take the matrices as they lie. So the
matrix is stored once more, as panels `[splits, panels, terms / splits, width]` that make products of
the size that they are for; where the sums are long they are split, and the partial sums added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.kernel import scratch
from opkernel.providers.blas import BLAS
from opkernel.providers.blas.small_kernels import LARGEST, has_small_kernels

Array = np.ndarray[Any, Any]

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
