"""GraphImporter: a GraphDef becomes part of a graph.

Four passes, each linear: the nodes are indexed by name, linked, put in an order in which inputs
come first, and resolved against their ops. Nothing of the graph changes before all have passed. Names and colocation
groups of the nodes are adapted to the graph.

Source: TensorFlow core/common_runtime/graph_constructor.cc, python/framework/importer.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from opkernel.device.budget import check_time
from opkernel.device.permissions import set_origin
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph.core.edges import edges_of
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.graph.core.node import COLOCATION_ATTR, COLOCATION_PREFIX
from opkernel.graph.core.older_nodes import OLDER_OPS, add_later_attrs
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.operation_table import order_by_inputs
from opkernel.graph.core.signature import (
    NodeSignature,
    SignatureResolver,
    input_type_error,
    types_compatible,
    unregistered_signature,
)
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.core.tensor_name import CONTROL_SLOT, free_name, is_valid_node_name, parse_input
from opkernel.graph.functions.function_library import known_op
from opkernel.graph.io.versions import FORWARD_COMPATIBLE_VERSIONS, check_versions, merge_versions
from opkernel.opdef import GRAPH_DEF_VERSION, MAX_LIST_TENSORS, check_op_deprecation
from opkernel.records import dataclass, field
from opkernel.types import Array

if TYPE_CHECKING:
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.scopes import Scopes
    from opkernel.opdef import OpRegistrationData
    from opkernel.proto import GraphDef, NodeDef


def choose_names(
    names: Iterable[str], prefix: str, taken: Collection[str], *, uniquify: bool
) -> dict[str, str]:
    """The names under which nodes are imported, by their own names.

    Args:
        names: the names of the nodes.
        prefix: stands before them, parted by a slash; empty for none.
        taken: the names of the nodes that the graph has.
        uniquify: give nodes whose names are taken the first free `name_N`; the scopes of the
            graph's nodes count as taken too.

    Raises:
        InvalidArgumentError: a name is taken, and `uniquify` is off.
    """
    start = f"{prefix}/" if prefix else ""
    chosen = {name: start + name for name in names}
    if not taken:
        return chosen
    if not uniquify:
        for name, new in chosen.items():
            if new in taken:
                raise InvalidArgumentError(
                    f"Node name '{new}' already exists in the Graph", node=name
                )
        return chosen
    used = {*taken, *_scopes_of(taken)}
    reserved = used.union(chosen.values())
    for name, new in chosen.items():
        if new in used:
            chosen[name] = free_name(new, reserved)
            reserved.add(chosen[name])
    return chosen


def _scopes_of(names: Iterable[str]) -> set[str]:
    scopes = set()
    for name in names:
        scope = name.rpartition("/")[0]
        while scope and scope not in scopes:
            scopes.add(scope)
            scope = scope.rpartition("/")[0]
    return scopes


def follow_colocation(by_name: Mapping[str, Operation], *, validate: bool) -> None:
    """Let the colocation groups of operations follow their new names.

    Args:
        by_name: the operations by the names that the groups have.
        validate: refuse groups of operations that do not exist.

    Raises:
        InvalidArgumentError: there is such a group.
    """
    for name, op in by_name.items():
        if COLOCATION_ATTR not in op.slim_message.attr:
            continue
        groups = op.slim_message.attr[COLOCATION_ATTR].list.s
        for index, group in enumerate(groups):
            if not group.startswith(COLOCATION_PREFIX):
                continue
            other = group.removeprefix(COLOCATION_PREFIX).decode("utf-8", "replace")
            target = by_name.get(other)
            if target is not None:
                groups[index] = COLOCATION_PREFIX + target.name.encode()
            elif validate:
                raise InvalidArgumentError(
                    f"Node '{name}' expects to be colocated with unknown node '{other}'",
                    node=name,
                    op=op.type,
                )


def place(ops: Sequence[Operation], scopes: Scopes[Operation]) -> None:
    """Put operations on the device of the scopes around the import.

    A colocated operation goes where those that it is colocated with are.
    """
    if not scopes.devices:
        return
    by_group = {COLOCATION_PREFIX + op.name.encode(): op for op in ops}
    colocated = []
    for op in ops:
        others = [by_group[group] for group in op.colocation_groups() if group in by_group]
        if all(other is op for other in others):
            op.slim_message.device = scopes.device_for(op)
        else:
            op.slim_message.device = ""
            colocated.append((op, others))
    for op, others in colocated:
        op.slim_message.device = next((other.device for other in others if other.device), "")


Source = Tensor | Operation
"""The source of an input: a tensor, or for a control edge an operation."""


@dataclass(slots=True)
class ImportOptions:
    """How a GraphDef is imported.

    Attributes:
        prefix: stands before the names of the nodes, without a slash at its end.
        uniquify_names: give nodes whose names are taken another name, instead of refusing them.
        input_map: inputs (node and output index in the GraphDef) to connect to the graph's own.
        validate_nodes: check nodes fully, not only their types. The nodes of functions belong to graphs
            of some version, which kernels are told.
        validate_colocation: refuse colocation with nodes that do not exist.
        allow_internal_names: allow names that start with an underscore.
        expect_device: refuse nodes without a device.
        allow_unregistered: keep nodes whose op is not registered, with unknown types.
        fill_empty_attrs: give attrs without a value their default. TensorFlow's Python does so;
            its C++ only adds attrs that are missing.
        origin: the mark of the nodes and functions that come in (`device.origins`), empty for none; None for
            messages of this process, whose nodes keep their marks.
    """

    prefix: str = ""
    uniquify_names: bool = False
    input_map: Mapping[tuple[str, int], Source] = field(default_factory=dict)
    validate_nodes: bool = True
    validate_colocation: bool = True
    allow_internal_names: bool = False
    expect_device: bool = False
    allow_unregistered: bool = False
    fill_empty_attrs: bool = False
    origin: bytes | None = b""


class GraphImporter:
    """Imports one GraphDef, which it takes over: names, inputs and attrs are changed in place.

    Args:
        values: the values of large constants whose nodes have none, by name.

    Attributes:
        by_name: the new operations by their names in the GraphDef.
        used: the entries of the input map that were used.
    """

    def __init__(
        self,
        graph: Graph,
        graph_def: GraphDef,
        options: ImportOptions,
        values: Mapping[str, Array] = MappingProxyType({}),
    ) -> None:
        self.by_name: dict[str, Operation] = {}
        self.used: set[tuple[str, int]] = set()
        self._graph = graph
        self._graph_def = graph_def
        self._options = options
        self._values = values
        self._library = graph.function_library
        self._ops: list[Operation] = []

    def prepare(self) -> Self:
        """Check everything and connect the new operations; the graph stays as it is. Returns itself.

        Raises:
            InvalidArgumentError: a node, an edge or a version breaks a rule.
            NotFoundError: an op is not registered.
            UnimplementedError: an op was removed before the version of the GraphDef.
            FailedPreconditionError: the graph is finalized.
        """
        self._graph.check_not_finalized()
        check_versions(self._graph_def.versions)
        try:
            with paused_garbage_collection():
                self._check_prefix()
                self._set_origin()
                library = self._graph_def.library
                if library.function or library.gradient:
                    self._library = self._library.copy()
                    self._library.add_library(library)
                self._index()
                self._link()
                order = order_by_inputs(self._ops)
                self._rename()
                self._resolve_all(order)
                follow_colocation(self.by_name, validate=self._options.validate_colocation)
                place(self._ops, self._graph.scopes)
        except OpError as error:
            self._mention_forward_compatibility(error)
            raise
        return self

    def commit(self) -> None:
        """Make the operations and functions part of the graph."""
        graph = self._graph
        graph.function_library.adopt(self._library)
        graph.graph_def_versions = merge_versions(
            graph.graph_def_versions, self._graph_def.versions
        )
        graph.append(self._ops)
        for op in self._ops if graph.scopes.control_flow_context is not None else ():
            graph.enter_context(op)

    def find(self, name: str, index: int) -> Tensor | Operation | None:
        """The element that a name and output index mean in the GraphDef; None if there is none."""
        op = self.by_name.get(name)
        if op is None or index == CONTROL_SLOT:
            return op
        return op.outputs[index] if index < len(op.signature.output_types) else None

    def _check_prefix(self) -> None:
        prefix = self._options.prefix
        if prefix and not is_valid_node_name(
            f"{prefix}/", allow_internal=self._options.allow_internal_names
        ):
            raise InvalidArgumentError(
                f"Imported node name prefix '{prefix}/' would lead to invalid node names"
            )

    def _set_origin(self) -> None:
        mark = self._options.origin
        if mark is None:
            return
        own = {function.signature.name for function in self._graph_def.library.function}
        library = self._library
        set_origin(self._graph_def, mark, lambda op: op not in own and library.may_open_files(op))

    def _index(self) -> None:
        """Make the operations, and find them by name."""
        allow_internal = self._options.allow_internal_names
        by_name, ops = self.by_name, self._ops
        for number, node in enumerate(self._graph_def.node):
            name = node.name
            if not is_valid_node_name(name, allow_internal=allow_internal):
                raise _node_error(node, "Node name contains invalid characters")
            if name in by_name:
                raise InvalidArgumentError(f"Node '{name}' is not unique", node=name, op=node.op)
            if not node.op:
                raise InvalidArgumentError(
                    f"Node '{name}' does not specify an operation", node=name
                )
            if node.op in OLDER_OPS:
                add_later_attrs(node)
            op = by_name[name] = self._operation(name, node, number)
            ops.append(op)
        if self._options.expect_device:
            for op in ops:
                if not op.device:
                    raise InvalidArgumentError(
                        f"Node '{op.name}' is missing a device specification", node=op.name
                    )

    def _operation(self, name: str, node: NodeDef, number: int) -> Operation:
        value = self._values.get(name)
        if value is None:
            return Operation(self._graph, name, node, number)
        from opkernel.graph.core.large_const import LargeConst  # few constants are large

        return LargeConst(self._graph, name, node, number, value)

    def _link(self) -> None:
        """Connect the operations."""
        by_name = self.by_name
        mapped = bool(self._options.input_map)
        for op in self._ops:
            edges: list[Operation | int] = []
            controls: dict[Operation, None] = {}
            for text in op.slim_message.input:
                source = None if mapped else by_name.get(text)
                if source is not None:
                    index = 0
                else:
                    source, index = self._find_source(op, text)
                if index == CONTROL_SLOT:
                    controls[source] = None
                elif controls:
                    raise _node_error(
                        op.slim_message, "Control dependencies must come after regular dependencies"
                    )
                else:
                    edges += source, index
            op.edges = tuple(edges)
            if controls:
                op.control_inputs = tuple(controls)

    def _find_source(self, op: Operation, text: str) -> tuple[Operation, int]:
        """The source of an input that is not just the name of a node."""
        name, index = parse_input(text)
        given = self._options.input_map.get((name, index))
        if given is not None:
            self.used.add((name, index))
            op.stale = True
            return (given.op, given.value_index) if isinstance(given, Tensor) else (given, -1)
        source = self.by_name.get(name)
        if source is None:
            raise _node_error(op.slim_message, f"Unknown input node '{text}'")
        op.stale = op.stale or index <= 0  # `a:0` is written as `a`, control inputs in order
        return source, index

    def _resolve_all(self, order: list[Operation]) -> None:
        """Check the operations against their ops, and the types along the edges."""
        options = self._options
        resolver = SignatureResolver(
            self._look_up, validate=options.validate_nodes, fill_empty=options.fill_empty_attrs
        )
        used = {op.slim_message.op for op in order} if options.allow_unregistered else set()
        unregistered = {name for name in used if known_op(self._library.look_up, name) is None}
        with_back_edge = []
        for number, op in enumerate(order, self._graph.version):
            check_time("importing", op.name)
            op.number = number
            num_inputs = len(op.edges) // 2
            if op.slim_message.op in unregistered:
                op.signature = self._unregistered_signature(op, num_inputs)
            else:
                op.signature = resolver.resolve(op.slim_message, num_inputs)
            if not _check_inputs(op):
                with_back_edge.append(op)
        for op in with_back_edge:
            _check_inputs(op)
        self._ops = order

    def _look_up(self, op_type: str) -> OpRegistrationData:
        registration = self._library.look_up(op_type)
        if self._options.validate_nodes:
            check_op_deprecation(registration.op_def, self._graph_def.versions.producer)
        return registration

    def _unregistered_signature(self, op: Operation, num_inputs: int) -> NodeSignature:
        outputs = self._outputs_used.get(op, 0)
        if outputs > MAX_LIST_TENSORS:
            raise _node_error(op.slim_message, f"Output {outputs - 1} is used, which is too many")
        return unregistered_signature(op.slim_message.op, num_inputs, outputs)

    @cached_property
    def _outputs_used(self) -> dict[Operation, int]:
        """How many outputs each operation must have for the edges that leave it."""
        found: dict[Operation, int] = {}
        for op in self._ops:
            for source, index in edges_of(op):
                found[source] = max(found.get(source, 1), index + 1)
        return found

    def _rename(self) -> None:
        prefix, taken = self._options.prefix, self._graph.by_name
        if not prefix and not taken:
            return
        uniquify = self._options.uniquify_names
        for name, new in choose_names(self.by_name, prefix, taken, uniquify=uniquify).items():
            op = self.by_name[name]
            op.name = new
            op.stale = True

    def _mention_forward_compatibility(self, error: OpError) -> None:
        producer = self._graph_def.versions.producer
        if producer > GRAPH_DEF_VERSION + FORWARD_COMPATIBLE_VERSIONS:
            error.message += (
                f" (the graph was produced by version {producer}, which is too far ahead of "
                f"version {GRAPH_DEF_VERSION} here for the forward compatibility guarantee)"
            )
            error.args = (error.message,)


def _check_inputs(op: Operation) -> bool:
    """Check the types along the edges; False where a back edge cannot be checked yet."""
    edges, expected = op.edges, op.signature.input_types
    if len(edges) > 2 * len(expected):
        raise _node_error(
            op.slim_message, f"has {len(edges) // 2} inputs, but its op takes {len(expected)}"
        )
    if len(edges) < 2 * len(expected):
        op.stale = True  # inputs that are missing are written as empty
    complete = True
    for position in range(0, len(edges), 2):
        source, index = edges[position], edges[position + 1]
        types = source.signature.output_types
        if index >= len(types):
            if source.signature.op_type:
                raise _node_error(
                    op.slim_message,
                    f"Connecting to invalid output {index} of source node {source.name} which has "
                    f"{len(types)} outputs.",
                )
            complete = False
        elif types[index] is not expected[position // 2] and not types_compatible(
            expected[position // 2], types[index]
        ):
            name = f"{source.name}:{index}"
            raise input_type_error(op.name, op.signature, position // 2, name, types[index])
    return complete


def _node_error(node: NodeDef, message: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Node '{node.name}': {message}", node=node.name, op=node.op)
