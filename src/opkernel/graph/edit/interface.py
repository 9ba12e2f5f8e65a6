"""The inputs and outputs of a graph, seen from outside.

A graph with `_Arg` and `_Retval` nodes is the body of a function: it takes its arguments, gives its results.
"""

from __future__ import annotations

from opkernel.errors import OpError
from opkernel.graph.core.edges import leading_to
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.node import by_index
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import (
    ARG_OPS,
    ENTER_OPS,
    EXIT_OPS,
    INPUT_OPS,
    MERGE_OPS,
    RETVAL_OPS,
    SWITCH_OPS,
)
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.subgraph import Needs, prune_and_order

_NO_RESULT = INPUT_OPS | ARG_OPS | {"Const"}


def graph_inputs(graph: Graph) -> list[Tensor]:
    """The arguments of a graph that is the body of a function, by index, and its placeholders."""
    operations = graph.get_operations()
    placeholders = [op for op in operations if op.type in INPUT_OPS]
    return [op.outputs[0] for op in [*by_index(operations, ARG_OPS), *placeholders]]


def graph_outputs(graph: Graph) -> list[Tensor]:
    """The tensors that the results of a function's body take, by index.

    Of other graphs it is the outputs of the operations that nothing waits for; placeholders and
    constants are none.

    A tensor inside a loop of TensorFlow 1 is no output: it has a value in each turn, or none. A tensor
    on one branch of a conditional is none either: it has no value where the branch is not taken.

    Source: TensorFlow tools/graph_transforms/summarize_graph_main.cc.
    """
    operations = graph.get_operations()
    results = by_index(operations, RETVAL_OPS)
    if results:
        return [op.inputs[0] for op in results]
    waited_for = {one for op in operations for one in (*op.edges[::2], *op.control_inputs)}
    ends = [op for op in operations if op not in waited_for and op.type not in _NO_RESULT]
    if any(op.type in ENTER_OPS for op in operations):
        ends = _outside_loops(ends)
    if any(op.type in SWITCH_OPS for op in operations):
        ends = _outside_branches(ends)
    return [tensor for op in ends for tensor in op.outputs]


def split_by_need(graph: Graph) -> tuple[list[Tensor], list[Tensor]]:
    """The inputs that an output or an operation without outputs needs, and the other inputs.

    Arguments of a function's body count as needed, and so do all inputs of a graph without outputs.
    """
    inputs, outputs = graph_inputs(graph), graph_outputs(graph)
    if not outputs:
        return inputs, []
    waiting = [tensor.op for tensor in outputs]
    waiting += [op for op in graph.get_operations() if not op.outputs and op.type not in RETVAL_OPS]
    waiting += [tensor.op for tensor in inputs if tensor.op.type in ARG_OPS]
    needed = leading_to(waiting)
    return [t for t in inputs if t.op in needed], [t for t in inputs if t.op not in needed]


def _outside_loops(ends: list[Operation]) -> list[Operation]:
    from opkernel.graph.core.frame_loops import ROOT, control_flow_info  # few have loops

    try:
        frames = control_flow_info(prune_and_order((), ends, ()), Needs(()))
    except OpError:
        return ends  # a step tells the error
    return [
        op
        for op in ends
        if (frames[op.name].parent if op.type in EXIT_OPS else frames[op.name]) is ROOT
        and op.type not in ENTER_OPS
    ]


def _outside_branches(ends: list[Operation]) -> list[Operation]:
    """The operations that have a value on every choice of branches."""
    try:
        order = prune_and_order((), ends, ())
    except OpError:
        return ends  # a step tells the error
    within: dict[Operation, frozenset[tuple[Operation, int]]] = {}
    for op in order:
        join = frozenset.intersection if op.type in MERGE_OPS else frozenset.union
        found = [
            within[tensor.op].union(_begun_by(tensor))
            for tensor in op.inputs
            if tensor.op in within  # a tensor that comes back in a loop is not yet
        ]
        joined = join(*found) if found else frozenset()
        within[op] = joined.union(*[within[one] for one in op.control_inputs if one in within])
    return [op for op in ends if not within[op] and op.type not in SWITCH_OPS]


def _begun_by(tensor: Tensor) -> list[tuple[Operation, int]]:
    """The branch that an output of a Switch begins; in a loop it is the next turn or the end."""
    switch = tensor.op
    if switch.type not in SWITCH_OPS or switch.inputs[1].op.type == "LoopCond":
        return []
    return [(switch.inputs[1].op, tensor.value_index)]
