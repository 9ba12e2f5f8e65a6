"""optimize_functions: the passes on the bodies of the functions that a graph needs.

A function keeps its name and its signature, so that nobody who calls it notices. Sessions do not need
this: they optimise a body when the function is first called.

Source: TensorFlow core/grappler/optimizers/meta_optimizer.cc.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from opkernel.errors import OpError
from opkernel.graph import (
    FunctionBody,
    FunctionLibraryDefinition,
    graph_to_function_def,
    instantiate_function,
)
from opkernel.graph.edit.graph_editor import Change
from opkernel.graph.functions.function_library import GRADIENT_OP
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.optimization.optimize import OptimizedGraph, optimize_graph
from opkernel.proto import FunctionDef, NodeDef


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
        optimized = optimize_graph(
            body.graph,
            body.outputs,
            body.inputs,
            body.targets,
            passes=passes,
            feed_facts=[TensorFacts() for _ in body.inputs],
        )
    except OpError:  # whoever calls the function will learn what is wrong
        return []
    if optimized.changes:
        added = optimized.graph.function_library
        for name in added.keys() - library.keys():
            library.add_function(added[name])
        library.remove_function(body.name)
        library.add_function(_with_body(body, optimized))
    return [_in_function(body.name, change) for change in optimized.changes]


def _in_function(function: str, change: Change) -> Change:
    """A change of a function's body, with the function before the names of its nodes."""
    node, *parts = (f"{function}/{name}" for name in (change.node, *change.parts))
    return change._replace(node=node, parts=tuple(parts))


def _with_body(body: FunctionBody, optimized: OptimizedGraph) -> FunctionDef:
    """The function that was instantiated with what passes have made of its body."""
    original, signature = body.function_def, body.function_def.signature
    labels = [*signature.control_output, *sorted(original.control_ret)]
    arguments = {tensor.op for tensor in optimized.feeds}
    function = graph_to_function_def(
        optimized.graph,
        signature.name,
        optimized.feeds,
        optimized.fetches,
        body=[op for op in optimized.operations if op not in arguments],
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
