"""Contexts: on which branches of which Switches an operation stands.

A context is a conjunction, with a pair `(predicate, branch)` for each Switch that an operation is behind.
Predicates have numbers, and stand in their order. A predicate that is computed behind others has a
greater number than these, so that contexts nest in this order.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import Literal

from opkernel.graph import Operation, Tensor
from opkernel.records import dataclass

Context = tuple[tuple[int, int], ...]

ALWAYS: Context = ()


@dataclass(frozen=True, slots=True)
class Predicate:
    """The tensor that decides between branches.

    Attributes:
        number: Its place among the predicates of the graph.
        kind: `bool` chooses branch 1 or 0, `index` a branch by its number, as `_SwitchN` does;
            `alive` is 1 where the value of a Merge is alive.
        tensor: The tensor that is looked at.
        branches: The number of branches.
        op: The Switch or Merge.
    """

    number: int
    kind: Literal["bool", "index", "alive"]
    tensor: Tensor
    branches: int
    op: Operation


def both(a: Context | None, b: Context | None) -> Context | None:
    """Where two contexts hold; None for nowhere."""
    if a is None or b is None:
        return None
    if a == b or not b:
        return a
    if not a:
        return b
    chosen = dict(a)
    for number, branch in b:
        if chosen.setdefault(number, branch) != branch:
            return None
    return tuple(sorted(chosen.items()))


def all_of(contexts: Iterable[Context | None]) -> Context | None:
    """Where all of some contexts hold."""
    found: Context | None = ALWAYS
    for context in contexts:
        found = both(found, context)
    return found


def either(contexts: Collection[Context], predicates: Sequence[Predicate]) -> Context | None:
    """The context that holds where any of some does; None if there is no such conjunction."""
    found = _without_implied(set(contexts))
    while len(found) > 1:
        for context in found:
            rest = _without_a_choice(context, found, predicates)
            if rest is not None:
                found = _without_implied(found | {rest})
                break
        else:
            return None
    return found.pop()


def _without_implied(contexts: set[Context]) -> set[Context]:
    """The contexts, without those that hold only where another one holds."""
    return {c for c in contexts if not any(o != c and both(o, c) == c for o in contexts)}


def _without_a_choice(
    context: Context, found: set[Context], predicates: Sequence[Predicate]
) -> Context | None:
    """A context less one of its predicates, where all branches of that are there."""
    for place, (number, _) in enumerate(context):
        before, behind = context[:place], context[place + 1 :]
        branches = range(predicates[number].branches)
        if all((*before, (number, branch), *behind) in found for branch in branches):
            return before + behind
    return None


def are_exclusive(contexts: Collection[Context]) -> bool:
    """Whether no two of some contexts hold at a time."""
    return all(both(a, b) is None for a, b in combinations(contexts, 2))
