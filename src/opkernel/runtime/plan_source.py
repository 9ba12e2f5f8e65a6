"""The functions of a compiled plan, as text.

A plan that is too long, or nested too deeply, is cut into several functions, which hand their live
locals on to one another. A local that is set on some branches only may then be handed on where it is
not bound; in such plans it is None instead.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from opkernel.runtime.plan_lifetimes import mark_lifetimes
from opkernel.runtime.plan_text import Line, TextWriter, tuple_text
from opkernel.runtime.plan_tree import (
    Block,
    Branches,
    Item,
    Path,
    Statement,
    While,
    first_mentions,
    names_set,
)

__all__ = ["Part", "write_parts"]

_LINES_A_PART = 1200  # compiling time and memory grow faster than linearly beyond
_MAX_DEPTH = 10  # of blocks in one function: Python allows 20 loops


@dataclass(slots=True)
class Part:
    """One function of the plan; `line_nodes[i]` is the node of line `i + 1`, or -1."""

    name: str
    text: str
    line_nodes: list[int]


def write_parts(
    block: Block, parameters: Sequence[str], results: Sequence[str], bound_on: Mapping[str, Path]
) -> list[Part]:
    """The functions that run a block; the last is the one to call.

    Args:
        block: The statements.
        parameters: The locals that are given.
        results: The names that hold what is returned.
        bound_on: The branches that each local is set on.
    """
    kept = set(results)
    mark_lifetimes(block, bound_on, kept)
    if _size(block) <= _LINES_A_PART and _depth(block) <= _MAX_DEPTH:
        return [_function("plan", parameters, TextWriter().block(block), results)]
    writer = _CuttingWriter(block, kept)
    lines = writer.block(block)
    first = writer.unbound(block, parameters)
    return [*writer.parts, _function("plan", parameters, [*first, *lines], results)]


def _blocks(item: Item) -> list[Block]:
    """The blocks that stand in a statement."""
    if isinstance(item, Statement):
        return []
    if isinstance(item, Branches):
        return [branch.block for branch in item.branches]
    return [item.condition, item.body]


def _size(block: Block) -> int:
    """How many statements there are in a block."""
    return sum(1 + sum(map(_size, _blocks(item))) for item in block)


def _depth(block: Block) -> int:
    """How deeply blocks are nested, this one included."""
    return 1 + max((_depth(inner) for item in block for inner in _blocks(item)), default=0)


class _CuttingWriter(TextWriter):
    """Writes blocks that are too large as calls of functions, which it collects in `parts`.

    Args:
        block: The whole plan.
        kept: The locals that it returns.
    """

    def __init__(self, block: Block, kept: Collection[str]) -> None:
        self._conditional = set(_set_on_branches(block))
        super().__init__(self._conditional)
        self.parts: list[Part] = []
        self._kept = kept
        self._depth = 0
        self._lines = _LINES_A_PART  # that the block under way may have
        self._inside: set[str] = set()  # the locals that parts set and do not return
        self._handed_on: set[str] = set()  # those that parts are given
        self._first_mention: dict[str, int] = {}  # of those that are set on branches
        self._last_mention: dict[str, int] = {}
        self._number(block, count())

    def block(self, block: Block) -> list[Line]:
        """The lines of a block, or calls of functions that have them."""
        depth, limit = self._depth, self._lines
        is_deep = depth == _MAX_DEPTH
        self._depth = 1 if is_deep else depth + 1
        calls: list[Line] = []
        chunk: Block = []
        together: list[Line] = []
        for item in block:
            lines = self.item(item)
            if chunk and len(together) + len(lines) > _LINES_A_PART:
                calls.append(self._call(chunk, together))
                chunk, together = [], []
            chunk.append(item)
            together += lines
        self._depth = depth
        if not calls and len(together) <= limit and not is_deep:
            return together
        return [*calls, self._call(chunk, together)] if chunk else []

    def item(self, item: Item) -> list[Line]:
        """The lines of one statement; its blocks share the lines that it may have."""
        if isinstance(item, Statement):
            return super().item(item)
        limit = self._lines
        self._lines = limit // max(len(_blocks(item)), 1)
        lines = super().item(item)
        self._lines = limit
        return lines

    def unbound(self, block: Block, parameters: Collection[str]) -> list[Line]:
        """What makes the locals None that a function may hand on without having set them."""
        if not self._conditional:
            return []
        unset = [
            name
            for name in names_set(block)
            if name in self._conditional and name not in parameters
        ]
        unset = [n for n in unset if n not in self._inside or n in self._handed_on]
        return [(f"{' = '.join([*unset, 'None'])}", -1)] if unset else []

    def _call(self, chunk: Block, lines: list[Line]) -> Line:
        """A call of a new function for some statements."""
        own, taken, end = names_set(chunk), self._taken(chunk), chunk[-1].end
        last = chunk[-1]
        turn = last.sets if isinstance(last, Statement) and last.is_turn else ()
        dying, lasting = set(_dying(chunk)), {*turn, *self._kept}
        lasting.update(n for n in own if self._last_mention[n] > end and n not in dying)
        given = [name for name in own if name in lasting]
        name = f"part_{len(self.parts)}"
        lines = [*self.unbound(chunk, taken), *lines]
        self.parts.append(_function(name, taken, lines, given))
        self._inside.update(own.keys() - given)
        self._handed_on.update(taken)
        call = f"{name}({', '.join(['step', *taken])})"
        dead = self.deletions([name for name in taken if name in dying and name not in lasting])
        return "; ".join([f"{tuple_text(given)} = {call}" if given else call, *dead]), -1

    def _taken(self, chunk: Block) -> list[str]:
        """The locals that statements want from before.

        These are what they read before they set it, and what other branches have set.
        """
        start = chunk[0].start
        return [
            name
            for name, is_set in first_mentions(chunk).items()
            if not is_set or (name in self._conditional and self._first_mention[name] < start)
        ]

    def _number(self, block: Block, numbers: Iterator[int]) -> None:
        """Note where each statement begins and ends, and where each local is mentioned."""
        conditional, first, last = self._conditional, self._first_mention, self._last_mention
        for item in block:
            item.start = item.end = next(numbers)
            names = item.reads
            if isinstance(item, Statement):
                names = (*names, *item.sets)
            else:
                for inner in _blocks(item):
                    self._number(inner, numbers)
                item.end = next(numbers)
            for name in names:
                last[name] = item.end
            if not conditional.isdisjoint(names):
                for name in conditional.intersection(names):
                    first.setdefault(name, item.end)


def _set_on_branches(block: Block) -> Iterator[str]:
    """The locals that are set on some branch and outlive it."""
    for item in block:
        if isinstance(item, Branches):
            for branch in item.branches:
                yield from names_set(branch.block).keys() - _dying(branch.block)
        for inner in _blocks(item):
            yield from _set_on_branches(inner)


def _dying(block: Block) -> Iterator[str]:
    """All locals that die in a block, but for those that a loop sets again at its next turn."""
    for item in block:
        yield from item.dies
        inside = [name for inner in _blocks(item) for name in _dying(inner)]
        if isinstance(item, Branches):
            for branch in item.branches:
                yield from branch.dies
            yield from inside
        elif isinstance(item, While):
            yield from (name for name in inside if name not in item.variables)


def _function(
    name: str, parameters: Sequence[str], body: Sequence[Line], results: Sequence[str]
) -> Part:
    lines = [(f"def {name}({', '.join(['step', *parameters])}):", -1)]
    lines += [("    " + text, node) for text, node in body]
    lines.append((f"    return {tuple_text(results)}", -1))
    text = "".join(f"{text}\n" for text, _ in lines)
    return Part(name, text, [node for _, node in lines])
