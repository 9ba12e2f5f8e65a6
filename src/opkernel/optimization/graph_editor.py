"""GraphEditor: what passes do to a graph.

Operations are never taken out: those that no result needs any more are cut off after each pass, and
left out at the end. `operations` gives those that are needed now. A preserved operation keeps its
name and its outputs, its op may change; all others may go.

Each change is made at once, in time that does not depend on the size of the graph, and passes see it;
a `GraphRewriter` makes many at once, and cleans up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.control_flow_ops import ENTER_OPS, LOW_LEVEL_CONTROL_FLOW, SWITCH_OPS
from opkernel.graph.prune import prune_and_order
from opkernel.opdef import UNKNOWN_DIM, attr_from_python
from opkernel.proto import AttrValue, NodeDef
from opkernel.types import DataType, PartialTensorShape, tensor_from_proto, tensor_to_proto

__all__ = ["Change", "GraphEditor"]

_CONDITIONAL = SWITCH_OPS | ENTER_OPS


class Change(NamedTuple):
    """What a pass did to a node."""

    pass_name: str
    node: str
    what: str


class GraphEditor:
    """Edits a graph that has to give the same results afterwards.

    Attributes:
        graph: the graph; nobody else uses it.
        preserved: the operations that are fed, fetched or targets; they keep their outputs.
        feeds: those that stay as they are: what is fed, and what takes references.
        changes: what was done, in order.
    """

    def __init__(
        self, graph: Graph, preserved: Iterable[Operation], feeds: Iterable[Operation] = ()
    ) -> None:
        self.graph = graph
        self.preserved = set(preserved)
        self.feeds = frozenset(feeds)
        self.changes: list[Change] = []
        self._pass_name = ""
        self._order: list[Operation] = []
        self._op_types: frozenset[str] | None = None
        self._ordered_at = -1
        self._values: dict[Operation, tuple[NodeDef, np.ndarray[Any, Any] | None]] = {}
        self._conditional: set[Operation] | None = None

    # For the registry.

    def begin(self, pass_name: str) -> None:
        """A pass begins."""
        self._pass_name = pass_name
        self._conditional = None

    def end(self) -> None:
        """Cut off the operations that no preserved one needs: they take nothing any more."""
        if self._ordered_at == self.graph.edits:
            return
        needed = set(self.operations())
        for op in self.graph.get_operations():
            if op not in needed and (op._edges or op._control_inputs):
                op._cut_off()
        self._ordered_at = self.graph.edits  # what was cut off was in no order

    def changed(self) -> None:
        """The pass has changed the graph by other means; `is_conditional` has to look again."""
        self._conditional = None

    # What there is.

    def operations(self) -> list[Operation]:
        """The operations that the preserved ones need, inputs before consumers."""
        if self._ordered_at != self.graph.edits:
            self._order = prune_and_order((), sorted(self.preserved, key=_number), ())
            self._ordered_at, self._op_types = self.graph.edits, None
        return list(self._order)

    def op_types(self) -> frozenset[str]:
        """The ops of these operations."""
        if self._ordered_at != self.graph.edits or self._op_types is None:
            self._op_types = frozenset([op.type for op in self.operations()])
        return self._op_types

    def consumers(self, tensor: Tensor) -> list[tuple[Operation, int]]:
        """The operations that take a tensor, and as which input."""
        index = tensor.value_index
        return [
            (op, at)
            for op, at in self.graph._consumer_edges(tensor.op)
            if at >= 0 and op._edges[2 * at + 1] == index
        ]

    def only_consumer(self, op: Operation) -> tuple[Operation, int] | None:
        """The one that takes the only output of an operation that nothing else needs, and where."""
        if op in self.preserved or len(op.output_types) != 1:
            return None
        edges = self.graph._consumer_edges(op)
        return edges[0] if len(edges) == 1 and edges[0][1] >= 0 else None

    def value(self, tensor: Tensor) -> np.ndarray[Any, Any] | None:
        """The value of a Const, not to be written to; None of all other tensors."""
        return self._value_of(tensor.op) if tensor.op.type == "Const" else None

    def _value_of(self, const: Operation) -> np.ndarray[Any, Any] | None:
        node = const._node_def
        known = self._values.get(const)
        if known is None or known[0] is not node:
            try:
                value = np.asarray(tensor_from_proto(node.attr["value"].tensor))
            except OpError:  # the step that runs the node will say what is wrong
                value = None
            known = self._values[const] = node, value
        return known[1]

    def attrs(self, op: Operation) -> dict[str, Any]:
        """The attrs of an operation that its op declares."""
        declared = {attr.name for attr in op.op_def.attr}
        return {name: value for name, value in op._node_def.attr.items() if name in declared}

    def free_value(self, tensor: Tensor) -> np.ndarray[Any, Any] | None:
        """The value of a Const that waits for nothing, so that it may be dropped."""
        value = self.value(tensor)
        return None if value is None or tensor.op.control_inputs else value

    def free_input(self, op: Operation, index: int) -> np.ndarray[Any, Any] | None:
        """`free_value` of an input, without making a Tensor of it: for rules that look at all nodes."""
        source: Operation = op._edges[2 * index]
        if source.type != "Const" or source._control_inputs:
            return None
        return self._value_of(source)

    def shape(self, tensor: Tensor) -> PartialTensorShape:
        """What is known of the shape of a tensor."""
        try:
            return tensor.shape
        except OpError:  # the step that runs the node will say what is wrong
            return PartialTensorShape(None)

    def dims(self, tensor: Tensor) -> tuple[int, ...] | None:
        """The shape of a tensor where it is known in full."""
        shape = self.shape(tensor)
        sizes = [] if shape.rank is None else shape.as_list()
        known = tuple([size for size in sizes if size is not None])
        return known if len(known) == shape.rank else None

    def have_one_shape(self, first: Tensor, second: Tensor) -> bool:
        """Whether two tensors have the same shape, whatever the sizes that are not known."""
        if self.shape(first).rank is None or self.shape(second).rank is None:
            return False
        refiner = self.graph._refiner
        one, two = (refiner.shape_handle((t.op, t.value_index)).dims or () for t in (first, second))
        return len(one) == len(two) and all(
            a is b or a.value == b.value != UNKNOWN_DIM for a, b in zip(one, two, strict=True)
        )

    def is_conditional(self, op: Operation) -> bool:
        """Whether an operation runs not at all or several times: it depends on a Switch or Enter.

        Operations that the pass itself has added are not known.
        """
        if self._conditional is None:
            self._conditional = _conditional_operations(self.graph.get_operations())
        return op in self._conditional

    # What may be done.

    def note(self, op: Operation, what: str) -> None:
        """Record a change."""
        self.changes.append(Change(self._pass_name, op.name, what))

    def may_bypass(self, op: Operation) -> bool:
        """Whether the consumers of an operation may take something else, and it need not stay.

        Not beside control flow, which goes by its nodes.
        """
        if op in self.feeds:
            return False
        sources = op._edges[::2]
        if any(source.type in LOW_LEVEL_CONTROL_FLOW for source in sources):
            return False
        return not any(c.type in LOW_LEVEL_CONTROL_FLOW for c, _ in self.graph._consumer_edges(op))

    def part(self, op: Operation, index: int, *types: str) -> Operation | None:
        """What gives an input of `op`, where it is of one of these types and `op` may do its work, too.

        Nothing else needs it, it waits for nothing, and is on the same device.
        """
        inner: Operation = op._edges[2 * index]
        if inner.type not in types or inner.device != op.device or inner.control_inputs:
            return None
        return inner if self.only_consumer(inner) is not None and self.may_bypass(inner) else None

    def redirect(self, tensor: Tensor, by: Tensor) -> list[Operation]:
        """Have all who take a tensor take another, which has the same value; those who took it."""
        consumers = [edge for edge in self.consumers(tensor) if edge[0] is not by.op]
        for op, index in consumers:
            op._update_input(index, by)
        return [op for op, _ in consumers]

    def replace(self, tensor: Tensor, by: Tensor) -> None:
        """Have all who take a tensor take another that may be there before it.

        Control inputs of the operation that gave it are handed on to them.
        """
        controls = [c for c in tensor.op.control_inputs if c is not by.op]
        for op in self.redirect(tensor, by):
            if controls:
                op._add_control_inputs(controls)

    def pass_on(self, op: Operation, tensor: Tensor, what: str) -> None:
        """Have an operation of one output do nothing but pass on a tensor of the same type."""
        self.replace(op.outputs[0], tensor)
        if op in self.preserved and (op.type != "Identity" or op.inputs != (tensor,)):
            self.become(op, "Identity", [tensor], {"T": tensor.dtype.base})
        self.note(op, what)

    def add(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        name: str,
        attrs: Mapping[str, Any],
        device: str = "",
        control_inputs: Iterable[Operation] = (),
    ) -> Operation:
        """A new operation.

        Args:
            op_type: its op.
            inputs: its inputs, flat.
            name: its name, made unique.
            attrs: its attrs but those with defaults, as Python values or messages.
            device: its device.
            control_inputs: what it waits for.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of its op.
        """
        graph, full_name, number = self.graph, name, 0
        while full_name in graph._by_name:
            number += 1
            full_name = f"{name}_{number}"
        op = Operation(
            graph, full_name, self._node(op_type, full_name, attrs, device), graph.version
        )
        op._edges = tuple([part for tensor in inputs for part in (tensor.op, tensor.value_index)])
        op._control_inputs = tuple(dict.fromkeys(control_inputs))
        op._write_inputs()
        op._signature = graph._resolve(op._node_def, len(inputs))
        graph._append([op])
        return op

    def constant(
        self,
        value: np.ndarray[Any, Any],
        dtype: DataType,
        name: str,
        device: str = "",
        control_inputs: Iterable[Operation] = (),
    ) -> Tensor:
        """A new Const."""
        attrs = {"value": tensor_to_proto(value, dtype), "dtype": dtype}
        op = self.add("Const", (), name, attrs, device, control_inputs)
        self._values[op] = op._node_def, value
        return op.outputs[0]

    def become(
        self,
        op: Operation,
        op_type: str,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, Any],
    ) -> None:
        """Turn an operation into one of another op that gives the same values.

        Args:
            op: the operation; its name, device and control inputs stay.
            op_type: the new op.
            inputs: its inputs.
            attrs: its attrs but those with defaults, as Python values or messages.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of the op, or has outputs of
                other types.
        """
        op._become(self._node(op_type, op.name, attrs, op.device), inputs)

    def become_constant(self, op: Operation, value: np.ndarray[Any, Any]) -> None:
        """Turn an operation of one output into a Const, which runs where the operation did."""
        dtype = op.output_types[0]
        controls = self.pivots(op)
        self.become(op, "Const", (), {"value": tensor_to_proto(value, dtype), "dtype": dtype})
        op._add_control_inputs(controls)
        self._values[op] = op._node_def, value

    def pivots(self, op: Operation) -> list[Operation]:
        """What a constant in the place of `op` waits for, to be in its loop and on its branch."""
        return [source for source in dict.fromkeys(op._edges[::2]) if self.is_conditional(source)]

    def _node(self, op_type: str, name: str, attrs: Mapping[str, Any], device: str) -> NodeDef:
        """A node without inputs."""
        op_def = self.graph.function_library.look_up(op_type).op_def
        kinds = {attr.name: attr.type for attr in op_def.attr}
        node = NodeDef(name=name, op=op_type, device=device)
        for key, value in attrs.items():
            if kinds[key] == "type":
                node.attr[key].type = value.type if isinstance(value, AttrValue) else value
            elif kinds[key] == "tensor":
                node.attr[key].tensor.CopyFrom(value)
            else:
                node.attr[key].CopyFrom(attr_from_python(value, kinds[key]))
        return node


def _conditional_operations(ops: Sequence[Operation]) -> set[Operation]:
    """The operations that depend on a Switch or Enter."""
    stack = [op for op in ops if op.type in _CONDITIONAL]
    found = set(stack)
    while stack:
        for consumer, _ in stack.pop()._consumer_edges():
            if consumer not in found:
                found.add(consumer)
                stack.append(consumer)
    return found


def _number(op: Operation) -> int:
    return op._id
