"""The nodes for which a late, cancelled or stuck step waits."""

from collections.abc import Iterable

from opkernel.graph.core.control_flow_ops import NEXT_ITERATION_OPS
from opkernel.graph.core.edges import is_head_of_loop
from opkernel.runtime.dataflow.frames import Iteration
from opkernel.runtime.dataflow.node_item import Kind, NodeItem, RootInfo

_MAX_SHOWN = 5


def describe_waiting(started: Iterable[tuple[NodeItem, Iteration]]) -> str:
    """The nodes whose kernels were started and are not done: `waiting for _Recv (node 'r')`."""
    names = dict.fromkeys(_described(item, iteration) for item, iteration in started)
    return f"waiting for {_listed(list(names))}" if names else ""


def describe_next(item: NodeItem, iteration: Iteration) -> str:
    """The node that would have been computed next: `it had come to AddV2 (node 'sum')`."""
    return f"it had come to {_described(item, iteration)}"


def missing_inputs(iterations: Iterable[Iteration]) -> str:
    """The nodes that did not run: what each lacks, and in which turn of which loop.

    Nodes that wait only for other such nodes are left out.
    """
    found = [text for iteration in iterations for text in _stuck(iteration)]
    return _listed(found, "; ")


def _described(item: NodeItem, iteration: Iteration) -> str:
    return f"{_named(item, iteration)}{_place(iteration)}"


def _named(item: NodeItem, iteration: Iteration) -> str:
    if item.op.type:
        return f"{item.op.type} (node {item.name!r})"
    return "the fetches" if iteration.frame.outer is None else "the results"


def _stuck(iteration: Iteration) -> list[str]:
    """The nodes that are stuck in an iteration."""
    info = iteration.frame.info
    stuck = {
        item.name
        for item in info.items
        if iteration.pending[item.id] > 0 and not _has_run(item, iteration)
    }
    found = []
    for item in info.items:
        if item.name not in stuck or not item.op.inputs:
            continue
        lacks = _lacks(item, iteration)
        # What a head of a loop lacks was to come from the turn before.
        is_head = item.kind == Kind.MERGE and is_head_of_loop(item.op)
        if lacks and (is_head or not all(name.partition(":")[0] in stuck for name in lacks)):
            waits = "waits" if item.op.type else "wait"
            named, place = _named(item, iteration), _place(iteration)
            found.append(f"{named} {waits} for {', '.join(lacks)}{place}")
    return found


def _has_run(item: NodeItem, iteration: Iteration) -> bool:
    """Whether a node that is not waiting for all its inputs was ready nevertheless: a dead Merge."""
    return item.kind == Kind.MERGE and bool(iteration.dead.get(item.id))


def _lacks(item: NodeItem, iteration: Iteration) -> list[str]:
    """The inputs that have not arrived; of the head of a loop those that may still do so."""
    slots = iteration.slots[item.start : item.stop]
    found = [t for t, value in zip(item.op.inputs, slots, strict=True) if value is None]
    if item.kind == Kind.MERGE and is_head_of_loop(item.op):
        is_first = iteration.number == 0
        found = [t for t in found if (t.op.type in NEXT_ITERATION_OPS) is not is_first]
    return [tensor.name for tensor in found]


def _place(iteration: Iteration) -> str:
    """Where an iteration is: ` in turn 3 of the loop 'l' in the function 'f' (node 'call')`."""
    found = []
    info, call = iteration.frame.info, iteration.frame.call
    if not isinstance(info, RootInfo):
        found.append(f" in turn {iteration.number} of the loop {info.name!r}")
    while call is not None and len(found) < _MAX_SHOWN:
        found.append(f" in the function {call.function!r} (node {call.item.name!r})")
        call = call.iteration.frame.call
    return "".join(found)


def _listed(texts: list[str], separator: str = ", ") -> str:
    shown = separator.join(texts[:_MAX_SHOWN])
    more = len(texts) - _MAX_SHOWN
    return f"{shown}{separator}and {more} more" if more > 0 else shown
