"""The statements of a compiled plan, before they are text: a tree, as Python's are.

`path` are the branches that a statement stands on; `bound_on` tells of each local the branches that
it is set on, so that it is known to be set wherever these are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Block", "Branch", "Branches", "Item", "Path", "Statement", "While", "mentions"]

Path = frozenset[tuple[int, int]]
"""The branches taken: predicates by their numbers, each with its branch."""


@dataclass(slots=True)
class Statement:
    """One statement: its text, the locals it reads and sets, the node it computes.

    Where there is a `before`, the locals that die are deleted between it and the text. `is_turn`:
    it gives the variables of a loop the values for the next turn. `dies` are the locals that
    nothing reads after it; `plan_lifetimes` finds them. `places` are locals that may take its result
    where they die, each with the text that writes into it.
    """

    text: str
    reads: Sequence[str]
    sets: Sequence[str]
    node: int
    comment: str = ""
    before: str = ""
    is_turn: bool = False
    dies: Sequence[str] = ()
    places: Mapping[str, str] | None = None


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

    @property
    def variables(self) -> Sequence[str]:
        """The locals that it hands on from turn to turn, and to what comes after it."""
        last = self.body[-1] if self.body else None
        return last.sets if isinstance(last, Statement) and last.is_turn else ()


Item = Statement | Branches | While
Block = list[Item]


def mentions(block: Block) -> list[tuple[str, bool]]:
    """The locals that a block mentions, in order; each with whether it is set there."""
    found: list[tuple[str, bool]] = []
    for item in block:
        if isinstance(item, Statement):
            found += [(name, False) for name in item.reads]
            found += [(name, True) for name in item.sets]
        elif isinstance(item, Branches):
            found += [(name, False) for name in item.reads]
            for branch in item.branches:
                found += mentions(branch.block)
        else:
            found += [(name, False) for name in item.variables]
            found += mentions(item.condition)
            found += [(name, False) for name in item.reads]
            found += mentions(item.body)
    return found
