"""Layers of a drawing: the row of each box, and the order of the boxes in a row.

These are the first steps of Sugiyama's method. Links that close a cycle are turned round. A box gets the
row after the boxes that lead to it. Links that pass rows get a joint in each. Sweeps of barycentres take
crossings out.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from opkernel.drawing.boxes import Box, Link

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
        return sum(self._crossings_below(row, next_row) for row, next_row in pairwise(self.rows))

    def _crossings_below(self, row: Sequence[Box], next_row: Sequence[Box]) -> int:
        places = {box: place for place, box in enumerate(next_row)}
        seen: list[float] = []
        count = 0
        for box in row:
            ends = sorted(places[lower] + at * 1e-5 for lower, _, at in self.below[box])
            for end in ends:
                count += len(seen) - bisect_right(seen, end)
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
    boxes: Sequence[Box],
    sources: Mapping[Box, Sequence[Box]],
    targets: Mapping[Box, Sequence[Box]],
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
