"""optimize_graph: the passes, one after the other, on a copy of what certain fetches need.

Source: TensorFlow core/common_runtime/graph_execution_state.cc.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.node import types_given
from opkernel.graph.edit.graph_copy import copy_operations
from opkernel.graph.edit.graph_editor import Change, GraphEditor
from opkernel.graph.edit.prune import prune_and_order
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.optimization.pass_registry import Grouping, optimization_passes
from opkernel.proto import GraphDef
from opkernel.records import dataclass
from opkernel.types import DataType


@dataclass(frozen=True)
class OptimizedGraph:
    """A graph that computes what another does, with less work.

    Attributes:
        graph: the new graph; it holds operations, too, that are no longer needed.
        feeds, fetches, targets: what the tensors and operations that were given are in it.
        changes: what the passes did.
        editor: edits it.
    """

    graph: Graph
    feeds: list[Tensor]
    fetches: list[Tensor]
    targets: list[Operation]
    changes: list[Change]
    editor: GraphEditor

    @property
    def operations(self) -> list[Operation]:
        """The operations that are needed, inputs first."""
        return self.editor.operations()

    def as_graph_def(self) -> GraphDef:
        """The operations that are needed, and the functions that they need."""
        graph_def = GraphDef(versions=self.graph.graph_def_versions)
        graph_def.node.extend([op.node_def for op in self.operations])
        library = self.graph.function_library.reachable_definitions(graph_def.node)
        graph_def.library.CopyFrom(library.to_proto())
        return graph_def

    def run_passes(
        self, groupings: Iterable[Grouping], enabled: Collection[str] | None = None
    ) -> None:
        """Run the passes of some groupings; all but those on request if `enabled` is None.

        Raises:
            NotFoundError: there is no pass of a name given.
            OpError: a pass failed.
        """
        registry = optimization_passes()
        registry.check_names(enabled or ())
        with np.errstate(all="ignore"):  # as kernels run
            for grouping in groupings:
                registry.run_grouping(grouping, self.editor, enabled)


def copy_to_optimize(
    graph: Graph,
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor] = (),
    targets: Sequence[Operation] = (),
    *,
    operations: Sequence[Operation] | None = None,
    feed_facts: Sequence[TensorFacts] | None = None,
) -> OptimizedGraph:
    """A copy of what computes `fetches`, as it is; the arguments are those of `optimize_graph`.

    Raises:
        InvalidArgumentError: a constant is none of its type, which no kernel takes.
    """
    if operations is None:
        operations = prune_and_order(fetches, targets, feeds)
    _check_constants(operations)
    copied, fed = copy_operations(graph, operations, feeds, feed_facts=feed_facts, believing=False)
    new_feeds = [fed[tensor] for tensor in feeds]
    new_fetches = [fed[t] if t in fed else copied.get_tensor_by_name(t.name) for t in fetches]
    new_targets = [copied.get_operation_by_name(op.name) for op in targets]
    fed_ops = {tensor.op for tensor in new_feeds}
    preserved = {*fed_ops, *(tensor.op for tensor in new_fetches), *new_targets}
    left = fed_ops.union(_readers_of_references(copied), _kept_in_place(copied))
    editor = GraphEditor(copied, preserved, left)
    return OptimizedGraph(copied, new_feeds, new_fetches, new_targets, editor.changes, editor)


def optimize_graph(
    graph: Graph,
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor] = (),
    targets: Sequence[Operation] = (),
    *,
    operations: Sequence[Operation] | None = None,
    passes: Collection[str] | None = None,
    feed_facts: Sequence[TensorFacts] | None = None,
) -> OptimizedGraph:
    """Optimise what computes `fetches` and runs `targets`, given values for `feeds`.

    The passes of all groupings run, as for one device.

    Args:
        graph: stays as it is.
        fetches: tensors that will be fetched.
        feeds: tensors that will be fed.
        targets: operations that will be run.
        operations: those that are needed, inputs before consumers, if that is known.
        passes: the names of the passes to be run; all if None.
        feed_facts: what is known of what will be fed; the shapes that the graph knows if None.

    Raises:
        NotFoundError: there is no pass of a name given.
        InvalidArgumentError: a constant is none of its type.
        OpError: a pass failed.
    """
    copied = copy_to_optimize(
        graph, fetches, feeds, targets, operations=operations, feed_facts=feed_facts
    )
    copied.run_passes(Grouping, passes)
    return copied


def _check_constants(operations: Sequence[Operation]) -> None:
    """Raise for a constant of a wrong type: once a pass has removed it, nothing would report it."""
    for op in operations:
        if op.type == "Const":
            attrs = op.message.attr
            held, dtype = DataType(attrs["value"].tensor.dtype), DataType(attrs["dtype"].type)
            if held is not dtype and held.numpy_dtype != dtype.numpy_dtype:
                message = f"Type mismatch between value ({held.string}) and dtype ({dtype.string})"
                raise InvalidArgumentError(
                    f"Const: {message} (node '{op.name}')", node=op.name, op=op.type
                )


def _kept_in_place(graph: Graph) -> set[Operation]:
    """The operations that put their outputs into the array of a `_ScopedAllocator`."""
    operations = graph.get_operations()
    if all(op.type != "_ScopedAllocator" for op in operations):
        return set()
    return {op for op in operations if "_scoped_allocator" in op.attr}


def _readers_of_references(graph: Graph) -> set[Operation]:
    """The operations that take references: when they read the values, control edges say."""
    operations = graph.get_operations()
    references = {dtype for dtype in types_given(operations) if dtype.is_ref}
    if not references:
        return set()
    givers = [op for op in operations if not references.isdisjoint(op.output_types)]
    return {op for giver in givers for op, index in giver.consumer_edges() if index >= 0}
