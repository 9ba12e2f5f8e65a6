"""Shape specialisation: what follows from the shapes that are fed, where these are all known.

A session that is fed the same shapes again and again has a graph of its own for them
(`runtime/adaptive/shapes.py`), so that this holds for graphs whose feeds may have any shape, too.

Sources: TensorFlow core/grappler/costs/graph_properties.cc, constant_folding.cc (MaterializeShapes).
"""

from __future__ import annotations

from opkernel.errors import OpError
from opkernel.graph import Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.inference.whole_graph_refiner import WholeGraphRefiner
from opkernel.opdef import OpTraits
from opkernel.optimization.control_flow.while_variables import drop_variables
from opkernel.optimization.folding.shape_materialization import replace_by_value


def _is_followed(traits: OpTraits) -> bool:
    return traits.calls == "while" or bool(traits.item_rule)


def shape_specialization(editor: GraphEditor) -> None:
    """Follow known shapes through loops and lists; a plan of its own for feeds that repeat."""
    if any(op.outputs and editor.dims(op.outputs[0]) is None for op in editor.feeds):
        return
    try:
        refiner = WholeGraphRefiner.settle(editor.graph)
    except OpError:  # the step that runs the node will say what is wrong
        return
    editor.graph.refiner.adopt(refiner)
    for op in editor.operations():
        if op.traits.item_rule in ("get", "pop") and op not in editor.feeds:
            _materialize(editor, op.outputs[-1], refiner)
        elif op.traits.calls == "while" and op not in editor.feeds and not op.op_def.is_stateful:
            drop_variables(editor, op, refiner.facts_of_arguments(op))


def _materialize(editor: GraphEditor, item: Tensor, refiner: WholeGraphRefiner) -> None:
    """Replace a tensor that is read from a list of which all are the same."""
    value = refiner.values.value_of((item.op, item.value_index))
    if value is not None:
        replace_by_value(editor, item, value)
