"""Dead branches: where the choice is known, an If or Case calls the branch that is chosen.

The branches of TensorFlow 1, made of Switch and Merge, are those of `dead_switches`.

Source: TensorFlow core/grappler/optimizers/function_optimizer.cc, loop_optimizer.cc.
"""

from __future__ import annotations

import numpy as np

from opkernel.graph import Operation
from opkernel.optimization.dead_switches import (
    known_choice,
    pass_by_switches,
    waits_of_choice,
)
from opkernel.optimization.graph_editor import GraphEditor
from opkernel.optimization.pass_registry import Grouping, register_optimization
from opkernel.proto import NameAttrList

__all__ = ["dead_branches"]

_CALLS = {
    "Case": "StatefulPartitionedCall",
    "If": "StatefulPartitionedCall",
    "StatelessCase": "PartitionedCall",
    "StatelessIf": "PartitionedCall",
}


@register_optimization(Grouping.PRE_PLACEMENT, 5, ops=[*_CALLS, "Switch", "_SwitchN"])
def dead_branches(editor: GraphEditor) -> None:
    """Take the branch directly of which it is known that it is taken."""
    for op in editor.operations():
        if op.type in _CALLS and op not in editor.feeds:
            branch = _branch(editor, op)
            if branch is not None:
                attrs, waits_for = op._node_def.attr, waits_of_choice(editor, op.inputs[0])
                call = {"Tin": attrs["Tin"], "Tout": attrs["Tout"], "f": branch}
                editor.become(op, _CALLS[op.type], op.inputs[1:], call)
                op._add_control_inputs(waits_for)
                editor.note(op, f"always calls {branch.name!r}")
    pass_by_switches(editor)


def _branch(editor: GraphEditor, op: Operation) -> NameAttrList | None:
    """The function that is always called."""
    value, attrs = known_choice(editor, op.inputs[0]), op._node_def.attr
    if value is None:
        return None
    if op.type.endswith("If"):
        holds = bool(value[()]) if value.ndim == 0 else value.size > 0
        return attrs["then_branch" if holds else "else_branch"].func
    branches = attrs["branches"].list.func
    index = int(np.reshape(value, -1)[0]) if value.size == 1 else None
    if index is None or not branches:
        return None
    return branches[index if 0 <= index < len(branches) else -1]
