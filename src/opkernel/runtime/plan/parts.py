"""Plans cut into several functions.

A plan that is too long, or nested too deeply, is cut into several functions, which hand their live
locals on to one another. A local that is set on some branches only may then be handed on where it is
not bound; in such plans it is None instead.
"""

from collections.abc import Iterator
from copy import copy
from itertools import count

from opkernel.runtime.plan import compiled_plan, tree
from opkernel.runtime.plan.lifetimes import first_mentions
from opkernel.runtime.plan.text import deletions
from opkernel.runtime.plan.tree import (
    Block,
    Branches,
    Name,
    PlanFunction,
    Statement,
    While,
    blocks_of,
)


def cut(plan: tree.PlanTree) -> list[PlanFunction]:
    """The functions of a plan that is too large for one; the last, `plan`, is the one to call."""
    cutter = _Cutter(plan)
    block = cutter.block(plan.block)
    return [*cutter.parts, cutter.function(plan, block)]


class _Cutter:
    """Replaces parts that are too large by calls of functions, and collects these functions in `parts`."""

    def __init__(self, plan: tree.PlanTree) -> None:
        self.parts: list[PlanFunction] = []
        self._conditional = frozenset(_set_on_branches(plan.block))
        self._kept = set(plan.results)
        self._depth = 0
        self._lines = compiled_plan.LINES_A_PART  # that the block under way may have
        self._inside: set[Name] = set()  # the locals that parts set and do not return
        self._handed_on: set[Name] = set()  # those that parts are given
        self._first_mention: dict[Name, int] = {}  # of locals that are set on branches
        self._last_mention: dict[Name, int] = {}
        self._places: dict[int, tuple[int, int]] = {}  # of items, by their ids: start and end
        self._number(plan.block, count())

    def block(self, block: Block) -> Block:
        """A block that is small enough, in which parts may be called."""
        depth, limit = self._depth, self._lines
        is_deep = depth == compiled_plan.MAX_DEPTH
        self._depth = 1 if is_deep else depth + 1
        calls: Block = []
        chunk: Block = []
        together: Block = []
        length = 0
        for item in block:
            cut, lines = item, 1
            if not isinstance(item, Statement):
                cut = larger = self._smaller(item)
                lines = self._length(larger)
            if chunk and length + lines > compiled_plan.LINES_A_PART:
                calls.append(self._call(chunk, together))
                chunk, together, length = [], [], 0
            chunk.append(item)
            together.append(cut)
            length += lines
        self._depth = depth
        if not calls and length <= limit and not is_deep:
            return together
        return [*calls, self._call(chunk, together)] if chunk else []

    def _smaller(self, item: Branches | While) -> Branches | While:
        """An item with blocks that are small enough; they share the lines that it may have."""
        limit = self._lines
        self._lines = limit // max(len(blocks_of(item)), 1)
        cut = copy(item)
        if isinstance(cut, Branches):
            cut.branches = [copy(branch) for branch in cut.branches]
            for branch in cut.branches:
                branch.block = self.block(branch.block)
        else:
            cut.condition, cut.body = self.block(cut.condition), self.block(cut.body)
        self._lines = limit
        return cut

    def _length(self, item: Branches | While) -> int:
        """How many lines an item has."""
        length = 0
        for block in blocks_of(item):
            larger = [self._length(one) - 1 for one in block if not isinstance(one, Statement)]
            length += len(block) + sum(larger)
        length += len(deletions(item.releases, self._conditional))
        if isinstance(item, While):
            return length + 3 + bool(item.within)
        releases = [deletions(one.releases, self._conditional) for one in item.branches]
        blocks = zip(releases, blocks_of(item), strict=True)
        return length + sum(1 + (len(texts) or not block) for texts, block in blocks)

    def function(self, function: PlanFunction, block: Block) -> PlanFunction:
        """A function with its block cut. Locals that it hands on but may not set are None at first."""
        conditional, inside, handed_on = self._conditional, self._inside, self._handed_on
        own = tree.names_set(function.block) if conditional else {}
        unset = [
            name
            for name in own
            if name in conditional
            and name not in function.parameters
            and (name not in inside or name in handed_on)
        ]
        cut = PlanFunction(function.name, function.parameters, block, function.results)
        cut.unset, cut.cleared = unset, self._conditional
        return cut

    def _call(self, chunk: Block, block: Block) -> tree.Call:
        """A call of a new function for some items."""
        own, taken, end = tree.names_set(chunk), self._taken(chunk), self._places[id(chunk[-1])][1]
        last = chunk[-1]
        turn = last.sets if isinstance(last, tree.Assign) and last.is_turn else ()
        dying, lasting = _dying(chunk), {*turn, *self._kept}
        lasting.update(n for n in own if self._last_mention[n] > end and n not in dying)
        given = tuple([name for name in own if name in lasting])
        name = f"_part_{len(self.parts)}"  # nothing of a model begins so
        part = PlanFunction(name, ["step", *taken], chunk, given)
        self.parts.append(self.function(part, block))
        self._inside.update(own.keys() - set(given))
        self._handed_on.update(taken)
        call = tree.Call(None, (), given, name, part.parameters, given)
        call.reads = taken
        call.releases = [name for name in taken if name in dying and name not in lasting]
        return call

    def _taken(self, chunk: Block) -> list[Name]:
        """The locals that items want from before.

        These are what they read before they set it, and what other branches have set.
        """
        start = self._places[id(chunk[0])][0]
        return [
            name
            for name, is_set in first_mentions(chunk).items()
            if not is_set or (name in self._conditional and self._first_mention[name] < start)
        ]

    def _number(self, block: Block, numbers: Iterator[int]) -> None:
        """Note where each item begins and ends, and where each local is mentioned."""
        conditional, first, last = self._conditional, self._first_mention, self._last_mention
        for item in block:
            start = end = next(numbers)
            names = item.reads
            if isinstance(item, Statement):
                names = (*names, *item.sets)
            else:
                for inner in blocks_of(item):
                    self._number(inner, numbers)
                end = next(numbers)
            self._places[id(item)] = start, end
            for name in names:
                last[name] = end
                if name in conditional:
                    first.setdefault(name, end)


def _set_on_branches(block: Block) -> Iterator[Name]:
    """The locals that are set on some branch and outlive it."""
    for item in block:
        if isinstance(item, Branches):
            for branch in item.branches:
                yield from tree.names_set(branch.block).keys() - _dying(branch.block)
    for inner in compiled_plan.inner_blocks(block):
        yield from _set_on_branches(inner)


def _dying(block: Block) -> set[Name]:
    """All locals that die in a block, except those that a loop sets again at its next turn."""
    found: set[Name] = set()
    for item in block:
        found.update(item.releases)
        if isinstance(item, Statement):
            continue
        inside = set[Name]().union(*map(_dying, blocks_of(item)))
        if isinstance(item, Branches):
            for branch in item.branches:
                found.update(branch.releases)
        else:
            inside.difference_update(item.variables)
        found |= inside
    return found
