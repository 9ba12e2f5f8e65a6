"""Dead switches: branches of TensorFlow 1 that are never taken, since the choice is known.

The output of a Switch on the side that is taken is its input. Operations that depend on the other
side are dead. A Merge with one input left gives that input.

Source: TensorFlow core/grappler/optimizers/loop_optimizer.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_ops import (
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
    TRANSFER_OPS,
)
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.types import DataType

_RUN_THOUGH_DEAD = TRANSFER_OPS | {"ControlTrigger"}


def known_choice(editor: GraphEditor, tensor: Tensor) -> np.ndarray[Any, Any] | None:
    """The value that chooses a branch, if it follows from constants and shapes."""
    if tensor.op.type == "LoopCond" or tensor.op.type in SWITCH_OPS:
        return None
    value = editor.value(tensor)
    return editor.known_value(tensor) if value is None else value


def waits_of_choice(editor: GraphEditor, choice: Tensor) -> list[Operation]:
    """The operations to wait for in place of a Switch or Merge whose choice is known."""
    op, value = choice.op, known_choice(editor, choice)
    may_become = op.type != "Const" and op.type not in LOW_LEVEL_CONTROL_FLOW
    if may_become and len(op.outputs) == 1 and value is not None:
        editor.become_constant(op, np.asarray(value, choice.dtype.numpy_dtype))
    return [op] if editor.is_conditional(op) else []


def pass_by_switches(editor: GraphEditor) -> None:
    """Lead tensors past each Switch whose choice is known, and leave out the other side."""
    order = editor.operations()
    switches = [op for op in order if op.type in ("Switch", "_SwitchN")]
    sides = {op: side for op in switches if (side := _side(editor, op)) is not None}
    if not sides:
        return
    dead, uncertain = _dead_operations(order, sides), _uncertain_operations(order, sides)
    merges = [op for op in order if op.type == "Merge" and op not in dead]
    alive = {op: [t for t in op.inputs if not _is_dead(t, sides, dead)] for op in merges}
    for op, tensors in alive.items():
        is_loop = any(source.type in NEXT_ITERATION_OPS for source in op.edges[::2])
        controls = [control for control in op.control_inputs if control not in dead]
        if len(tensors) == 1 < len(op.inputs) and not is_loop and uncertain.isdisjoint(controls):
            _pass_by_merge(editor, op, tensors[0], controls)
    for op, side in sides.items():
        if op not in dead:
            _pass_by_switch(editor, op, side)
    editor.drop([*dead, *sides])
    editor.changed()


def _side(editor: GraphEditor, op: Operation) -> int | None:
    """The only output of a Switch that is ever alive."""
    value = known_choice(editor, op.inputs[1])
    if value is None or value.ndim:
        return None
    chosen, outputs = int(value), len(op.outputs)
    return chosen if 0 <= chosen < outputs else outputs - 1


def _dead_operations(order: list[Operation], sides: Mapping[Operation, int]) -> set[Operation]:
    """The operations that never run; operations are given inputs before consumers."""
    dead: set[Operation] = set()
    for op in order:
        if op.type in MERGE_OPS:  # alive by way of a back edge only where it was alive before
            first = [t for t in op.inputs if t.op.type not in NEXT_ITERATION_OPS]
            is_dead = all(_is_dead(tensor, sides, dead) for tensor in first)
        else:
            is_dead = any(_is_dead(tensor, sides, dead) for tensor in op.inputs)
            is_dead = is_dead or not dead.isdisjoint(op.control_inputs)
        if is_dead and op.type not in _RUN_THOUGH_DEAD:
            dead.add(op)
    return dead


def _uncertain_operations(order: list[Operation], sides: Mapping[Operation, int]) -> set[Operation]:
    """The operations that may turn out to be dead; a Merge does not mind if it waits for such."""
    found: set[Operation] = set()
    for op in order:
        is_choice = op.type in SWITCH_OPS and op not in sides
        if is_choice or not found.isdisjoint((*op.edges[::2], *op.control_inputs)):
            found.add(op)
    return found


def _is_dead(tensor: Tensor, sides: Mapping[Operation, int], dead: set[Operation]) -> bool:
    return tensor.op in dead or sides.get(tensor.op, tensor.value_index) != tensor.value_index


def _pass_by_switch(editor: GraphEditor, op: Operation, side: int) -> None:
    data, choice = op.inputs
    controls = [*op.control_inputs, *waits_of_choice(editor, choice)]
    attrs = {"T": data.dtype.base}
    passed = editor.add("Identity", [data], f"{op.name}/taken", attrs, op.device, controls)
    if editor.redirect(op.outputs[side], passed.outputs[0]):
        editor.note(op, f"always takes side {side}")


def _pass_by_merge(
    editor: GraphEditor, op: Operation, alive: Tensor, controls: list[Operation]
) -> None:
    """Give the only input that may be alive, and its number, once `controls` have run."""
    index = np.array(op.inputs.index(alive), np.int32)
    attrs: dict[str, Any] = {"T": alive.dtype.base}
    passed = editor.add("Identity", [alive], f"{op.name}/taken", attrs, op.device).outputs[0]
    number = editor.constant(
        index, DataType.DT_INT32, f"{op.name}/index", op.device, [passed.op]
    )  # in the same loop, on the same branch
    attrs = {"T": [alive.dtype.base, DataType.DT_INT32]}
    editor.redirect(op.outputs[0], passed)
    editor.become(op, "IdentityN", [passed, number], attrs)
    op.set_control_inputs(controls)
    editor.note(op, f"always gives {alive.name}")
