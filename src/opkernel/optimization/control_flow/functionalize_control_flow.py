"""FunctionalizeControlFlow: loops and conditionals of TensorFlow 1 become While and If, for compilers that take them.

Each becomes one node that calls functions, which a compiler can have in a cluster. The functions that nodes call are
looked into as well. Loops and conditionals of odd form stay as they are.

Source: TensorFlow compiler/tf2xla/functionalize_control_flow.cc.
"""

from __future__ import annotations

from opkernel.errors import OpError
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.control_flow.extracted_function import has_own_state
from opkernel.optimization.control_flow.functionalize_cond import functionalize_cond
from opkernel.optimization.control_flow.functionalize_while import functionalize_while
from opkernel.optimization.control_flow.functionalized_functions import FunctionalizedFunctions


def functionalize_control_flow(editor: GraphEditor) -> None:
    """Have loops and conditionals become While and If where a compiler takes them."""
    if editor.jit is not None and editor.jit.compiler.takes_loops:
        functionalize(editor, keeps_state=True)


def functionalize(editor: GraphEditor, *, keeps_state: bool = False) -> None:
    """Have the loops and conditionals of a graph, and of the functions that it calls, become While and If.

    Args:
        editor: The graph.
        keeps_state: Whether kernels that keep something from one step to the next stay where they are: the kernels of
            a function would begin anew.
    """
    edit = _functionalize_around_state if keeps_state else _functionalize_graph
    edit(editor)
    FunctionalizedFunctions(editor.graph.function_library, edit).replace_in(editor)


def _functionalize_around_state(editor: GraphEditor) -> None:
    feeds = editor.feeds
    editor.leave(op for op in editor.operations() if has_own_state(op))
    _functionalize_graph(editor)
    editor.feeds = feeds


def _functionalize_graph(editor: GraphEditor) -> None:
    if LOW_LEVEL_CONTROL_FLOW.isdisjoint(editor.op_types()):
        return
    try:
        functionalize_while(editor)
        functionalize_cond(editor)
    except OpError:  # the step will tell what is wrong with the control flow
        return
