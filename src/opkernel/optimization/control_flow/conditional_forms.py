"""Which Merges give the result of a conditional, and what it depends on.

The inputs of such a Merge are alive under conditions that differ in one choice: each has another side of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_info import ROOT, control_flow_info
from opkernel.graph.core.control_flow_ops import ENTER_OPS
from opkernel.graph.core.edges import Edge, edges_of, is_head_of_loop
from opkernel.graph.edit.prune import Needs
from opkernel.optimization.clusters.deadness_analysis import DeadnessAnalysis
from opkernel.optimization.clusters.predicates import Predicate
from opkernel.records import dataclass


@dataclass(frozen=True)
class Side:
    """One side of a choice.

    Attributes:
        taken: The formula that is true where it is taken.
        inputs: Which input of each Merge is alive then.
    """

    taken: Predicate
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class ConditionalForm:
    """A conditional, or several with the same choice.

    Attributes:
        choice: The tensor that decides.
        is_index: Whether it is the number of a branch, and no truth value.
        sides: The sides in the order of their numbers; false is 0.
        alive: Where the conditional runs: all of these hold.
        merges: The Merges that give its results.
    """

    choice: Tensor
    is_index: bool
    sides: Sequence[Side]
    alive: frozenset[Predicate]
    merges: Sequence[Operation]

    def joined(self, other: ConditionalForm) -> ConditionalForm:
        """This one with the results of another one of the same choice."""
        sides = [
            Side(one.taken, one.inputs + two.inputs)
            for one, two in zip(self.sides, other.sides, strict=True)
        ]
        merges = [*self.merges, *other.merges]
        return ConditionalForm(self.choice, self.is_index, sides, self.alive, merges)

    @property
    def key(self) -> tuple[Edge, frozenset[Predicate]]:
        """Equal for conditionals with the same choice that run together."""
        return (self.choice.op, self.choice.value_index), self.alive


def conditional_forms(
    order: Sequence[Operation], analysis: DeadnessAnalysis
) -> list[list[ConditionalForm]]:
    """The conditionals outside of loops, those of one choice together; inner ones come before outer ones."""
    found: dict[tuple[Edge, frozenset[Predicate]], list[ConditionalForm]] = {}
    for merge in _outside_of_loops(order):
        if merge.type == "Merge" and not is_head_of_loop(merge):
            form = _form(merge, analysis)
            if form is not None:
                found.setdefault(form.key, []).append(form)
    return sorted(found.values(), key=lambda forms: -len(forms[0].alive))


def _outside_of_loops(order: Sequence[Operation]) -> Iterable[Operation]:
    if not any(op.type in ENTER_OPS for op in order):
        return order
    frames = control_flow_info(order, Needs(()))
    return [op for op in order if frames[op.name] is ROOT]


def _form(merge: Operation, analysis: DeadnessAnalysis) -> ConditionalForm | None:
    """The conditional whose result a Merge gives, if there is one."""
    conditions = [analysis.at(*edge).conjuncts for edge in edges_of(merge)]
    common = frozenset.intersection(*conditions)
    choices = [condition - common for condition in conditions]
    if merge.control_inputs or not all(len(choice) == 1 for choice in choices):
        return None
    sides: dict[int, Side] = {}
    tensors = set()
    for place, (taken,) in enumerate(choices):
        found = _side(taken, merge)
        if found is None:
            return None
        tensor, is_index, number = found
        tensors.add(tensor)
        sides[number] = Side(taken, (place,))
    (tensor, *others) = tensors
    count = _count(tensor, is_index)
    if others or len(sides) != len(choices) or sorted(sides) != [*range(count)]:
        return None
    in_order = [sides[number] for number in range(count)]
    return ConditionalForm(tensor, is_index, in_order, common, [merge])


def _side(taken: Predicate, merge: Operation) -> tuple[Tensor, bool, int] | None:
    """The tensor that decides, whether it is an index, and the side that a formula stands for."""
    symbol = taken.operands[0] if taken.kind == "not" else taken
    name = symbol.name
    if symbol.kind != "symbol" or not isinstance(name, tuple) or not isinstance(name[1], int):
        return None
    tensor = merge.graph.get_operation_by_name(name[0]).outputs[name[1]]
    is_index = len(name) == 3
    if is_index:
        return (tensor, True, name[2]) if taken is symbol else None
    return tensor, False, int(taken is symbol)


def _count(choice: Tensor, is_index: bool) -> int:
    """How many sides a choice has."""
    if not is_index:
        return 2
    switches = [op for op, place in choice.consumer_edges() if place == 1 and op.type == "_SwitchN"]
    return max(len(op.output_types) for op in switches)
