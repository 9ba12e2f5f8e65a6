"""LargeConst: a Const whose value stays in an array, so that memory holds it once.

Its NodeDef is made anew each time that somebody asks for it. What makes its kernel, or looks at other attrs, takes
`Operation.slim_node_def`, where a token stands for the value (`types.tensor_tokens`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkernel.graph.core.node import copied
from opkernel.graph.core.operation import Operation
from opkernel.proto import NodeDef
from opkernel.types import Array
from opkernel.types.tensor_tokens import held_token

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph


class LargeConst(Operation):
    """A Const whose value is an array.

    Args:
        graph, name, number: as for `Operation`.
        head: its NodeDef, without the value, or with a token for it.
        value: the value; nobody writes to it.
    """

    __slots__ = ("_head", "_is_slim", "_token", "_value")

    def __init__(self, graph: Graph, name: str, head: NodeDef, number: int, value: Array) -> None:
        tensor = head.attr["value"].tensor
        if not tensor.tensor_content:
            tensor.tensor_content = held_token(value)
        self._value, self._token = value, tensor.tensor_content
        super().__init__(graph, name, head, number)

    @property
    def message(self) -> NodeDef:
        """The node with its value, made anew where a token stands for that."""
        if not self._is_slim:
            return self._head
        whole = copied(self._head)
        whole.attr["value"].tensor.tensor_content = self._value.tobytes()
        return whole

    @message.setter
    def message(self, node: NodeDef) -> None:
        """Another node; it may have the token."""
        self._head = node
        is_const = node.op == "Const" and "value" in node.attr
        self._is_slim = is_const and node.attr["value"].tensor.tensor_content == self._token

    @property
    def slim_message(self) -> NodeDef:
        """The node with a token for its value."""
        return self._head

    @property
    def device(self) -> str:
        """As of `Operation`."""
        assigned = self.graph.assigned_devices
        return (assigned.get(self) if assigned else None) or self._head.device

    def copy_to(self, graph: Graph, number: int) -> Operation:
        """A copy that has the same array."""
        if not self._is_slim:
            return super().copy_to(graph, number)
        return LargeConst(graph, self.name, self.slim_node_def, number, self._value)
