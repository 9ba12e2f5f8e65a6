"""How results are cut into tiles: rows, cuts of operands, parts for threads, groups of nodes."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.dataflow.loop_builders import Builder

import opkernel
from opkernel.graph import Tensor
from opkernel.kernel import intra_op_parallelism
from opkernel.runtime import CompiledPlan
from opkernel.runtime.plan import tree
from opkernel.runtime.plan.pointwise import PointwiseFunction
from opkernel.runtime.plan.tiled import BIG, TILE, Cut, TiledFunction, TiledNode, choose_rows

LARGEST = 4 * TILE
Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("shape", "operands", "count", "row", "per_tile"),
    [
        ((BIG,), [(BIG,), ()], BIG, (), TILE),
        ((BIG * 8,), [(BIG * 8,)], BIG * 8, (), 2 * TILE),
        ((BIG * 64,), [(1,)], BIG * 64, (), LARGEST),
        ((1024, 128), [(128,)], 1024, (128,), TILE // 128),
        ((1024, 128), [(1024, 128)], 1024, (128,), TILE // 128),
        ((1024, 128), [(1024, 1), (1, 128)], 1024, (128,), TILE // 128),
        ((2, 512, 128), [(512, 128)], 2, (512, 128), 1),
        ((2, 512, 128), [(2, 1, 128)], 2, (512, 128), 1),
        ((8, 512, 128), [(8, 1, 128)], 8, (512, 128), 1),
        ((64, 512, 4), [(64, 1, 1), (4,)], 64, (512, 4), 32),
        ((3, LARGEST), [(LARGEST,)], 3, (LARGEST,), 1),
    ],
)
def test_rows_of(
    shape: Shape, operands: list[Shape], count: int, row: Shape, per_tile: int
) -> None:
    """The first axes, until a row fits into a tile of 2^16 to four times as many elements; fewer for operands."""
    found = choose_rows(shape, operands)
    assert found is not None
    rows = found[0]
    assert (rows.count, rows.row, rows.per_tile) == (count, row, per_tile)


@pytest.mark.parametrize(
    ("shape", "operands"),
    [((3, LARGEST + 1), [(LARGEST + 1,)]), ((2, 2, LARGEST), [(2, 1, LARGEST)]), ((), [()])],
)
def test_where_no_rows_will_do(shape: Shape, operands: list[Shape]) -> None:
    assert choose_rows(shape, operands) is None


@st.composite
def broadcasts(draw: st.DrawFn) -> tuple[Shape, list[Shape]]:
    """A shape, and shapes that are broadcast to it."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 50, 300]), min_size=1, max_size=4)))
    operands = []
    for _ in range(draw(st.integers(1, 3))):
        sizes = [size if draw(st.booleans()) else 1 for size in shape]
        operands.append(tuple(sizes[draw(st.integers(0, len(sizes))) :]))
    return shape, operands


@given(broadcasts())
def test_tiles_of_operands_make_up_the_broadcast(made: tuple[Shape, list[Shape]]) -> None:
    shape, operands = made
    found = choose_rows(shape, operands)
    if found is None:
        return
    rows, cuts = found
    assert rows.count * math.prod(rows.row) == math.prod(shape)
    assert rows.row == shape[len(shape) - len(rows.row) :]
    assert 1 <= rows.per_tile * math.prod(rows.row) <= LARGEST
    for operand, cut in zip(operands, cuts, strict=True):
        array = np.arange(math.prod(operand), dtype=np.int32).reshape(operand)
        view = cut.view(array)
        assert np.shares_memory(view, array)
        whole = np.broadcast_to(view, (rows.count, *rows.row))
        assert np.array_equal(whole.reshape(shape), np.broadcast_to(array, shape))
        if cut.has_rows:
            assert view.shape[0] == rows.count
        else:
            assert len(view.shape) <= len(rows.row)
            assert view.shape[:1] != (1,)


def test_an_operand_is_viewed_and_not_copied() -> None:
    array = np.zeros((4, 6), np.float32)
    assert Cut((4, 6), True).view(array) is array
    assert Cut((24,), True).view(array).shape == (24,)
    assert Cut((24,), True).view(array[:, ::2].T) is None
    assert Cut((3, 4), False).view(array[:, ::2].reshape(1, 4, 3).T) is not None


F32 = np.dtype(np.float32)


def step(ufunc: np.ufunc, *inputs: int) -> TiledNode:
    return TiledNode(PointwiseFunction(ufunc, ufunc, F32, True), inputs)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("tiles", [2, 3, 7.5, 40])
def test_threads_get_whole_tiles_one_after_the_other(threads: int, tiles: float) -> None:
    """At most two parts for each thread, of tiles whose numbers differ by one; one thread gets all."""
    size = int(tiles * TILE)
    function = TiledFunction(1, [step(np.negative, 0), step(np.square, 1)], [1])
    with intra_op_parallelism(threads):
        x = np.arange(size, dtype=np.float32)
        assert np.array_equal(function(x), np.square(x))
        (layout,) = function._layouts.values()
        assert layout is not None
        parts, tile = layout._parts(), layout._rows.per_tile
    starts, ends = zip(*parts, strict=True)
    assert [starts[0], *ends] == [*starts, size]
    assert all(start % tile == 0 for start in starts)
    lengths = [math.ceil((end - start) / tile) for start, end in parts]
    assert max(lengths) - min(lengths) <= 1
    expected = 1 if threads == 1 else min(math.ceil(size / tile), 2 * threads)
    assert len(parts) == expected


def test_layouts_of_many_shapes_are_forgotten() -> None:
    function = TiledFunction(1, [step(np.negative, 0), step(np.square, 1)], [1])
    for number in range(40):
        x = np.ones(number, np.float32)
        assert function(x) is None
        assert len(function._layouts) == number % 16 + 1


def test_steps_on_smaller_arrays_are_computed_first() -> None:
    """A step that is small and reads a result of tiles leaves the group to the nodes."""
    small = [step(np.negative, 1), step(np.add, 0, 2), step(np.square, 3)]
    x, y = np.arange(BIG, dtype=np.float32), np.array([3], np.float32)
    assert np.array_equal(TiledFunction(2, small, [2])(x, y), np.square(x - 3))
    kept, result = TiledFunction(2, small, [0, 2])(x, y)
    assert kept.tolist() == [-3]
    assert np.array_equal(result, np.square(x - 3))
    assert TiledFunction(2, [step(np.negative, 1), step(np.add, 0, 2)], [1])(x, y) is None


@pytest.mark.parametrize(("size", "is_tiled"), [(BIG - 1, False), (BIG, True)])
def test_big_enough(size: int, is_tiled: bool) -> None:
    function = TiledFunction(1, [step(np.negative, 0), step(np.square, 1)], [1])
    assert (function(np.ones(size, np.float32)) is not None) == is_tiled


def source_of(b: Builder, fetches: Any, feeds: list[str]) -> tuple[str, list[tree.TiledCall]]:
    with opkernel.Session(b.graph, executor_type="COMPILED_PLAN", optimize=False) as session:
        plan = session.plan(fetches, feeds)
    assert isinstance(plan, CompiledPlan)
    calls = [one for one in tree.statements(plan.tree.block) if isinstance(one, tree.TiledCall)]
    return plan.source, calls


def chain(b: Builder, x: Tensor, count: int, op: str = "Sin") -> Tensor:
    for _ in range(count):
        x = b.op(op, x)
    return x


@pytest.mark.parametrize(
    ("count", "widths"), [(3, []), (4, [4]), (256, [256]), (257, [256]), (260, [256, 4])]
)
def test_groups_have_from_4_to_256_nodes(count: int, widths: list[int]) -> None:
    b = Builder()
    y = chain(b, b.placeholder("x"), count)
    assert [call.width for call in source_of(b, y, ["x:0"])[1]] == widths


def test_integers_are_no_group() -> None:
    b = Builder()
    y = chain(b, b.placeholder("x", opkernel.int32), 6, "Neg")
    assert source_of(b, y, ["x:0"])[1] == []
    y = b.op("Cast", y, SrcT=opkernel.int32, DstT=opkernel.float32)
    assert [call.width for call in source_of(b, chain(b, y, 4), ["x:0"])[1]] in ([4], [11])


def test_a_reader_from_outside_ends_a_group() -> None:
    b = Builder()
    first = chain(b, b.placeholder("x"), 4)
    summed = b.op("Sum", first, b.constant([0], np.int32), Tidx=opkernel.int32)
    last = chain(b, b.op("Mul", first, summed), 4)
    text, calls = source_of(b, [last], ["x:0"])
    assert [call.width for call in calls] == [4, 5]
    assert [len(call.sets) for call in calls] == [1, 1]
    assert text.index("4 nodes") < text.index("Sum") < text.index("5 nodes")


def test_branches_of_a_group_meet() -> None:
    """Two chains become one group where they meet; what is read outside is a result."""
    b = Builder()
    left, right = chain(b, b.placeholder("x"), 2), chain(b, b.placeholder("y"), 2, "Neg")
    both = b.op("AddV2", left, right)
    _, calls = source_of(b, [both, left], ["x:0", "y:0"])
    assert [(call.width, len(call.sets)) for call in calls] == [(5, 2)]
    assert {*calls[0].sized} == {"x", "y"}
    x = np.linspace(0, 1, BIG, dtype=np.float32)
    with opkernel.Session(b.graph, optimize=False) as session:
        found = session.run([both, left], {"x:0": x, "y:0": x})
    np.testing.assert_array_equal(found[0], np.sin(np.sin(x)) + x)
    np.testing.assert_array_equal(found[1], np.sin(np.sin(x)))


def test_a_fed_node_is_in_no_group() -> None:
    b = Builder()
    middle = chain(b, b.placeholder("x"), 4)
    last = chain(b, middle, 4)
    _, calls = source_of(b, last, [middle.name])
    assert [call.width for call in calls] == [4]
    assert source_of(b, [middle, last], ["x:0"])[1][0].width == 8


@pytest.mark.parametrize("op", ["Maximum", "Minimum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("number_first", [False, True])
def test_extremes_with_numbers_of_each_type(op: str, dtype: Any, number_first: bool) -> None:
    """Within a group of floats an extreme is a clip; NaN and infinity go on."""
    b = Builder()
    x = b.placeholder("x", opkernel.types.as_dtype(np.dtype(dtype)))
    number = b.constant(1, dtype)
    y = b.op(op, *((number, x) if number_first else (x, number)))
    for _ in range(2):
        y = b.op("Square", b.op("Neg", y))
    y = b.op("Cast", y, SrcT=opkernel.types.as_dtype(np.dtype(dtype)), DstT=opkernel.float64)
    value = (np.arange(BIG) % 7 - 3).astype(dtype)
    if dtype is not np.int32:
        value[:3] = np.nan, np.inf, -np.inf
    extreme = getattr(np, op.lower())(value, dtype(1))
    with opkernel.Session(b.graph, optimize=False) as session, np.errstate(all="ignore"):
        np.testing.assert_array_equal(session.run(y, {"x:0": value}), (extreme.astype(float)) ** 4)


def test_what_passes_a_value_on_is_no_reader_of_it() -> None:
    """An Identity between nodes of a group: its input is no result of the group."""
    b = Builder()
    last = chain(b, b.op("Identity", chain(b, b.placeholder("x"), 4)), 4)
    _, calls = source_of(b, last, ["x:0"])
    assert [(call.width, len(call.sets)) for call in calls] == [(8, 1)]


def test_what_an_identity_gives_to_others_is_a_result() -> None:
    b = Builder()
    middle = b.op("Identity", chain(b, b.placeholder("x"), 4))
    last = chain(b, middle, 4)
    _, calls = source_of(b, [last, middle], ["x:0"])
    assert [(call.width, len(call.sets)) for call in calls] == [(8, 2)]
