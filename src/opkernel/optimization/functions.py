"""Functions: their bodies optimised, or put into the places of their calls.

A function whose body is optimised keeps its name and its signature, so that nobody who calls it notices. Sessions do not
need this: they optimise a body when the function is first called. The bodies of functions without state take the places
of their calls; for an engine, so do those that read variables and change none: what is computed with the values may share
a cluster.

Source: TensorFlow core/grappler/optimizers/meta_optimizer.cc, function_optimizer.cc.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from opkernel.errors import OpError
from opkernel.graph import (
    FunctionBody,
    FunctionLibraryDefinition,
    Operation,
    graph_to_function_def,
    instantiate_function,
)
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.colocation_groups import bequeath_groups
from opkernel.graph.edit.graph_editor import Change, GraphEditor
from opkernel.graph.edit.inline_function import expand_inline_functions
from opkernel.graph.functions.calls import is_lowered
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.optimization.clusters.marks import MUST_COMPILE, mark_of
from opkernel.optimization.optimize import OptimizedGraph, optimize_body
from opkernel.proto import ConfigProto, DecodeError, FunctionDef, NodeDef


def optimize_functions(
    optimized: OptimizedGraph, passes: Collection[str] | None = None
) -> OptimizedGraph:
    """Optimise the functions that an optimised graph needs, in its library.

    Functions of which SymbolicGradient makes a gradient stay as they are: not all ops that passes make
    have one. So do those whose types their callers choose, and those that are wrong.

    Args:
        optimized: the graph; its library changes.
        passes: the names of the passes to be run; all if None.

    Returns:
        The same graph with the changes of the functions, too: theirs are of the node `function/node`.
    """
    library = optimized.graph.function_library
    nodes = [op.node_def for op in optimized.operations]
    changes = list(optimized.changes)
    done = set(_differentiated(library, nodes))
    while waiting := library.reachable_definitions(nodes).keys() - done:
        done |= waiting
        for name in sorted(waiting):
            changes += _optimize(library, library[name], passes)
    return replace(optimized, changes=changes)


def _differentiated(library: FunctionLibraryDefinition, nodes: Sequence[NodeDef]) -> Iterable[str]:
    """The functions that SymbolicGradient nodes name, and what those call."""
    bodies = [function.node_def for function in library.reachable_definitions(nodes).values()]
    named = [
        NodeDef(op=node.attr["f"].func.name)
        for node in chain(nodes, *bodies)
        if node.op == GRADIENT_OP
    ]
    return library.reachable_definitions(named)


def _optimize(
    library: FunctionLibraryDefinition, definition: FunctionDef, passes: Collection[str] | None
) -> list[Change]:
    """Give a function another body."""
    if definition.signature.attr:
        return []
    try:
        body = instantiate_function(library, definition)
        optimized = optimize_body(body, [TensorFacts() for _ in body.inputs], passes)
    except OpError:  # whoever calls the function will learn what is wrong
        return []
    if optimized.changes:
        library.add_missing(optimized.graph.function_library)
        library.remove_function(body.name)
        library.add_function(_with_body(body, optimized))
    changes = []
    for change in optimized.changes:
        node, *parts = (f"{body.name}/{name}" for name in (change.node, *change.parts))
        changes.append(change._replace(node=node, parts=tuple(parts)))
    return changes


def _with_body(body: FunctionBody, optimized: OptimizedGraph) -> FunctionDef:
    """The function that was instantiated with what passes have made of its body."""
    original, signature = body.function_def, body.function_def.signature
    labels = [*signature.control_output, *sorted(original.control_ret)]
    arguments = {tensor.op for tensor in optimized.feeds}
    operations = [op for op in optimized.operations if op not in arguments]
    bequeath_groups(operations)
    function = graph_to_function_def(
        optimized.graph,
        signature.name,
        optimized.feeds,
        optimized.fetches,
        body=operations,
        input_names=[arg.name for arg in signature.input_arg],
        output_names=[arg.name for arg in signature.output_arg],
        control_outputs={
            label: optimized.graph.get_operation_by_name(original.control_ret[label])
            for label in labels
        },
        attrs=original.attr,
    )
    function.signature.CopyFrom(signature)
    for number, attrs in original.arg_attr.items():
        function.arg_attr[number].CopyFrom(attrs)
    return function


_MAX_DEPTH = 8
"""Functions that call each other more deeply, or themselves, are inlined so far."""
_MAX_GROWTH = 1000
"""No more is inlined once the graph has so many more operations."""
_OPTIONS = ("executor_type", "config", "config_proto")
"""Attrs that say how a function is to be run."""
_READS = frozenset({"ReadVariableOp", "VariableShape"})
_COMPILED = "_xla_compile_id"


def function_inlining(editor: GraphEditor) -> None:
    """Put the bodies of functions without state into the places of their calls."""
    graph = editor.graph
    limit = graph.version + _MAX_GROWTH

    kept: list[Operation] = []

    def consider(call: Operation, body: FunctionBody) -> bool:
        is_right = _may_inline(editor, call, body)
        if is_right:
            editor.note(call, f"is the body of {body.name!r}")
            editor.drop([call])  # its body does what it did
            if call in editor.preserved:
                kept.append(call)
        return is_right

    for _ in range(_MAX_DEPTH):
        is_changed = expand_inline_functions(graph, consider=consider, fetchable=editor.preserved)
        if not is_changed or graph.version > limit:
            break
        editor.changed()
    for call in kept:
        if call.type == "IdentityN" and len(call.outputs) == 1:
            editor.become(call, "Identity", call.inputs, {"T": call.output_types[0]})


def _may_inline(editor: GraphEditor, call: Operation, body: FunctionBody) -> bool:
    """Whether the body does in the graph what the call did, and nothing else.

    A call runs once all of its inputs are there, and is dead where one is: not so its body.
    """
    if editor.is_conditional(call):
        return False
    attrs = call.attr
    must_compile = MUST_COMPILE in attrs if editor.jit is None else mark_of(call, MUST_COMPILE)
    if _COMPILED in attrs:
        return False
    if must_compile and (editor.jit is None or not editor.jit.compiler.refusal(call)):
        return False  # an engine that does not take it may take parts of the function
    if not _are_usual(*[attrs[name].s if name in attrs else b"" for name in _OPTIONS]):
        return False
    operations = body.graph.get_operations()
    if any(is_lowered(op) and _calls_functions_with_state(op) for op in operations):
        return False  # of these other parts may run in the graph than do in the function
    structural = {*body.arg_nodes, *body.ret_nodes}
    may_read = editor.jit is not None and editor.jit.compiler.takes_resources
    stateful = [op for op in operations if op.op_def.is_stateful and op not in structural]
    if any(not (may_read and op.type in _READS) for op in stateful):
        return False
    return not any(op.type in LOW_LEVEL_CONTROL_FLOW for op in operations)


@functools.lru_cache(maxsize=64)
def _are_usual(executor_type: bytes, config: bytes, config_proto: bytes) -> bool:
    """Whether options ask for nothing that a graph does not do; of wrong ones the call will tell."""
    if executor_type or (config and config_proto):
        return False
    try:
        ConfigProto.FromString(config_proto)
    except DecodeError:
        return False
    return True


def _calls_functions_with_state(op: Operation) -> bool:
    """Whether any of the functions that a node calls, directly or not, has operations with state."""
    library = op.graph.function_library
    ops = library.ops_reached([op.node_def])
    return any(library.look_up_op_def(one).is_stateful for one in ops)
