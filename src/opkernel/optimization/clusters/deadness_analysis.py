"""Deadness: under which condition each operation of a graph with control flow of TensorFlow 1 runs.

Operations that run under different conditions have no place in one cluster: a cluster runs as a whole, or not at all.
Predicates are formulas that say when a tensor is alive, in a form that makes equal ones the same object.

Source: TensorFlow compiler/jit/deadness_analysis.cc.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal

from opkernel.graph import Operation
from opkernel.graph.core.edges import edges_of, is_head_of_loop
from opkernel.graph.core.frame_loops import control_flow_info
from opkernel.graph.core.structural_ops import (
    EXIT_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    MAY_BE_DEAD_ALONE,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)
from opkernel.graph.edit.subgraph import Needs
from opkernel.graph.inference.constant_values import constant_value
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
        contradict = any(one.kind == "not" and one.operands[0] in operands for one in operands)
        if absorbing in operands or contradict:
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


_CONTROL = -1


class DeadnessAnalysis:
    """The conditions under which operations run.

    Args:
        order: The operations, inputs before consumers, except for back edges.
        through_identities: Whether a tensor and an Identity of it are one condition. TensorFlow tells them apart.

    Raises:
        InvalidArgumentError: the control flow is not in order.
    """

    def __init__(self, order: Sequence[Operation], *, through_identities: bool = False) -> None:
        self._through_identities = through_identities
        self._formulas = Predicates()
        self._found: dict[tuple[Operation, int], Predicate] = {}
        self._heads: dict[Operation, Predicate] = {}
        if any(op.type in LOW_LEVEL_CONTROL_FLOW for op in order):
            self._analyse(order)

    def of(self, op: Operation) -> Predicate:
        """The condition under which an operation runs."""
        return self._found.get((op, _CONTROL), self._formulas.true)

    def at(self, op: Operation, index: int) -> Predicate:
        """The condition under which an output of an operation is alive."""
        return self._found.get((op, index)) or self.of(op)

    def put(self, op: Operation, alive: Predicate) -> None:
        """Note the condition of an operation that was added."""
        self._found[op, _CONTROL] = alive

    def _analyse(self, order: Sequence[Operation]) -> None:
        frames = control_flow_info(order, Needs(()))
        waiting: dict[str, list[Operation]] = {}
        around: dict[str, set[str]] = {}
        for op in order:
            if is_head_of_loop(op):
                name = frames[op.name].name
                waiting.setdefault(name, []).append(op)
                around[name] = {frame.name for frame in frames[op.name].around}
                # As if all values of a loop were alive in the same turns.
                self._heads[op] = self._formulas.symbol(("turn", name))
        self._visit(order)
        while waiting:  # a loop that begins behind another is understood after it
            plain = [
                name
                for name, heads in waiting.items()
                if self._understand(name, heads, waiting.keys() - around[name])
            ]
            for name in plain or [next(iter(waiting))]:
                heads = waiting.pop(name)
                for op in () if plain else heads:
                    self._heads[op] = self._formulas.symbol(("turn", op.name))
            self._visit(order)

    def _understand(self, frame: str, heads: Sequence[Operation], others: Iterable[str]) -> bool:
        """Note the turns in which the values of a loop are alive, if these are the same for all.

        That is not known as long as they depend on what other loops give, which are not understood.
        """
        turns = {self._turns(op, frame) for op in heads}
        found = turns.pop()
        if turns or found is None:
            return False
        if any(found.mentions(self._formulas.symbol(("turn", name))) for name in others):
            return False
        supposed = self._heads[heads[0]]
        for op, alive in self._heads.items():
            self._heads[op] = self._formulas.replaced(alive, supposed, found)
        return True

    def _turns(self, head: Operation, frame: str) -> Predicate | None:
        """The turns in which the value of a loop is alive; None where that is not plain."""
        supposed = self._heads[head]
        backs = [s for s in _sources(head) if s[0].type in NEXT_ITERATION_OPS]
        start = self._start(head)
        back = self._formulas.any_of(self.at(*source) for source in backs)
        if back.kind != "and" or supposed not in back.operands:
            return None
        # What holds before the loop holds in all of its turns.
        known = {supposed, *start.conjuncts}
        step = self._formulas.all_of(one for one in back.operands if one not in known)
        if start.mentions(supposed) or step.mentions(supposed):
            return None
        return self._formulas.recurrence(start, step, frame)

    def _start(self, head: Operation) -> Predicate:
        """When the value of a loop is alive in the first turn."""
        starts = [s for s in _sources(head) if s[0].type not in NEXT_ITERATION_OPS]
        return self._formulas.any_of(self.at(*source) for source in starts)

    def _visit(self, order: Sequence[Operation]) -> None:
        self._found = {}
        for op in order:
            if op in self._heads:  # alive in no turn of a loop that does not begin
                alive = self._formulas.all_of([self._start(op), self._heads[op]])
            else:
                inputs = [self.at(*source) for source in _sources(op)]
                alive = self._runs(op, inputs)
            self._found[op, _CONTROL] = alive
            if op.type in SWITCH_OPS:
                self._branch(op, alive)

    def _runs(self, op: Operation, inputs: Sequence[Predicate]) -> Predicate:
        formulas = self._formulas
        if op.type in MERGE_OPS:
            count = len(op.edges) // 2
            return formulas.all_of([formulas.any_of(inputs[:count]), *inputs[count:]])
        if op.type == "ControlTrigger":
            return formulas.true
        if op.type in EXIT_OPS:
            return self._after_loop(op) or formulas.all_of(inputs)
        if op.type in MAY_BE_DEAD_ALONE - SWITCH_OPS:  # the other side may send a dead tensor
            return formulas.all_of([*inputs, formulas.symbol((op.name, "received"))])
        return formulas.all_of(inputs)

    def _after_loop(self, leave: Operation) -> Predicate | None:
        """An Exit is alive once if its loop has begun; None where the loop is not plain."""
        switch = leave.edges[0]
        turns = self._heads.get(switch.edges[0]) if switch.type in SWITCH_OPS else None
        return turns.operands[0] if turns is not None and turns.kind == "recurrence" else None

    def _branch(self, op: Operation, alive: Predicate) -> None:
        """The conditions under which the outputs of a Switch are alive."""
        formulas = self._formulas
        source, index = op.edges[2:4]
        while self._through_identities and source.traits.passes_on and not source.control_inputs:
            source, index = source.edges[:2]
        value = constant_value(source.node_def) if source.type == "Const" else None
        if op.type == "_SwitchN":
            for number in range(len(op.output_types)):
                chosen = formulas.symbol((source.name, index, number))
                self._found[op, number] = formulas.all_of([alive, chosen])
            return
        if value is None:
            taken = formulas.symbol((source.name, index))
        else:
            taken = formulas.true if bool(value) else formulas.false
        self._found[op, 0] = formulas.all_of([alive, formulas.negated(taken)])
        self._found[op, 1] = formulas.all_of([alive, taken])


def _sources(op: Operation) -> list[tuple[Operation, int]]:
    return [*edges_of(op), *((one, _CONTROL) for one in op.control_inputs)]
