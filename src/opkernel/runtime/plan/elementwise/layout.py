"""How arrays of certain shapes are cut into tiles.

The shape of the result is taken as rows: its leading axes become one, of which a tile has some
elements, and its other axes are the shape of a row. An operand is cut like the result, or is the same
for all tiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.records import dataclass

TILE = 1 << 16
"""Elements of a tile at least: of float32, some such tiles fit into a processor's own cache."""

_LARGEST_TILE = 4 * TILE
"""Threads hand the interpreter on between two calls of ufuncs: the time lost there must not count."""

_TILES = 8

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """The result as rows.

    Attributes:
        count: How many rows there are.
        row: The shape of one.
        per_tile: How many a tile has.
    """

    count: int
    row: Shape
    per_tile: int


@dataclass(frozen=True, slots=True)
class Cut:
    """How an operand is seen from tiles.

    Attributes:
        shape: The shape that it is given.
        has_rows: Whether each tile has its own rows of it.
    """

    shape: Shape
    has_rows: bool

    def view(self, array: Any) -> Any:
        """The operand in that shape; None if that needs a copy."""
        if array.shape == self.shape:
            return array
        contiguous = array.flags.c_contiguous
        return array.reshape(self.shape) if contiguous or not self.has_rows else None


def choose_rows(shape: Shape, operands: Sequence[Shape]) -> tuple[Rows, list[Cut]] | None:
    """Rows for a result, with as many leading axes as the operands allow; None where none will do."""
    tile = min(max(TILE, math.prod(shape) // _TILES), _LARGEST_TILE)
    fits = [a for a in range(len(shape)) if math.prod(shape[a + 1 :]) <= _LARGEST_TILE]
    best = next((a for a in fits if math.prod(shape[a + 1 :]) <= tile), None)
    for axis in reversed([a for a in fits if best is None or a <= best]):
        cuts = [_cut(shape, operand, axis) for operand in operands]
        found = [cut for cut in cuts if cut is not None]
        if len(found) == len(cuts):
            row = shape[axis + 1 :]
            per_tile = max(1, tile // math.prod(row))
            return Rows(math.prod(shape[: axis + 1]), row, per_tile), found
    return None


def _cut(shape: Shape, operand: Shape, axis: int) -> Cut | None:
    """How an operand is seen where axes up to `axis` are those of rows; None where it cannot be."""
    whole = (1,) * (len(shape) - len(operand)) + operand
    leading, row = whole[: axis + 1], whole[axis + 1 :]
    if leading == shape[: axis + 1]:
        return Cut((math.prod(leading), *row), True)
    if math.prod(leading) == 1:
        return Cut(_without_leading_ones(row), False)
    return None


def _without_leading_ones(shape: Shape) -> Shape:
    first = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


def broadcast(shapes: Sequence[Shape]) -> Shape | None:
    """The shape that some shapes are broadcast to; None where they do not fit."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None
