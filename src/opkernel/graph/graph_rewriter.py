"""GraphRewriter: takes operations out of a graph, puts others in, and leads edges elsewhere.

Changes are noted and made all at once by `commit`, in time linear in the graph, which puts operations
in order again. Until then operations keep the edges that they had: this is for changes that are planned
on the graph as it was, such as inlining. Whoever wants to see each change as soon as it is made, and
leaves what nobody needs where it is, takes the `GraphEditor` of optimisation passes.

State: `_replaced` says what consumers of an output take instead, or, by CONTROL_SLOT, what those that wait
for the operation wait for; that may be replaced, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from opkernel.errors import InternalError
from opkernel.graph.fanout import Fanout
from opkernel.graph.node_order import order_by_inputs
from opkernel.graph.operation import NO_SIGNATURE, Operation
from opkernel.graph.tensor_name import CONTROL_SLOT
from opkernel.proto import NodeDef

if TYPE_CHECKING:
    from opkernel.graph.graph import Graph
    from opkernel.graph.operation import NodeSignature

__all__ = ["Endpoint", "GraphRewriter"]

Endpoint = tuple[Operation, int]
"""An output of an operation, by its index."""


class GraphRewriter:
    """Changes one graph, in place."""

    def __init__(self, graph: Graph) -> None:
        graph._check_not_finalized()
        self._graph = graph
        self._added: dict[str, Operation] = {}
        self._removed: set[Operation] = set()
        self._replaced: dict[Endpoint, Endpoint] = {}

    def new_name(self, prefix: str) -> str:
        """`prefix/_N` with a number that no name of the graph has had yet."""
        while True:
            name = f"{prefix}/_{next(self._graph._name_counter)}"
            if self._is_free(name):
                return name

    def add(
        self,
        node: NodeDef,
        inputs: Iterable[Endpoint] = (),
        control_inputs: Iterable[Operation] = (),
        *,
        signature: NodeSignature | None = None,
        like: Operation | None = None,
    ) -> Operation:
        """Add an operation.

        Args:
            node: its name, op, device and attrs; it is taken over. A name that is taken is made unique.
            inputs: what it takes.
            control_inputs: what it waits for.
            signature: that of the node, where another one has the same op and attrs.
            like: an operation that was made at the same place of the user's code.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of its op.
        """
        name, number = node.name, 0
        while not self._is_free(name):
            number += 1
            name = f"{node.name}_{number}"
        op = self._added[name] = Operation(self._graph, name, node, 0)
        op._site = None if like is None else like._site
        self.connect(op, inputs, control_inputs)
        op._signature = signature or self._resolve(op)
        return op

    def connect(
        self, op: Operation, inputs: Iterable[Endpoint], control_inputs: Iterable[Operation]
    ) -> None:
        """Set the edges that lead to an operation which was added, or becomes another."""
        op._edges = tuple([part for endpoint in inputs for part in endpoint])
        op._control_inputs = tuple(dict.fromkeys(control_inputs))
        op._stale = True

    def become(
        self,
        op: Operation,
        node: NodeDef,
        inputs: Iterable[Endpoint] = (),
        control_inputs: Iterable[Operation] = (),
    ) -> None:
        """Turn an operation of the graph into another of the same name.

        Raises:
            NotFoundError, InvalidArgumentError: the node breaks a rule of its op.
        """
        self.connect(op, inputs, control_inputs)
        outputs_before = op.output_types
        op._node_def, op._signature = node, NO_SIGNATURE
        op._signature = self._resolve(op)
        if op.output_types != outputs_before:
            op._outputs = None

    def redirect(
        self, op: Operation, outputs: Iterable[Endpoint], control: Operation | None = None
    ) -> None:
        """Have consumers of the outputs of an operation take others, and wait for another one."""
        for index, endpoint in enumerate(outputs):
            self._replaced[op, index] = endpoint
        if control is not None:
            self._replaced[op, CONTROL_SLOT] = control, CONTROL_SLOT

    def remove(self, op: Operation) -> None:
        """Take an operation out, which nothing needs once edges are redirected."""
        self._removed.add(op)

    def commit(self) -> bool:
        """Make the changes; whether there were any.

        Raises:
            InternalError: an operation needs one that was removed.
            InvalidArgumentError: operations would depend on each other in a cycle.
        """
        if not (self._added or self._removed or self._replaced):
            return False
        graph = self._graph
        with graph._lock:
            ops = [*graph._operations, *self._added.values()]
            ops = [op for op in ops if op not in self._removed]
            for number, op in enumerate(ops):
                self._follow(op)
                op._id, op._fanout = number, None
            ops = order_by_inputs(ops)
            for number, op in enumerate(ops):
                op._id = number
            for op in self._removed:
                graph._refiner.forget(op)
            graph._operations[:] = ops
            graph._by_name.clear()
            graph._by_name.update([(op.name, op) for op in ops])
            graph._fanout = Fanout(graph._operations)
            graph.edits += 1
        return True

    def _resolve(self, op: Operation) -> NodeSignature:
        op._write_inputs()
        op._stale = True  # what it takes may be redirected
        return self._graph._resolve(op._node_def, len(op._edges) // 2)

    def _is_free(self, name: str) -> bool:
        return name not in self._added and name not in self._graph._by_name

    def _follow(self, op: Operation) -> None:
        """Lead the edges of an operation to where they are redirected."""
        edges = op._edges
        ends = [self._end(op, (edges[i], edges[i + 1])) for i in range(0, len(edges), 2)]
        new_edges = tuple([part for endpoint in ends for part in endpoint])
        waits_for = [self._end(op, (source, CONTROL_SLOT))[0] for source in op._control_inputs]
        controls = tuple(dict.fromkeys(waits_for))
        if new_edges != edges or controls != op._control_inputs:
            op._edges, op._control_inputs, op._stale = new_edges, controls, True
            self._graph._refiner.forget(op)

    def _end(self, op: Operation, endpoint: Endpoint) -> Endpoint:
        """Where an edge to an operation comes from in the end."""
        while endpoint in self._replaced:
            endpoint = self._replaced[endpoint]
        if endpoint[0] in self._removed:
            raise InternalError(
                f"Node '{op.name}' needs '{endpoint[0].name}', which is taken out of the graph"
            )
        return endpoint
