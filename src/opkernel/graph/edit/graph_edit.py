"""GraphEdit: changes to the operations of a graph, for passes, inlining and users alike.

Each change is made, and visible, at once. `edit_graph` is a block of changes that are made all or
not at all; the graph is in order at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.create_op import Arguments, make_operation, op_named
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.node import NodeRequest, copied
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.signature import NodeSignature
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.core.tensor_name import free_name, is_valid_node_name
from opkernel.graph.edit.colocation_groups import bequeath_groups, rename_groups
from opkernel.graph.edit.subgraph import (
    awaited_without,
    copy_operations,
    prune_and_order,
    prune_idle_waits,
)
from opkernel.interrupts import contextmanager
from opkernel.opdef import attr_from_python
from opkernel.proto import AttrValue, NodeDef
from opkernel.types import DataType, tensor_to_proto

Elements: TypeAlias = Iterable[Tensor | Operation | str] | Tensor | Operation | str
Tensors: TypeAlias = Iterable[Tensor | str] | Tensor | str
"""What callers may give: elements of a graph or their names, one by itself or several."""

_NO_ATTRS: Mapping[str, Any] = MappingProxyType({})


@contextmanager
def edit_graph(graph: Graph) -> Iterator[GraphEdit]:
    """`Graph.edit`."""
    from opkernel.graph.core.undo import Undo  # passes have no blocks

    graph.check_not_finalized()
    with graph.lock, graph.as_default():
        edit, undo = GraphEdit(graph), Undo(graph)
        try:
            graph.before_change.append(undo.note)
            yield edit
            edit.finish(undo.states)
        except BaseException:
            undo.restore()
            raise
        finally:
            graph.before_change.remove(undo.note)


def listed(elements: Elements) -> list[Any]:
    """The elements of a graph that a caller gave, one by itself or several."""
    if isinstance(elements, Tensor | Operation | str):
        return [elements]
    return list(elements)


class GraphEdit:
    """Changes one graph, in place.

    Tensors and operations may be given by their names. All methods raise InvalidArgumentError for
    elements of other graphs and for types that do not fit, NotFoundError for names of nothing.

    Attributes:
        graph: the graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._removed: set[Operation] = set()

    def finish(self, changed: Collection[Operation]) -> None:
        """Put the operations that are left in order, after some were changed.

        Raises:
            InvalidArgumentError: they depend on each other in a cycle.
        """
        if not (changed or self._removed):
            return
        graph = self.graph
        left = self._left()
        bequeath_groups(left, {op.name for op in self._removed} - graph.by_name.keys())
        graph.put_in_order(left)
        graph.refiner.forget_behind(changed)
        graph.edits += 1
        self._removed.clear()

    # Reading the graph.

    def consumers(self, tensor: Tensor | str) -> list[tuple[Operation, int]]:
        """The operations that take a tensor, and as which input."""
        return self._tensor(tensor).consumer_edges()

    def needed(self, outputs: Elements, inputs: Tensors = ()) -> list[Operation]:
        """The operations that outputs need where inputs are given, inputs before consumers.

        Raises:
            InvalidArgumentError: operations depend on each other in a cycle.
        """
        tensors, targets = self._outputs(outputs)
        return prune_and_order(tensors, targets, [self._tensor(one) for one in listed(inputs)])

    def extract(self, outputs: Elements, inputs: Tensors = ()) -> Graph:
        """A new graph with what some tensors and operations need, and the functions that this calls.

        What others only wait for is left out where it has no effect.

        Args:
            outputs: the tensors and operations, or a single one.
            inputs: tensors, or a single one, that get a Placeholder in the new graph, of the name of their operation
                where it has no other outputs; what lies behind them is left out.

        Raises:
            InvalidArgumentError: operations depend on each other in a cycle.
        """
        graph, feeds = self.graph, [self._tensor(tensor) for tensor in listed(inputs)]
        needed = prune_idle_waits(*self._outputs(outputs), feeds)
        copied, _ = copy_operations(graph, sorted(needed, key=lambda op: op.number), feeds)
        library = graph.function_library.reachable_definitions([op.message for op in needed])
        copied.function_library.adopt(library)
        operations = copied.get_operations()
        bequeath_groups(operations)
        copied.put_in_order(operations)  # a placeholder comes before what takes it
        return copied

    # Operations come and go.

    def add(
        self,
        op_type: str,
        inputs: Sequence[Tensor | str] = (),
        name: str = "",
        attrs: Mapping[str, Any] = _NO_ATTRS,
        device: str = "",
        control_inputs: Collection[Operation | str] = (),
    ) -> Operation:
        """A new operation, which falls under no scopes.

        Args:
            op_type: its op.
            inputs: its inputs, flat.
            name: its name, made unique; by default the op's name.
            attrs: its attrs, as Python values or messages; those that follow from the inputs, and those
                with defaults, may be left out.
            device: its device.
            control_inputs: the operations that it waits for.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of its op.
        """
        tensors = self._tensors(inputs)
        node = self._node(op_type, name or op_type, attrs, tensors, device)
        return self.add_node(node, tensors, [self._operation(one) for one in control_inputs])

    def add_node(
        self,
        node: NodeDef,
        inputs: Sequence[Tensor] = (),
        control_inputs: Collection[Operation] = (),
        *,
        signature: NodeSignature | None = None,
        like: Operation | None = None,
    ) -> Operation:
        """A new operation from a message.

        Args:
            node: as for `make_operation`; its name is made unique.
            inputs: the tensors that it takes.
            control_inputs: the operations that it waits for.
            signature: as for `make_operation`.
            like: an operation that was made at the same place of the user's code.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of its op.
        """
        graph = self.graph
        graph.check_not_finalized()
        node.name = free_name(node.name, graph.by_name)
        op = make_operation(graph, node, inputs, control_inputs, signature=signature)
        op.definition_site = None if like is None else like.definition_site
        graph.append([op])
        return op

    def clone(self, op: Operation, name: str) -> Operation:
        """A new operation that does what another does, of the same inputs, in the same place."""
        node = copied(op.message)
        node.name = name
        clone = self.add_node(node, op.inputs, op.control_inputs, like=op)
        self.place_like(clone, op)
        return clone

    def place_like(self, new: Operation, op: Operation) -> None:
        """Put a new operation where a placer has put another."""
        devices = self.graph.assigned_devices
        if op in devices:
            devices[new] = devices[op]

    def constant(
        self,
        value: Any,
        dtype: DataType | None = None,
        name: str = "Const",
        device: str = "",
        control_inputs: Collection[Operation] = (),
    ) -> Tensor:
        """A new Const; its type is by default the type of the value."""
        proto = tensor_to_proto(value, dtype)
        attrs = {"value": proto, "dtype": DataType(proto.dtype)}
        return self.add("Const", (), name, attrs, device, control_inputs).outputs[0]

    def remove(self, *ops: Operation | str) -> None:
        """Take operations out; operations that waited for one wait for its predecessors instead.

        Raises:
            InvalidArgumentError: an operation that stays takes an output of one of them, or waits for
                one to learn whether its branch is taken.
        """
        going = dict.fromkeys([self._operation(op) for op in ops])
        edges = [
            (op, *edge) for op in going for edge in op.consumer_edges() if edge[0] not in going
        ]
        for op, consumer, index in edges:
            if index >= 0:
                raise op.error(
                    f"Node {op.name!r} cannot be removed: node {consumer.name!r} takes it as input "
                    f"{index}"
                )
        for consumer in dict.fromkeys([consumer for _, consumer, _ in edges]):
            consumer.set_control_inputs(awaited_without(consumer, going))
        for op in going:
            op.cut_off()
            del self.graph.by_name[op.name]
        self._removed.update(going)

    def rename(self, names: Mapping[Operation | str, str]) -> None:
        """Give operations other names; operations that are colocated with them follow.

        Args:
            names: the new name of each operation; two may swap theirs.

        Raises:
            InvalidArgumentError: a name is none, or is taken.
        """
        graph, by_name = self.graph, self.graph.by_name
        new = {self._operation(op): name for op, name in names.items()}
        taken = set()
        for op, name in new.items():
            if not is_valid_node_name(name, allow_internal=True):
                raise InvalidArgumentError(f"'{name}' is not a valid node name", node=op.name)
            if name in taken or (name in by_name and by_name[name] not in new):
                raise InvalidArgumentError(f"Duplicate node name in graph: '{name}'", node=op.name)
            taken.add(name)
        old = {op.name: name for op, name in new.items()}
        for op in new:
            for changed in (op, *(consumer for consumer, _ in op.consumer_edges())):
                graph.changing(changed)
                changed.stale = True
        graph.rename(new)
        rename_groups(self._left(), old)

    def become(
        self,
        op: Operation | str,
        op_type: str,
        inputs: Sequence[Tensor | str] | None = None,
        attrs: Mapping[str, Any] = _NO_ATTRS,
    ) -> None:
        """Turn an operation into one of another op.

        Args:
            op: the operation; its name, device, control inputs and consumers stay.
            op_type: the new op.
            inputs: its inputs; by default those that it has.
            attrs: its attrs, as for `add`.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of the op, or its outputs are of
                other types.
        """
        op = self._operation(op)
        tensors = op.inputs if inputs is None else self._tensors(inputs)
        op.become(self._node(op_type, op.name, attrs, tensors, op.device), tensors)

    # Edges lead elsewhere.

    def redirect(
        self,
        tensor: Tensor | str,
        by: Tensor | str,
        consumers: Iterable[Operation | str] | None = None,
    ) -> list[Operation]:
        """Have the consumers of a tensor take another tensor; returns these consumers.

        Args:
            tensor: the tensor.
            by: the other tensor. Where its operation takes `tensor`, that input stays.
            consumers: the consumers to redirect, all of them if None.
        """
        old, new = self._tensor(tensor), self._tensor(by)
        edges = self._edges(old, consumers)
        return self._lead([edge for edge in edges if edge[0] is not new.op], new)

    def redirect_control(self, op: Operation | str, *by: Operation | str) -> None:
        """Have the operations that wait for an operation wait for others."""
        op, others = self._operation(op), [self._operation(other) for other in by]
        for consumer in op.control_outputs:
            if consumer not in others:
                waits = [others if c is op else [c] for c in consumer.control_inputs]
                consumer.set_control_inputs([c for ops in waits for c in ops])

    def replace(self, tensor: Tensor | str, by: Tensor | str) -> None:
        """Have all consumers of a tensor take another tensor, which may be computed earlier.

        Control inputs of the operation that gave it are handed on to them.
        """
        tensor, by = self._tensor(tensor), self._tensor(by)
        controls = [c for c in tensor.op.control_inputs if c is not by.op]
        for op in self.redirect(tensor, by):
            if controls:
                op.add_control_inputs(controls)

    def insert(
        self,
        tensor: Tensor | str,
        make: str | Callable[[Tensor], Tensor],
        consumers: Iterable[Operation | str] | None = None,
    ) -> Tensor:
        """Put operations between a tensor and its consumers.

        Args:
            tensor: the tensor.
            make: an op of one input and one output, or a function from the tensor to another tensor.
            consumers: the consumers to redirect, all of them if None.

        Returns:
            The tensor that the consumers now take.
        """
        old = self._tensor(tensor)
        edges = self._edges(old, consumers)
        if isinstance(make, str):
            name = f"{old.op.name}/{make}"
            new = self.add(make, [old], name, device=old.op.device).outputs[0]
        else:
            with self.graph.as_default():
                new = self._tensor(make(old))
        self._lead(edges, new)
        return new

    def new_name(self, prefix: str) -> str:
        """`prefix/_N` with a number that no name of the graph has had yet."""
        while True:
            name = f"{prefix}/_{next(self.graph.name_counter)}"
            if name not in self.graph.by_name:
                return name

    def _left(self) -> list[Operation]:
        """The operations that stay."""
        return [op for op in self.graph.get_operations() if op not in self._removed]

    def _outputs(self, outputs: Elements) -> tuple[list[Tensor], list[Operation]]:
        """The tensors and the operations among elements."""
        elements = [self.graph.as_graph_element(one) for one in listed(outputs)]
        operations = [one for one in elements if isinstance(one, Operation)]
        return [one for one in elements if isinstance(one, Tensor)], operations

    def _tensor(self, element: Tensor | str) -> Tensor:
        if isinstance(element, Tensor):  # passes ask often
            self.graph.check_own(element.op, "graph element")
            return element
        return self.graph.get_tensor_by_name(element)

    def _tensors(self, elements: Sequence[Tensor | str]) -> list[Tensor]:
        if isinstance(elements, str):
            raise TypeError(
                f"inputs must be a list of tensors, not {elements!r}; write [{elements!r}]"
            )
        return [self._tensor(element) for element in elements]

    def _operation(self, element: Operation | str) -> Operation:
        if isinstance(element, Operation):
            self.graph.check_own(element, "graph element")
            return element
        return self.graph.get_operation_by_name(element)

    def _edges(
        self, tensor: Tensor, consumers: Iterable[Operation | str] | None
    ) -> list[tuple[Operation, int]]:
        """The edges from a tensor, or those to some of its consumers."""
        edges = tensor.consumer_edges()
        if consumers is None:
            return edges
        wanted = {self._operation(op) for op in consumers}
        strangers = wanted.difference(op for op, _ in edges)
        if strangers:
            names = ", ".join(sorted(repr(op.name) for op in strangers))
            raise InvalidArgumentError(f"{tensor.name!r} is no input of {names}")
        return [edge for edge in edges if edge[0] in wanted]

    def _lead(self, edges: Sequence[tuple[Operation, int]], new: Tensor) -> list[Operation]:
        for op, index in edges:
            op.update_input(index, new)
        return [op for op, _ in edges]

    def _node(
        self,
        op_type: str,
        name: str,
        attrs: Mapping[str, Any],
        inputs: Sequence[Tensor],
        device: str,
    ) -> NodeDef:
        """A node without inputs."""
        op_def = op_named(self.graph, op_type).op_def
        kinds = {attr.name: attr.type for attr in op_def.attr}
        needed = [a.name for a in op_def.attr if not a.HasField("default_value")]
        if not (kinds.keys() >= attrs.keys() and attrs.keys() >= set(needed)):
            request = NodeRequest(op_type, list(inputs), dict(attrs))
            attrs = Arguments(name, op_def, request).attrs
        node = NodeDef(name=name, op=op_type, device=device)
        for key, value in attrs.items():
            if isinstance(value, AttrValue):
                node.attr[key].CopyFrom(value)
            elif kinds[key] == "type":
                node.attr[key].type = value
            elif kinds[key] == "tensor":
                node.attr[key].tensor.CopyFrom(value)
            else:
                node.attr[key].CopyFrom(attr_from_python(value, kinds[key]))
        return node
