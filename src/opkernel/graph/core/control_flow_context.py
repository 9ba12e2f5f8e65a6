"""The control-flow context of an operation: the conditional or loop that it was built in.

Code that builds control flow of TensorFlow 1 by hand sets the context of a graph. The graph calls
`context.AddOp(op)` for each operation made in it. Nothing else reads contexts; `control_flow_info`
finds the frames of a graph from its edges.

Source: TensorFlow python/framework/ops.py, python/ops/control_flow_ops.py.
"""

from __future__ import annotations

from typing import Any

from opkernel.graph.core.scopes import Scopes


class MadeInContext:
    """An operation, with the context that it was made in."""

    __slots__ = ()
    graph: BuildsInContext

    def _get_control_flow_context(self) -> Any:
        """The context that it was made in, or was put into; None for none."""
        return self.graph.control_flow_contexts.get(self)

    def _set_control_flow_context(self, context: Any) -> None:
        """Put it into another context; into none if None."""
        if context is None:
            self.graph.control_flow_contexts.pop(self, None)
        else:
            self.graph.control_flow_contexts[self] = context

    _control_flow_context = property(_get_control_flow_context, _set_control_flow_context)


class BuildsInContext:
    """A graph, with the context that this thread's new operations are in.

    Attributes:
        control_flow_contexts: the contexts of the operations that were made in one.
        scopes: the scopes of new operations in this thread.
    """

    control_flow_contexts: dict[Any, Any]
    scopes: Scopes[Any]

    def _get_control_flow_context(self) -> Any:
        """The context of new operations; None for none."""
        return self.scopes.control_flow_context

    def _set_control_flow_context(self, context: Any) -> None:
        """Put new operations of this thread into a context, or into none."""
        self.scopes.control_flow_context = context

    def enter_context(self, op: MadeInContext) -> None:
        """Put a new operation into the control-flow context, if there is one."""
        context = self.scopes.control_flow_context
        if context is not None:
            self.control_flow_contexts[op] = context
            context.AddOp(op)

    _control_flow_context = property(_get_control_flow_context, _set_control_flow_context)
