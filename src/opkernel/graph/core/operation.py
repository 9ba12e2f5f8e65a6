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
from opkernel.foreign_text import terminal_text
from opkernel.graph.core.control_flow_context import MadeInContext
from opkernel.graph.core.definition_site import DefinitionSite, format_site, with_start_lines
from opkernel.graph.core.edges import check_input, check_inputs, check_outputs
from opkernel.graph.core.node_signature import NO_SIGNATURE, NodeSignature
from opkernel.graph.core.runtime_hooks import run_fetches
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.core.tensor_name import CONTROL_SLOT, format_input
from opkernel.messages import perhaps
from opkernel.opdef.core.attr_value import attr_as_given
from opkernel.opdef.core.op_traits import OpTraits
from opkernel.proto import AttrValue, FullTypeDef, NodeDef, OpDef
from opkernel.types import DataType

if TYPE_CHECKING:
    from traceback import StackSummary

    from google.protobuf.internal.containers import MessageMap

    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.tf_output import TF_Input, TF_Output

COLOCATION_ATTR = "_class"
COLOCATION_PREFIX = b"loc:@"
GRADIENT_OP_TYPE_ATTR = "_gradient_op_type"
"""The attr of a node whose value replaces its op when its gradient is looked up."""


def types_given(operations: Iterable[Operation]) -> set[DataType]:
    """The types of all outputs of some operations."""
    signatures = {op.signature for op in operations}
    return {dtype for signature in signatures for dtype in signature.output_types}


class Operation(MadeInContext):
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

    # _fanout: (consumer, input index) of each edge that leaves; Fanout fills it on demand.
    __slots__ = (
        "__weakref__",
        "_fanout",
        "_outputs",
        "control_inputs",
        "definition_site",
        "edges",
        "graph",
        "message",
        "name",
        "number",
        "signature",
        "stale",
    )

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
        self.signature: NodeSignature = NO_SIGNATURE
        self.edges: tuple[Any, ...] = _edges_from(inputs) if inputs else ()
        self.control_inputs: tuple[Operation, ...] = ()
        if control_inputs:
            self.control_inputs = tuple(dict.fromkeys(control_inputs))
        self._outputs: tuple[Tensor, ...] | None = None
        self._fanout: dict[tuple[Operation, int], None] | None = None
        self.definition_site: DefinitionSite | None = None
        self.stale = False

    @property
    def type(self) -> str:
        """The name of the op."""
        return self.signature.op_type

    @property
    def op_def(self) -> OpDef:
        """The op; one with nothing but the name where it is not registered."""
        registration = self.signature.registration
        return OpDef(name=self.type) if registration is None else registration.op_def

    @property
    def traits(self) -> OpTraits:
        """The traits of its op: facts that passes may assume."""
        return self.signature.traits

    @property
    def node_def(self) -> NodeDef:
        """The node as a message, for reading only: the message belongs to the operation."""
        if self.stale:
            with self.graph.lock:
                if self.stale:
                    self.message = _copy(self.message)
                    self.write_inputs()
        return self.message

    @property
    def attr(self) -> MessageMap[str, AttrValue]:
        """The attrs of the node, for reading only."""
        return self.message.attr

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
    def input_types(self) -> tuple[DataType, ...]:
        """The types that its op declares for the inputs."""
        return self.signature.input_types

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """The types of the outputs."""
        return self.signature.output_types

    @property
    def full_type(self) -> FullTypeDef | None:
        """The full types of its outputs, a TFT_PRODUCT; None where none is known.

        They are the types that the node carries, as after `Graph.infer_full_types`, or else those
        that its op declares, with the attrs filled in. They are to be read and not to be changed.

        Raises:
            InvalidArgumentError: the types that the op declares do not fit the attrs.
        """
        from opkernel.opdef.full_type import full_type_of_node  # few ask for it

        registration = self.signature.registration
        return None if registration is None else full_type_of_node(self.message, registration)

    @property
    def control_outputs(self) -> list[Operation]:
        """The operations that have it among their control inputs."""
        return [consumer for consumer, index in self.consumer_edges() if index == CONTROL_SLOT]

    @property
    def traceback(self) -> StackSummary | None:
        """Where in the user's code it was made; None for imported nodes."""
        return None if self.definition_site is None else format_site(self.definition_site)

    @property
    def traceback_with_start_lines(self) -> list[tuple[str, int, str, str | None, int]] | None:
        """As `traceback`: file, line, function, source text, and the line where the function begins."""
        return None if self.definition_site is None else with_start_lines(self.definition_site)

    def values(self) -> tuple[Tensor, ...]:
        """Its outputs."""
        return self.outputs

    def get_attr(self, name: str) -> Any:
        """The value of an attr as `tf.Operation.get_attr` gives it.

        Strings are bytes (`opkernel.opdef.core.attr_value` has the rule), types DataType, lists lists; shapes,
        tensors and functions are their messages.

        Raises:
            InvalidArgumentError: it has no such attr.
        """
        if name not in self.attr:
            raise InvalidArgumentError(
                f"Operation {self.name!r} has no attr named {name!r}{perhaps(name, self.attr)}.",
                node=self.name,
                op=self.type,
            )
        return attr_as_given(self.attr[name])

    def colocation_groups(self) -> list[bytes]:
        """The groups whose operations share its device: `b"loc:@name"`."""
        own = [COLOCATION_PREFIX + self.name.encode()]
        if COLOCATION_ATTR not in self.attr:
            return own
        groups = self.attr[COLOCATION_ATTR].list.s
        return [group for group in groups if group.startswith(COLOCATION_PREFIX)] or own

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any | None = None) -> None:
        """Run it and the operations that it needs, in `session` or the default session."""
        run_fetches(self.graph, self, feed_dict, session)

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
        self.message = _copy(self.message)
        self.message.device = str(device)
        self.graph.edits += 1

    def set_full_type(self, full_type: FullTypeDef) -> None:
        """Have it carry the full types of its outputs."""
        self.graph.changing(self)
        self.message = _copy(self.message)
        self.message.experimental_type.CopyFrom(full_type)

    def update_input(self, index: int, tensor: Tensor) -> None:
        """Give it another tensor as an input.

        Raises:
            InvalidArgumentError: no such input, or a tensor of another graph or type.
        """
        self.graph.changing(self)
        if not 0 <= index < len(self.edges) // 2:
            raise InvalidArgumentError(
                f"Node {self.name!r} has no input {index}: it has {len(self.edges) // 2}",
                node=self.name,
                op=self.type,
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
        node = _copy(self.message)
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
        self._resize_outputs()

    def cut_off(self) -> None:
        """Remove all inputs of an operation that is not needed."""
        self.set_control_inputs(())
        self._lead(())

    # The names that scripts for TensorFlow know them by.
    _set_device, _set_attr = set_device, set_attr
    _add_control_input, _add_control_inputs = add_control_input, add_control_inputs
    _update_input = update_input

    def _tf_output(self, output_idx: int) -> TF_Output:
        """One of its outputs by number."""
        from opkernel.graph.core.tf_output import TF_Output  # rarely needed

        return TF_Output(self, output_idx)

    def _tf_input(self, input_idx: int) -> TF_Input:
        """One of its inputs by number."""
        from opkernel.graph.core.tf_output import TF_Input  # rarely needed

        return TF_Input(self, input_idx)

    def _lead(self, inputs: Sequence[Tensor]) -> None:
        """Take other inputs, which fit."""
        fanout = self.graph.fanout
        for index, source in enumerate(self.edges[::2]):
            fanout.forget(source, self, index)
        self._rewire(_edges_from(inputs))
        for index, source in enumerate(self.edges[::2]):
            fanout.note(source, self, index)

    def _resize_outputs(self) -> None:
        """Let there be a tensor for each output; existing tensors stay the same objects."""
        if self._outputs is not None:
            count = len(self.signature.output_types)
            kept = self._outputs[:count]
            self._outputs = kept + tuple([Tensor(self, i) for i in range(len(kept), count)])

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

    def _input_texts(self) -> list[str]:
        """The `input` field that its NodeDef should have."""
        edges = self.edges
        texts = [format_input(edges[i].name, edges[i + 1]) for i in range(0, len(edges), 2)]
        texts += [""] * (len(self.signature.input_types) - len(texts))
        return texts + sorted([f"^{op.name}" for op in self.control_inputs])

    def write_inputs(self) -> None:
        """Bring the message up to date."""
        message = self.message
        message.name = self.name
        del message.input[:]
        message.input.extend(self._input_texts())
        self.stale = False


def _edges_from(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    return tuple([part for tensor in tensors for part in (tensor.op, tensor.value_index)])


def _copy(node: NodeDef) -> NodeDef:
    """A node for changing: a copy of the operation may share the present message."""
    copy = NodeDef()
    copy.CopyFrom(node)
    return copy
