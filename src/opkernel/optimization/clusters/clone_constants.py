"""CloneConstantsForBetterClustering: each consumer of a small constant has one of its own.

A constant is in one cluster. Shared, it would tie operations together that have nothing to do with each other.

Source: TensorFlow compiler/jit/clone_constants_for_better_clustering.cc.
"""

from __future__ import annotations

from opkernel.graph import Operation
from opkernel.graph.core.edges import edges_of
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.proto import NodeDef

_IN_PLACE = frozenset({"InplaceAdd", "InplaceSub", "InplaceUpdate"})
"""Ops that may write into a constant, for all its consumers to see."""
_SMALL = 16
"""Constants with fewer elements are cloned."""


def clone_constants_for_better_clustering(editor: GraphEditor) -> None:
    """Give each consumer of a small constant one of its own."""
    options, order = editor.jit, editor.operations()
    if options is None or not options.is_global or any(op.type in _IN_PLACE for op in order):
        return
    for op in order:
        for place, (source, _) in enumerate(edges_of(op)):
            if _is_small_constant(source) and _is_shared(editor, source):
                op.update_input(place, _clone(editor, source).outputs[0])


def _is_small_constant(op: Operation) -> bool:
    if op.type != "Const":
        return False
    count = 1
    for dim in op.message.attr["value"].tensor.tensor_shape.dim:
        count *= dim.size
    return count < _SMALL


def _is_shared(editor: GraphEditor, const: Operation) -> bool:
    return len(const.consumer_edges()) + (const in editor.preserved) > 1


def _clone(editor: GraphEditor, const: Operation) -> Operation:
    node = NodeDef()
    node.CopyFrom(const.message)
    node.name = f"{const.name}/clone"
    clone = editor.add_node(node, (), const.control_inputs, like=const)
    devices = editor.graph.assigned_devices
    if const in devices:
        devices[clone] = devices[const]
    return clone
