"""Debug stripper: what only watches over values goes. It runs where it is asked for by name.

Source: TensorFlow core/grappler/optimizers/debug_stripper.cc.
"""

from opkernel.graph.edit.graph_editor import GraphEditor


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
