"""What makes larger clusters possible, and what keeps them apart, before operations are put into clusters.

CloneConstantsForBetterClustering: each consumer of a small constant has one of its own. A constant is in one cluster.
Shared, it would tie operations together that have nothing to do with each other.

ClusterScoping: what leads to a Stage and what follows an Unstage run at the same time. In one cluster, each would wait
for the inputs of the other. So the stages of a pipeline stay in clusters of their own.

Bounded lists: lists and stacks that loops push onto get a largest size, where it is known how often the loops turn. A
compiler makes room for all elements of a list in advance. The loops of gradients take the values of each turn from lists
that nobody gave a size to. How often a loop turns follows from its condition, `i < n`, if `i` begins with a constant and
grows by one, and `n` is a constant. TensorFlow wants the size from the graph (`maximum_iterations`).

Source: TensorFlow compiler/jit/clone_constants_for_better_clustering.cc, cluster_scoping_pass.cc.
"""

from __future__ import annotations

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import FunctionBody, Operation, Tensor, instantiate_function
from opkernel.graph.core.edges import Edge, behind, edges_of, leading_to, origin
from opkernel.graph.core.structural_ops import RETVAL_OPS
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.inference.constant_values import constant_value, num_elements
from opkernel.optimization.clusters.marks import INTERNAL_SCOPE, text_of
from opkernel.proto import AttrValue

SIZE_INPUTS = {"EmptyTensorList": 1, "StackV2": 0}
"""Which input tells how long a list may get."""

_HARMLESS = frozenset({"StackCloseV2", "StackPopV2", "TensorListLength"})
"""Ops that add no element, give no list, and do not see how much room there is."""
_SUMS = frozenset({"Add", "AddV2"})
_MOST = 100_000
"""No room is made for more elements."""


class _UnknownError(Exception):
    """The size of a list, or how often a loop turns, is not known."""


def bounded_lists(editor: GraphEditor) -> None:
    """Give lists without a largest size the number of elements that loops push at most."""
    if not editor.options.compiler.takes_loops:
        return
    for op in editor.operations():
        if op.type not in SIZE_INPUTS:
            continue
        given = op.inputs[SIZE_INPUTS[op.type]]
        size = editor.value(given)
        if size is None or size.size != 1 or size.item() >= 0:
            continue
        try:
            count = _pushes((op, 0))
        except (_UnknownError, OpError):
            continue
        if count <= _MOST:
            name, waits = f"{op.name}/size", given.op.control_inputs
            bound = editor.constant(np.array(count, size.dtype), None, name, op.device, waits)
            op.update_input(SIZE_INPUTS[op.type], bound)
            editor.note(op, f"has at most {count} elements")


def _pushes(edge: Edge, result: int | None = None) -> int:
    """How many elements are pushed onto a list, at most, from here on.

    Args:
        edge: The list.
        result: As which result the function that it is in may give it back.

    Raises:
        _UnknownError: something else may happen to it.
    """
    source, index = edge
    consumers = source.outputs[index].consumer_edges()
    return sum(_pushes_of(consumer, place, result) for consumer, place in consumers)


def _pushes_of(op: Operation, place: int, result: int | None) -> int:
    """How many an operation pushes that takes the list, and those behind it."""
    if op.type in RETVAL_OPS and op.message.attr["index"].i == result:
        return 0
    if op.traits.calls == "while":
        body = _function(op, "body")
        a_turn = _pushes((body.arg_nodes[place], 0), place)
        return (a_turn * _turns(op, body) if a_turn else 0) + _pushes((op, place), result)
    if op.type in _HARMLESS:
        return 0
    is_push = op.type == "StackPushV2" or op.traits.item_rule == "push"
    gives_list = op.traits.passes_on or op.traits.item_rule in ("pop", "push")
    if place or not (is_push or gives_list):
        raise _UnknownError
    return is_push + (_pushes((op, 0), result) if gives_list else 0)


def _function(loop: Operation, attr: str) -> FunctionBody:
    return instantiate_function(loop.graph.function_library, loop.message.attr[attr].func)


def _turns(loop: Operation, body: FunctionBody) -> int:
    """How often a loop turns, at most."""
    condition = _function(loop, "cond")
    test = _origin(condition.outputs[0])
    if test.type not in ("Less", "LessEqual"):
        raise _UnknownError
    counter, limit = test.inputs
    place = _argument(condition, counter)
    step = _step(body, place)
    if _origin(limit).type != "Const":
        index = _argument(condition, limit)
        if _argument(body, body.outputs[index]) != index:
            raise _UnknownError
        limit = loop.inputs[index]
    way = _integer(limit) - _integer(loop.inputs[place]) + (test.type == "LessEqual")
    return max(0, -(-way // step))


def _step(body: FunctionBody, place: int) -> int:
    """By how much a variable grows each turn."""
    total = _origin(body.outputs[place])
    if total.type not in _SUMS:
        raise _UnknownError
    steps = [one for one in total.inputs if _origin(one) is not body.arg_nodes[place]]
    if len(steps) != 1 or _integer(steps[0]) <= 0:
        raise _UnknownError
    return _integer(steps[0])


def _origin(tensor: Tensor) -> Operation:
    """The operation whose output comes through others that pass it on."""
    return origin((tensor.op, tensor.value_index))[0]


def _argument(body: FunctionBody, tensor: Tensor) -> int:
    """Which argument of a function a tensor is."""
    op = _origin(tensor)
    if op not in body.arg_nodes:
        raise _UnknownError
    return body.arg_nodes.index(op)


def _integer(tensor: Tensor) -> int:
    op = _origin(tensor)
    value = constant_value(op.message) if op.type == "Const" else None
    if value is None or value.dtype.kind not in "iu" or value.size != 1:
        raise _UnknownError
    return int(value.item())


_IN_PLACE = frozenset({"InplaceAdd", "InplaceSub", "InplaceUpdate"})
"""Ops that may write into a constant, for all its consumers to see."""
_SMALL = 16
"""Constants with fewer elements are cloned."""


def clone_constants_for_better_clustering(editor: GraphEditor) -> None:
    """Give each consumer of a small constant one of its own."""
    order = editor.operations()
    if not editor.options.is_global or any(op.type in _IN_PLACE for op in order):
        return
    for op in order:
        for place, (source, _) in enumerate(edges_of(op)):
            is_small = source.type == "Const" and num_elements(source) < _SMALL
            if is_small and len(source.consumer_edges()) + (source in editor.preserved) > 1:
                op.update_input(place, editor.clone(source, f"{source.name}/clone").outputs[0])


def cluster_scoping(editor: GraphEditor) -> None:
    """Put the operations before a Stage, and those behind an Unstage, into scopes."""
    if not editor.options.is_global:
        return
    ends = [op for op in editor.operations() if op.type in ("Stage", "Unstage")]
    for number, end in enumerate(ends):
        reach = leading_to([end]) if end.type == "Stage" else behind([end])
        for op in sorted(reach, key=lambda one: one.number):
            # Beside those that it is in: it shares clusters with those that are in the same ones.
            scopes = "&".join(filter(None, (text_of(op, INTERNAL_SCOPE), f"_{number}")))
            op.set_attr(INTERNAL_SCOPE, AttrValue(s=scopes.encode()))
