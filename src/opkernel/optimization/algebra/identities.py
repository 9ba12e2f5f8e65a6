"""Identities: operations that only pass on their inputs."""

from opkernel.graph import Operation
from opkernel.graph.edit.graph_editor import GraphEditor


def identities(editor: GraphEditor) -> None:
    """Bypass Identity nodes."""
    for op in editor.operations():
        if op.traits.passes_on and _may_go(editor, op):
            editor.replace(op.outputs[0], op.inputs[0])
            editor.note(op, f"passed on {op.inputs[0].name}")


def _may_go(editor: GraphEditor, op: Operation) -> bool:
    return (
        not op.inputs[0].dtype.is_ref
        and bool(editor.consumers(op.outputs[0]))
        and editor.may_bypass(op)
    )
