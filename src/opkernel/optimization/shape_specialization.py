"""Shape specialisation: what follows from the shapes that are fed, where these are all known.

A session that is fed the same shapes again and again has a graph of its own for them
(`runtime/shape_specialization.py`), so that this holds for graphs whose feeds may have any shape, too.

Sources: TensorFlow core/grappler/costs/graph_properties.cc, constant_folding.cc (MaterializeShapes).
"""

from __future__ import annotations

from opkernel.errors import OpError
from opkernel.graph import Tensor
from opkernel.graph.control_flow_ops import ENTER_OPS
from opkernel.graph.list_items import LIST_USERS
from opkernel.graph.whole_graph_refiner import LOOP_OPS, WholeGraphRefiner
from opkernel.optimization.graph_editor import GraphEditor
from opkernel.optimization.pass_registry import Grouping, register_optimization
from opkernel.optimization.shape_materialization import replace_by_value
from opkernel.optimization.while_variables import drop_variables

__all__ = ["shape_specialization"]

_FOLLOWED = ENTER_OPS | LOOP_OPS | LIST_USERS
_READING = frozenset({"TensorListGetItem", "TensorListPopBack"})


@register_optimization(Grouping.PRE_PLACEMENT, 1, ops=_FOLLOWED)
def shape_specialization(editor: GraphEditor) -> None:
    """Follow known shapes through loops and lists; a plan of its own for feeds that repeat."""
    if any(editor.dims(op.outputs[0]) is None for op in editor.feeds):
        return
    try:
        refiner = WholeGraphRefiner.settle(editor.graph)
    except OpError:  # the step that runs the node will say what is wrong
        return
    editor.graph._refiner.adopt(refiner)
    for op in editor.operations():
        if op.type in _READING and op not in editor.feeds:
            _materialize(editor, op.outputs[-1], refiner)
        elif op.type == "StatelessWhile" and op not in editor.feeds:
            drop_variables(editor, op, refiner.facts_of_arguments(op))


def _materialize(editor: GraphEditor, item: Tensor, refiner: WholeGraphRefiner) -> None:
    """Replace a tensor that is read from a list of which all are the same."""
    value = refiner.values.value_of((item.op, item.value_index))
    if value is not None:
        replace_by_value(editor, item, value)
