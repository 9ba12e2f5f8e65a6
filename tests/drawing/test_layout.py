"""Layered layout: whatever is linked to whatever, boxes and lines stand where they can be read."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from opkernel.drawing.layout import Box, Link, lay_out

GRAPHS = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.lists(
            st.tuples(st.integers(10, 200), st.integers(5, 80)), min_size=count, max_size=count
        ),
        st.sets(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(
                lambda pair: pair[0] != pair[1]
            ),
            max_size=24,
        ),
    )
)


def linked(boxes: list[Box], pairs: set[tuple[int, int]]) -> list[Link]:
    return [
        Link(boxes[a], boxes[b], boxes[a].width / 2, boxes[b].width / 2) for a, b in sorted(pairs)
    ]


@given(GRAPHS)
def test_any_graph(graph: tuple[list[tuple[int, int]], set[tuple[int, int]]]) -> None:
    sizes, pairs = graph
    boxes = [Box(float(width), float(height)) for width, height in sizes]
    links = linked(boxes, pairs)
    width, height = lay_out(boxes, links)
    for box in boxes:
        assert box.x >= -0.01
        assert box.y >= -0.01
        assert box.x + box.width <= width + 0.01
        assert box.y + box.height <= height + 0.01
    for a, b in combinations(boxes, 2):
        apart = (
            a.x + a.width <= b.x + 0.01
            or b.x + b.width <= a.x + 0.01
            or a.y + a.height <= b.y + 0.01
            or b.y + b.height <= a.y + 0.01
        )
        assert apart
    for link in links:
        assert link.upper.y + link.upper.height <= link.lower.y
        assert link.points[0] == (link.upper.x + link.upper_at, link.upper.y + link.upper.height)
        assert link.points[-1] == (link.lower.x + link.lower_at, link.lower.y)
        assert all(a[1] <= b[1] for a, b in pairwise(link.points))


def test_a_line_passes_no_box() -> None:
    boxes = [Box(50.0, 20.0) for _ in range(5)]
    links = linked(boxes, {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)})
    lay_out(boxes, links)
    long = next(link for link in links if (link.upper, link.lower) == (boxes[0], boxes[4]))
    for (x, y), (to_x, to_y) in pairwise(long.points):
        if x == to_x:
            for box in boxes[1:4]:
                is_beside = x < box.x or x > box.x + box.width
                assert is_beside or to_y <= box.y or y >= box.y + box.height


def test_a_cycle_is_closed_by_one_back_link() -> None:
    boxes = [Box(50.0, 20.0) for _ in range(4)]
    links = linked(boxes, {(0, 1), (1, 2), (2, 3), (3, 1)})
    lay_out(boxes, links)
    (back,) = [link for link in links if link.is_back]
    assert (back.upper, back.lower) == (boxes[1], boxes[3])


def test_crossings_are_taken_out() -> None:
    boxes = [Box(50.0, 20.0) for _ in range(8)]
    links = linked(boxes, {(0, 7), (1, 6), (2, 5), (3, 4)})
    lay_out(boxes, links)
    order = [sorted(row, key=lambda box: box.x) for row in (boxes[:4], boxes[4:])]
    assert [boxes.index(box) for box in order[0]] == [7 - boxes.index(box) for box in order[1]]


def test_a_chain_is_straight() -> None:
    boxes = [Box(width, 20.0) for width in (50.0, 120.0, 80.0)]
    lay_out(boxes, linked(boxes, {(0, 1), (1, 2)}))
    middles = [box.x + box.width / 2 for box in boxes]
    assert max(middles) - min(middles) < 0.5


def test_rows_are_no_wider_than_a_screen() -> None:
    boxes = [Box(100.0, 20.0) for _ in range(101)]
    width, _ = lay_out(boxes, linked(boxes, {(0, n) for n in range(1, 101)}))
    assert width < 3000
