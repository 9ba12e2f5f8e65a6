"""Edges between operations: where they lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from opkernel.graph.core.control_flow_ops import LOOP_HEAD_OPS, NEXT_ITERATION_OPS
from opkernel.graph.core.operation import Operation

_T = TypeVar("_T")

Edge: TypeAlias = tuple[Operation, int]
"""An output of an operation."""


def edges_of(op: Operation) -> list[Edge]:
    """Where the inputs of an operation come from."""
    edges = op.edges
    return [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]


def is_head_of_loop(op: Operation) -> bool:
    """Whether it is a Merge with a back edge; its outputs change from turn to turn."""
    return op.type in LOOP_HEAD_OPS and any(s.type in NEXT_ITERATION_OPS for s in op.edges[::2])


def reached(start: Iterable[_T], following: Callable[[_T], Iterable[_T]]) -> set[_T]:
    """The things that can be reached from some things, these included."""
    stack = list(start)
    found = set(stack)
    while stack:
        new = set(following(stack.pop())) - found
        found |= new
        stack += new
    return found


def behind(ops: Iterable[Operation]) -> set[Operation]:
    """Some operations, and all operations that depend on them, also by a back edge."""
    return reached(ops, lambda op: [consumer for consumer, _ in op.consumer_edges()])
