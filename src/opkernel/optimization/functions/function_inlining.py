"""Function inlining: the bodies of functions without state take the places of their calls.

For an engine, so do those that read variables and change none: what is computed with the values may share a cluster.

Source: TensorFlow core/grappler/optimizers/function_optimizer.cc.
"""

import functools

from opkernel.graph import FunctionBody, Operation
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.inline_function import expand_inline_functions
from opkernel.graph.functions.lowering import is_lowered
from opkernel.optimization.clusters.marks import MUST_COMPILE, mark_of
from opkernel.proto import ConfigProto, DecodeError

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
    if _COMPILED in attrs or _is_to_be_compiled(editor, call):
        return False
    if not _are_usual(*[attrs[name].s if name in attrs else b"" for name in _OPTIONS]):
        return False
    operations = body.graph.get_operations()
    if any(is_lowered(op) and _calls_functions_with_state(op) for op in operations):
        return False  # of these other parts may run in the graph than do in the function
    structural = {*body.arg_nodes, *body.ret_nodes}
    return not any(
        op.type in LOW_LEVEL_CONTROL_FLOW or (op not in structural and _has_state(editor, op))
        for op in operations
    )


def _is_to_be_compiled(editor: GraphEditor, call: Operation) -> bool:
    """Whether a call is compiled by itself; an engine that does not take it may take parts of the function."""
    if editor.jit is None:
        return MUST_COMPILE in call.attr
    return bool(mark_of(call, MUST_COMPILE)) and not editor.jit.compiler.refusal(call)


def _has_state(editor: GraphEditor, op: Operation) -> bool:
    """Whether an operation of a body has to stay in it."""
    may_read = editor.jit is not None and editor.jit.compiler.takes_resources
    return op.op_def.is_stateful and not (may_read and op.type in _READS)


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
    called = library.reachable_definitions([op.node_def]).values()
    nodes = {node.op for function in called for node in function.node_def}
    return any(library.look_up_op_def(one).is_stateful for one in nodes)
