"""The order of imported nodes: inputs first, and otherwise as they were given.

Source: TensorFlow core/common_runtime/graph_constructor.cc.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.graph.core.control_flow_ops import LOOP_HEAD_OPS, NEXT_ITERATION_OPS
from opkernel.graph.core.node import AnyNode, Node

_NOTHING: Mapping[Any, Sequence[Any]] = MappingProxyType({})

_MAX_NAMED = 8
"""So many nodes of a cycle does the error name."""


def order_by_inputs(
    ops: list[AnyNode], behind: Mapping[AnyNode, Sequence[AnyNode]] = _NOTHING
) -> list[AnyNode]:
    """The operations with each after its inputs; as far as that leaves a choice, as they stand.

    Edges from NextIteration to Merge may lead back. Takes linear time where the operations stand in
    order already, and n log n at worst.

    Args:
        ops: linked operations, each with its position as its number. They may have inputs that are
            not among them; those do not count.
        behind: others that an operation comes after.

    Raises:
        InvalidArgumentError: operations depend on each other in a cycle.
    """
    if all(
        source.number < op.number or not _is_among(ops, source)
        for op in ops
        for source in (*_awaited(op), *behind.get(op, ()))
    ):
        return ops
    pending, dependents = _count_pending(ops, behind)
    ready = [position for position, count in enumerate(pending) if count == 0]
    order = []
    while ready:
        position = heapq.heappop(ready)
        order.append(ops[position])
        for dependent in dependents[position]:
            pending[dependent] -= 1
            if pending[dependent] == 0:
                heapq.heappush(ready, dependent)
    if len(order) < len(ops):
        raise _cycle_error([op for op, count in zip(ops, pending, strict=True) if count], behind)
    return order


def _count_pending(
    ops: list[AnyNode], behind: Mapping[AnyNode, Sequence[AnyNode]]
) -> tuple[list[int], list[list[int]]]:
    """How many edges each operation waits for, and which operations wait for each."""
    pending = [0] * len(ops)
    dependents: list[list[int]] = [[] for _ in ops]
    for op in ops:
        for source in (*_awaited(op), *behind.get(op, ())):
            if _is_among(ops, source):
                pending[op.number] += 1
                dependents[source.number].append(op.number)
    return pending, dependents


def _awaited(op: AnyNode) -> Iterator[AnyNode]:
    """The operations that must come before it: all that it has edges from but back edges."""
    back_edges_may_enter = op.message.op in LOOP_HEAD_OPS
    for source in op.edges[::2]:
        if not (back_edges_may_enter and source.message.op in NEXT_ITERATION_OPS):
            yield source
    yield from op.control_inputs


def _is_among(ops: Sequence[Node], op: Node) -> bool:
    return op.number < len(ops) and ops[op.number] is op


def _cycle_error(
    stuck: list[AnyNode], behind: Mapping[AnyNode, Sequence[AnyNode]]
) -> InvalidArgumentError:
    """The error that names the operations of a cycle, in the order in which they take each other."""
    waiting, op = set(stuck), stuck[0]
    path: dict[AnyNode, None] = {}
    while op not in path:
        path[op] = None
        op = next(s for s in (*_awaited(op), *behind.get(op, ())) if s in waiting)
    ops = list(path)
    cycle = ops[ops.index(op) :][::-1]
    first = cycle.index(min(cycle, key=lambda op: op.number))
    names = [repr(op.name) for op in cycle[first:] + cycle[:first]]
    if len(names) > _MAX_NAMED:
        names[_MAX_NAMED:] = ["..."]
    return InvalidArgumentError(
        f"{len(stuck)} nodes in a cycle or behind one ({', '.join(names)}); only edges from "
        f"NextIteration to Merge may lead back",
        node=cycle[first].name,
    )
