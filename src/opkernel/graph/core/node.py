"""Node: what an operation is without its graph: a message, edges, the facts of its op, and where the user made it.

The modules that graphs are made of (orders, tables, scopes) know nodes only. `Operation` puts a node into a
graph and gives it tensors. Elements of graphs are given as such or by name (Graph.as_graph_element in TensorFlow's
python/framework/ops.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.graph.core.signature import NodeSignature
from opkernel.graph.core.tensor_name import format_input, parse_input
from opkernel.messages import did_you_mean
from opkernel.opdef import not_registered
from opkernel.opdef.core.attr_value import attr_as_given
from opkernel.opdef.core.op_traits import OpTraits
from opkernel.proto import AttrValue, FullTypeDef, Message, NodeDef, OpDef
from opkernel.records import dataclass, field
from opkernel.types import DataType

if TYPE_CHECKING:
    from traceback import StackSummary

    from google.protobuf.internal.containers import MessageMap


DefinitionSite = tuple[tuple[CodeType, int], ...]
"""Code and line number of each frame, outermost first."""

_PACKAGE = __name__.partition(".")[0]
_PREFIX = f"{_PACKAGE}."
_MAX_FRAMES = 16
_NOTE = "while tracing "


def capture_site(frame: FrameType | None = None) -> DefinitionSite:
    """The innermost frames that are not opkernel's own, from `frame`, or else the caller's, outwards.

    Costs a microsecond or two: no text is made and no source file is read here.
    """
    frames: list[tuple[CodeType, int]] = []
    frame = sys._getframe(1) if frame is None else frame
    while frame is not None and len(frames) < _MAX_FRAMES:
        if not _is_own(frame):
            frames.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    frames.reverse()
    return tuple(frames)


def format_site(site: DefinitionSite) -> StackSummary:
    """The site as the standard library shows stacks; source lines are read when printed."""
    from traceback import FrameSummary, StackSummary  # for errors

    return StackSummary.from_list(
        [
            FrameSummary(code.co_filename, line, code.co_name, lookup_line=False)
            for code, line in site
        ]
    )


def with_start_lines(site: DefinitionSite) -> list[tuple[str, int, str, str | None, int]]:
    """The frames of a site: file, line, function, source text, and where the function begins."""
    return [
        (frame.filename, line, frame.name, frame.line, code.co_firstlineno)
        for (code, line), frame in zip(site, format_site(site), strict=True)
    ]


def note_site(error: Exception, traced: str) -> None:
    """Note on an error, where none is noted yet, the line of the user's code that it came from."""
    if any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        return
    place = ""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if not _is_own(frame):
            place = f", at {frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    error.add_note(f"{_NOTE}{traced}{place}")


def _is_own(frame: FrameType) -> bool:
    module: str = frame.f_globals.get("__name__") or ""
    return module == _PACKAGE or module.startswith(_PREFIX)


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
    def slim_message(self) -> NodeDef:
        """`message`, where a token may stand for the value of a large Const; for reading while the node lives."""
        return self.message

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
        attrs = self.attr
        if name not in attrs:
            hint = did_you_mean(name, attrs)
            raise self.error(f"Operation {self.name!r} has no attr named {name!r}{hint}.")
        return attr_as_given(attrs[name])

    def error(self, message: str, kind: Callable[..., OpError] = InvalidArgumentError) -> OpError:
        """An error about the node; it names the node and its op."""
        return kind(message, node=self.name, op=self.type)

    def colocation_groups(self) -> list[bytes]:
        """The groups whose operations share its device: `b"loc:@name"`."""
        own = [COLOCATION_PREFIX + self.name.encode()]
        attrs = self.slim_message.attr
        if COLOCATION_ATTR not in attrs:
            return own
        groups = attrs[COLOCATION_ATTR].list.s
        return [group for group in groups if group.startswith(COLOCATION_PREFIX)] or own

    def write_inputs(self) -> None:
        """Bring the message up to date; inputs that are missing are empty there."""
        edges, message = self.edges, self.slim_message
        texts = [format_input(edges[i].name, edges[i + 1]) for i in range(0, len(edges), 2)]
        texts += [""] * (len(self.signature.input_types) - len(texts))
        message.name = self.name
        message.input[:] = texts + sorted([f"^{op.name}" for op in self.control_inputs])
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


def by_index(nodes: Iterable[AnyNode], op_types: Collection[str]) -> list[AnyNode]:
    """The nodes of some ops, such as arguments of a function, by the number that their attr `index` says."""
    found = [node for node in nodes if node.type in op_types]
    return sorted(found, key=lambda node: node.attr["index"].i)


AnyMessage = TypeVar("AnyMessage", bound=Message)


def copied(message: AnyMessage) -> AnyMessage:
    """A copy of a message, to be changed: copies of an operation share the message itself."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def types_given(nodes: Iterable[Node]) -> set[DataType]:
    """The types of all outputs of some nodes."""
    signatures = {node.signature for node in nodes}
    return {dtype for signature in signatures for dtype in signature.output_types}


def graph_element(obj: Any) -> Any:
    """The element that an object stands for, by its method `_as_graph_element`, or the object."""
    convert = getattr(obj, "_as_graph_element", None)
    return obj if convert is None else convert()


def node_named(by_name: Mapping[str, AnyNode], name: str) -> AnyNode:
    """The node that a name refers to.

    Raises:
        InvalidArgumentError: the name is a tensor's.
        NotFoundError: there is none.
    """
    if ":" in name:
        raise _wrong_kind(name, "a Tensor, not an Operation", "")
    node = by_name.get(name)
    if node is None:
        raise NotFoundError(
            f"The name {name!r} refers to an Operation not in the graph{did_you_mean(name, by_name)}.",
            node=name,
        )
    return node


def output_named(by_name: Mapping[str, AnyNode], name: str) -> tuple[AnyNode, int]:
    """The node and the output that the name of a tensor refers to.

    Raises:
        InvalidArgumentError: the name is a node's.
        NotFoundError: there is none.
    """
    if ":" not in name:
        meant = f"; perhaps you mean {name}:0" if name in by_name else did_you_mean(name, by_name)
        form = f" Tensor names have the form '<op_name>:<output_index>'{meant}."
        raise _wrong_kind(name, "an Operation, not a Tensor", form)
    node_name, index = parse_input(name)
    node = by_name.get(node_name)
    if node is not None and 0 <= index < len(node.output_types):
        return node, index
    if node is not None and node.signature.registration is None and index >= 0:
        error = not_registered(node.type)  # nothing is known of its outputs
        error.add_context(f"In {{{{node {node.name}}}}}")
        raise error
    if node is None or index < 0:
        hint = did_you_mean(node_name, by_name)
        fact = f"The operation, {node_name!r}, does not exist in the graph{hint}."
    else:
        fact = (
            f"The operation, {node_name!r}, exists but only has {len(node.output_types)} outputs."
        )
    raise NotFoundError(
        f"The name {name!r} refers to a Tensor which does not exist. {fact}", node=node_name
    )


def _wrong_kind(name: str, kind: str, hint: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"The name {name!r} refers to {kind}.{hint}")
