"""Loops that search sorted rows for values."""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.kernel import shard
from opkernel.ops.array import unique_and_bounds as reference
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import Loop, loop, part_of_loops
from opkernel.types import Array, DataType

_TYPES = (DataType.DT_FLOAT, DataType.DT_DOUBLE, DataType.DT_INT32, DataType.DT_INT64)
_AT_ONCE = 1 << 14
"""About so many values are searched for in one part."""


@part_of_loops
def _is_below(element: Any, value: Any) -> Any:
    return element < value


@part_of_loops
def _is_not_above(element: Any, value: Any) -> Any:
    return not (value < element)  # so is NaN


def _places(is_before: Callable[[Any, Any], Any], general: reference.Search) -> Loop:
    def by_numpy(rows: Array, values: Array, out: Array) -> None:
        out[...] = general(rows, values, np)

    @loop(otherwise=by_numpy)
    def places(rows: Array, values: Array, out: Array) -> None:
        for i in range(values.shape[0]):
            for k in range(values.shape[1]):
                first, length = 0, rows.shape[1]
                while length > 0:
                    half = length >> 1
                    if is_before(rows[i, first + half], values[i, k]):
                        first += half + 1
                        length -= half + 1
                    else:
                        length = half
                out[i, k] = first

    return places


def _searching(places: Loop) -> reference.Search:
    def search(rows: Array, values: Array, _: Any) -> Array:
        out = np.empty(values.shape, np.int64)
        columns = min(values.shape[1], _AT_ONCE)
        step = max(_AT_ONCE // max(columns, 1), 1)

        def compute(part: tuple[int, int]) -> None:
            of_rows = slice(part[0], part[0] + step)
            piece = of_rows, slice(part[1], part[1] + columns)
            places(rows[of_rows], values[piece], out[piece])

        starts = range(0, len(values), step)
        shard(compute, [(i, k) for i in starts for k in range(0, values.shape[1], max(columns, 1))])
        return out

    return search


for _op, _is_before, _general in (
    (reference.LOWER_BOUND, _is_below, reference.lower_bounds),
    (reference.UPPER_BOUND, _is_not_above, reference.upper_bounds),
):
    reference.register_bound(_op, _searching(_places(_is_before, _general)), _TYPES, LOOPS.kernels)
