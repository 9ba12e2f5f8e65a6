"""Node: what an operation is without its graph: a message, edges, and the facts of its op.

The modules that graphs are made of (orders, tables, scopes) know nodes only. `Operation` puts a node into a
graph and gives it tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.definition_site import DefinitionSite, format_site, with_start_lines
from opkernel.graph.core.node_signature import NodeSignature
from opkernel.graph.core.tensor_name import format_input
from opkernel.messages import did_you_mean
from opkernel.opdef.core.attr_value import attr_as_given
from opkernel.opdef.core.op_traits import OpTraits
from opkernel.proto import AttrValue, FullTypeDef, NodeDef, OpDef
from opkernel.records import dataclass, field
from opkernel.types import DataType

if TYPE_CHECKING:
    from traceback import StackSummary

    from google.protobuf.internal.containers import MessageMap

COLOCATION_ATTR = "_class"
COLOCATION_PREFIX = b"loc:@"
GRADIENT_OP_TYPE_ATTR = "_gradient_op_type"
"""The attr of a node whose value replaces its op when its gradient is looked up."""


class Node:
    """The base of `Operation`, and of nothing else.

    Attributes:
        name: its name, unique in the graph.
        number: its place among the operations of the graph.
        edges: where its inputs come from, flat: (operation, output index, operation, ...).
        control_inputs: the operations that run before it without giving it a tensor.
        signature: its op, and the types of its inputs and outputs.
        message: the node as a message, whose `input` may be that before a change.
        stale: whether the `input` of the message differs from the edges.
        definition_site: where in the user's code it was made; None for imported nodes.
    """

    # _fanout: (consumer, input index) of each edge that leaves; Fanout fills it on demand.
    __slots__ = (
        "__weakref__",
        "_fanout",
        "control_inputs",
        "definition_site",
        "edges",
        "message",
        "name",
        "number",
        "signature",
        "stale",
    )

    name: str
    number: int
    edges: tuple[Any, ...]
    control_inputs: tuple[Any, ...]
    signature: NodeSignature
    message: NodeDef
    stale: bool
    definition_site: DefinitionSite | None
    _fanout: dict[tuple[Any, int], None] | None

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
    def attr(self) -> MessageMap[str, AttrValue]:
        """The attrs of the node, for reading only."""
        return self.message.attr

    @property
    def device(self) -> str:
        """The device that it asks for, in whole or in part; or nothing."""
        return self.message.device

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
    def traceback(self) -> StackSummary | None:
        """Where in the user's code it was made; None for imported nodes."""
        return None if self.definition_site is None else format_site(self.definition_site)

    @property
    def traceback_with_start_lines(self) -> list[tuple[str, int, str, str | None, int]] | None:
        """As `traceback`: file, line, function, source text, and the line where the function begins."""
        return None if self.definition_site is None else with_start_lines(self.definition_site)

    def get_attr(self, name: str) -> Any:
        """The value of an attr as `tf.Operation.get_attr` gives it.

        Strings are bytes (`opkernel.opdef.core.attr_value` has the rule), types DataType, lists lists; shapes,
        tensors and functions are their messages.

        Raises:
            InvalidArgumentError: it has no such attr.
        """
        if name not in self.attr:
            raise InvalidArgumentError(
                f"Operation {self.name!r} has no attr named {name!r}{did_you_mean(name, self.attr)}.",
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


@dataclass(slots=True)
class NodeRequest:
    """What `Graph.create_node` is to make; `inputs` in a list, or by the names of the arguments."""

    op_type: str
    inputs: list[Any] | dict[str, Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    op_def: OpDef | None = None
    input_types: Sequence[Any] | None = None
    dtypes: Sequence[Any] | None = None
    beside_refs: bool = False  # colocated with the producers of its reference inputs


AnyNode = TypeVar("AnyNode", bound=Node)


def types_given(nodes: Iterable[Node]) -> set[DataType]:
    """The types of all outputs of some nodes."""
    signatures = {node.signature for node in nodes}
    return {dtype for signature in signatures for dtype in signature.output_types}
