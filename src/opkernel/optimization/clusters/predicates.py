"""Predicates: formulas that say when a tensor is alive, in a form that makes equal ones the same object.

Source: TensorFlow compiler/jit/deadness_analysis.cc.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

from opkernel.records import dataclass

_Kind = Literal["and", "or", "not", "symbol", "recurrence"]


@dataclass(frozen=True, eq=False)
class Predicate:
    """A formula; two that are equal are one object.

    Attributes:
        kind: `and` and `or` of operands; `not` of one; a `symbol`, which is true or false; a `recurrence`: `operands`
            are the predicate of the first turn of a loop, and what each turn adds to that of the turn before.
        operands: The parts.
        name: Of a symbol, what it stands for; of a recurrence, its loop.
    """

    kind: _Kind
    operands: tuple[Predicate, ...] = ()
    name: Hashable = None

    def __str__(self) -> str:
        if self.kind == "symbol":
            return str(self.name)
        if self.kind == "not":
            return f"~{self.operands[0]}"
        if self.kind == "recurrence":
            start, step = self.operands
            return f"{{{start},&,{step}}}<{self.name}>"
        if not self.operands:
            return "#true" if self.kind == "and" else "#false"
        sign = " & " if self.kind == "and" else " | "
        return f"({sign.join(sorted(map(str, self.operands)))})"

    @property
    def conjuncts(self) -> frozenset[Predicate]:
        """The formulas that are all true where this one is."""
        return frozenset(self.operands if self.kind == "and" else (self,))

    def mentions(self, part: Predicate) -> bool:
        """Whether another formula is part of this one."""
        return self is part or any(one.mentions(part) for one in self.operands)


class Predicates:
    """Makes formulas, each of them once.

    Attributes:
        true, false: The formulas of all and of nothing.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Predicate] = {}
        self.true = self._one("and")
        self.false = self._one("or")

    def _one(
        self, kind: _Kind, operands: Iterable[Predicate] = (), name: Hashable = None
    ) -> Predicate:
        parts = tuple(operands)
        ids = tuple([id(part) for part in parts])
        key = (kind, frozenset(ids) if kind in ("and", "or") else ids, name)
        return self._known.setdefault(key, Predicate(kind, parts, name))

    def symbol(self, name: Hashable) -> Predicate:
        """The formula for something that may be true or false."""
        return self._one("symbol", name=name)

    def recurrence(self, start: Predicate, step: Predicate, frame: str) -> Predicate:
        """True in the first turn of a loop if `start` is, and in others if `step` was true before each."""
        return self._one("recurrence", (start, step), frame)

    def negated(self, one: Predicate) -> Predicate:
        """The formula that is true where another is not."""
        if one.kind == "not":
            return one.operands[0]
        if one.kind == "and":
            return self.any_of(map(self.negated, one.operands))
        if one.kind == "or":
            return self.all_of(map(self.negated, one.operands))
        return self._one("not", (one,))

    def all_of(self, parts: Iterable[Predicate]) -> Predicate:
        """The formula that is true where all of some are."""
        return self._joined("and", "or", parts)

    def any_of(self, parts: Iterable[Predicate]) -> Predicate:
        """The formula that is true where any of some is."""
        return self._joined("or", "and", parts)

    def replaced(self, one: Predicate, part: Predicate, by: Predicate) -> Predicate:
        """A formula with another formula in place of one that is part of it."""
        if one is part:
            return by
        if not one.mentions(part):
            return one
        parts = [self.replaced(operand, part, by) for operand in one.operands]
        if one.kind == "recurrence":
            return self._one("recurrence", parts, one.name)
        if one.kind == "not":
            return self.negated(parts[0])
        return self.all_of(parts) if one.kind == "and" else self.any_of(parts)

    def _joined(self, kind: _Kind, other: _Kind, parts: Iterable[Predicate]) -> Predicate:
        operands: dict[Predicate, None] = {}
        for part in parts:
            operands.update(dict.fromkeys(part.operands if part.kind == kind else (part,)))
        absorbing = self.false if kind == "and" else self.true
        if absorbing in operands or self._contradict(operands):
            return absorbing
        if kind == "and":  # what a loop's turns add to is said by the loop
            starts = set[Predicate]()
            for one in operands:
                starts |= one.operands[0].conjuncts if one.kind == "recurrence" else set()
            operands = {one: None for one in operands if one not in starts}
        if len(operands) == 1:
            return next(iter(operands))
        common = _common(other, operands)
        if not common:
            return self._one(kind, operands)
        rests = [self._without(one, common, other) for one in operands]
        return self._joined(other, kind, [*common, self._joined(kind, other, rests)])

    def _contradict(self, operands: Iterable[Predicate]) -> bool:
        """Whether one of some formulas is the opposite of another."""
        known = set(operands)
        return any(one.kind == "not" and one.operands[0] in known for one in known)

    def _without(self, one: Predicate, common: Iterable[Predicate], kind: _Kind) -> Predicate:
        parts = one.operands if one.kind == kind else (one,)
        rest = [part for part in parts if part not in common]
        return rest[0] if len(rest) == 1 else self._one(kind, rest)


def _common(other: _Kind, operands: Iterable[Predicate]) -> list[Predicate]:
    """The parts that all operands have: (a & b) | (a & c) is a & (b | c)."""
    lists = [one.operands if one.kind == other else (one,) for one in operands]
    if not lists:
        return []
    return [one for one in lists[0] if all(one in rest for rest in lists[1:])]
