"""Functions of parts: one function of a tensor for the same function of its parts.

The gates of recurrent cells are parts of one product, and most of them go through a sigmoid. Calls
of small kernels cost more than the elements that one computes for nothing.

Source: TensorFlow core/grappler/optimizers/arithmetic_optimizer.cc (HoistCWiseUnaryChainsStage).
"""

from __future__ import annotations

from collections import defaultdict

from opkernel.graph import Operation
from opkernel.optimization.graph_editor import GraphEditor
from opkernel.optimization.pass_registry import Grouping, register_optimization

__all__ = ["functions_of_parts"]

_FUNCTIONS = frozenset(
    {"Cos", "Elu", "Erf", "Exp", "Expm1", "Log", "Relu", "Relu6", "Rsqrt", "Selu", "Sigmoid"}
    | {"Sin", "Softplus", "Softsign", "Sqrt", "Tanh"}
)
"""Ops that compute each element by itself, cannot fail, and take time; of attr T alone."""


@register_optimization(Grouping.POST_PLACEMENT, 55, ops=["Split"])
def functions_of_parts(editor: GraphEditor) -> None:
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


def _may_move(editor: GraphEditor, split: Operation, function: Operation) -> bool:
    return (
        function.type in _FUNCTIONS
        and function.device == split.device
        and not function.control_inputs
        and function not in editor.preserved
        and function not in editor.feeds
    )


def _join(editor: GraphEditor, split: Operation, functions: dict[int, Operation]) -> None:
    """Split what the function gives."""
    axis, value = split.inputs
    first = next(iter(functions.values()))
    whole = editor.add(
        first.type, [value], f"{first.name}/whole", editor.attrs(first), split.device
    )
    whole._add_control_inputs([*split.control_inputs])
    parts = editor.add(
        "Split", [axis, whole.outputs[0]], f"{first.name}/parts", editor.attrs(split), split.device
    )
    for index, function in functions.items():
        editor.redirect(function.outputs[0], parts.outputs[index])
        editor.note(function, f"is part of {first.type} of {value.name}")
