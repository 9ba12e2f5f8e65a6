"""Dead code: branches that are not chosen, and variables of a While that nothing needs.

Where the choice is known, an If or Case calls the branch that is chosen. Of a Switch of TensorFlow 1, the output on the
side that is taken is its input. Operations that depend on the other side are dead. A Merge with one input left gives that
input.

The loop of a gradient takes shapes from lists, turn by turn. Where these are constants nothing needs the lists any more:
the loop gets a body that neither takes nor gives them, and so the loop that filled them need not do so.

Source: TensorFlow core/grappler/optimizers/function_optimizer.cc, loop_optimizer.cc; core/common_runtime/
lower_while_op.cc (pruning).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import Operation, Tensor, instantiate_function
from opkernel.graph.core.edges import is_head_of_loop, reached
from opkernel.graph.core.structural_ops import (
    LOW_LEVEL_CONTROL_FLOW,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    SWITCH_OPS,
    TRANSFER_OPS,
)
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.graph.functions.calls import LOWERING, called_functions, chosen_branch, is_lowered
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.opdef import attr_from_python
from opkernel.optimization.control_flow.extracted_function import add_function_of
from opkernel.optimization.optimize import OptimizedGraph, optimize_body
from opkernel.proto import AttrValue, NameAttrList
from opkernel.types import Array, DataType

_RUN_THOUGH_DEAD = TRANSFER_OPS | {"ControlTrigger"}


def dead_branches(editor: GraphEditor) -> None:
    """Take a branch directly if it is known to be taken."""
    for op in editor.operations():
        if op.traits.chooses_function and op not in editor.feeds:
            branch = _branch(editor, op)
            if branch is not None:
                attrs, waits_for = op.attr, _waits_of_choice(editor, op.inputs[0])
                call = {"Tin": attrs["Tin"], "Tout": attrs["Tout"], "f": branch}
                call[LOWERING] = AttrValue(b=is_lowered(op))
                kind = "StatefulPartitionedCall" if op.op_def.is_stateful else "PartitionedCall"
                editor.become(op, kind, op.inputs[1:], call)
                op.add_control_inputs(waits_for)
                editor.note(op, f"always calls {branch.name!r}")
    _pass_by_switches(editor)


def _branch(editor: GraphEditor, op: Operation) -> NameAttrList | None:
    """The function that is always called; None where the step has something to refuse."""
    value = _known_choice(editor, op.inputs[0])
    if value is None or (value.ndim == 0 and value.dtype.char not in "?fdil"):
        return None
    library = editor.graph.function_library
    if not all(branch.name in library for branch in called_functions(op)):
        return None
    return chosen_branch(op, value)


def _known_choice(editor: GraphEditor, tensor: Tensor) -> Array | None:
    """The value that chooses a branch, if it follows from constants and shapes."""
    if tensor.op.type == "LoopCond" or tensor.op.type in SWITCH_OPS:
        return None
    value = editor.value(tensor)
    return editor.known_value(tensor) if value is None else value


def _waits_of_choice(editor: GraphEditor, choice: Tensor) -> list[Operation]:
    """The operations to wait for in place of a Switch or Merge whose choice is known."""
    op, value = choice.op, _known_choice(editor, choice)
    may_become = op.type != "Const" and op.type not in LOW_LEVEL_CONTROL_FLOW
    if may_become and len(op.outputs) == 1 and value is not None:
        editor.become_constant(op, np.asarray(value, choice.dtype.numpy_dtype))
    return [op] if editor.is_conditional(op) else []


def _pass_by_switches(editor: GraphEditor) -> None:
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
        controls = [control for control in op.control_inputs if control not in dead]
        has_one = len(tensors) == 1 < len(op.inputs) and not is_head_of_loop(op)
        if has_one and uncertain.isdisjoint(controls):
            _pass_by_merge(editor, op, tensors[0], controls)
    for op, side in sides.items():
        if op not in dead:
            _pass_by_switch(editor, op, side)
    editor.drop([*dead, *sides])
    editor.changed()


def _side(editor: GraphEditor, op: Operation) -> int | None:
    """The only output of a Switch that is ever alive."""
    value = _known_choice(editor, op.inputs[1])
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
    controls = [*op.control_inputs, *_waits_of_choice(editor, choice)]
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
    # In the same loop, on the same branch.
    number = editor.constant(index, DataType.DT_INT32, f"{op.name}/index", op.device, [passed.op])
    attrs = {"T": [alive.dtype.base, DataType.DT_INT32]}
    editor.redirect(op.outputs[0], passed)
    editor.become(op, "IdentityN", [passed, number], attrs)
    op.set_control_inputs(controls)
    editor.note(op, f"always gives {alive.name}")


_PASSES = (
    "arithmetic",
    "constant_folding",
    "identities",
    "shape_materialization",
    "shape_specialization",
)
"""The passes that remove shapes, and the nodes computed from shapes."""


def drop_variables(editor: GraphEditor, loop: Operation, facts: Sequence[TensorFacts]) -> None:
    """Have a StatelessWhile compute only the variables that are needed.

    Args:
        editor: the graph.
        loop: the operation.
        facts: what is known of its variables at every turn.
    """
    used = {index for index, tensor in enumerate(loop.outputs) if editor.consumers(tensor)}
    if loop in editor.preserved or len(used) == len(loop.outputs):
        return
    try:
        parts = {attr: _optimized(editor, loop, attr, facts) for attr in ("cond", "body")}
    except OpError:  # the step that runs the loop raises the error
        return
    cond, body = parts["cond"], parts["body"]
    used.update(_arguments_of(cond, cond.fetches))  # they decide how often the loop turns
    kept = sorted(reached(used, lambda index: _arguments_of(body, [body.fetches[index]])))
    if len(kept) < len(loop.outputs):
        _replace(editor, loop, kept, parts)


def _optimized(
    editor: GraphEditor, loop: Operation, attr: str, facts: Sequence[TensorFacts]
) -> OptimizedGraph:
    """The condition or the body, for arguments of which this is known."""
    function = loop.attr[attr].func
    body = instantiate_function(editor.graph.function_library, function)
    if len(body.inputs) != len(facts) or (attr == "body" and len(body.outputs) != len(facts)):
        raise InvalidArgumentError(f"{function.name!r} does not fit the variables of {loop.name!r}")
    return optimize_body(body, facts, _PASSES, keeps_bits=True)


def _arguments_of(graph: OptimizedGraph, results: Sequence[Tensor]) -> list[int]:
    """The arguments that results, and what runs in any case, depend on."""
    needed = set(prune_and_order(results, graph.targets, ()))
    return [index for index, tensor in enumerate(graph.feeds) if tensor.op in needed]


def _replace(
    editor: GraphEditor, loop: Operation, kept: Sequence[int], parts: dict[str, OptimizedGraph]
) -> None:
    """Put a loop with these variables in the place of the loop."""
    attrs, library = editor.attrs(loop), editor.graph.function_library
    for attr, part in parts.items():
        name, arguments = f"{loop.attr[attr].func.name}_needed", [part.feeds[one] for one in kept]
        results = part.fetches if attr == "cond" else [part.fetches[one] for one in kept]
        function = add_function_of(
            part.graph, library, name, arguments, results, targets=part.targets
        )
        attrs[attr] = AttrValue(func=NameAttrList(name=function.signature.name))
    inputs = [loop.inputs[index] for index in kept]
    attrs["T"] = attr_from_python([tensor.dtype.base for tensor in inputs], "list(type)")
    shapes = attrs.get("output_shapes", AttrValue()).list.shape
    if shapes:
        chosen = AttrValue()
        chosen.list.shape.extend([shapes[index] for index in kept])
        attrs["output_shapes"] = chosen
    controls = loop.control_inputs
    smaller = editor.add(loop.type, inputs, f"{loop.name}/needed", attrs, loop.device, controls)
    for index, output in zip(kept, smaller.outputs, strict=True):
        editor.redirect(loop.outputs[index], output)
    editor.note(loop, f"has {len(loop.outputs) - len(kept)} variables that nothing needs")
