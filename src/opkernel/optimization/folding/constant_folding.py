"""Constant folding: what depends on constants alone is computed once, by the real kernels.

A constant from before a loop stands in the loop as well, for folding to see it there.

Source: TensorFlow core/common_runtime/constant_folding.cc, core/grappler/optimizers/constant_folding.cc
(MoveConstantsPastEnter).
"""

from collections.abc import Collection, Iterable

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.structural_ops import INPUT_OPS, LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.inference.constant_values import CONSTANT_VALUES

_MAX_BYTES = 10 << 20
"""Larger results are not kept, as in TensorFlow."""

_NOT_FOLDED = LOW_LEVEL_CONTROL_FLOW | INPUT_OPS


def constant_folding(editor: GraphEditor) -> None:
    """Compute once what depends on constants alone.

    The new constants are called `x__cf__N`; an operation that has to keep its name becomes a
    constant itself. What cannot be computed stays as it is.
    """
    order = editor.operations()
    constants = {op for op in order if op.type == "Const" and op not in editor.feeds}
    folded = _foldable(editor, order, constants)
    results = [
        tensor for op in folded for tensor in op.outputs if _is_taken(tensor, folded, editor)
    ]
    controls = _control_inputs(folded)
    values = CONSTANT_VALUES.get()(results, {}, None, editor.device_of) if results else []
    for number, (tensor, value) in enumerate(zip(results, values, strict=True)):
        op = tensor.op
        if value is None or value.nbytes > _MAX_BYTES:
            continue
        if op in editor.preserved and len(op.outputs) == 1:
            editor.become_constant(op, value)
            op.set_control_inputs(controls[op])
        else:
            name = f"{op.name}__cf__{number}"
            constant = editor.constant(value, tensor.dtype, name, op.device, controls[op])
            editor.redirect(tensor, constant)
        editor.note(op, "is constant")


def _foldable(
    editor: GraphEditor, order: Iterable[Operation], constants: set[Operation]
) -> dict[Operation, None]:
    """The operations that depend on constants alone, in order; they come to the constants."""
    folded: dict[Operation, None] = {}
    for op in order:
        if op.type != "Const" and _may_fold(op, editor, constants):
            constants.add(op)
            folded[op] = None
    return folded


def _may_fold(op: Operation, editor: GraphEditor, constants: set[Operation]) -> bool:
    """Whether an operation may be computed once, given those that are or may be constants."""
    if not op.edges or not constants.issuperset(op.edges[::2]):
        return False
    if op.type in _NOT_FOLDED or op.type[:1] == "_" or op.op_def.is_stateful or op.traits.calls:
        return False
    if op.traits.runs_python:
        return False
    if op in editor.feeds or op.type in editor.graph.function_library:
        return False
    return not any(d.is_ref or (not d.can_memcpy and d.string != "string") for d in op.output_types)


def _is_taken(tensor: Tensor, folded: Collection[Operation], editor: GraphEditor) -> bool:
    """Whether something needs a tensor that is not folded itself."""
    if tensor.op in editor.preserved and len(tensor.op.outputs) == 1:
        return True
    return any(consumer not in folded for consumer, _ in editor.consumers(tensor))


def _control_inputs(folded: Iterable[Operation]) -> dict[Operation, list[Operation]]:
    """The control inputs of each operation and of all operations folded into it."""
    found: dict[Operation, list[Operation]] = {}
    for op in folded:
        controls = list(op.control_inputs)
        for source in dict.fromkeys(op.edges[::2]):
            controls += found.get(source, source.control_inputs)
        found[op] = list(dict.fromkeys(controls)) if controls else controls
    return found


def constants_into_loops(editor: GraphEditor) -> None:
    """Put constants from before a loop into it where something there depends on constants alone.

    Other constants from before it, weights mostly, stay where they are.
    """
    order = editor.operations()
    constants = {
        op for op in order if op not in editor.feeds and _is_or_enters_constant(editor, op)
    }
    copies: dict[Operation, Tensor] = {}
    for op in _worth_it(editor, [*_foldable(editor, order, constants)]):
        for index, tensor in enumerate(op.inputs):
            if tensor.op.type == "Enter":
                op.update_input(index, _copy(editor, tensor.op, copies))


def _is_or_enters_constant(editor: GraphEditor, op: Operation) -> bool:
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
