"""TiledFunction: the function that computes a group of element-wise nodes tile by tile.

It takes a tile of each array at a time, small enough for the processor's cache, on the threads that
kernels may use. Only the results of the group take new memory.

The shape of the result is taken as rows: its leading axes become one, of which a tile has some
elements, and its other axes are the shape of a row. An operand is cut like the result, or is the same
for all tiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.ownership import counts_mean_ownership, is_whole, others, others_of_a_local
from opkernel.kernel import intra_op_threads, is_recycled, recycled, scratch, shard
from opkernel.records import dataclass
from opkernel.runtime.plan.pointwise import PointwiseFunction

TILE = 1 << 16
"""Elements of a tile at least: of float32, some such tiles fit into a processor's own cache."""

_LARGEST_TILE = 4 * TILE
"""Threads hand the interpreter on between two calls of ufuncs: the time lost there must not count."""

_TILES = 8

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TileRows:
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


def choose_rows(shape: Shape, operands: Sequence[Shape]) -> tuple[TileRows, list[Cut]] | None:
    """The rows of a result, with as many leading axes as the operands allow; None where none will do."""
    tile = min(max(TILE, math.prod(shape) // _TILES), _LARGEST_TILE)
    fits = [a for a in range(len(shape)) if math.prod(shape[a + 1 :]) <= _LARGEST_TILE]
    best = next((a for a in fits if math.prod(shape[a + 1 :]) <= tile), None)
    for axis in reversed([a for a in fits if best is None or a <= best]):
        cuts = [_cut(shape, operand, axis) for operand in operands]
        found = [cut for cut in cuts if cut is not None]
        if len(found) == len(cuts):
            row = shape[axis + 1 :]
            per_tile = max(1, tile // math.prod(row))
            return TileRows(math.prod(shape[: axis + 1]), row, per_tile), found
    return None


def _cut(shape: Shape, operand: Shape, axis: int) -> Cut | None:
    """How an operand is seen where axes up to `axis` are those of rows; None where it cannot be."""
    whole = (1,) * (len(shape) - len(operand)) + operand
    leading, row = whole[: axis + 1], whole[axis + 1 :]
    if leading == shape[: axis + 1]:
        return Cut((math.prod(leading), *row), True)
    if math.prod(leading) == 1:
        first = next((i for i, size in enumerate(row) if size != 1), len(row))
        return Cut(row[first:], False)  # without leading ones
    return None


def broadcast(shapes: Sequence[Shape]) -> Shape | None:
    """The shape that some shapes are broadcast to; None where they do not fit."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


BIG = 2 * TILE
"""Elements that an array must have at least."""

_PARTS_A_THREAD = 2
_MOST_LAYOUTS = 16


class TiledNode(NamedTuple):
    """A node of the group; `inputs` are numbers of values: the group's inputs, then the steps."""

    function: PointwiseFunction
    inputs: tuple[int, ...]


class TiledFunction:
    """A group of element-wise nodes as one function of its inputs.

    It gives the results, as a tuple where there are several; None, or a tuple of them, where the group
    is to be computed node by node: it is too small, or something does not fit.

    Args:
        num_inputs: How many inputs it has.
        steps: The nodes, in order.
        results: The steps whose results are wanted.
        dying: The inputs that nobody needs afterwards: where the plan has the only reference to one,
            a result may take over its memory.
    """

    def __init__(
        self,
        num_inputs: int,
        steps: Sequence[TiledNode],
        results: Sequence[int],
        dying: Collection[int] = (),
    ) -> None:
        self._num_inputs = num_inputs
        self._steps = steps
        self._results = results
        self._dying = dying if all(step.function.never_raises for step in steps) else ()
        self._layouts: dict[tuple[Shape, ...], _TileLayout | None] = {}
        self._nothing = None if len(results) == 1 else (None,) * len(results)

    def __call__(self, *inputs: Any) -> Any:
        """The results, or None for each."""
        shapes = tuple([value.shape for value in inputs])
        try:
            layout = self._layouts[shapes]
        except KeyError:
            layout = self._remember(shapes, self._layout(shapes))
        if layout is None:
            return self._nothing
        owned: Sequence[int] = ()
        if self._dying and counts_mean_ownership():
            owned = [i for i in self._dying if _is_owned(inputs, i)]
        try:
            results = layout.run(inputs, owned)
        except Exception:  # for its node to raise it again
            if owned and layout.has_run:
                raise  # an input may be overwritten
            self._remember(shapes, None)
            return self._nothing
        if results is None:
            return self._nothing
        return results[0] if len(results) == 1 else results

    def _remember(
        self, shapes: tuple[Shape, ...], layout: _TileLayout | None
    ) -> _TileLayout | None:
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        self._layouts[shapes] = layout
        return layout

    def _layout(self, inputs: tuple[Shape, ...]) -> _TileLayout | None:
        """How inputs of these shapes are computed; None where not by tiles."""
        shapes = list(inputs)
        for step in self._steps:
            of_inputs = [shapes[i] for i in step.inputs]
            shape = broadcast(of_inputs)
            if shape is None or (step.function.same_shapes and len({*of_inputs}) > 1):
                return None
            shapes.append(shape)
        whole = max(shapes[self._num_inputs :], key=math.prod)
        if math.prod(whole) < BIG:
            return None
        tiled = [i for i, shape in enumerate(shapes) if shape == whole and i >= self._num_inputs]
        read = sorted({i for t in tiled for i in self._inputs(t)}.difference(tiled))
        rows = choose_rows(whole, [shapes[i] for i in read])
        if rows is None or len(tiled) < 2 or not self._is_in_order(tiled):
            return None
        return _TileLayout(self, whole, rows[0], dict(zip(read, rows[1], strict=True)), tiled)

    def _inputs(self, value: int) -> tuple[int, ...]:
        return self._steps[value - self._num_inputs].inputs

    def _is_in_order(self, tiled: Sequence[int]) -> bool:
        """Whether no step that is computed in one piece reads a result that is computed by tiles."""
        first = self._num_inputs
        in_one_piece = {*range(first, first + len(self._steps))}.difference(tiled)
        read = {i for value in in_one_piece for i in self._inputs(value) if i >= first}
        return read <= in_one_piece


_Program = tuple[list[tuple[Callable[..., Any], Callable[..., Any]]], list[np.dtype[Any]]]
"""The calls, each with the choice of its operands; and the types of the buffers."""


class _TileBuffers:
    """The places of buffers: those of results, which are lent for some time, and others.

    Args:
        first: The first place of the others.

    Attributes:
        dtypes: The types of the others.
    """

    def __init__(self, first: int) -> None:
        self.dtypes: list[np.dtype[Any]] = []
        self._first = first
        self._lent: dict[int, tuple[np.dtype[Any], int]] = {}
        self._free: list[int] = []

    def lend(self, place: int, dtype: np.dtype[Any], until: int) -> None:
        """Have a place used up to the step that gives the result which belongs there."""
        self._lent[place] = dtype, until
        self._free.append(place)

    def free(self, place: int) -> None:
        """A place whose value is not read any more."""
        self._free.append(place)

    def take(self, place: int) -> None:
        """The result belongs there from here on."""
        if place in self._free:
            self._free.remove(place)

    def find(self, dtype: np.dtype[Any], until: int) -> int:
        """A free place for a value of a type that is read up to a step, or a new one."""
        for place in reversed(self._free):  # of what died last: fewer tiles to have in the cache
            its_dtype, its_end = self._lent.get(place) or (self.dtypes[place - self._first], until)
            if its_dtype == dtype and its_end >= until:
                self._free.remove(place)
                return place
        self.dtypes.append(dtype)
        return self._first + len(self.dtypes) - 1


class _TileLayout:
    """How a TiledFunction computes inputs of certain shapes; `has_run`: it did so before.

    Steps whose result is smaller than the whole are computed first, in one piece. `_program` are the
    others; the values that they read and write are numbered anew: operands, results, buffers.
    A result is a buffer before it is computed, unless it takes over the memory of an input.
    """

    def __init__(
        self,
        function: TiledFunction,
        whole: Shape,
        rows: TileRows,
        cuts: dict[int, Cut],
        tiled: Sequence[int],
    ) -> None:
        self._num_inputs = function._num_inputs
        self._steps = function._steps
        self._whole, self._rows, self._cuts = whole, rows, cuts
        self._first = [
            value
            for value in range(self._num_inputs, self._num_inputs + len(self._steps))
            if value not in set(tiled)
        ]
        self._results = [self._num_inputs + number for number in function._results]
        self._tiled_results = [value for value in self._results if value in set(tiled)]
        self._tiled, self._inputs_of = tiled, function._inputs
        self._last_read = {i: value for value in tiled for i in function._inputs(value)}
        self._program = cache(self._allocate)
        self.has_run = False

    def run(self, inputs: Sequence[Any], owned: Sequence[int]) -> tuple[Any, ...] | None:
        """The results; None where an operand cannot be cut.

        Args:
            inputs: The group's inputs.
            owned: Those whose memory results may take over.
        """
        values = dict(enumerate(inputs))
        for value in self._first:
            step = self._steps[value - self._num_inputs]
            values[value] = step.function.whole(*[values[i] for i in step.inputs])
        operands = [cut.view(values[i]) for i, cut in self._cuts.items()]
        if any(operand is None for operand in operands):
            return None
        owned = owned if self.has_run else ()
        for value in self._tiled_results:
            values[value] = self._new_result(value, values, owned)
        shape = self._rows.count, *self._rows.row
        results = [values[value].reshape(shape) for value in self._tiled_results]
        self._compute(operands, results, self._program(not owned))
        self.has_run = True
        return tuple([values[value] for value in self._results])

    def _new_result(self, value: int, values: dict[int, Any], owned: Sequence[int]) -> Any:
        """An array for a result: that of an owned input that is not read any more then, or new."""
        dtype = self._steps[value - self._num_inputs].function.dtype
        for i in owned:
            array = values[i]
            if (
                self._last_read.get(i, value) <= value
                and array.shape == self._whole
                and array.dtype == dtype
                and is_whole(array)
                and not any(
                    array is values[other] for other in self._tiled_results if other in values
                )
            ):
                return array
        return recycled(self._whole, dtype)

    def _compute(self, operands: Sequence[Any], results: Sequence[Any], program: _Program) -> None:
        """Compute the results from the operands, both being cut into rows."""
        rows, cuts, (calls, dtypes) = self._rows, list(self._cuts.values()), program

        def part(bounds: tuple[int, int]) -> None:
            shape = rows.per_tile, *rows.row
            buffers = [scratch(f"tile {i}", shape, t) for i, t in enumerate(dtypes)]
            for start in range(*bounds, rows.per_tile):
                stop = min(start + rows.per_tile, bounds[1])
                tiles = [
                    operand[start:stop] if cut.has_rows else operand
                    for operand, cut in zip(operands, cuts, strict=True)
                ]
                tiles += [result[start:stop] for result in results]
                tiles += [buffer[: stop - start] for buffer in buffers]
                for into, operands_of in calls:
                    into(*operands_of(tiles))

        shard(part, self._parts())

    def _parts(self) -> list[tuple[int, int]]:
        """The rows that are computed by one thread at a time: whole tiles."""
        tiles = math.ceil(self._rows.count / self._rows.per_tile)
        threads = intra_op_threads()
        parts = min(tiles, 1 if threads == 1 else threads * _PARTS_A_THREAD)
        ends = [tiles * i // parts * self._rows.per_tile for i in range(parts)]
        return list(zip(ends, [*ends[1:], self._rows.count], strict=True))

    def _allocate(self, lends: bool) -> _Program:
        """The operands and results of each step on tiles, with buffers used again.

        Args:
            lends: whether results are buffers until they are computed.
        """
        place = {value: i for i, value in enumerate([*self._cuts, *self._tiled_results])}
        buffers = _TileBuffers(len(place))
        if lends:
            for value in self._tiled_results:
                buffers.lend(place[value], self._dtype(value), value)
        calls: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
        for value in self._tiled:
            inputs = self._inputs_of(value)
            reads = [place[i] for i in inputs]
            for i in {i for i in inputs if self._last_read[i] == value}:
                if i not in self._cuts and i not in self._tiled_results:
                    buffers.free(place[i])
            if value in place:
                buffers.take(place[value])
            else:
                until = self._last_read.get(value, value)
                place[value] = buffers.find(self._dtype(value), until)
            into = self._function(value).writer([self._is_number(i) for i in inputs])
            calls.append((into, itemgetter(*reads, place[value])))
        return calls, buffers.dtypes

    def _function(self, value: int) -> PointwiseFunction:
        return self._steps[value - self._num_inputs].function

    def _dtype(self, value: int) -> np.dtype[Any]:
        return self._function(value).dtype

    def _is_number(self, value: int) -> bool:
        """Whether a value is an operand of one element, the same for all tiles."""
        cut = self._cuts.get(value)
        return cut is not None and not cut.has_rows and math.prod(cut.shape) == 1


def _is_owned(inputs: Sequence[Any], index: int) -> bool:
    """Whether the plan has the only reference to an input that counts."""
    return others(inputs, index) <= others_of_a_local() + is_recycled(inputs[index])
