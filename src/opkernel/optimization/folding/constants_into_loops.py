"""Entered constants: a constant from before a loop stands in the loop, for folding to see it there.

Only where something in the loop depends on constants alone: the others, weights mostly, stay where
they are.

Source: TensorFlow core/grappler/optimizers/constant_folding.cc (MoveConstantsPastEnter).
"""

from __future__ import annotations

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.folding.constant_folding import may_fold


def constants_into_loops(editor: GraphEditor) -> None:
    """Put constants from before a loop into it where something there depends on constants alone."""
    order = editor.operations()
    constants = {op for op in order if op not in editor.feeds and _is_constant(editor, op)}
    foldable = []
    for op in order:
        if may_fold(op, editor, constants):
            constants.add(op)
            foldable.append(op)
    copies: dict[Operation, Tensor] = {}
    for op in _worth_it(editor, foldable):
        for index, tensor in enumerate(op.inputs):
            if tensor.op.type == "Enter":
                op.update_input(index, _copy(editor, tensor.op, copies))


def _is_constant(editor: GraphEditor, op: Operation) -> bool:
    """Whether it is a constant, or enters one into each turn of a loop."""
    if op.type != "Enter":
        return op.type == "Const"
    source = op.inputs[0]
    return op.attr["is_constant"].b and editor.free_value(source) is not None


def _worth_it(editor: GraphEditor, foldable: list[Operation]) -> set[Operation]:
    """The operations that compute something, or that feed a computation."""
    found: set[Operation] = set()
    for op in reversed(foldable):
        if not op.traits.passes_on or any(c in found for c, _ in editor.consumers(op.outputs[0])):
            found.add(op)
    return found


def _copy(editor: GraphEditor, enter: Operation, copies: dict[Operation, Tensor]) -> Tensor:
    """The constant in the loop that an Enter gives."""
    if enter not in copies:
        value = editor.value(enter.inputs[0])
        assert value is not None
        name = f"{enter.name}/constant"
        dtype = enter.output_types[0]
        copies[enter] = editor.constant(value, dtype, name, enter.device, [enter])
        editor.note(enter, "enters a constant, which stands in the loop, too")
    return copies[enter]
