"""Operation: a node of a graph.

An Operation keeps its edges as references; the `input` field of its NodeDef is written from them
when it is next read after a change. Nodes of one op with equal attrs share a NodeSignature, which
has the facts common to them. Tensors are made when they are first asked for.

Source: TensorFlow python/framework/ops.py, core/graph/graph.h.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError
from opkernel.escaping import terminal_text
from opkernel.graph.core.node import Node, copied, graph_element
from opkernel.graph.core.signature import (
    NO_SIGNATURE,
    NodeSignature,
    input_type_error,
    types_compatible,
)
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.core.tensor_name import CONTROL_SLOT
from opkernel.proto import AttrValue, FullTypeDef, NodeDef
from opkernel.records import dataclass
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph


class Operation(Node):
    """A node of a graph. Made by `Graph.create_op` and `import_graph_def`.

    Attributes:
        graph: the graph that it belongs to.
        name: its name, unique in the graph.
        number: its place among the operations of the graph.
        edges: where its inputs come from, flat: (operation, output index, operation, ...). `inputs`
            has them as tensors.
        control_inputs: the operations that run before it without giving it a tensor.
        signature: its op, and the types of its inputs and outputs.
        message: the node as a message, whose `input` may be that before a change; `node_def` has it
            as it is.
        stale: whether the `input` of the message differs from the edges.
        definition_site: where in the user's code it was made; None for imported nodes.

    All code may read the attributes; only code that edits graphs changes them.
    """

    __slots__ = ("_outputs", "graph")

    graph: Graph
    control_inputs: tuple[Operation, ...]

    def __init__(
        self,
        graph: Graph,
        name: str,
        node_def: NodeDef,
        number: int,
        inputs: Sequence[Tensor] = (),
        control_inputs: Collection[Operation] = (),
    ) -> None:
        self.graph = graph
        self.name = name
        self.message = node_def
        self.number = number
        self.signature = NO_SIGNATURE
        self.edges = _edges_from(inputs) if inputs else ()
        self.control_inputs = ()
        if control_inputs:
            self.control_inputs = tuple(dict.fromkeys(control_inputs))
        self._outputs: tuple[Tensor, ...] | None = None
        self._fanout = None
        self.definition_site = None
        self.stale = False

    @property
    def node_def(self) -> NodeDef:
        """The node as a message, for reading only: the message belongs to the operation."""
        if self.stale:
            self._bring_up_to_date()
        return self.message

    @property
    def slim_node_def(self) -> NodeDef:
        """`node_def`, where a token may stand for the value of a large Const; for making a kernel of the node."""
        if self.stale:
            self._bring_up_to_date()
        return self.slim_message

    def _bring_up_to_date(self) -> None:
        with self.graph.lock:
            if self.stale:
                self.message = copied(self.slim_message)
                self.write_inputs()

    def copy_to(self, graph: Graph, number: int) -> Operation:
        """A copy for another graph, without edges; it shares the NodeDef."""
        return Operation(graph, self.name, self.node_def, number)

    @property
    def device(self) -> str:
        """The device that it was put on; or that asked for, in whole or in part; or nothing."""
        assigned = self.graph.assigned_devices
        return (assigned.get(self) if assigned else None) or self.message.device

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that it takes."""
        edges = self.edges
        tensors = []
        for at in range(0, len(edges), 2):  # half the time that zip takes: this is asked often
            producer = edges[at]
            tensors.append((producer._outputs or producer.outputs)[edges[at + 1]])
        return tuple(tensors)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that it gives."""
        outputs = self._outputs
        if outputs is None:
            with self.graph.lock:
                outputs = self._outputs
                if outputs is None:
                    count = len(self.signature.output_types)
                    outputs = tuple([Tensor(self, index) for index in range(count)])
                    self._outputs = outputs
        return outputs

    @property
    def control_outputs(self) -> list[Operation]:
        """The operations that have it among their control inputs."""
        return [consumer for consumer, index in self.consumer_edges() if index == CONTROL_SLOT]

    def values(self) -> tuple[Tensor, ...]:
        """Its outputs."""
        return self.outputs

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any | None = None) -> None:
        """Run it and the operations that it needs, in `session` or the default session."""
        self.graph._run(self, feed_dict, session)

    def __repr__(self) -> str:
        return f"<opkernel.Operation {self.name!r} type={terminal_text(self.type, keep='')}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle it as its graph and its name."""
        return type(self.graph).get_operation_by_name, (self.graph, self.name)

    # Changes to an operation that is already part of a graph. The shapes inferred for operations
    # behind it stay; the end of a `Graph.edit` has them inferred anew.

    def set_device(self, device: str) -> None:
        """Have it ask for another device."""
        self.graph.changing(self)
        self.message = copied(self.slim_message)
        self.slim_message.device = str(device)
        self.graph.edits += 1

    def set_full_type(self, full_type: FullTypeDef) -> None:
        """Have it carry the full types of its outputs."""
        self.graph.changing(self)
        self.message = copied(self.slim_message)
        self.slim_message.experimental_type.CopyFrom(full_type)

    def update_input(self, index: int, tensor: Tensor) -> None:
        """Give it another tensor as an input.

        Raises:
            InvalidArgumentError: no such input, or a tensor of another graph or type.
        """
        self.graph.changing(self)
        if not 0 <= index < len(self.edges) // 2:
            raise self.error(
                f"Node {self.name!r} has no input {index}: it has {len(self.edges) // 2}"
            )
        check_input(self, index, tensor, self.signature)
        self.graph.fanout.forget(self.edges[2 * index], self, index)
        edges = list(self.edges)
        edges[2 * index : 2 * index + 2] = tensor.op, tensor.value_index
        self._rewire(tuple(edges))
        self.graph.fanout.note(tensor.op, self, index)

    def set_inputs(self, tensors: Sequence[Tensor]) -> None:
        """Give it other tensors as its inputs.

        Raises:
            InvalidArgumentError: they are too few or too many, or one is of another graph or type.
        """
        self.graph.changing(self)
        check_inputs(self, tensors, self.signature)
        self._lead(tensors)

    def add_control_input(self, op: Operation) -> None:
        """Make it run after `op`."""
        self.add_control_inputs([op])

    def add_control_inputs(self, ops: Iterable[Operation]) -> None:
        """Make it run after further operations.

        Raises:
            InvalidArgumentError: one is of another graph.
        """
        self.set_control_inputs((*self.control_inputs, *ops))

    def set_control_inputs(self, ops: Iterable[Operation]) -> None:
        """Make it run after `ops` and the producers of its inputs, and no others.

        Raises:
            InvalidArgumentError: one is of another graph.
        """
        graph, before = self.graph, self.control_inputs
        graph.changing(self)
        after = dict.fromkeys(ops)
        for op in after:
            graph.check_own(op, "control input", self.name)
        for op in before:
            if op not in after:
                graph.fanout.forget(op, self, CONTROL_SLOT)
        self.control_inputs = tuple(after)
        for op in after:
            graph.fanout.note(op, self, CONTROL_SLOT)
        self.stale = True
        graph.edits += 1

    def set_attr(self, name: str, value: AttrValue) -> None:
        """Set an attr; the types of inputs and outputs follow, as `set_attrs` says."""
        self.set_attrs({name: value})

    def set_attrs(
        self, attrs: Mapping[str, AttrValue], inputs: Sequence[Tensor] | None = None
    ) -> None:
        """Set attrs, and inputs that go with them; without `inputs` it keeps its own.

        Raises:
            InvalidArgumentError: as `become`.
        """
        node = copied(self.slim_message)
        for name, value in attrs.items():
            node.attr[name].CopyFrom(value)
        self.become(node, self.inputs if inputs is None else inputs)

    def become(self, node: NodeDef, inputs: Sequence[Tensor]) -> None:
        """Turn it into another node; its name, control inputs and consumers stay.

        Args:
            node: the new op, with its attrs and device; it is taken over.
            inputs: the tensors that it takes.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of the op, its inputs do not
                fit, or an output that is taken would be of another type.
        """
        self.graph.changing(self)
        node.input[:] = [tensor.name for tensor in inputs]
        signature = self.graph.resolve(node, len(inputs))
        check_inputs(self, inputs, signature)
        check_outputs(self, signature)
        self.message, self.signature = node, signature
        self._lead(inputs)
        if self._outputs is not None:  # existing tensors stay the same objects
            count = len(signature.output_types)
            kept = self._outputs[:count]
            self._outputs = kept + tuple([Tensor(self, i) for i in range(len(kept), count)])

    def cut_off(self) -> None:
        """Remove all inputs of an operation that is not needed."""
        self.set_control_inputs(())
        self._lead(())

    # The names that scripts for TensorFlow know them by.
    _set_device, _set_attr = set_device, set_attr
    _add_control_input, _add_control_inputs = add_control_input, add_control_inputs
    _update_input = update_input

    def _get_control_flow_context(self) -> Any:
        """The conditional or loop that it was made in, or was put into; None for none."""
        return self.graph.control_flow_contexts.get(self)

    def _set_control_flow_context(self, context: Any) -> None:
        """Put it into another context; into none if None."""
        if context is None:
            self.graph.control_flow_contexts.pop(self, None)
        else:
            self.graph.control_flow_contexts[self] = context

    _control_flow_context = property(_get_control_flow_context, _set_control_flow_context)

    @property
    def input_dtypes(self) -> tuple[DataType, ...]:
        """The types of the tensors that it takes: references where tensors are references."""
        return tuple([tensor.dtype for tensor in self.inputs])

    def _tf_output(self, output_idx: int) -> TF_Output:
        """One of its outputs by number."""
        return TF_Output(self, output_idx)

    def _tf_input(self, input_idx: int) -> TF_Input:
        """One of its inputs by number."""
        return TF_Input(self, input_idx)

    def _lead(self, inputs: Sequence[Tensor]) -> None:
        """Take other inputs, which fit."""
        fanout = self.graph.fanout
        for index, source in enumerate(self.edges[::2]):
            fanout.forget(source, self, index)
        self._rewire(_edges_from(inputs))
        for index, source in enumerate(self.edges[::2]):
            fanout.note(source, self, index)

    def _rewire(self, edges: tuple[Any, ...]) -> None:
        self.edges = edges
        self.graph.refiner.forget(self)
        self.stale = True
        self.graph.edits += 1

    def consumer_edges(self) -> list[tuple[Operation, int]]:
        """The consumers of the outputs, each with its input; CONTROL_SLOT for control edges."""
        with self.graph.lock:
            return self.graph.fanout.of(self)

    def reference_sources(self) -> list[Operation]:
        """The operations that give the inputs which are references."""
        types = zip(self.edges[::2], self.signature.input_types, strict=True)
        return [source for source, dtype in types if dtype.is_ref]


def check_inputs(op: Operation, tensors: Sequence[Tensor], signature: NodeSignature) -> None:
    """Raise InvalidArgumentError where tensors cannot be the inputs of an operation of a signature."""
    if len(tensors) != len(signature.input_types):
        raise InvalidArgumentError(
            f"Node {op.name!r} ({signature.op_type}) takes {len(signature.input_types)} inputs, "
            f"not {len(tensors)}",
            node=op.name,
            op=signature.op_type,
        )
    for index, tensor in enumerate(tensors):
        check_input(op, index, tensor, signature)


def check_input(op: Operation, index: int, tensor: Tensor, signature: NodeSignature) -> None:
    """Raise InvalidArgumentError where a tensor cannot be an input of such an operation."""
    op.graph.check_own(tensor.op, "input", op.name)
    if not types_compatible(signature.input_types[index], tensor.dtype):
        raise input_type_error(op.name, signature, index, tensor.name, tensor.dtype)


def check_outputs(op: Operation, signature: NodeSignature) -> None:
    """Raise InvalidArgumentError where an output that is taken would be of another type with a signature."""
    before, after = op.output_types, signature.output_types
    if before == after[: len(before)]:
        return
    taken = {c.edges[2 * at + 1] for c, at in op.consumer_edges() if at >= 0}
    if any(before[index : index + 1] != after[index : index + 1] for index in taken):
        raise op.error(
            f"Node '{op.name}' ({op.type}) cannot become a {signature.op_type}: its outputs "
            f"are of other types"
        )


def _edges_from(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    return tuple([part for tensor in tensors for part in (tensor.op, tensor.value_index)])


@dataclass(frozen=True)
class TF_Output:  # noqa: N801  # as TensorFlow spells it
    """An output: the operation and its number, unchecked."""

    oper: Operation
    index: int


@dataclass(frozen=True)
class TF_Input:  # noqa: N801  # as TensorFlow spells it
    """An input: the operation and its number, unchecked."""

    oper: Operation
    index: int


def as_operation(element: Any) -> Operation:
    """The operation itself, or the one that gives a tensor or the values of IndexedSlices.

    Raises:
        InvalidArgumentError: it is neither.
    """
    element = graph_element(element)
    if not isinstance(element, Operation):
        element = getattr(element, "op", element)  # of tensors, and of IndexedSlices
    if not isinstance(element, Operation):
        raise InvalidArgumentError(
            f"Expected an Operation or a Tensor, not a {type(element).__name__}"
        )
    return element
