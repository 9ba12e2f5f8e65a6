"""FunctionalizeControlFlow: loops and conditionals of TensorFlow 1 become While and If, for compilers that take them.

Each becomes one node that calls functions, which a compiler can have in a cluster. The functions that nodes call are
looked into as well. Loops and conditionals of odd form stay as they are.

Source: TensorFlow compiler/tf2xla/functionalize_control_flow.cc.
"""

from __future__ import annotations

from opkernel.errors import OpError
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.control_flow.functionalize_cond import functionalize_cond
from opkernel.optimization.control_flow.functionalize_while import functionalize_while
from opkernel.optimization.control_flow.functionalized_functions import FunctionalizedFunctions

__all__ = ["functionalize", "functionalize_control_flow"]


def functionalize_control_flow(editor: GraphEditor) -> None:
    """Have loops and conditionals become While and If where a compiler takes them."""
    if editor.jit is not None and editor.jit.compiler.takes_loops:
        functionalize(editor)


def functionalize(editor: GraphEditor) -> None:
    """Have the loops and conditionals of a graph, and of the functions that it calls, become While and If."""
    _functionalize_graph(editor)
    functions = FunctionalizedFunctions(editor.graph.function_library, _functionalize_graph)
    functions.replace_in(editor)


def _functionalize_graph(editor: GraphEditor) -> None:
    if LOW_LEVEL_CONTROL_FLOW.isdisjoint(editor.op_types()):
        return
    try:
        functionalize_while(editor)
        functionalize_cond(editor)
    except OpError:  # the step will tell what is wrong with the control flow
        return
