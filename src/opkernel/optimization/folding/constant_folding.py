"""Constant folding: what depends on constants alone is computed once, by the real kernels.

Source: TensorFlow core/common_runtime/constant_folding.cc.
"""

from collections.abc import Callable, Collection, Iterable

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.core.structural_ops import INPUT_OPS
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.inference.constant_values import CONSTANT_VALUES

_MAX_BYTES = 10 << 20
"""Larger results are not kept, as in TensorFlow."""

_NOT_FOLDED = LOW_LEVEL_CONTROL_FLOW | INPUT_OPS


def constant_folding(editor: GraphEditor) -> None:
    """Compute once what depends on constants alone."""
    fold_constants(editor)


def fold_constants(
    editor: GraphEditor,
    consider: Callable[[Operation], bool] | None = None,
    max_bytes: int = _MAX_BYTES,
) -> None:
    """Replace what depends on constants alone by constants.

    The new constants are called `x__cf__N`; an operation that has to keep its name becomes a
    constant itself. What cannot be computed stays as it is.

    Args:
        editor: the graph.
        consider: says which operations may be folded, of those that can be.
        max_bytes: larger results are not kept.
    """
    folded = _foldable(editor, consider)
    results = [
        tensor for op in folded for tensor in op.outputs if _is_taken(tensor, folded, editor)
    ]
    controls = _control_inputs(folded)
    values = CONSTANT_VALUES.get()(results, {}, None, editor.device_of) if results else []
    for number, (tensor, value) in enumerate(zip(results, values, strict=True)):
        op = tensor.op
        if value is None or value.nbytes > max_bytes:
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
    editor: GraphEditor, consider: Callable[[Operation], bool] | None
) -> dict[Operation, None]:
    """The operations that depend on constants alone, in order."""
    constants: set[Operation] = set()
    folded: dict[Operation, None] = {}
    for op in editor.operations():
        if op.type == "Const":
            if op not in editor.feeds:
                constants.add(op)
        elif may_fold(op, editor, constants) and (consider is None or consider(op)):
            constants.add(op)
            folded[op] = None
    return folded


def may_fold(op: Operation, editor: GraphEditor, constants: set[Operation]) -> bool:
    """Whether an operation may be computed once, given those that are or may be constants."""
    if not op.edges or not constants.issuperset(op.edges[::2]):
        return False
    if op.type in _NOT_FOLDED or op.type[:1] == "_" or op.op_def.is_stateful or op.traits.calls:
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
