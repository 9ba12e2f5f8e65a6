"""Operation: a node of a graph.

An Operation keeps its edges as references; the `input` field of its NodeDef is written from them
when it is next read after a change. What nodes of one op with equal attrs have in common stands
once, in a NodeSignature that they share. Tensors are made when they are first asked for.

Source: TensorFlow python/framework/ops.py, core/graph/graph.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from traceback import StackSummary
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph.definition_site import DefinitionSite, format_site
from opkernel.graph.runtime_hooks import run_fetches
from opkernel.graph.tensor import Tensor
from opkernel.graph.tensor_name import CONTROL_SLOT, format_input
from opkernel.opdef import OpRegistrationData
from opkernel.opdef.full_type import full_type_of_node
from opkernel.proto import AttrValue, FullTypeDef, NodeDef, OpDef
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.graph.graph import Graph

__all__ = [
    "COLOCATION_ATTR",
    "COLOCATION_PREFIX",
    "GRADIENT_OP_TYPE_ATTR",
    "NO_SIGNATURE",
    "NodeSignature",
    "Operation",
    "input_type_error",
    "types_compatible",
    "types_given",
]

COLOCATION_ATTR = "_class"
COLOCATION_PREFIX = b"loc:@"
GRADIENT_OP_TYPE_ATTR = "_gradient_op_type"
"""The attr of a node that names what its gradient is looked up by, in place of its op."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeSignature:
    """What nodes of one op with the same attrs share.

    Attributes:
        op_type: the name of the op.
        registration: the op; None where it is not registered, and the types are DT_INVALID.
        input_types, output_types: one for each tensor.
    """

    op_type: str
    registration: OpRegistrationData | None
    input_types: tuple[DataType, ...]
    output_types: tuple[DataType, ...]


def types_compatible(expected: DataType, actual: DataType) -> bool:
    """Whether an input of one type takes a tensor of another: references pass as values."""
    if expected == actual or DataType.DT_INVALID in (expected, actual):
        return True
    return not expected.is_ref and expected == actual.base


def types_given(operations: Iterable[Operation]) -> set[DataType]:
    """The types of all outputs of some operations."""
    signatures = {op._signature for op in operations}
    return {dtype for signature in signatures for dtype in signature.output_types}


class Operation:
    """A node of a graph. Made by `Graph.create_op` and `import_graph_def`.

    Attributes:
        graph: the graph that it belongs to.
        name: its name, unique in the graph.
    """

    # _edges: source and output index of each input, flat: (op, index, op, index, ...).
    # _fanout: (consumer, input index) of each edge that leaves; the graph fills it on demand.
    # _stale: the NodeDef's inputs are not those of the edges.
    __slots__ = (
        "__weakref__",
        "_control_inputs",
        "_edges",
        "_fanout",
        "_id",
        "_node_def",
        "_outputs",
        "_signature",
        "_site",
        "_stale",
        "graph",
        "name",
    )

    def __init__(self, graph: Graph, name: str, node_def: NodeDef, number: int) -> None:
        self.graph = graph
        self.name = name
        self._node_def = node_def
        self._id = number
        self._signature: NodeSignature = NO_SIGNATURE
        self._edges: tuple[Any, ...] = ()
        self._control_inputs: tuple[Operation, ...] = ()
        self._outputs: tuple[Tensor, ...] | None = None
        self._fanout: dict[tuple[Operation, int], None] | None = None
        self._site: DefinitionSite | None = None
        self._stale = False

    @property
    def type(self) -> str:
        """The name of the op."""
        return self._signature.op_type

    @property
    def op_def(self) -> OpDef:
        """The op; one with nothing but the name where it is not registered."""
        registration = self._signature.registration
        return OpDef(name=self.type) if registration is None else registration.op_def

    @property
    def node_def(self) -> NodeDef:
        """The node as a message; it is the operation's own, to be read and not to be changed."""
        if self._stale:
            with self.graph._lock:
                if self._stale:
                    own = NodeDef()
                    own.CopyFrom(self._node_def)  # a copy of this operation may share the old one
                    self._node_def = own
                    self._write_inputs()
        return self._node_def

    @property
    def device(self) -> str:
        """The device asked for, in whole or in part; empty where none was."""
        return self._node_def.device

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that it takes."""
        edges = self._edges
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
            with self.graph._lock:
                outputs = self._outputs
                if outputs is None:
                    count = len(self._signature.output_types)
                    outputs = tuple([Tensor(self, index) for index in range(count)])
                    self._outputs = outputs
        return outputs

    @property
    def input_types(self) -> tuple[DataType, ...]:
        """The types that its op declares for the inputs."""
        return self._signature.input_types

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """The types of the outputs."""
        return self._signature.output_types

    @property
    def full_type(self) -> FullTypeDef | None:
        """The full types of its outputs, a TFT_PRODUCT; None where none is known.

        Those that the node carries, as after `Graph.infer_full_types`, or else what its op declares,
        with the attrs filled in. To be read and not to be changed.

        Raises:
            InvalidArgumentError: the types that the op declares do not fit the attrs.
        """
        registration = self._signature.registration
        return None if registration is None else full_type_of_node(self._node_def, registration)

    @property
    def control_inputs(self) -> tuple[Operation, ...]:
        """The operations that run before it without giving it a tensor."""
        return self._control_inputs

    @property
    def control_outputs(self) -> list[Operation]:
        """The operations that have it among their control inputs."""
        return [consumer for consumer, index in self._consumer_edges() if index == CONTROL_SLOT]

    @property
    def traceback(self) -> StackSummary | None:
        """Where in the user's code it was made; None for imported nodes."""
        return None if self._site is None else format_site(self._site)

    def values(self) -> tuple[Tensor, ...]:
        """Its outputs."""
        return self.outputs

    def get_attr(self, name: str) -> Any:
        """The value of an attr: strings as bytes, types as DataType, lists as lists.

        Shapes, tensors and functions are given as their messages.

        Raises:
            InvalidArgumentError: it has no such attr.
        """
        if name not in self._node_def.attr:
            raise InvalidArgumentError(
                f"Operation {self.name!r} has no attr named {name!r}.", node=self.name, op=self.type
            )
        return _attr_as_given(self._node_def.attr[name])

    def colocation_groups(self) -> list[bytes]:
        """The groups whose operations share its device: `b"loc:@name"`."""
        own = [COLOCATION_PREFIX + self.name.encode()]
        if COLOCATION_ATTR not in self._node_def.attr:
            return own
        groups = self._node_def.attr[COLOCATION_ATTR].list.s
        return [group for group in groups if group.startswith(COLOCATION_PREFIX)] or own

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any | None = None) -> None:
        """Run it and what it needs, in `session` or the default session."""
        run_fetches(self.graph, self, feed_dict, session)

    def __repr__(self) -> str:
        return f"<opkernel.Operation {self.name!r} type={self.type}>"

    # What changes an operation that is already part of a graph.

    def _set_device(self, device: str) -> None:
        self.graph._check_not_finalized()
        self._node_def.device = str(device)

    def _update_input(self, index: int, tensor: Tensor) -> None:
        """Give it another tensor as an input.

        Raises:
            InvalidArgumentError: no such input, or a tensor of another graph or type.
        """
        self.graph._check_not_finalized()
        if not 0 <= index < len(self._edges) // 2:
            raise InvalidArgumentError(
                f"Node {self.name!r} has no input {index}: it has {len(self._edges) // 2}",
                node=self.name,
                op=self.type,
            )
        self._check_input(index, tensor)
        self.graph._fanout.forget(self._edges[2 * index], self, index)
        edges = list(self._edges)
        edges[2 * index : 2 * index + 2] = tensor.op, tensor.value_index
        self._rewire(tuple(edges))
        self.graph._fanout.note(tensor.op, self, index)

    def _set_inputs(self, tensors: Sequence[Tensor]) -> None:
        """Give it other tensors as its inputs, which fit."""
        self.graph._check_not_finalized()
        self._forget_edges()
        self._rewire(tuple([part for t in tensors for part in (t.op, t.value_index)]))
        for index, tensor in enumerate(tensors):
            self._check_input(index, tensor)
            self.graph._fanout.note(tensor.op, self, index)

    def _add_input(self, tensor: Tensor) -> None:
        """Give it a further input; its declared input types grow by the tensor's type."""
        self.graph._check_not_finalized()
        self.graph._check_own(tensor.op, f"input of {self.name!r}")
        old = self._signature
        index = len(self._edges) // 2
        if index >= len(old.input_types):
            self._signature = NodeSignature(
                old.op_type,
                old.registration,
                (*old.input_types, tensor.dtype),
                old.output_types,
            )
        self._check_input(index, tensor)
        self._rewire((*self._edges, tensor.op, tensor.value_index))
        self.graph._fanout.note(tensor.op, self, index)

    def _add_control_input(self, op: Operation) -> None:
        """Make it run after `op`."""
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: list[Operation]) -> None:
        self.graph._check_not_finalized()
        for op in ops:
            self.graph._check_own(op, f"control input of {self.name!r}")
            if op not in self._control_inputs:
                self._control_inputs = (*self._control_inputs, op)
                self.graph._fanout.note(op, self, CONTROL_SLOT)
        self._stale = True
        self.graph.edits += 1

    def _set_control_inputs(self, ops: Sequence[Operation]) -> None:
        """Make it run after `ops` and no others, beyond those that it takes tensors of."""
        for op in self._control_inputs:
            self.graph._fanout.forget(op, self, CONTROL_SLOT)
        self._control_inputs = ()
        self._add_control_inputs(list(ops))

    def _set_attr(self, name: str, value: AttrValue) -> None:
        """Set an attr; the types of inputs and outputs follow."""
        self.graph._check_not_finalized()
        changed = NodeDef()
        changed.CopyFrom(self.node_def)
        changed.attr[name].CopyFrom(value)
        self._signature = self.graph._resolve(changed, len(self._edges) // 2)
        self._node_def = changed
        self._resize_outputs()
        self.graph._refiner.forget(self)
        self.graph.edits += 1

    def _become(self, node: NodeDef, inputs: Sequence[Tensor]) -> None:
        """Turn it into another node with outputs of the same types; control inputs stay.

        Args:
            node: the new op, with its attrs and device; it is taken over.
            inputs: what it takes.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of the op, or has other
                outputs.
        """
        self.graph._check_not_finalized()
        node.input.extend([tensor.name for tensor in inputs])
        signature = self.graph._resolve(node, len(inputs))
        if signature.output_types != self.output_types:
            raise InvalidArgumentError(
                f"Node '{self.name}' ({self.type}) cannot become a {node.op}: its outputs are of "
                f"other types",
                node=self.name,
                op=self.type,
            )
        self._node_def, self._signature = node, signature
        self._set_inputs(inputs)

    def _cut_off(self) -> None:
        """Take all inputs from an operation that nobody needs."""
        self._set_control_inputs(())
        self._forget_edges()
        self._rewire(())

    def _forget_edges(self) -> None:
        for index, source in enumerate(self._edges[::2]):
            self.graph._fanout.forget(source, self, index)

    def _resize_outputs(self) -> None:
        """Let there be a tensor for each output; those that were there stay the same objects."""
        if self._outputs is not None:
            count = len(self._signature.output_types)
            kept = self._outputs[:count]
            self._outputs = kept + tuple([Tensor(self, i) for i in range(len(kept), count)])

    def _check_input(self, index: int, tensor: Tensor) -> None:
        self.graph._check_own(tensor.op, f"input of {self.name!r}")
        expected = self._signature.input_types[index]
        if not types_compatible(expected, tensor.dtype):
            raise input_type_error(self, index, tensor.op, tensor.value_index)

    def _rewire(self, edges: tuple[Any, ...]) -> None:
        self._edges = edges
        self.graph._refiner.forget(self)
        self._stale = True
        self.graph.edits += 1

    def _consumer_edges(self) -> list[tuple[Operation, int]]:
        return self.graph._consumer_edges(self)

    def _ref_sources(self) -> list[Operation]:
        """The operations that give the inputs which are references."""
        types = zip(self._edges[::2], self._signature.input_types, strict=True)
        return [source for source, dtype in types if dtype.is_ref]

    def _input_texts(self) -> list[str]:
        """The `input` field that its NodeDef should have."""
        edges = self._edges
        texts = [format_input(edges[i].name, edges[i + 1]) for i in range(0, len(edges), 2)]
        texts += [""] * (len(self._signature.input_types) - len(texts))
        return texts + sorted([f"^{op.name}" for op in self._control_inputs])

    def _write_inputs(self) -> None:
        node_def = self._node_def
        node_def.name = self.name
        del node_def.input[:]
        node_def.input.extend(self._input_texts())
        self._stale = False


def input_type_error(
    op: Operation, index: int, source: Operation, output: int
) -> InvalidArgumentError:
    """The error for an input that gets a tensor of the wrong type."""
    return InvalidArgumentError(
        f"Input {index} of node {op.name} was passed "
        f"{source._signature.output_types[output].string} from {source.name}:{output} "
        f"incompatible with expected {op._signature.input_types[index].string}.",
        node=op.name,
        op=op.type,
    )


def _attr_as_given(value: AttrValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return []
    if kind == "type":
        return DataType(value.type)
    if kind != "list":
        return getattr(value, kind)
    for field, items in value.list.ListFields():
        return [DataType(item) for item in items] if field.name == "type" else list(items)
    return []


NO_SIGNATURE = NodeSignature("", None, (), ())
"""That of an operation that is still being made."""
