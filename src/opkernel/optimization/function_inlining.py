"""Function inlining: the bodies of functions without state take the places of their calls.

Source: TensorFlow core/grappler/optimizers/function_optimizer.cc.
"""

from opkernel.graph import FunctionBody, Operation
from opkernel.graph.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.inline_function import expand_inline_functions
from opkernel.optimization.graph_editor import GraphEditor
from opkernel.optimization.pass_registry import Grouping, register_optimization

__all__ = ["function_inlining"]

_MAX_DEPTH = 8
"""Functions that call each other more deeply, or themselves, are inlined so far."""
_MAX_GROWTH = 1000
"""No more is inlined once the graph has so many more operations."""
_OPTIONS = ("config", "config_proto", "executor_type")
"""Attrs that say how a function is to be run; whether they are right, the call finds out."""
_COMPILED = ("_XlaMustCompile", "_xla_compile_id")


@register_optimization(Grouping.PRE_PLACEMENT, 10)
def function_inlining(editor: GraphEditor) -> None:
    """Put the bodies of functions without state into the places of their calls."""
    graph = editor.graph
    limit = graph.version + _MAX_GROWTH

    kept: list[Operation] = []

    def consider(call: Operation, body: FunctionBody) -> bool:
        is_right = _may_inline(editor, call, body)
        if is_right:
            editor.note(call, f"is the body of {body.name!r}")
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
    attrs = call._node_def.attr
    if any(name in attrs for name in _COMPILED):
        return False
    if any(name in attrs and attrs[name].s for name in _OPTIONS):
        return False
    operations = body.graph.get_operations()
    structural = {*body.arg_nodes, *body.ret_nodes}
    return not any(
        op.type in LOW_LEVEL_CONTROL_FLOW or (op.op_def.is_stateful and op not in structural)
        for op in operations
    )
