"""copy_operations: a graph with some operations of another, to be edited without changing that one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from opkernel.graph.core.edges import Edge
from opkernel.graph.core.graph import Graph
from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import PLACEHOLDER_OPS
from opkernel.graph.core.tensor import Tensor
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.opdef.shapes.shape_algebra import ShapeAlgebra


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
        copies = {op: _copy(op, copied, number) for number, op in enumerate(kept)}
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
            _lead(copy, ends, sources, copies)
        copy.edges = tuple(ends)
        if op.control_inputs:
            copy.control_inputs = tuple([copies[c] for c in op.control_inputs if c in copies])
            copy.stale |= len(copy.control_inputs) < len(op.control_inputs)


def _lead(
    copy: Operation,
    ends: list[Any],
    sources: Mapping[Edge, Edge],
    copies: Mapping[Operation, Operation],
) -> None:
    """Lead the edges of an original to copies, or to the feeds in their place."""
    for position in range(0, len(ends), 2):
        source = ends[position], ends[position + 1]
        copy.stale |= source in sources
        ends[position : position + 2] = sources.get(source) or (copies[source[0]], source[1])


def _copy(op: Operation, graph: Graph, number: int) -> Operation:
    copy = Operation(graph, op.name, op.node_def, number)
    copy.signature, copy.definition_site = op.signature, op.definition_site
    return copy


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
