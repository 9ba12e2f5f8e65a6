"""Conditionals of TensorFlow 1 that become If and Case, innermost first.

The operations between Switches and Merges become branches. Operations that something else needs as well stay, too,
unless they have effects; then the conditional stays. The inputs of a Merge that gives the result of a conditional are
alive under conditions that differ in one choice: each has another side of it.

Source: TensorFlow compiler/tf2xla/functionalize_cond.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.edges import Edge, behind, edges_of, is_head_of_loop, reached
from opkernel.graph.core.frame_loops import ROOT, ControlFlowFormError, control_flow_info
from opkernel.graph.core.structural_ops import (
    ENTER_OPS,
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    SWITCH_OPS,
)
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.subgraph import Needs
from opkernel.graph.inference.constant_values import is_small_constant
from opkernel.optimization.clusters.deadness_analysis import DeadnessAnalysis, Predicate
from opkernel.optimization.control_flow.extracted_function import (
    ExtractedFunction,
    check_may_move,
    device_of,
    scope_of,
)
from opkernel.proto import FunctionDef, NameAttrList
from opkernel.records import dataclass
from opkernel.types import DataType


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
    has_loops = any(op.type in ENTER_OPS for op in order)
    frames = control_flow_info(order, Needs(())) if has_loops else {}
    for merge in order:
        is_outside = frames.get(merge.name, ROOT) is ROOT
        if merge.type == "Merge" and is_outside and not is_head_of_loop(merge):
            form = _form(merge, analysis)
            if form is not None:
                found.setdefault(form.key, []).append(form)
    return sorted(found.values(), key=lambda forms: -len(forms[0].alive))


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


def functionalize_cond(editor: GraphEditor) -> None:
    """Have conditionals outside of loops become If or Case.

    Raises:
        OpError: the control flow of the graph is not in order; nothing was changed.
    """
    order = editor.operations()
    if not any(op.type in MERGE_OPS for op in order):
        return
    analysis = DeadnessAnalysis(order, through_identities=True)
    for forms in conditional_forms(order, analysis):
        for form in _independent(forms):
            try:
                _Conditional(editor, analysis, form).replace()
            except OpError as error:
                editor.note(form.merges[0], f"stays the end of a conditional: {error.message}")


def _independent(forms: Sequence[ConditionalForm]) -> Iterator[ConditionalForm]:
    """Conditionals with the same choice as one, where none depends on another.

    Each is replaced before the next is asked for, so that dependences are those of the graph of then.
    """
    joined, after = forms[0], behind(forms[0].merges)
    for form in forms[1:]:
        after_form = behind(form.merges)
        if after.isdisjoint(form.merges) and after_form.isdisjoint(joined.merges):
            joined, after = joined.joined(form), after | after_form
        else:
            yield joined
            joined, after = form, behind(form.merges)
    yield joined


class _Branch:
    """One side of a conditional.

    Attributes:
        members: The operations that become the function.
        outside: The tensors from outside, each with the tensors that it is on this side.
        waits: The operations outside that some inside wait for.
    """

    def __init__(self, analysis: DeadnessAnalysis, merges: Sequence[Operation], side: Side) -> None:
        self._analysis, self._taken = analysis, side.taken
        self.results = [
            edges_of(merge)[place] for merge, place in zip(merges, side.inputs, strict=True)
        ]
        self.waits: dict[Operation, None] = {}
        self.outside: dict[Tensor, dict[Tensor, None]] = {}
        starts = [op for op, _ in self.results if self._is_inside(op)]
        self.members = reached(starts, self._sources)
        for edge in (*self.results, *(edge for op in self.members for edge in edges_of(op))):
            if edge[0] not in self.members:
                self._take(edge)

    def _is_inside(self, op: Operation) -> bool:
        return self._taken in self._analysis.of(op).conjuncts

    def _sources(self, op: Operation) -> list[Operation]:
        """What an operation needs inside."""
        found = [source for source in op.edges[::2] if self._is_inside(source)]
        for control in op.control_inputs:
            if self._is_pivot(control):
                self.waits.update(dict.fromkeys(control.edges[0].control_inputs))
            elif self._is_inside(control):
                found.append(control)
            else:
                self.waits[control] = None
        return found

    def _is_pivot(self, op: Operation) -> bool:
        """Whether an operation does nothing but tell others that this side is taken."""
        if not op.traits.passes_on or op.control_inputs or not self._is_inside(op):
            return False
        switch = op.edges[0]
        return switch.type in SWITCH_OPS and switch.edges[:2] == switch.edges[2:]

    def _take(self, edge: Edge) -> None:
        """Note a tensor that comes from outside."""
        op, index = edge
        tensor = outside = op.outputs[index]
        if op.type in SWITCH_OPS and self._taken in self._analysis.at(op, index).conjuncts:
            outside = op.inputs[0]
            self.waits.update(dict.fromkeys(op.control_inputs))
        self.outside.setdefault(outside, {})[tensor] = None


class _Conditional:
    """A conditional, looked at for what an If needs."""

    def __init__(
        self, editor: GraphEditor, analysis: DeadnessAnalysis, form: ConditionalForm
    ) -> None:
        self._editor, self._analysis, self._form = editor, analysis, form
        self._branches = [_Branch(analysis, form.merges, side) for side in form.sides]
        outside = dict.fromkeys([one for branch in self._branches for one in branch.outside])
        self._inputs = [tensor for tensor in outside if not is_small_constant(tensor.op)]
        self._constants = [tensor for tensor in outside if is_small_constant(tensor.op)]
        self._waits = dict.fromkeys([one for branch in self._branches for one in branch.waits])
        self._places = [
            merge in editor.preserved or bool(merge.outputs[1].consumer_edges())
            for merge in form.merges
        ]

    # What has to hold.

    def _check(self) -> None:
        """Raise ControlFlowFormError where the operations are no branches of an `if` statement."""
        members = set().union(*[branch.members for branch in self._branches])
        for merge in self._form.merges:
            check_may_move(self._editor, merge, is_preserved=False)
        for op in members:
            check_may_move(self._editor, op, is_preserved=False)
            if op.type in LOW_LEVEL_CONTROL_FLOW and op.type != "ControlTrigger":
                raise ControlFlowFormError("it is on a branch, and of odd form", op)
            if effect_of(op.signature) is not Effect.PURE and self._is_needed_outside(op, members):
                raise ControlFlowFormError("it has an effect, and something else needs it", op)
        tensors = [self._form.choice, *self._inputs]
        found = [self._analysis.at(one.op, one.value_index).conjuncts for one in tensors]
        found += [self._analysis.of(one).conjuncts for one in self._waits]
        if frozenset().union(*found) != self._form.alive:
            raise ControlFlowFormError(
                "its branches depend on more than a choice", self._form.merges[0]
            )

    def _is_needed_outside(self, op: Operation, members: set[Operation]) -> bool:
        if op in self._editor.preserved:
            return True
        inside = members.union(self._form.merges)
        others = {one for one, _ in op.consumer_edges() if one not in inside}
        return bool(others) and not others.isdisjoint(self._editor.operations())

    # The If.

    def replace(self) -> None:
        """Put an If or a Case in the place of the conditional.

        Raises:
            ControlFlowFormError: it has no such form.
        """
        self._check()
        functions = [self._function(number, branch) for number, branch in enumerate(self._branches)]
        names = [NameAttrList(name=one.signature.name) for one in functions]
        kind: str
        attrs: dict[str, Any]
        kind, attrs = "If", {"else_branch": names[0], "then_branch": names[-1]}
        if self._form.is_index:
            kind, attrs = "Case", {"branches": names}
        if not any(one.signature.is_stateful for one in functions):
            kind = f"Stateless{kind}"
        types: list[DataType] = []
        for merge, has_place in zip(self._form.merges, self._places, strict=True):
            types += merge.output_types if has_place else merge.output_types[:1]
        merge = self._form.merges[0]
        chosen = self._editor.add(
            kind,
            [self._form.choice, *self._inputs],
            f"{scope_of(merge)}{kind}",
            {**attrs, "Tin": [tensor.dtype.base for tensor in self._inputs], "Tout": types},
            device_of(self._form.merges),
            self._waits,
        )
        chosen.definition_site = merge.definition_site
        self._analysis.put(chosen, self._analysis.of(merge))
        self._hand_over(chosen)

    def _function(self, number: int, branch: _Branch) -> FunctionDef:
        arguments = [[tensor, *branch.outside.get(tensor, ())] for tensor in self._inputs]
        constants = {
            inside: tensor.op
            for tensor in self._constants
            for inside in branch.outside.get(tensor, ())
        }
        function = ExtractedFunction(self._editor.graph, branch.members, arguments, constants)
        results = []
        inputs = self._form.sides[number].inputs
        for (op, index), place, is_wanted in zip(branch.results, inputs, self._places, strict=True):
            results.append(function.tensor(op.outputs[index]))
            if is_wanted:
                results.append(function.editor.constant(np.int32(place), name="value_index"))
        library = self._editor.graph.function_library
        name = f"branch_{number}" if self._form.is_index else ("else", "then")[number]
        return function.add_to(library, f"{scope_of(self._form.merges[0])}{name}", results)

    def _hand_over(self, chosen: Operation) -> None:
        """Have others take the results of an If."""
        editor, results = self._editor, iter(chosen.outputs)
        editor.place_like(chosen, self._form.merges[0])
        for merge, has_place in zip(self._form.merges, self._places, strict=True):
            given = [next(results) for _ in range(1 + has_place)]
            for output, result in zip(merge.outputs, given, strict=False):
                editor.redirect(output, result)
            editor.redirect_control(merge, chosen)
            if merge in editor.preserved:
                attrs: dict[str, Any] = {"T": [tensor.dtype.base for tensor in given]}
                editor.become(merge, "IdentityN", given, attrs)
        members = [op for branch in self._branches for op in branch.members]
        editor.drop((*self._form.merges, *members))
        editor.note(chosen, f"stands for a conditional on {self._form.choice.name}", members)
