"""Debug stripper: what only watches over values goes. It runs where it is asked for by name.

What an Assert looked at need not be computed any more, but effects on the way to it stay.

Source: TensorFlow core/grappler/optimizers/debug_stripper.cc.
"""

from opkernel.graph import Operation
from opkernel.graph.control_flow_ops import NEXT_ITERATION_OPS
from opkernel.graph.structural_ops import PLACEHOLDER_OPS
from opkernel.optimization.graph_editor import GraphEditor
from opkernel.optimization.pass_registry import Grouping, register_optimization

__all__ = ["debug_stripper"]

_PASS_ON = frozenset({"CheckNumerics", "CheckNumericsV2", "Print"})
_GIVE_NOTHING = frozenset({"Assert", "PrintV2"})
_NO_EFFECTS = PLACEHOLDER_OPS | _PASS_ON | _GIVE_NOTHING


@register_optimization(Grouping.PRE_PLACEMENT, 3, on_request=True)
def debug_stripper(editor: GraphEditor) -> None:
    """Neither assert, nor check numbers, nor print."""
    for op in editor.operations():
        if op in editor.feeds:
            continue
        if op.type in _PASS_ON:
            editor.become(op, "Identity", op.inputs[:1], {"T": op.output_types[0]})
            editor.note(op, "only passes its input on")
        elif op.type in _GIVE_NOTHING:
            controls = [*_effects_behind(op), *editor.pivots(op)]
            editor.become(op, "NoOp", (), {})
            op._add_control_inputs(controls)
            editor.note(op, "does nothing")


def _effects_behind(op: Operation) -> list[Operation]:
    """The nearest operations with effects that the inputs of an operation depend on."""
    found: list[Operation] = []
    seen: set[Operation] = set()
    stack: list[Operation] = [*op._edges[::2]]
    while stack:
        source = stack.pop()
        if source in seen or source.type in NEXT_ITERATION_OPS:
            continue
        seen.add(source)
        if source.op_def.is_stateful and source.type not in _NO_EFFECTS:
            found.append(source)
        else:
            stack += [*source._edges[::2], *source.control_inputs]
    return found
