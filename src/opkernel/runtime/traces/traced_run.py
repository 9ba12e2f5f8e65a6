"""Traced runs of the dataflow executor: they record when each node became ready, and in which calls."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from opkernel.runtime.traces.place import Place, current_place, enter, in_place
from opkernel.runtime.traces.step_stats_collector import StepStatsCollector

if TYPE_CHECKING:
    from opkernel.runtime.dataflow.frames import Iteration, PendingCall
    from opkernel.runtime.dataflow.node_item import NodeItem
    from opkernel.runtime.dataflow.run import DataflowRun

_now = time.perf_counter_ns
_MAX_CALLS = 8  # that a name tells, the innermost ones


def run_traced(run: DataflowRun, collector: StepStatsCollector, feeds: Sequence[Any]) -> Any:
    """The result of `run.run(feeds)`; the nodes report to the collector."""
    place = current_place()
    run.ready = _Ready(collector, place.scope)
    with in_place(place):
        return run.run(feeds)


class _Ready(list["tuple[NodeItem, Iteration]"]):
    """The ready nodes; a thread that takes one is at the node's place from then on."""

    def __init__(self, collector: StepStatsCollector, scope: str) -> None:
        super().__init__()
        self._since: list[int] = []
        self._collector = collector
        self._scope = scope

    def append(self, node: tuple[NodeItem, Iteration]) -> None:
        super().append(node)
        self._since.append(_now())

    def __iadd__(self, nodes: Iterable[tuple[NodeItem, Iteration]]) -> Self:  # type: ignore[override, misc]  # of lists
        for node in nodes:
            self.append(node)
        return self

    def pop(self, index: Any = -1) -> tuple[NodeItem, Iteration]:
        node = super().pop(index)
        call = node[1].frame.call
        scope = self._scope if call is None else self._scope + _scope_of(call)
        enter(Place(scope, self._since.pop(index), self._collector))
        return node

    def clear(self) -> None:
        super().clear()
        self._since.clear()


def _scope_of(call: PendingCall | None) -> str:
    """The names of the calls that a call is in, and its own."""
    names: list[str] = []
    while call is not None and len(names) < _MAX_CALLS:
        names.append(call.item.name)
        call = call.iteration.frame.call
    return "".join(f"{name}/" for name in reversed(names))
