"""Conditionals of TensorFlow 1 that become If and Case, innermost first.

The operations between Switches and Merges become branches. Operations that something else needs as well stay, too,
unless they have effects; then the conditional stays.

Source: TensorFlow compiler/tf2xla/functionalize_cond.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_ops import (
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    SWITCH_OPS,
)
from opkernel.graph.core.edges import Edge, behind, edges_of, reached
from opkernel.graph.core.loop_form import ControlFlowFormError
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.clusters.deadness_analysis import DeadnessAnalysis
from opkernel.optimization.control_flow.conditional_forms import (
    ConditionalForm,
    Side,
    conditional_forms,
)
from opkernel.optimization.control_flow.extracted_function import (
    ExtractedFunction,
    check_may_move,
    device_of,
    is_small_constant,
    scope_of,
)
from opkernel.proto import FunctionDef, NameAttrList
from opkernel.types import DataType


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
        merge = self._form.merges[0]
        chosen = self._editor.add(
            kind,
            [self._form.choice, *self._inputs],
            f"{scope_of(merge)}{kind}",
            {**attrs, "Tin": [tensor.dtype.base for tensor in self._inputs], "Tout": self._types()},
            device_of(self._form.merges),
            self._waits,
        )
        chosen.definition_site = merge.definition_site
        self._analysis.put(chosen, self._analysis.of(merge))
        self._hand_over(chosen)

    def _types(self) -> list[DataType]:
        types: list[DataType] = []
        for merge, place in zip(self._form.merges, self._places, strict=True):
            types += merge.output_types if place else merge.output_types[:1]
        return types

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
        assigned = editor.graph.assigned_devices
        if self._form.merges[0] in assigned:
            assigned[chosen] = assigned[self._form.merges[0]]
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
