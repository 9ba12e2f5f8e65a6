"""PartialDataflowRun: a run whose feeds come one after the other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.kernel import Step
from opkernel.runtime.dataflow.frames import Frame
from opkernel.runtime.dataflow.node_item import RootInfo
from opkernel.runtime.dataflow.run import DataflowRun
from opkernel.runtime.plan.services import check_alive


class PartialDataflowRun(DataflowRun):
    """Computes, whenever it is asked to, the nodes that it can; each node once. For one thread at a time.

    Args:
        roots: The graph of each partition, the first with all feeds and fetches.
        step: The step.
    """

    def __init__(self, roots: Sequence[RootInfo], step: Step) -> None:
        self._info, *others = roots
        super().__init__(self._info, step)
        self.roots += [Frame(other, step).iterations[0] for other in others]
        for root, iteration in zip(roots, self.roots, strict=True):
            self.ready += [(item, iteration) for item in root.roots]
            iteration.outstanding = len(root.roots)

    def advance(self, feeds: Sequence[tuple[int, Any]], fetches: Sequence[int]) -> list[Any]:
        """Take some feeds, and compute until some fetches are there.

        Args:
            feeds: Their numbers and values.
            fetches: Their numbers.

        Raises:
            InvalidArgumentError: a fetch is dead.
            OpError: the first that a node raised; the run is over then.
        """
        source, sink = self._info.source, self._info.sink
        for number, value in feeds:
            feed = copy.copy(source)
            feed.edges = (source.edges[number],)
            self.activate(feed, (value,), self.root)
        slots = self.root.slots
        self._compute_until(lambda: all(slots[sink.start + n] is not None for n in fetches))
        values = []
        for number in fetches:
            check_alive(slots[sink.start + number], sink.op.inputs[number].name)
            values.append(slots[sink.start + number])
            slots[sink.start + number] = None
        return values

    def finish(self) -> None:
        """Compute the remaining nodes; raises as `advance` does."""
        self._compute_until(lambda: False)
        self._check_functions()

    def _compute_until(self, is_enough: Callable[[], bool]) -> None:
        self._compute_ready()
        while self._elsewhere.started and not is_enough():
            self._take_report()
            self._compute_ready()

    def stop(self, error: BaseException) -> None:
        """Give up: tell waiting computations that the step is over, and wait for their end."""
        self.ready.clear()
        self._elsewhere.stop(error)
        self._elsewhere.forget()
