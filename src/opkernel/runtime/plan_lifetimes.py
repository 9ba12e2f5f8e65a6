"""Where the locals of a plan die: each is deleted as soon as nothing reads it any more.

A local is read only behind where it is set, within one turn of a loop, but for the variables of the
loop, which live on to the next turn. So the last place that mentions it is where it dies; if that is
an `if` statement, it dies on each branch for itself, at the last mention there or at its start. What
comes from outside of a loop dies behind the loop. A local that may be unbound, for it is set on a
branch, is deleted on that branch only.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from opkernel.runtime.plan_tree import (
    Block,
    Branch,
    Branches,
    Path,
    Statement,
    While,
    first_mentions,
    names_set,
)

__all__ = ["mark_lifetimes"]

_Names = dict[str, None]
"""Names in the order in which they were found."""


def mark_lifetimes(block: Block, bound_on: Mapping[str, Path], kept: Collection[str]) -> None:
    """Set in the statements of a plan what dies where; `kept` are locals that live to its end."""
    _Lifetimes(bound_on).block(block, frozenset(), (kept,))


class _Lifetimes:
    """Walks backwards; `later` are the collections of names that are needed afterwards."""

    def __init__(self, bound_on: Mapping[str, Path]) -> None:
        self._bound_on = bound_on

    def block(self, block: Block, path: Path, later: tuple[Collection[str], ...]) -> _Names:
        """Mark a block; the names that it needs from before, or mentions."""
        found: _Names = {}
        later = (found, *later)
        for item in reversed(block):
            if isinstance(item, Statement):
                names = self._statement(item, path, later)
            elif isinstance(item, Branches):
                names = self._branches(item, path, later)
            else:
                names = self._while(item, later)
            found.update(names)
        return found

    def _statement(self, item: Statement, path: Path, later: tuple[Collection[str], ...]) -> _Names:
        if item.is_turn:  # what it sets lives on, at the head of the loop
            names = dict.fromkeys(item.reads)
            later = (item.sets, *later)
        else:
            names = dict.fromkeys((*item.reads, *item.sets))
        item.dies = self._dying(names, path, later)
        return names

    def _branches(self, item: Branches, path: Path, later: tuple[Collection[str], ...]) -> _Names:
        tested = dict.fromkeys(item.reads)
        item.dies = self._dying(tested, path, later)
        later = (tested, *later)
        of_branch = [self.block(b.block, b.path, later) for b in item.branches]
        found = {name: None for names in of_branch for name in names}
        for branch, names in zip(item.branches, of_branch, strict=True):
            branch.dies = self._dying(found, branch.path, (names, *later))
        if item.branches[-1].test:
            dies = self._dying(found, path, later)
            if dies:
                item.branches.append(Branch("", path, [], dies))
        return tested | found

    def _while(self, item: While, later: tuple[Collection[str], ...]) -> _Names:
        inside = names_set([item])
        outside = {name: None for name in first_mentions([item]) if name not in inside}
        tested = dict.fromkeys(item.reads)
        body = self.block(item.body, item.path, (outside,))
        needed = (tested, body, outside, *later)
        condition = self.block(item.condition, item.path, needed)
        alive = [name for name in item.variables if name not in condition]
        alive += [n for n in dict.fromkeys((*condition, *tested)) if any(n in x for x in needed)]
        alive = [name for name in alive if name in inside]
        item.body_dies = self._dying(alive, item.path, (body,))
        item.dies = self._dying([*alive, *outside], item.path, later)
        return outside | dict.fromkeys(item.variables)

    def _dying(
        self, names: Iterable[str], path: Path, later: tuple[Collection[str], ...]
    ) -> Sequence[str]:
        """The names that are bound on a path and not needed later."""
        dying = []
        for name in names:
            for needed in later:
                if name in needed:
                    break
            else:
                if self._bound_on[name] <= path:
                    dying.append(name)
        return tuple(dying)
