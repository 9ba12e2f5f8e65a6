"""The functions that nodes call, with While and If in place of control flow of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from opkernel.errors import OpError
from opkernel.graph import Operation, graph_to_function_def, instantiate_function
from opkernel.graph.core.control_flow_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.prune import prune_and_order
from opkernel.graph.functions.function_library import FunctionLibraryDefinition
from opkernel.proto import AttrValue, NameAttrList

_MAX_DEPTH = 50
"""Functions that call each other more deeply stay as they are; those that call themselves are among these."""


class FunctionalizedFunctions:
    """Makes the functions.

    Args:
        library: Where functions are looked up and added.
        edit: Edits the body of one.
    """

    def __init__(
        self, library: FunctionLibraryDefinition, edit: Callable[[GraphEditor], None]
    ) -> None:
        self._library, self._edit = library, edit
        self._known: dict[bytes, NameAttrList] = {}

    def replace_in(self, editor: GraphEditor, depth: int = 0) -> bool:
        """Have the nodes of a graph call such functions; whether any calls another one than before."""
        is_changed = False
        for op in editor.operations() if depth < _MAX_DEPTH else ():
            if op.traits.calls and op not in editor.feeds and self._has_control_flow(op):
                is_changed |= self._replace(op, depth)
        return is_changed

    def _has_control_flow(self, op: Operation) -> bool:
        called = self._library.reachable_definitions([op.message]).values()
        return any(
            node.op in LOW_LEVEL_CONTROL_FLOW for function in called for node in function.node_def
        )

    def _replace(self, op: Operation, depth: int) -> bool:
        attrs: dict[str, AttrValue] = {}
        for attr in op.op_def.attr:
            if attr.type not in ("func", "list(func)"):
                continue
            value = AttrValue()
            value.CopyFrom(op.message.attr[attr.name])
            for one in [value.func] if attr.type == "func" else value.list.func:
                one.CopyFrom(self._functionalized(one, depth))
            if value != op.message.attr[attr.name]:
                attrs[attr.name] = value
        if attrs:
            op.set_attrs(attrs)
        return bool(attrs)

    def _functionalized(self, function: NameAttrList, depth: int) -> NameAttrList:
        """The function to call in place of a function."""
        key = function.SerializeToString(deterministic=True)
        if key not in self._known:
            self._known[key] = function  # of a function that calls itself
            with suppress(OpError):  # the step that calls it raises the error
                self._known[key] = self._made(function, depth)
        return self._known[key]

    def _made(self, function: NameAttrList, depth: int) -> NameAttrList:
        body = instantiate_function(self._library, function)
        ends = [*body.arg_nodes, *body.ret_nodes, *body.control_ret_nodes]
        needed = set(prune_and_order((), ends, ()))
        others = [op for op in body.targets if op not in needed]
        inner = GraphEditor(body.graph, [*ends, *others], body.arg_nodes)
        self._edit(inner)
        is_changed = self.replace_in(inner, depth + 1)
        if not is_changed and not inner.changes:
            return function
        structural = {*body.arg_nodes, *body.ret_nodes}
        made = graph_to_function_def(
            body.graph,
            body.name,
            body.inputs,
            body.outputs,
            body=[op for op in inner.operations() if op not in structural],
            control_outputs={op.name: op for op in body.control_ret_nodes},
            attrs=body.function_def.attr,
            append_hash_to_fn_name=True,
        )
        self._library.add_function(made)
        return NameAttrList(name=made.signature.name, attr=function.attr)
