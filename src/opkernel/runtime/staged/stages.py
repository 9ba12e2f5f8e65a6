"""Stages: a graph cut into what runs one after the other, and what may run side by side.

What decides are the nodes that take long. They are cut where all that come later need all before;
between two cuts, those that do not need each other, directly or not, are in branches of their own. The
other nodes go where their inputs are: what needs one branch alone is part of it, what needs several
comes after them.

Sets of nodes that take long are the bits of integers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby, pairwise
from operator import or_
from typing import NamedTuple

from opkernel.graph import Operation

_LONG_S = 20e-6  # a node that takes less is not worth the thought of it
_MOST_NODES = 1000
_LEAST_SAVED_S = 50e-6
_LEAST_SAVED = 0.15  # of the time that the branches take one after the other

Sources = Callable[[Operation], Iterable[Operation]]


class Branch(NamedTuple):
    """Nodes that run one after the other, and the seconds that the expensive ones take."""

    ops: list[Operation]
    seconds: float


Stage = list[Branch]
"""Branches that may run side by side; a single branch runs by itself."""

_Region = dict[str, int]
"""The nodes that take long of several branches, each with the number of its branch."""


def find_stages(
    order: Sequence[Operation],
    sources: Sources,
    seconds: Mapping[str, float],
    is_independent: Callable[[Operation], bool],
    threads: int,
) -> list[Stage]:
    """The stages of a graph; none where no branches would save time.

    Nodes that are not independent stay in stages of their own, in the order that they have.

    Args:
        order: The operations, inputs before consumers.
        sources: What an operation waits for.
        seconds: What nodes take, by name.
        is_independent: Whether a node may run beside others.
        threads: How many there are.
    """
    regions = [
        region
        for region in _regions(order, sources, seconds)
        if _is_worthwhile(region, seconds, threads)
    ]
    independent = {op.name for op in order if is_independent(op)}
    while regions:
        placed = _place(order, sources, regions, independent)
        if not isinstance(placed, int):
            kept = [op for op in order if op.name not in independent]
            if kept != [op for _, op in _by_place(placed, order) if op.name not in independent]:
                return []
            return _stages(placed, order, seconds)
        del regions[placed]
    return []


def without_branches(stages: Sequence[Stage], kept: Sequence[bool]) -> list[Stage]:
    """The stages in order; neighbours that are not kept become one stage of one branch."""
    found: list[Stage] = []
    for is_kept, run in groupby(zip(stages, kept, strict=True), lambda one: one[1]):
        together = [stage for stage, _ in run]
        if is_kept:
            found += together
        else:
            branches = [branch for stage in together for branch in stage]
            ops = [op for branch in branches for op in branch.ops]
            found.append([Branch(ops, sum(branch.seconds for branch in branches))])
    return found


def _regions(
    order: Sequence[Operation], sources: Sources, seconds: Mapping[str, float]
) -> list[_Region]:
    """The operations between two cuts, in branches."""
    limit = max(_LONG_S, sum(seconds.values()) / _MOST_NODES)
    needed = _needed(order, sources, {name for name, took in seconds.items() if took >= limit})
    names = list(needed)
    by_depth = sorted(range(len(names)), key=lambda number: needed[names[number]].bit_count())
    bits = [needed[names[number]] for number in by_depth]
    regions = []
    for start, stop in _between_cuts(by_depth, bits):
        groups = _components(by_depth[start:stop], bits[start:stop])
        if len(groups) > 1:
            branches = enumerate(groups)
            regions.append({names[n]: branch for branch, group in branches for n in group})
    return regions


def _needed(order: Sequence[Operation], sources: Sources, long: Collection[str]) -> dict[str, int]:
    """For each node that takes long, in order: which of these it needs, itself included."""
    found: dict[str, int] = {}
    by_all: dict[str, int] = {}
    for op in order:
        bits = reduce(or_, (by_all.get(source.name, 0) for source in sources(op)), 0)
        if op.name in long:
            bits |= 1 << len(found)
            found[op.name] = bits
        by_all[op.name] = bits
    return found


def _between_cuts(numbers: Sequence[int], needed: Sequence[int]) -> list[tuple[int, int]]:
    """The ranges of nodes between places where all later ones need all before."""
    common = [0] * len(numbers)  # to the nodes from each place on
    bits = -1
    for place in reversed(range(len(numbers))):
        bits &= needed[place]
        common[place] = bits
    cuts, before = [], 0
    for place, number in enumerate(numbers):
        if before & ~common[place] == 0:
            cuts.append(place)
        before |= 1 << number
    return list(pairwise([*cuts, len(numbers)]))


def _components(numbers: Sequence[int], needed: Sequence[int]) -> list[list[int]]:
    """Nodes in groups that do not need each other."""
    groups: list[int] = []
    inside = sum(1 << number for number in numbers)
    for number, bits in zip(numbers, needed, strict=True):
        group = (bits & inside) | 1 << number
        group |= reduce(or_, (other for other in groups if other & group), 0)
        groups = [other for other in groups if not other & group] + [group]
    return [[number for number in numbers if group >> number & 1] for group in groups]


def _is_worthwhile(region: _Region, seconds: Mapping[str, float], threads: int) -> bool:
    """Whether branches side by side would save time, if threads did not slow each other down."""
    branches: dict[int, float] = {}
    for name, branch in region.items():
        branches[branch] = branches.get(branch, 0.0) + seconds[name]
    total = sum(branches.values())
    saved = total - max(*branches.values(), total / threads)
    return saved >= max(_LEAST_SAVED_S, _LEAST_SAVED * total)


_Place = tuple[int, int]
"""A stage, and a branch in it; before, between and after the regions are stages of one branch."""


def _place(
    order: Sequence[Operation],
    sources: Sources,
    regions: Sequence[_Region],
    independent: Collection[str],
) -> dict[str, _Place] | int:
    """Where each node goes; the number of a region that this is not possible with."""
    fixed = {
        name: (2 * number + 1, branch)
        for number, region in enumerate(regions)
        for name, branch in region.items()
    }
    places: dict[str, _Place] = {}
    for op in order:
        ends = {places[source.name] for source in sources(op) if source.name in places}
        last = max((stage for stage, _ in ends), default=0)
        branches = {branch for stage, branch in ends if stage == last}
        is_free = op.name in independent
        if last % 2 and (len(branches) > 1 or not is_free):
            last, branches = last + 1, {0}
        place = last, min(branches, default=0)
        wanted = fixed.get(op.name)
        if wanted is not None and wanted != place:
            if last >= wanted[0] or not is_free:
                return wanted[0] // 2
            place = wanted
        places[op.name] = place
    return places


def _by_place(
    places: Mapping[str, _Place], order: Sequence[Operation]
) -> list[tuple[_Place, Operation]]:
    """The operations in the order in which they run if none run side by side."""
    placed = [(places[op.name], op) for op in order]
    return sorted(placed, key=lambda one: one[0][0])


def _stages(
    places: Mapping[str, _Place], order: Sequence[Operation], seconds: Mapping[str, float]
) -> list[Stage]:
    ops: dict[int, dict[int, list[Operation]]] = {}
    for (stage, branch), op in _by_place(places, order):
        ops.setdefault(stage, {}).setdefault(branch, []).append(op)
    return [
        [Branch(nodes, sum(seconds.get(op.name, 0.0) for op in nodes)) for nodes in stage.values()]
        for stage in ops.values()
    ]
