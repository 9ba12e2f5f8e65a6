"""Simplifying function bodies: dead nodes, identities, list converters.

Source: TensorFlow core/common_runtime/function_utils.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from opkernel.graph.core.edges import leading_to
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW, MAY_BE_DEAD_ALONE
from opkernel.graph.edit.graph_edit import GraphEdit
from opkernel.graph.edit.inline_function import PlaceOfCall

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph

_CONVERTERS = frozenset({"_ListToArray", "_ArrayToList"})


def remove_dead_nodes(graph: Graph, keep: Iterable[Operation] = ()) -> bool:
    """Remove the nodes that no result and no effect needs.

    Nodes with state (such as `_Arg` and `_Retval`) and nodes of control flow stay, with all nodes that
    they need.

    Args:
        graph: the body of a function.
        keep: further nodes that stay, such as the sources of a function's control outputs.

    Returns:
        Whether any node was removed.
    """
    ops = graph.get_operations()
    roots = [op for op in ops if op.op_def.is_stateful or op.type in LOW_LEVEL_CONTROL_FLOW]
    needed = leading_to([*keep, *roots])
    dead = [op for op in ops if op not in needed]
    if dead:
        with graph.edit() as edit:
            edit.remove(*dead)
    return bool(dead)


def remove_identity_nodes(graph: Graph) -> bool:
    """Bypass Identity nodes: their consumers take the input instead.

    An Identity stays if nobody consumes it, if it waits for other nodes, or if it reads a reference. An
    Identity of a Switch or Recv stays, too: control edges from these would not tell that an output is
    dead.

    Returns:
        Whether any node was removed.
    """
    found = [op for op in graph.get_operations() if op.type == "Identity"]
    identities = [op for op in found if _only_passes_on(op) and op.consumer_edges()]
    if identities:
        with graph.edit() as edit:
            for op in identities:
                edit.redirect(op.outputs[0], op.inputs[0])
                edit.remove(op)
    return bool(identities)


def _only_passes_on(op: Operation) -> bool:
    (tensor,) = op.inputs
    if op.control_inputs or tensor.dtype.is_ref:
        return False
    return tensor.op.type not in MAY_BE_DEAD_ALONE


def remove_list_array_converter(graph: Graph) -> bool:
    """Replace each `_ListToArray` and `_ArrayToList` by an Identity for each tensor.

    Returns:
        Whether any node was replaced.
    """
    found = [op for op in graph.get_operations() if op.type in _CONVERTERS]
    converters = [op for op in found if len(op.inputs) == len(op.outputs)]
    if converters:
        with graph.edit() as edit:
            for op in converters:
                _replace_converter(edit, op)
    return bool(converters)


def _replace_converter(edit: GraphEdit, op: Operation) -> None:
    place = PlaceOfCall(edit, op)
    identities = [place.identity("input", one, device=one.op.device) for one in op.inputs]
    if op.control_inputs:
        before = place.no_op("input_control_node", op.control_inputs)
        for identity in identities:
            identity.add_control_input(before)
    if op.control_outputs:
        edit.redirect_control(op, place.no_op("output_control_node", identities))
    for old, identity in zip(op.outputs, identities, strict=True):
        edit.redirect(old, identity.outputs[0])
    edit.remove(op)
