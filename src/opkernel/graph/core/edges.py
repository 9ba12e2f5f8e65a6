"""Edges between operations: where they lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from opkernel.graph.core.operation import Operation
from opkernel.graph.core.structural_ops import MERGE_OPS, NEXT_ITERATION_OPS

_T = TypeVar("_T")

Edge: TypeAlias = tuple[Operation, int]
"""An output of an operation."""


def edges_of(op: Operation) -> list[Edge]:
    """Where the inputs of an operation come from."""
    edges = op.edges
    return [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]


def is_head_of_loop(op: Operation) -> bool:
    """Whether it is a Merge with a back edge; its outputs change from turn to turn."""
    return op.type in MERGE_OPS and any(s.type in NEXT_ITERATION_OPS for s in op.edges[::2])


def origin(edge: Edge) -> Edge:
    """The tensor that comes through operations that pass it on."""
    op, index = edge
    while op.traits.passes_on and op.edges:
        op, index = op.edges[:2]
    return op, index


def reached(start: Iterable[_T], following: Callable[[_T], Iterable[_T]]) -> dict[_T, None]:
    """The things that can be reached from some things, these included; an ordered set."""
    found = dict.fromkeys(start)
    stack = list(found)
    while stack:
        for one in following(stack.pop()):
            if one not in found:
                found[one] = None
                stack.append(one)
    return found


def leading_to(ops: Iterable[Operation]) -> set[Operation]:
    """Some operations, and all operations that they depend on."""
    return set(reached(ops, lambda op: (*op.edges[::2], *op.control_inputs)))


def behind(ops: Iterable[Operation]) -> set[Operation]:
    """Some operations, and all operations that depend on them, also by a back edge."""
    return set(reached(ops, lambda op: [consumer for consumer, _ in op.consumer_edges()]))
