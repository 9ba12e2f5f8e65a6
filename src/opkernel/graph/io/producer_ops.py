"""The ops that a graph uses, and the attrs that its producer knew and this consumer does not.

Source: TensorFlow core/framework/graph_def_util.cc.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from opkernel.errors import NotFoundError
from opkernel.opdef import (
    OpRegistrationData,
    are_attr_values_equal,
    remove_descriptions_from_op_list,
)
from opkernel.proto import GraphDef, NodeDef, OpList


def remove_new_default_attrs(
    graph_def: GraphDef,
    producer_ops: OpList,
    look_up: Callable[[str], OpRegistrationData],
) -> set[tuple[str, str]]:
    """Drop attrs that ops here do not have, where they have the default of the producer.

    Attrs whose names start with an underscore belong to no op and stay. What is left with another
    value makes the node invalid when it is imported.

    Args:
        graph_def: is changed, its functions included.
        producer_ops: the ops as the producer knew them.
        look_up: gives the ops as they are here.

    Returns:
        The (op, attr) pairs that were dropped.
    """
    defaults = {
        op.name: {attr.name: attr for attr in op.attr if attr.HasField("default_value")}
        for op in producer_ops.op
    }
    removed = set()
    for node in _all_nodes(graph_def):
        known = _attrs_here(node.op, look_up)
        of_producer = defaults.get(node.op, {})
        for name in [n for n in node.attr if n in of_producer and not n.startswith("_")]:
            if known is None or name in known:
                continue
            if are_attr_values_equal(node.attr[name], of_producer[name].default_value):
                del node.attr[name]
                removed.add((node.op, name))
    return removed


def ops_used_by_graph(graph_def: GraphDef) -> Counter[str]:
    """How many nodes of a graph and of its functions are of which op; calls are not counted."""
    functions = {function.signature.name for function in graph_def.library.function}
    return Counter(node.op for node in _all_nodes(graph_def) if node.op not in functions)


def stripped_op_list_for_graph(
    graph_def: GraphDef, look_up: Callable[[str], OpRegistrationData]
) -> OpList:
    """The ops that a graph and its functions use, ordered by name; ops not registered are left out."""
    ops = OpList()
    for name in sorted(ops_used_by_graph(graph_def)):
        try:
            op_def = look_up(name).op_def
        except NotFoundError:
            continue
        ops.op.append(op_def)
    remove_descriptions_from_op_list(ops)
    return ops


def _all_nodes(graph_def: GraphDef) -> Iterator[NodeDef]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _attrs_here(op_type: str, look_up: Callable[[str], OpRegistrationData]) -> set[str] | None:
    try:
        return {attr.name for attr in look_up(op_type).op_def.attr}
    except NotFoundError:
        return None
