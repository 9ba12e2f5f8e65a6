"""Loop invariants: results that are the same in every turn of a loop are computed before it.

A loop may end before its first turn, so only operations are moved that cannot fail.

Source: TensorFlow core/grappler/optimizers/loop_optimizer.cc.
"""

from __future__ import annotations

from typing import NamedTuple

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.graph_editor import GraphEditor


class _Invariant(NamedTuple):
    """The results of an operation that are equal in every turn: tensors before the loop.

    `enter` is an Enter of the loop, None for constants; `waits_for` is the operation that says that
    there is a turn.
    """

    outside: tuple[Tensor, ...]
    enter: Operation | None
    waits_for: tuple[Operation, ...]


def loop_invariants(editor: GraphEditor) -> None:
    """Compute before a loop the results that are the same in every turn of it."""
    order = editor.operations()
    known: dict[Operation, _Invariant] = {}
    moved = []
    for op in order:
        invariant = _invariant(editor, op, known)
        if invariant is not None:
            known[op] = invariant
            if op.type not in ("Enter", "Const"):
                moved.append(op)
    for op in moved:
        _enter_again(editor, op, known)


def _invariant(
    editor: GraphEditor, op: Operation, known: dict[Operation, _Invariant]
) -> _Invariant | None:
    """The invariant of an operation; its copy before the loop, if it can move."""
    if op.type == "Enter":
        source = op.inputs[0]
        is_constant = op.attr["is_constant"].b and not source.dtype.is_ref
        if not is_constant or editor.is_conditional(source.op) or op.control_inputs:
            return None
        return _Invariant((source,), op, ())
    if not all(editor.is_conditional(control) for control in op.control_inputs):
        return None
    if op.type == "Const":
        return _Invariant(op.outputs, None, op.control_inputs)
    if not op.edges or not all(source in known for source in op.edges[::2]):
        return None
    return _moved(editor, op, [known[source] for source in op.edges[::2]])


def _moved(editor: GraphEditor, op: Operation, inputs: list[_Invariant]) -> _Invariant | None:
    """The copy of an operation before the loop."""
    enters = [one.enter for one in inputs if one.enter is not None]
    frames = {enter.attr["frame_name"].s for enter in enters}
    if len(frames) != 1 or op in editor.preserved or not cannot_fail(editor, op):
        return None
    outside = [
        _before_loop(editor, one.outside[tensor.value_index])
        for one, tensor in zip(inputs, op.inputs, strict=True)
    ]
    copy = editor.add(op.type, outside, f"{op.name}/invariant", editor.attrs(op), op.device)
    waits_for = [control for one in inputs for control in one.waits_for]
    controls = dict.fromkeys([*waits_for, *op.control_inputs])
    return _Invariant(copy.outputs, enters[0], tuple(controls))


def _before_loop(editor: GraphEditor, tensor: Tensor) -> Tensor:
    """A tensor before the loop: of a constant in the loop, another one."""
    op = tensor.op
    if op.type != "Const" or not op.control_inputs:
        return tensor
    attrs = editor.attrs(op)
    attrs["value"] = attrs["value"].tensor
    return editor.add("Const", (), f"{op.name}/invariant", attrs, op.device).outputs[0]


def cannot_fail(editor: GraphEditor, op: Operation) -> bool:
    """Whether an operation may run though its results may not be needed."""
    traits = op.traits
    takes_any_shape = traits.pointwise and len(op.edges) == 2
    if traits.passes_on or traits.reads_shapes_only or (traits.cannot_fail and takes_any_shape):
        return True
    tensors = [*op.inputs, *op.outputs]
    return traits.cannot_fail and all(editor.dims(tensor) is not None for tensor in tensors)


def _enter_again(editor: GraphEditor, op: Operation, known: dict[Operation, _Invariant]) -> None:
    """Have those in the loop that take a moved operation take it from before the loop."""
    (outside, *_), enter, waits_for = known[op]
    assert enter is not None
    consumers = [
        (consumer, index)
        for consumer, index in editor.consumers(op.outputs[0])
        if consumer not in known and consumer.type not in LOW_LEVEL_CONTROL_FLOW
    ]
    if consumers:
        attrs = editor.attrs(enter) | {"T": outside.dtype.base}
        entered = editor.add("Enter", [outside], f"{op.name}/enter", attrs, enter.device)
        for consumer, index in consumers:
            consumer.update_input(index, entered.outputs[0])
            consumer.add_control_inputs(list(waits_for))
        editor.note(op, "is computed before the loop")
