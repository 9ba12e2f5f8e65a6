"""The order of effects in a traced function: that of the program.

Source: TensorFlow python/framework/auto_control_deps.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkernel.graph.core.control_flow_ops import ENTER_OPS, SWITCH_OPS

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.operation import Operation

_CONTROL_FLOW = ENTER_OPS | SWITCH_OPS


def order_stateful_ops(graph: Graph) -> list[Operation]:
    """Make each stateful operation wait for the one before it; the last of them, which is to run.

    TensorFlow makes a row for each resource; here there is one for all, since two handles may be of
    one resource. A graph with switches or frames of TensorFlow 1 keeps the order that it has: what
    waits for a dead operation is dead.
    """
    ops = graph.get_operations()
    if any(op.type in _CONTROL_FLOW for op in ops):
        return []
    last = None
    for op in ops:
        if op.op_def.is_stateful and not op.traits.any_order:
            if last is not None:
                op.add_control_input(last)
            last = op
    return [] if last is None else [last]
