"""The scatter ops on variables and rows: the parts of a tensor along its first dimension.

Source: TensorFlow core/kernels/scatter_functor.h, scatter_op.cc, resource_variable_ops.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.ops.array.scatter import ScatterAt, max_at, min_at, set_at
from opkernel.types import TensorShape

__all__ = ["SCATTER_AT", "check_indices", "check_rank", "rank_error", "scatter_rows", "subtract_at"]


def subtract_at(params: Any, rows: Any, updates: Any) -> None:
    """Truth values minus each other are true where they differ, as in C++."""
    subtract = np.logical_xor if params.dtype == np.bool_ else np.subtract
    subtract.at(params, rows, updates)


def divide_at(params: Any, rows: Any, updates: Any) -> None:
    """Integers are divided as in C++, towards zero.

    Raises:
        InvalidArgumentError: an integer is divided by zero.
    """
    if params.dtype.kind not in "iu":
        np.divide.at(params, rows, updates)
        return
    if not updates.all():
        raise InvalidArgumentError("Integer division by zero")
    unsigned = np.dtype(f"u{params.dtype.itemsize}")
    magnitudes, negative = np.abs(params).view(unsigned), params < 0
    np.floor_divide.at(magnitudes, rows, np.abs(updates).view(unsigned))
    np.logical_xor.at(negative, rows, updates < 0)
    quotients = magnitudes.view(params.dtype)
    params[...] = np.where(negative, -quotients, quotients)


SCATTER_AT: dict[str, ScatterAt] = {
    "Add": np.add.at,
    "Div": divide_at,
    "Max": max_at,
    "Min": min_at,
    "Mul": np.multiply.at,
    "Sub": subtract_at,
    "Update": set_at,
}
"""The update of rows of a tensor by each op, by the end of the op's name."""


def scatter_rows(scatter_at: ScatterAt, params: Any, indices: Any, updates: Any) -> None:
    """Change rows of `params`, which is contiguous and the caller's own.

    Args:
        scatter_at: Changes rows of a matrix.
        params: The tensor.
        indices: The rows to change.
        updates: A row for each index, of at least as many elements; or one scalar for all.

    Raises:
        InvalidArgumentError: rows are too short, or an index is bad; what stands before it is done.
    """
    if indices.size == 0 or params.size == 0:
        check_indices(indices, len(params))
        return
    flat, matrix = indices.reshape(-1), params.reshape((len(params), -1))
    bad = (flat < 0) | (flat >= len(params))
    count = int(np.argmax(bad)) if bad.any() else flat.size
    rows = updates.reshape((flat.size, -1))[:count] if updates.ndim else updates
    if rows.ndim and rows.shape[1] != matrix.shape[1]:
        _scatter_other_rows(scatter_at, matrix, flat[:count], rows)
    else:
        scatter_at(matrix, flat[:count], rows)
    check_indices(indices, len(params))


def _scatter_other_rows(scatter_at: ScatterAt, matrix: Any, indices: Any, rows: Any) -> None:
    """Scatter rows that are longer than the tensor's rows; their further elements do not count.

    A row that is put in the place of another one, though, goes on into the next row.

    Raises:
        InvalidArgumentError: the rows are shorter.
    """
    width, length = matrix.shape[1], rows.shape[1]
    if length < width:
        raise InvalidArgumentError(
            f"Rows of {length} elements cannot update rows of {width} elements"
        )
    if scatter_at is not set_at:
        scatter_at(matrix, indices, rows[:, :width])
        return
    places = indices.astype(np.int64)[:, None] * width + np.arange(length)
    inside = places < matrix.size
    matrix.reshape(-1)[places[inside]] = rows[inside]


def check_indices(indices: Any, limit: int, shown: int | None = None) -> None:
    """Raise InvalidArgumentError unless all `indices` are in [0, limit); the message has `shown` as the limit."""
    bad = (indices < 0) | (indices >= limit)
    if bad.any():
        at = np.unravel_index(np.argmax(bad), bad.shape)
        place = f"[{','.join(map(str, at))}]" if at else ""
        raise InvalidArgumentError(
            f"indices{place} = {np.asarray(indices)[at]} is not in "
            f"[0, {limit if shown is None else shown})"
        )


def check_rank(params: Any, indices: Any, updates: Any) -> None:
    """Raise InvalidArgumentError unless updates may be rows for the indices, or one scalar."""
    if updates.ndim and updates.ndim != indices.ndim + params.ndim - 1:
        raise rank_error(params, indices, updates)


def rank_error(params: Any, indices: Any, updates: Any) -> InvalidArgumentError:
    """The error for updates that do not fit."""
    updates_shape, indices_shape, params_shape = (
        TensorShape(tensor.shape) for tensor in (updates, indices, params)
    )
    return InvalidArgumentError(
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
        f"updates.shape {updates_shape}, indices.shape {indices_shape}, "
        f"params.shape {params_shape}"
    )
