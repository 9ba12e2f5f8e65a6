"""GraphImporter: a GraphDef becomes part of a graph.

Four passes, each linear: the nodes are indexed by name, linked, put in an order in which inputs
come first, and resolved against their ops. Nothing of the graph changes before all have passed.

Source: TensorFlow core/common_runtime/graph_constructor.cc.
"""

from __future__ import annotations

import gc
import heapq
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.graph.operation import (
    COLOCATION_ATTR,
    COLOCATION_PREFIX,
    NodeSignature,
    Operation,
    Tensor,
    input_type_error,
    types_compatible,
)
from opkernel.graph.signature import (
    MAX_LIST_TENSORS,
    SignatureResolver,
    unregistered_signature,
)
from opkernel.graph.structural_ops import MERGE_OPS, NEXT_ITERATION_OPS
from opkernel.graph.tensor_name import CONTROL_SLOT, is_valid_node_name, parse_tensor_name
from opkernel.graph.versions import FORWARD_COMPATIBLE_VERSIONS, check_versions, merge_versions
from opkernel.opdef import GRAPH_DEF_VERSION, check_op_deprecation

if TYPE_CHECKING:
    from opkernel.graph.graph import Graph
    from opkernel.opdef import OpRegistrationData
    from opkernel.proto import GraphDef, NodeDef

__all__ = ["GraphImporter", "ImportOptions"]

Source = Tensor | Operation
"""What an input is connected to: a tensor, or for a control edge an operation."""


@dataclass(slots=True)
class ImportOptions:
    """How a GraphDef is imported.

    Attributes:
        prefix: stands before the names of the nodes, without a slash at its end.
        uniquify_names: give nodes whose names are taken another name, instead of refusing them.
        input_map: inputs (node and output index in the GraphDef) to connect to the graph's own.
        validate_nodes: check nodes fully, not only their types.
        validate_colocation: refuse colocation with nodes that do not exist.
        allow_internal_names: allow names that start with an underscore.
        expect_device: refuse nodes without a device.
        allow_unregistered: keep nodes whose op is not registered, with unknown types.
    """

    prefix: str = ""
    uniquify_names: bool = False
    input_map: Mapping[tuple[str, int], Source] = field(default_factory=dict)
    validate_nodes: bool = True
    validate_colocation: bool = True
    allow_internal_names: bool = False
    expect_device: bool = False
    allow_unregistered: bool = False


class GraphImporter:
    """Imports one GraphDef, which it takes over: names, inputs and attrs are changed in place.

    Attributes:
        by_name: the new operations by their names in the GraphDef.
        used: the entries of the input map that were used.
    """

    def __init__(self, graph: Graph, graph_def: GraphDef, options: ImportOptions) -> None:
        self.by_name: dict[str, Operation] = {}
        self.used: set[tuple[str, int]] = set()
        self._graph = graph
        self._graph_def = graph_def
        self._options = options
        self._library = graph.function_library
        self._ops: list[Operation] = []
        self._outputs: dict[Operation, int] | None = None
        self._registered: dict[str, bool] = {}

    def prepare(self) -> None:
        """Check everything and connect the new operations; the graph stays as it is.

        Raises:
            InvalidArgumentError: a node, an edge or a version breaks a rule.
            NotFoundError: an op is not registered.
            UnimplementedError: an op was removed before the version of the GraphDef.
            FailedPreconditionError: the graph is finalized.
        """
        self._graph._check_not_finalized()
        check_versions(self._graph_def.versions)
        try:
            with _paused_garbage_collection():
                self._check_prefix()
                self._import_library()
                self._index()
                self._link()
                order = self._in_order()
                self._rename()
                self._resolve_all(order)
                self._check_colocation()
                self._place()
        except OpError as error:
            self._mention_forward_compatibility(error)
            raise

    def commit(self) -> None:
        """Make the operations and functions part of the graph."""
        graph = self._graph
        graph.function_library.adopt(self._library)
        graph.graph_def_versions = merge_versions(
            graph.graph_def_versions, self._graph_def.versions
        )
        graph._append(self._ops)

    def find(self, name: str, index: int) -> Tensor | Operation | None:
        """The element that a name and output index mean in the GraphDef; None if there is none."""
        op = self.by_name.get(name)
        if op is None or index == CONTROL_SLOT:
            return op
        return op.outputs[index] if index < len(op._signature.output_types) else None

    def _check_prefix(self) -> None:
        prefix = self._options.prefix
        if prefix and not is_valid_node_name(
            f"{prefix}/", allow_internal=self._options.allow_internal_names
        ):
            raise InvalidArgumentError(
                f"Imported node name prefix '{prefix}/' would lead to invalid node names"
            )

    def _import_library(self) -> None:
        library = self._graph_def.library
        if library.function or library.gradient:
            self._library = self._library.copy()
            self._library.add_library(library)

    def _index(self) -> None:
        """Make the operations, and find them by name."""
        allow_internal = self._options.allow_internal_names
        graph, by_name, ops = self._graph, self.by_name, self._ops
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
            op = by_name[name] = Operation(graph, name, node, number)
            ops.append(op)
        if self._options.expect_device:
            for op in ops:
                if not op.device:
                    raise InvalidArgumentError(
                        f"Node '{op.name}' is missing a device specification", node=op.name
                    )

    def _link(self) -> None:
        """Connect the operations."""
        by_name = self.by_name
        mapped = bool(self._options.input_map)
        for op in self._ops:
            edges: list[Operation | int] = []
            controls: dict[Operation, None] = {}
            for text in op._node_def.input:
                source = None if mapped else by_name.get(text)
                if source is not None:
                    index = 0
                else:
                    source, index = self._find_source(op, text)
                if index == CONTROL_SLOT:
                    controls[source] = None
                elif controls:
                    raise _node_error(
                        op._node_def, "Control dependencies must come after regular dependencies"
                    )
                else:
                    edges += source, index
            op._edges = tuple(edges)
            if controls:
                op._control_inputs = tuple(controls)

    def _find_source(self, op: Operation, text: str) -> tuple[Operation, int]:
        """What an input that is not just the name of a node is connected to."""
        name, index = parse_tensor_name(text)
        given = self._options.input_map.get((name, index))
        if given is not None:
            self.used.add((name, index))
            op._stale = True
            return (given.op, given.value_index) if isinstance(given, Tensor) else (given, -1)
        source = self.by_name.get(name)
        if source is None:
            raise _node_error(op._node_def, f"Unknown input node '{text}'")
        op._stale = op._stale or index <= 0  # `a:0` is written as `a`, control inputs in order
        return source, index

    def _in_order(self) -> list[Operation]:
        """The operations, inputs first; as far as that leaves a choice, in the order given."""
        if all(
            source._id < op._id or not self._is_new(source)
            for op in self._ops
            for source in _awaited(op)
        ):
            return self._ops
        pending, dependents = self._count_pending()
        ready = [number for number, count in enumerate(pending) if count == 0]
        order = []
        while ready:
            number = heapq.heappop(ready)
            order.append(self._ops[number])
            for dependent in dependents[number]:
                pending[dependent] -= 1
                if pending[dependent] == 0:
                    heapq.heappush(ready, dependent)
        if len(order) < len(self._ops):
            raise self._cycle_error(pending)
        return order

    def _count_pending(self) -> tuple[list[int], list[list[int]]]:
        """How many edges each operation waits for, and which operations wait for each."""
        pending = [0] * len(self._ops)
        dependents: list[list[int]] = [[] for _ in self._ops]
        for op in self._ops:
            for source in _awaited(op):
                if self._is_new(source):
                    pending[op._id] += 1
                    dependents[source._id].append(op._id)
        return pending, dependents

    def _is_new(self, op: Operation) -> bool:
        """Whether an operation is of the GraphDef, not one that the input map leads to."""
        return op._id < len(self._ops) and self._ops[op._id] is op

    def _cycle_error(self, pending: list[int]) -> InvalidArgumentError:
        stuck = [op.name for op, count in zip(self._ops, pending, strict=True) if count]
        names = ", ".join(map(repr, stuck[:3])) + (", ..." if len(stuck) > 3 else "")
        return InvalidArgumentError(
            f"{len(stuck)} nodes in a cycle or behind one ({names}); only edges from NextIteration "
            f"to Merge may lead back",
            node=stuck[0],
        )

    def _resolve_all(self, order: list[Operation]) -> None:
        """Check the operations against their ops, and the types along the edges."""
        resolver = SignatureResolver(self._look_up, validate=self._options.validate_nodes)
        with_back_edge = []
        for number, op in enumerate(order, self._graph.version):
            op._id = number
            op._signature = self._signature_of(op, resolver)
            if not _check_inputs(op):
                with_back_edge.append(op)
        for op in with_back_edge:
            _check_inputs(op)
        self._ops = order

    def _look_up(self, op_type: str) -> OpRegistrationData:
        registration = self._library.look_up(op_type)
        check_op_deprecation(registration.op_def, self._graph_def.versions.producer)
        return registration

    def _signature_of(self, op: Operation, resolver: SignatureResolver) -> NodeSignature:
        num_inputs = len(op._edges) // 2
        if self._options.allow_unregistered and not self._is_registered(op._node_def.op):
            outputs = self._outputs_used().get(op, 0)
            if outputs > MAX_LIST_TENSORS:
                raise _node_error(op._node_def, f"Output {outputs - 1} is used, which is too many")
            return unregistered_signature(op._node_def.op, num_inputs, outputs)
        return resolver.resolve(op._node_def, num_inputs)

    def _is_registered(self, op_type: str) -> bool:
        known = self._registered.get(op_type)
        if known is None:
            try:
                self._library.look_up(op_type)
                known = True
            except NotFoundError:
                known = False
            self._registered[op_type] = known
        return known

    def _outputs_used(self) -> dict[Operation, int]:
        """How many outputs each operation must have for the edges that leave it."""
        if self._outputs is None:
            self._outputs = {}
            for op in self._ops:
                for source, index in zip(op._edges[::2], op._edges[1::2], strict=True):
                    self._outputs[source] = max(self._outputs.get(source, 1), index + 1)
        return self._outputs

    def _rename(self) -> None:
        """Put the prefix before the names, and give other names where they are taken."""
        prefix, taken = self._options.prefix, self._graph._by_name
        if not prefix and not taken:
            return
        start = f"{prefix}/" if prefix else ""
        chosen: dict[str, str] = {name: start + name for name in self.by_name}
        clashes = [name for name, new in chosen.items() if new in taken]
        if self._options.uniquify_names:
            _make_unique(chosen, taken)
        elif clashes:
            raise InvalidArgumentError(
                f"Node name '{chosen[clashes[0]]}' already exists in the Graph", node=clashes[0]
            )
        for name, op in self.by_name.items():
            op.name = chosen[name]
            op._stale = True

    def _check_colocation(self) -> None:
        """Check the colocation groups, and let them follow the names."""
        for name, op in self.by_name.items():
            if COLOCATION_ATTR not in op._node_def.attr:
                continue
            groups = op._node_def.attr[COLOCATION_ATTR].list.s
            for index, group in enumerate(groups):
                if not group.startswith(COLOCATION_PREFIX):
                    continue
                other = group[len(COLOCATION_PREFIX) :].decode("utf-8", "replace")
                target = self.by_name.get(other)
                if target is not None:
                    groups[index] = COLOCATION_PREFIX + target.name.encode()
                elif self._options.validate_colocation:
                    raise InvalidArgumentError(
                        f"Node '{name}' expects to be colocated with unknown node '{other}'",
                        node=name,
                        op=op.type,
                    )

    def _place(self) -> None:
        """Put the operations on the devices of the scopes around the import.

        A colocated operation goes where those that it is colocated with are.
        """
        scopes = self._graph._scopes
        if not scopes.devices:
            return
        by_group = {COLOCATION_PREFIX + op.name.encode(): op for op in self._ops}
        colocated = []
        for op in self._ops:
            others = [by_group[g] for g in op.colocation_groups() if g in by_group]
            if all(other is op for other in others):
                op._node_def.device = scopes.device_for(op)
            else:
                op._node_def.device = ""
                colocated.append((op, others))
        for op, others in colocated:
            op._node_def.device = next((other.device for other in others if other.device), "")

    def _mention_forward_compatibility(self, error: OpError) -> None:
        producer = self._graph_def.versions.producer
        if producer > GRAPH_DEF_VERSION + FORWARD_COMPATIBLE_VERSIONS:
            error.message += (
                f" (the graph was produced by version {producer}, which is too far ahead of "
                f"version {GRAPH_DEF_VERSION} here for the forward compatibility guarantee)"
            )
            error.args = (error.message,)


def _awaited(op: Operation) -> Iterator[Operation]:
    """The operations that must come before it: all that it has edges from but back edges."""
    back_edges_may_enter = op._node_def.op in MERGE_OPS
    for source in op._edges[::2]:
        if not (back_edges_may_enter and source._node_def.op in NEXT_ITERATION_OPS):
            yield source
    yield from op._control_inputs


def _check_inputs(op: Operation) -> bool:
    """Check the types along the edges; False where a back edge cannot be checked yet."""
    edges, expected = op._edges, op._signature.input_types
    if len(edges) > 2 * len(expected):
        raise _node_error(
            op._node_def, f"has {len(edges) // 2} inputs, but its op takes {len(expected)}"
        )
    if len(edges) < 2 * len(expected):
        op._stale = True  # inputs that are missing are written as empty
    complete = True
    for position in range(0, len(edges), 2):
        source, index = edges[position], edges[position + 1]
        types = source._signature.output_types
        if index >= len(types):
            if source._signature.op_type:
                raise _node_error(
                    op._node_def,
                    f"Connecting to invalid output {index} of source node {source.name} which has "
                    f"{len(types)} outputs.",
                )
            complete = False
        elif types[index] is not expected[position // 2] and not types_compatible(
            expected[position // 2], types[index]
        ):
            raise input_type_error(op, position // 2, source, index)
    return complete


def _make_unique(chosen: dict[str, str], taken: Mapping[str, Operation]) -> None:
    """Give nodes whose names are taken by a node or a scope the first free `name_N`."""
    used = {*taken, *_scopes_of(taken)}
    reserved = set(chosen.values())
    for name, new in chosen.items():
        if new not in used:
            continue
        number = 1
        while f"{new}_{number}" in used or f"{new}_{number}" in reserved:
            number += 1
        chosen[name] = f"{new}_{number}"
        reserved.add(chosen[name])


def _scopes_of(names: Iterable[str]) -> set[str]:
    scopes = set()
    for name in names:
        scope = name.rpartition("/")[0]
        while scope and scope not in scopes:
            scopes.add(scope)
            scope = scope.rpartition("/")[0]
    return scopes


def _node_error(node: NodeDef, message: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Node '{node.name}': {message}", node=node.name, op=node.op)


@contextmanager
def _paused_garbage_collection() -> Iterator[None]:
    """Keep the collector from looking at a million new objects again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
