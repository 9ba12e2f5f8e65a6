"""The statements of a compiled plan, before they are text: a tree, as Python's are.

`path` are the branches that a statement stands on; `bound_on` tells of each local the branches that
it is set on, so that it is known to be set wherever these are taken. `start` and `end` count the
statements, where `plan_source` cuts them into functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "Block",
    "Branch",
    "Branches",
    "Item",
    "Path",
    "Statement",
    "While",
    "first_mentions",
    "names_set",
]

Path = frozenset[tuple[int, int]]
"""The branches taken: predicates by their numbers, each with its branch."""


@dataclass(slots=True)
class Statement:
    """One statement: its text, the locals it reads and sets, the node it computes.

    Where there is a `before`, the locals that die are deleted between it and the text. `is_turn`:
    it gives the variables of a loop the values for the next turn. `dies` are the locals that
    nothing reads after it; `plan_lifetimes` finds them. `places` are locals that may take the result
    of the call that it is where they die: the last argument, behind `out`.
    """

    text: str
    reads: Sequence[str]
    sets: Sequence[str]
    node: int
    comment: str = ""
    before: str = ""
    is_turn: bool = False
    dies: Sequence[str] = ()
    places: Sequence[str] = ()
    out: str = ""
    start: int = 0
    end: int = 0


@dataclass(slots=True)
class Branch:
    """What is run where a test holds; without a test, where no other does.

    `dies` are the locals that are needed on other branches only.
    """

    test: str
    path: Path
    block: Block
    dies: Sequence[str] = ()


@dataclass(slots=True)
class Branches:
    """An `if` statement; the tests read the locals `reads`, of which those in `dies` die with it."""

    reads: Sequence[str]
    branches: list[Branch]
    node: int
    dies: Sequence[str] = ()
    start: int = 0
    end: int = 0


@dataclass(slots=True)
class While:
    """A loop: `condition`, a way out unless `test` holds, `body`.

    Attributes:
        test: What is tested.
        reads: The locals that the test reads.
        condition: What is run in every turn.
        body: What is run where the test holds.
        path: The branches that the loop stands on.
        node: The node that tests.
        body_dies: The locals that only the way out would need.
        dies: The locals that nothing reads after the loop.
        within: The context manager that it runs within, if there is one.
    """

    test: str
    reads: Sequence[str]
    condition: Block
    body: Block
    path: Path
    node: int
    body_dies: Sequence[str] = ()
    dies: Sequence[str] = ()
    within: str = ""
    start: int = 0
    end: int = 0

    @property
    def variables(self) -> Sequence[str]:
        """The locals that it hands on from turn to turn, and to what comes after it."""
        last = self.body[-1] if self.body else None
        return last.sets if isinstance(last, Statement) and last.is_turn else ()


Item = Statement | Branches | While
Block = list[Item]


def names_set(block: Block) -> dict[str, None]:
    """The locals that a block sets, in order."""
    found: dict[str, None] = {}
    for item in block:
        if isinstance(item, Statement):
            for name in item.sets:
                found[name] = None
        elif isinstance(item, Branches):
            for branch in item.branches:
                found.update(names_set(branch.block))
        else:
            found.update(names_set(item.condition))
            found.update(names_set(item.body))
    return found


def first_mentions(block: Block) -> dict[str, bool]:
    """The locals that a block mentions, in order; each with whether it is set before it is read."""
    found: dict[str, bool] = {}
    _add_mentions(block, found)
    return found


def _add_mentions(block: Block, found: dict[str, bool]) -> None:
    note = found.setdefault
    for item in block:
        if isinstance(item, While):
            for name in item.variables:
                note(name, False)
            _add_mentions(item.condition, found)
        for name in item.reads:
            note(name, False)
        if isinstance(item, Statement):
            for name in item.sets:
                note(name, True)
        elif isinstance(item, Branches):
            for branch in item.branches:
                _add_mentions(branch.block, found)
        else:
            _add_mentions(item.body, found)
