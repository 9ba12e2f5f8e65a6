"""Deadness: under which condition each operation of a graph with control flow of TensorFlow 1 runs.

Operations that run under different conditions have no place in one cluster: a cluster runs as a whole, or not at all.

Source: TensorFlow compiler/jit/deadness_analysis.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opkernel.graph import Operation
from opkernel.graph.core.control_flow_info import LoopFrame, control_flow_info
from opkernel.graph.core.control_flow_ops import (
    EXIT_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
)
from opkernel.graph.edit.graph_edit import MAY_BE_DEAD_ALONE
from opkernel.graph.edit.prune import Needs
from opkernel.graph.inference.constant_values import constant_value
from opkernel.optimization.clusters.predicates import Predicate, Predicates

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
            if _is_head(op):
                name = frames[op.name].name
                waiting.setdefault(name, []).append(op)
                around[name] = _around(frames[op.name])
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
                if not plain:
                    self._heads.update(
                        (op, self._formulas.symbol(("turn", op.name))) for op in heads
                    )
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


def _around(frame: LoopFrame) -> set[str]:
    """The names of the loops around a loop."""
    names, parent = set[str](), frame.parent
    while parent is not None:
        names.add(parent.name)
        parent = parent.parent
    return names


def _is_head(op: Operation) -> bool:
    return op.type in MERGE_OPS and any(one.type in NEXT_ITERATION_OPS for one in op.edges[::2])


def _sources(op: Operation) -> list[tuple[Operation, int]]:
    edges = zip(op.edges[::2], op.edges[1::2], strict=True)
    return [*edges, *((one, _CONTROL) for one in op.control_inputs)]
