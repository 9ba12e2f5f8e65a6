"""Which calls of functions TensorFlow makes parts of the graph around them.

Source: TensorFlow core/common_runtime/lower_functional_ops.cc.
"""

from __future__ import annotations

from opkernel.graph.core.operation import Operation

LOWERING = "_lower_using_switch_merge"
"""The attr of an If, Case or While that becomes control flow of TensorFlow 1. A PartitionedCall that
stands for an If has it, too, true or false."""


def is_lowered(op: Operation) -> bool:
    """Whether an If, Case or While is lowered, or the call that stands for one would be."""
    return LOWERING in op.attr and op.attr[LOWERING].b


def is_part_of_graph(op: Operation) -> bool:
    """Whether a node is a PartitionedCall of its own right."""
    return op.traits.calls == "function" and LOWERING not in op.attr
