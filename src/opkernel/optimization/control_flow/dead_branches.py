"""Dead branches: where the choice is known, an If or Case calls the branch that is chosen.

The branches of TensorFlow 1, made of Switch and Merge, are those of `dead_switches`.

Source: TensorFlow core/grappler/optimizers/function_optimizer.cc, loop_optimizer.cc.
"""

from __future__ import annotations

from opkernel.graph import Operation
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.functions.lowering import LOWERING, is_lowered
from opkernel.optimization.control_flow.dead_switches import (
    known_choice,
    pass_by_switches,
    waits_of_choice,
)
from opkernel.proto import AttrValue, NameAttrList


def dead_branches(editor: GraphEditor) -> None:
    """Take a branch directly if it is known to be taken."""
    for op in editor.operations():
        if op.traits.chooses_function and op not in editor.feeds:
            branch = _branch(editor, op)
            if branch is not None:
                attrs, waits_for = op.attr, waits_of_choice(editor, op.inputs[0])
                call = {"Tin": attrs["Tin"], "Tout": attrs["Tout"], "f": branch}
                call[LOWERING] = AttrValue(b=is_lowered(op))
                kind = "StatefulPartitionedCall" if op.op_def.is_stateful else "PartitionedCall"
                editor.become(op, kind, op.inputs[1:], call)
                op.add_control_inputs(waits_for)
                editor.note(op, f"always calls {branch.name!r}")
    pass_by_switches(editor)


def _branch(editor: GraphEditor, op: Operation) -> NameAttrList | None:
    """The function that is always called; None where the step has something to refuse."""
    value, attrs = known_choice(editor, op.inputs[0]), op.attr
    if value is None or (value.ndim == 0 and value.dtype.char not in "?fdil"):
        return None
    if op.traits.calls == "if":
        branches = [attrs["else_branch"].func, attrs["then_branch"].func]
        index = int(bool(value[()]) if value.ndim == 0 else value.size > 0)
    elif value.ndim == 0:
        branches, index = [*attrs["branches"].list.func], int(value[()])
    else:
        return None
    if not branches or not all(branch.name in editor.graph.function_library for branch in branches):
        return None
    return branches[index if 0 <= index < len(branches) else -1]
