"""Layered layout: boxes in rows, each below the boxes that lead to it, and links as lines between rows.

Source: Sugiyama, Tagawa, Toda, Methods for Visual Understanding of Hierarchical System Structures; the
places in a row are those of least squares, found by pooling neighbours (isotonic regression).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opkernel.drawing.boxes import Box, Link, Point
from opkernel.drawing.layers import Layers

_GAP = 18.0
_JOINT_GAP = 8.0
_ROW_GAP = 34.0
_BESIDE = 7.0
_PASSES = 12
_NARROWEST = 700.0
"""That boxes without links are put into rows of."""
_STRAIGHT = 6.0
"""How much more a line between joints pulls than one between boxes."""


def lay_out(boxes: Sequence[Box], links: Sequence[Link]) -> tuple[float, float]:
    """Give boxes their places and links their points; the width and height of it all.

    Links that close a cycle are turned round. A link leads from one box to another.
    """
    linked = {end for link in links for end in (link.upper, link.lower)}
    layers = Layers([box for box in boxes if box in linked], links)
    _place_in_rows(layers)
    left = min([box.x for row in layers.rows for box in row], default=0.0)
    for row in layers.rows:
        for box in row:
            box.x -= left
    width = max([box.x + box.width for row in layers.rows for box in row], default=0.0)
    rest = _wrapped([box for box in boxes if box not in linked], max(width, _NARROWEST))
    height = _place_rows([*layers.rows, *rest])
    bands = {
        box: (min(b.y for b in row), max(b.y + b.height for b in row))
        for row in layers.rows
        for box in row
    }
    for link in links:
        link.points = _points(link, layers.chains[link], bands)
    return max([width, *(row[-1].x + row[-1].width for row in rest)]), height


def _wrapped(boxes: Iterable[Box], width: float) -> list[list[Box]]:
    """Rows of boxes that nothing is linked to."""
    rows: list[list[Box]] = []
    x = width
    for box in boxes:
        if not rows or x + box.width > width:
            rows.append([])
            x = 0.0
        rows[-1].append(box)
        box.x = x
        x += box.width + _GAP
    return rows


def _place_rows(rows: Iterable[Sequence[Box]]) -> float:
    """Put the rows one below the other; the height of all."""
    y = 0.0
    for row in rows:
        height = max(box.height for box in row) if row else 0.0
        for box in row:
            box.y = y if box.is_joint else y + (height - box.height) / 2
            if box.is_joint:
                box.height = height
        y += height + _ROW_GAP
    return max(y - _ROW_GAP, 0.0)


def _place_in_rows(layers: Layers) -> None:
    for row in layers.rows:
        x = 0.0
        for box in row:
            box.x = x
            x += box.width + _GAP
    for number in range(_PASSES):
        is_last = number >= _PASSES - 2
        rows = layers.rows if number % 2 == 0 else layers.rows[::-1]
        for row in rows:
            linked = [
                [
                    *(layers.above[box] if number % 2 == 0 or is_last else ()),
                    *(layers.below[box] if number % 2 == 1 or is_last else ()),
                ]
                for box in row
            ]
            _place_row(row, linked)


def _place_row(row: Sequence[Box], linked: Sequence[list[tuple[Box, float, float]]]) -> None:
    """Put the boxes of a row below, or above, the boxes that they are linked to, as near as there is room."""
    pools: list[list[float]] = []  # the weight, the weighted sum of places, the number of boxes
    offsets = []
    offset = 0.0
    for number, (box, others) in enumerate(zip(row, linked, strict=True)):
        if number:
            before = row[number - 1]
            gap = _JOINT_GAP if before.is_joint and box.is_joint else _GAP
            offset += before.width + gap
        offsets.append(offset)
        weight, total = 1e-3, 1e-3 * box.x
        for other, own_at, other_at in others:
            pull = _STRAIGHT if box.is_joint and other.is_joint else 1.0
            weight += pull
            total += pull * (other.x + other_at - own_at)
        pools.append([weight, total - weight * offset, 1])
        while len(pools) > 1 and pools[-2][1] / pools[-2][0] > pools[-1][1] / pools[-1][0]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    places = (total / weight for weight, total, count in pools for _ in range(int(count)))
    for box, place, offset in zip(row, places, offsets, strict=True):
        box.x = place + offset


def _points(
    link: Link, joints: Iterable[Box], bands: Mapping[Box, tuple[float, float]]
) -> list[Point]:
    """The line of a link: straight where it passes a row, so that it meets no box.

    A back link touches boxes on the wrong side; it goes round open ones to the right one.
    """
    upper, lower = link.upper, link.lower
    x, bottom = upper.x + link.upper_at, bands[upper][1]
    points = [(x, upper.y + upper.height), (x, bottom)]
    if link.is_back and upper.is_open:
        left, above = upper.x - _BESIDE, upper.y - _BESIDE
        points = [(x, upper.y), (x, above), (left, above), (left, bottom)]
    for joint in joints:
        middle = joint.x + joint.width / 2
        points += [(middle, bands[joint][0]), (middle, bands[joint][1])]
    x, top = lower.x + link.lower_at, bands[lower][0]
    if link.is_back and lower.is_open:
        left, end = lower.x - _BESIDE, lower.y + lower.height
        points += [(left, top), (left, end + _BESIDE), (x, end + _BESIDE), (x, end)]
    else:
        points += [(x, top), (x, lower.y)]
    return [
        point for number, point in enumerate(points) if not number or point != points[number - 1]
    ]
