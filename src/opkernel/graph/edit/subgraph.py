"""Parts of a graph: which operations a step needs, in an order in which they can run; and copies of some operations.

`copy_operations` makes a graph that can be edited without changing the one that the operations are from.

Source: TensorFlow core/graph/subgraph.cc.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from opkernel.graph.core.edges import Edge, reached
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import (
    MAY_BE_DEAD_ALONE,
    MERGE_OPS,
    NEXT_ITERATION_OPS,
    PLACEHOLDER_OPS,
)
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra


class Needs:
    """The edges to follow when certain tensors are fed."""

    def __init__(self, feeds: Collection[Tensor]) -> None:
        self._fed = {(tensor.op, tensor.value_index) for tensor in feeds}
        self._fed_ops = {tensor.op for tensor in feeds}

    def is_fed(self, tensor: Tensor) -> bool:
        """Whether a value for the tensor is given."""
        return (tensor.op, tensor.value_index) in self._fed

    def sources(self, op: Operation) -> list[Operation]:
        """The producers of inputs that are not fed, and the control inputs."""
        sources = [*op.edges[::2], *op.control_inputs]
        if not sources or self._fed_ops.isdisjoint(sources):
            return sources
        ends = zip(op.edges[::2], op.edges[1::2], strict=True)
        return [*(end[0] for end in ends if end not in self._fed), *self.controls(op)]

    def controls(self, op: Operation) -> list[Operation]:
        """The control inputs.

        A control edge makes an operation run although its output is fed, unless the operation is a
        placeholder for the feed.
        """
        return [
            control
            for control in op.control_inputs
            if control.type not in PLACEHOLDER_OPS or (control, 0) not in self._fed
        ]


class DataNeeds(Needs):
    """The edges on which values depend: no control edges."""

    def sources(self, op: Operation) -> list[Operation]:
        """The producers of inputs that are not fed."""
        edges = zip(op.edges[::2], op.edges[1::2], strict=True)
        return [edge[0] for edge in edges if edge not in self._fed]


def prune_and_order(
    fetches: Iterable[Tensor],
    targets: Iterable[Operation],
    feeds: Collection[Tensor],
    kind: type[Needs] = Needs,
) -> list[Operation]:
    """The operations that `fetches` and `targets` need, inputs before consumers.

    Operations behind a fed tensor are not needed. A depth-first walk gives the order, which is therefore
    the same for the same graph. In a loop of TensorFlow 1, a NextIteration comes after the Merge that it
    leads back to.

    Args:
        fetches: tensors that are needed.
        targets: operations that are.
        feeds: the tensors that are given.
        kind: says what an operation needs.

    Raises:
        InvalidArgumentError: the operations depend on each other in a cycle.
    """
    needs = kind(feeds)
    roots = [*targets, *(t.op for t in fetches if not needs.is_fed(t))]
    order: list[Operation] = []
    done: dict[Operation, bool] = {}  # False while an operation's inputs are still being walked
    while roots:
        roots = _walk(roots, needs, order, done)
    return order


def prune_idle_waits(
    fetches: Sequence[Tensor], targets: Sequence[Operation], feeds: Collection[Tensor]
) -> list[Operation]:
    """The operations that values and effects need; as `prune_and_order`, in another order.

    A control edge counts where an effect, or control flow of TensorFlow 1, is at or before its start. All that a
    target without outputs waits for is needed.

    Raises:
        InvalidArgumentError: the operations depend on each other in a cycle.
    """
    needs, data, acting = Needs(feeds), DataNeeds(feeds), set[Operation]()
    for op in prune_and_order(fetches, targets, feeds):
        acts = effect_of(op.signature) in (Effect.ACTS, Effect.LEADS)
        if acts or not acting.isdisjoint(needs.sources(op)):
            acting.add(op)
    roots = [*targets, *(tensor.op for tensor in fetches if not needs.is_fed(tensor))]
    kept = reached(
        roots, lambda op: [*data.sources(op), *(c for c in needs.controls(op) if c in acting)]
    )
    groups = [op for op in targets if not op.output_types]
    return list(dict.fromkeys([*kept, *prune_and_order((), groups, feeds)]))


def awaited_without(consumer: Operation, going: Mapping[Operation, None]) -> list[Operation]:
    """The control inputs of an operation after others were replaced by their own inputs."""
    found: dict[Operation, None] = {}
    seen: set[Operation] = set()
    stack = list(consumer.control_inputs[::-1])
    while stack:
        source = stack.pop()
        if source not in going:
            found[source] = None
        elif source not in seen:
            seen.add(source)
            if any(giver.type in MAY_BE_DEAD_ALONE for giver in source.edges[::2]):
                raise source.error(
                    f"Node {source.name!r} cannot be removed: node {consumer.name!r} waits for it to "
                    f"learn whether its branch is taken"
                )
            stack += [*source.edges[::2], *source.control_inputs][::-1]
    return list(found)


def _walk(
    roots: list[Operation], needs: Needs, order: list[Operation], done: dict[Operation, bool]
) -> list[Operation]:
    """Put the operations that `roots` need in order; returns those found at the other ends of back edges.

    An operation stays on the stack while its inputs are walked. Other places where it stands there are
    below: an input that needed it would close a cycle.
    """
    behind_back_edges: list[Operation] = []
    stack = roots[::-1]
    while stack:
        op = stack[-1]
        is_done = done.get(op)
        if is_done is not None:
            stack.pop()
            if not is_done:
                done[op] = True
                order.append(op)
            continue
        sources = needs.sources(op)
        if not sources:
            stack.pop()
            done[op] = True
            order.append(op)
            continue
        done[op] = False
        if op.signature.op_type in MERGE_OPS:
            behind_back_edges += [s for s in sources if s.type in NEXT_ITERATION_OPS]
            sources = [s for s in sources if s.type not in NEXT_ITERATION_OPS]
        for needed in reversed(sources):
            is_done = done.get(needed)
            if is_done is None:
                stack.append(needed)
            elif not is_done:
                raise needed.error(
                    f"The graph has a cycle through node {needed.name!r} ({needed.type})"
                )
    return behind_back_edges


def copy_operations(
    graph: Graph,
    ops: Iterable[Operation],
    feeds: Sequence[Tensor] = (),
    *,
    feed_facts: Sequence[TensorFacts] | None = None,
    believing: bool = True,
) -> tuple[Graph, dict[Tensor, Tensor]]:
    """A graph of copies of `ops`, with the same names.

    The copies share their NodeDefs with the originals, so that large constants are not copied, and
    state kept for a node (such as its kernel) is found again. An operation that is edited gets a
    NodeDef of its own. Functions are handed on; so are known shapes that hold for all feeds.

    Args:
        graph: the graph of the operations.
        ops: operations; their inputs are among them, or fed. Control inputs that are not among them
            are dropped.
        feeds: tensors that get a Placeholder in the copy, of the same name where it is free.
        feed_facts: the known facts of the values to be fed; None for the facts of the graph's
            tensors.
        believing: whether shapes that somebody said hold in the copy, too.

    Returns:
        The new graph, and for each feed the tensor that stands for it.
    """
    copied = Graph(function_library=graph.function_library.copy())
    copied.graph_def_versions.CopyFrom(graph.graph_def_versions)
    refiner = copied.refiner
    refiner.believes = believing
    with graph.lock:
        stand_ins = {t.op for t in feeds if t.op.type in PLACEHOLDER_OPS}
        kept = [op for op in ops if op not in stand_ins]
        copies = {op: op.copy_to(copied, i) for i, op in enumerate(kept)}
        for op, copy in copies.items():
            copy.signature, copy.definition_site = op.signature, op.definition_site
        copied.append(list(copies.values()))
        for op, device in graph.assigned_devices.items():
            if op in copies:
                copied.assigned_devices[copies[op]] = device
        if feed_facts is None:
            known = graph.refiner
            is_sure = believing or not known.was_told
            if is_sure and all(tensor.op in stand_ins for tensor in feeds):
                refiner.adopt_copies(known, copies)
            shapes = [known.shape_handle((t.op, t.value_index)) for t in feeds]
            feed_facts = [TensorFacts(shape) for shape in shapes]
        fed = {
            tensor: _stand_in(tensor, copied, facts)
            for tensor, facts in zip(feeds, feed_facts, strict=True)
        }
        sources = {(t.op, t.value_index): (s.op, s.value_index) for t, s in fed.items()}
        link_copies(copies, copies, sources)
    return copied, fed


def link_copies(
    copies: Mapping[Operation, Operation],
    ops: Iterable[Operation],
    sources: Mapping[Edge, Edge] = MappingProxyType({}),
) -> None:
    """Give copies of operations the edges of the originals, before any consumers are asked for.

    Args:
        copies: the copies of operations, or other operations in their place.
        ops: operations whose copies have no edges yet. Control inputs that have no copy are dropped.
        sources: the tensors that copies take in the place of certain edges.
    """
    fed_ops = {op for op, _ in sources}
    for op in ops:
        copy, ends = copies[op], list(op.edges)
        if fed_ops.isdisjoint(ends):
            ends[::2] = [copies[source] for source in ends[::2]]
        else:
            for at in range(0, len(ends), 2):
                source = ends[at], ends[at + 1]
                copy.stale |= source in sources
                ends[at : at + 2] = sources.get(source) or (copies[source[0]], source[1])
        copy.edges = tuple(ends)
        if op.control_inputs:
            copy.control_inputs = tuple([copies[c] for c in op.control_inputs if c in copies])
            copy.stale |= len(copy.control_inputs) < len(op.control_inputs)


def _stand_in(tensor: Tensor, graph: Graph, facts: TensorFacts) -> Tensor:
    """The placeholder of a fed tensor in the copy."""
    op = tensor.op
    name = op.name if len(op.outputs) == 1 else f"{op.name}_{tensor.value_index}"
    if name in graph.by_name:
        name = graph.unique_name(name, mark_as_used=False)
    placeholder = graph.create_op(
        "Placeholder",
        name=f"{name}/",  # as it stands, in no scope
        attrs={
            "dtype": tensor.dtype.base,
            "shape": ShapeAlgebra.as_partial_shape(facts.shape),
        },
    )
    if facts.held is not None or facts.items is not None:
        graph.refiner.define(placeholder, facts)
    return placeholder.outputs[0]
