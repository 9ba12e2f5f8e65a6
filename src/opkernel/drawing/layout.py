"""Layered layout: boxes in rows, each below the boxes that lead to it, and links as lines between rows.

The steps are those of Sugiyama's method. Links that close a cycle are turned round. A box gets the row after the boxes that
lead to it. Links that pass rows get a joint in each. Sweeps of barycentres take crossings out.

Source: Sugiyama, Tagawa, Toda, Methods for Visual Understanding of Hierarchical System Structures; the places in a row are
those of least squares, found by pooling neighbours (isotonic regression).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Literal

from opkernel.records import dataclass, field

Point = tuple[float, float]


@dataclass(slots=True, eq=False)
class Box:
    """A thing that takes room in a drawing.

    Attributes:
        width: its width.
        height: its height.
        place: `top` or `bottom` of a box that stands at that rim.
        is_joint: whether it is but a place where a link passes a row.
        is_open: whether lines go on inside of it, from its upper side and to its lower one.
        x: its left side, once it is laid out.
        y: its upper side.
    """

    width: float
    height: float
    place: Literal["", "top", "bottom"] = ""
    is_joint: bool = False
    is_open: bool = False
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True, eq=False)
class Link:
    """A line from one box to another.

    Attributes:
        upper: where it begins; where it ends, if it is a back link.
        lower: the other end.
        upper_at: how far from the left side of `upper` the line touches it.
        lower_at: the same of `lower`.
        is_back: whether it leads upwards: it closes a cycle.
        points: the line from the upper end to the lower one, once it is laid out.
    """

    upper: Box
    lower: Box
    upper_at: float
    lower_at: float
    is_back: bool = False
    points: list[Point] = field(default_factory=list)

    def turn(self) -> None:
        """Turn it round."""
        self.upper, self.lower = self.lower, self.upper
        self.upper_at, self.lower_at = self.lower_at, self.upper_at
        self.is_back = not self.is_back


_WIDEST_ROW = 1100.0
_JOINT_WIDTH = 12.0
_SWEEPS = 10


class Layers:
    """The rows of boxes.

    Attributes:
        rows: the boxes of each row, from left to right; joints of links among them.
        above: for each box the boxes of the row above that lead to it, with the places of both ends.
        below: the same for the row below.
        chains: for each link its joints, from the upper end to the lower one.
    """

    def __init__(self, boxes: Sequence[Box], links: Sequence[Link]) -> None:
        _turn_back_links(boxes, links)
        ranks = _ranks(boxes, links)
        self.rows: list[list[Box]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
        for box in boxes:
            self.rows[ranks[box]].append(box)
        self.above: dict[Box, list[tuple[Box, float, float]]] = defaultdict(list)
        self.below: dict[Box, list[tuple[Box, float, float]]] = defaultdict(list)
        self.chains: dict[Link, list[Box]] = {}
        self._join(links, ranks)
        self._order()

    def _join(self, links: Sequence[Link], ranks: Mapping[Box, int]) -> None:
        """Have each link lead from row to row; links from one place share their joints."""
        joints: dict[tuple[Box, float, bool, int], Box] = {}
        known: set[tuple[Box, Box, float, float]] = set()
        for link in links:
            chain = [link.upper]
            for rank in range(ranks[link.upper] + 1, ranks[link.lower]):
                key = link.upper, link.upper_at, link.is_back, rank
                if key not in joints:
                    joints[key] = Box(_JOINT_WIDTH, 0.0, is_joint=True)
                    row = self.rows[rank]
                    row.insert(len(row) // 2, joints[key])  # where it bends least, if all is equal
                chain.append(joints[key])
            chain.append(link.lower)
            self.chains[link] = chain[1:-1]
            for upper, lower in pairwise(chain):
                leaves = link.upper_at if upper is link.upper else _JOINT_WIDTH / 2
                arrives = link.lower_at if lower is link.lower else _JOINT_WIDTH / 2
                if (upper, lower, leaves, arrives) not in known:
                    known.add((upper, lower, leaves, arrives))
                    self.below[upper].append((lower, leaves, arrives))
                    self.above[lower].append((upper, arrives, leaves))

    def _order(self) -> None:
        best, fewest = [[*row] for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS):
            if fewest == 0:
                break
            goes_down = sweep % 2 == 0
            neighbours = self.above if goes_down else self.below
            rows = self.rows if goes_down else self.rows[::-1]
            for fixed, row in pairwise(rows):
                _sort_by_barycentre(row, fixed, neighbours)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [[*row] for row in self.rows], crossings
        self.rows = best

    def _crossings(self) -> int:
        count = 0
        for row, next_row in pairwise(self.rows):
            places = {box: place for place, box in enumerate(next_row)}
            seen: list[float] = []
            for box in row:
                ends = sorted(places[lower] + at * 1e-5 for lower, _, at in self.below[box])
                count += sum(len(seen) - bisect_right(seen, end) for end in ends)
                for end in ends:
                    insort(seen, end)
        return count


def _sort_by_barycentre(
    row: list[Box], fixed: Sequence[Box], neighbours: Mapping[Box, list[tuple[Box, float, float]]]
) -> None:
    """Order a row by the middles of the neighbours of its boxes; boxes without neighbours stay near."""
    places = {box: place + 0.0 for place, box in enumerate(fixed)}
    keys = {}
    last = -1.0
    for box in row:
        linked = [places[other] + 1e-3 * at for other, _, at in neighbours.get(box, ())]
        last = keys[box] = sum(linked) / len(linked) if linked else last
    row.sort(key=keys.__getitem__)


def _turn_back_links(boxes: Sequence[Box], links: Sequence[Link]) -> None:
    """Turn round the links that lead back to a box on the way to them, first boxes first."""
    outgoing: dict[Box, list[Link]] = defaultdict(list)
    for one in links:
        outgoing[one.upper].append(one)
    done: set[Box] = set()
    for start in boxes:
        if start in done:
            continue
        on_way = {start}
        stack = [(start, iter(outgoing[start]))]
        while stack:
            box, waiting = stack[-1]
            link = next(waiting, None)
            if link is None:
                stack.pop()
                on_way.discard(box)
                done.add(box)
            elif link.lower in on_way:
                link.turn()
            elif link.lower not in done:
                on_way.add(link.lower)
                stack.append((link.lower, iter(outgoing[link.lower])))


def _ranks(boxes: Sequence[Box], links: Sequence[Link]) -> dict[Box, int]:
    """The row of each box: after the boxes that lead to it, and where the row is not too wide."""
    sources: dict[Box, list[Box]] = defaultdict(list)
    targets: dict[Box, list[Box]] = defaultdict(list)
    for link in links:
        sources[link.lower].append(link.upper)
        targets[link.upper].append(link.lower)
    ranks: dict[Box, int] = {box: 0 for box in boxes if box.place == "top"}
    first = 1 if ranks else 0
    widths: dict[int, float] = defaultdict(float)
    order = _in_order([box for box in boxes if box.place == ""], sources, targets)
    for box in order:
        rank = max([ranks[source] + 1 for source in sources[box]], default=first)
        while widths[rank] and widths[rank] + box.width > _WIDEST_ROW:
            rank += 1
        ranks[box] = rank
        widths[rank] += box.width
    for box in reversed(order):  # a box that nothing leads to stands just above its use
        below = [ranks[target] for target in targets[box] if target in ranks]
        if not sources[box] and below and widths[min(below) - 1] + box.width <= _WIDEST_ROW:
            widths[ranks[box]] -= box.width
            ranks[box] = min(below) - 1
            widths[ranks[box]] += box.width
    last = max(ranks.values(), default=-1) + 1
    ranks.update({box: last for box in boxes if box.place == "bottom"})
    return ranks


def _in_order(
    boxes: Sequence[Box], sources: Mapping[Box, Sequence[Box]], targets: Mapping[Box, Sequence[Box]]
) -> list[Box]:
    """The boxes, each after the boxes that lead to it."""
    inside = set(boxes)
    waits = {box: sum(source in inside for source in sources.get(box, ())) for box in boxes}
    order = [box for box in boxes if not waits[box]]
    for box in order:
        for target in targets.get(box, ()):
            if target in inside:
                waits[target] -= 1
                if not waits[target]:
                    order.append(target)
    return order


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
    placed = [box for row in layers.rows for box in row]
    left = min([box.x for box in placed], default=0.0)
    for box in placed:
        box.x -= left
    width = max([box.x + box.width for box in placed], default=0.0)
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
        sides = [layers.above, layers.below]
        if number < _PASSES - 2:
            sides = [sides[number % 2]]
        for row in layers.rows if number % 2 == 0 else layers.rows[::-1]:
            _place_row(row, [[one for side in sides for one in side[box]] for box in row])


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
    return [point for point, _ in groupby(points)]
