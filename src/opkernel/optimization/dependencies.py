"""Dependencies on operations that do nothing: identities, control edges, and what only watches over values.

`debug_stripper` runs where it is asked for by name.

Source: TensorFlow core/grappler/optimizers/dependency_optimizer.cc, debug_stripper.cc.
"""

from opkernel.graph import Operation
from opkernel.graph.edit.graph_editor import GraphEditor


def identities(editor: GraphEditor) -> None:
    """Bypass Identity nodes."""
    for op in editor.operations():
        if not op.traits.passes_on or op.inputs[0].dtype.is_ref:
            continue
        if editor.consumers(op.outputs[0]) and editor.may_bypass(op):
            editor.replace(op.outputs[0], op.inputs[0])
            editor.note(op, f"passed on {op.inputs[0].name}")


def debug_stripper(editor: GraphEditor) -> None:
    """Neither assert, nor check numbers, nor print."""
    for op in editor.operations():
        if op in editor.feeds or not op.traits.debug_only:
            continue
        if op.output_types:
            editor.become(op, "Identity", op.inputs[:1], {"T": op.output_types[0]})
            editor.note(op, "only passes its input on")
        else:
            controls = editor.pivots(op)
            editor.become(op, "NoOp", (), {})
            op.add_control_inputs(controls)
            editor.note(op, "does nothing")


_MAX_SOURCES = 8
"""A node that waits for more nodes stays, so that its waiting nodes need not wait for each."""


def control_edges(editor: GraphEditor) -> None:
    """Have operations wait only for work: not for constants, identities or NoOps."""
    stands_for: dict[Operation, list[Operation]] = {}
    for op in editor.operations():
        if op.control_inputs and op not in editor.feeds:
            waits_for = _unique(op, stands_for)
            if waits_for != list(op.control_inputs):
                op.set_control_inputs(waits_for)
                editor.note(op, "waits for less")
        does_nothing = op.traits.passes_on or op.type in ("Const", "NoOp")
        if does_nothing and op not in editor.feeds and not editor.is_conditional(op):
            waits_for = [one for s in op.edges[::2] for one in stands_for.get(s, [s])]
            waits_for += op.control_inputs
            if len(waits_for) <= _MAX_SOURCES:
                stands_for[op] = waits_for


def _unique(op: Operation, stands_for: dict[Operation, list[Operation]]) -> list[Operation]:
    """The control inputs of an operation that are not data inputs as well."""
    taken = set(op.edges[::2])
    found = [one for source in op.control_inputs for one in stands_for.get(source, [source])]
    return [one for one in dict.fromkeys(found) if one not in taken]
