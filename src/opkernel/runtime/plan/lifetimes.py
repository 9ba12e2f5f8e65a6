"""Where the locals of a plan die: each is deleted as soon as nothing reads it any more.

A local is read only after it is set, within one turn of a loop. Only the variables of the loop live on to
the next turn. So a local dies at its last mention. If that is an `if` statement, the local dies on each
branch: at its last mention there, or at the start of the branch. A local from outside of a loop dies
behind the loop. A local that is set on a branch may be unbound elsewhere, and is deleted on that branch
only.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from opkernel.runtime.plan import tree
from opkernel.runtime.plan.tree import Block, Branches, Name, Path, Statement, While

_Names = dict[str, None]
"""Names in the order in which they were found."""


def mark_lifetimes(block: Block, bound_on: Mapping[str, Path], kept: Collection[str]) -> None:
    """Set in the statements of a plan what dies where; `kept` are locals that live to its end."""
    _Lifetimes(bound_on).block(block, frozenset(), (kept,))


def first_mentions(block: Block, found: dict[Name, bool] | None = None) -> dict[Name, bool]:
    """The locals that a block mentions, in order; each with whether it is set before it is read.

    They are added to the locals `found` before.
    """
    found = {} if found is None else found
    note = found.setdefault
    for item in block:
        if isinstance(item, While):
            for name in item.variables:
                note(name, False)
            first_mentions(item.condition, found)
        for name in item.reads:
            note(name, False)
        if isinstance(item, Statement):
            for name in item.sets:
                note(name, True)
        elif isinstance(item, Branches):
            for branch in item.branches:
                first_mentions(branch.block, found)
        else:
            first_mentions(item.body, found)
    return found


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
        if (
            isinstance(item, tree.Assign) and item.is_turn
        ):  # locals that it sets live on, at the head of the loop
            names = dict.fromkeys(item.reads)
            later = (item.sets, *later)
        else:
            names = dict.fromkeys((*item.reads, *item.sets))
        dying = self._dying(names, path, later)
        item.releases = item.reads if dying == item.reads else dying
        return names

    def _branches(self, item: Branches, path: Path, later: tuple[Collection[str], ...]) -> _Names:
        tested = dict.fromkeys(item.reads)
        item.releases = self._dying(tested, path, later)
        later = (tested, *later)
        of_branch = [self.block(b.block, b.path, later) for b in item.branches]
        found = {name: None for names in of_branch for name in names}
        for branch, names in zip(item.branches, of_branch, strict=True):
            branch.releases = self._dying(found, branch.path, (names, *later))
        if item.branches[-1].test is not None:
            dies = self._dying(found, path, later)
            if dies:
                item.branches.append(tree.Branch(None, path, [], dies))
        return tested | found

    def _while(self, item: While, later: tuple[Collection[str], ...]) -> _Names:
        inside = tree.names_set([item])
        outside = {name: None for name in first_mentions([item]) if name not in inside}
        tested = dict.fromkeys(item.reads)
        body = self.block(item.body, item.path, (outside,))
        needed = (tested, body, outside, *later)
        condition = self.block(item.condition, item.path, needed)
        alive = [name for name in item.variables if name not in condition]
        alive += [n for n in dict.fromkeys((*condition, *tested)) if any(n in x for x in needed)]
        alive = [name for name in alive if name in inside]
        item.body_releases = self._dying(alive, item.path, (body,))
        item.releases = self._dying([*alive, *outside], item.path, later)
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
