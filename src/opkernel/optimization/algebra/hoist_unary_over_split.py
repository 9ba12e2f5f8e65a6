"""Functions of parts: one function of a tensor for the same function of its parts.

The gates of recurrent cells are parts of one product, and most of them go through a sigmoid. Calls
of small kernels cost more than the elements that one computes for nothing.

Source: TensorFlow core/grappler/optimizers/arithmetic_optimizer.cc (HoistCWiseUnaryChainsStage).
"""

from __future__ import annotations

from collections import defaultdict

from opkernel.graph import Operation
from opkernel.graph.edit.graph_editor import GraphEditor


def hoist_unary_over_split(editor: GraphEditor) -> None:
    """Compute one function of a tensor where it is split and most parts go through that function."""
    for op in editor.operations():
        if op.type == "Split" and op not in editor.feeds:
            for functions in _by_type(editor, op).values():
                if len(functions) > 1 and 4 * len(functions) >= 3 * len(op.output_types):
                    _join(editor, op, functions)


def _by_type(editor: GraphEditor, split: Operation) -> dict[str, dict[int, Operation]]:
    """The functions that parts go through, and nothing else does, by part."""
    found: dict[str, dict[int, Operation]] = defaultdict(dict)
    for index, part in enumerate(split.outputs):
        consumers = editor.consumers(part)
        function = consumers[0][0] if len(consumers) == 1 else None
        if function is not None and _may_move(editor, split, function):
            found[function.type][index] = function
    return found


def _may_move(editor: GraphEditor, split: Operation, op: Operation) -> bool:
    """Whether it takes time for each element of one tensor, and does as all nodes of its op do."""
    traits = op.traits
    if not (traits.pointwise and traits.cannot_fail) or traits.cheap or len(op.edges) != 2:
        return False
    if op.input_types != op.output_types or any(a.type != "type" for a in op.op_def.attr):
        return False
    is_free = op not in editor.preserved and op not in editor.feeds
    return is_free and op.device == split.device and not op.control_inputs


def _join(editor: GraphEditor, split: Operation, functions: dict[int, Operation]) -> None:
    """Split what the function gives."""
    axis, value = split.inputs
    first = next(iter(functions.values()))
    name, device = first.name, split.device
    whole = editor.add(first.type, [value], f"{name}/whole", editor.attrs(first), device)
    whole.add_control_inputs([*split.control_inputs])
    inputs = [axis, whole.outputs[0]]
    parts = editor.add("Split", inputs, f"{name}/parts", editor.attrs(split), device)
    for index, function in functions.items():
        editor.redirect(function.outputs[0], parts.outputs[index])
        editor.note(function, f"is part of {first.type} of {value.name}")
