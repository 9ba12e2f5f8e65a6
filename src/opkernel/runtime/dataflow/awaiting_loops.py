"""Loops of TensorFlow 1 that may run as plans although kernels wait in them.

A plan that waits does nothing else of its loop meanwhile. Dataflow goes on with nodes that do not need the
result, in the same turn and in the next ones, and others may wait for their effects: an element that the next turn
would put into a queue. So a loop is a plan only if nothing with an effect could run while a kernel of it waits:
each such node comes before the waiting node or after it in every turn, and in the next turn waits for it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from opkernel.graph import Operation
from opkernel.graph.core.edges import is_head_of_loop, reached
from opkernel.graph.core.frame_loops import frame_name, is_constant_enter
from opkernel.graph.core.structural_ops import ENTER_OPS, NEXT_ITERATION_OPS
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.subgraph import Needs

_MOST = 32  # nodes with effects that are compared with each other


class AwaitingLoop:
    """A loop in which kernels wait.

    Args:
        name: The name of its frame.
        members: The nodes that a plan of it would run.
        inner: Those that are in the loop itself, not in loops inside.
        awaiting: The nodes that may wait.
        needs: What operations need.
    """

    def __init__(
        self,
        name: str,
        members: Sequence[Operation],
        inner: Collection[Operation],
        awaiting: Collection[Operation],
        needs: Needs,
    ) -> None:
        self._enters = {op for op in members if op.type in ENTER_OPS and frame_name(op) == name}
        self._heads = {op for op in inner if is_head_of_loop(op)}
        self._inner = inner
        self._awaiting = awaiting
        self._needs = needs
        acting = [op for op in members if effect_of(op.signature) is Effect.ACTS]
        self._acting = dict.fromkeys([*awaiting, *acting])

    def may_suspend(self, late: Collection[Operation]) -> bool:
        """Whether nothing with an effect could run while a kernel waits.

        Args:
            late: The nodes outside that may wait themselves: what enters from behind them, each node that waits
                in the loop must need.
        """
        acting = self._acting
        if len(acting) > _MOST or any(op not in self._inner for op in acting):
            return False
        before = {op: reached([op], self._sources) for op in acting}
        enters = [enter for enter in self._enters if self._comes_after(enter, late)]
        for waiting in self._awaiting:
            if any(enter not in before[waiting] for enter in enters):
                return False
            given = self._heads_given_by(waiting)
            for op in acting:
                if op is not waiting and waiting not in before[op] and op not in before[waiting]:
                    return False
                if given.isdisjoint(before[op]) and not self._is_in_line(waiting):
                    return False
        return True

    def _is_in_line(self, waiting: Operation) -> bool:
        """Whether the node in the next turn stands in line behind the node in this one: on one queue, nothing else acts."""
        source = waiting.edges[0] if waiting.type.startswith("Queue") else None
        is_same = isinstance(source, Operation) and is_constant_enter(source)
        return is_same and len(self._acting) == 1

    def _heads_given_by(self, waiting: Operation) -> set[Operation]:
        """The variables of the loop whose next values need a node."""
        return {
            head
            for head in self._heads
            if waiting in reached([s for s in head.edges[::2] if _goes_back(s)], self._sources)
        }

    def _sources(self, op: Operation) -> Sequence[Operation]:
        """What a node needs in the same turn."""
        if op in self._enters:
            return ()
        sources = self._needs.sources(op)
        return [s for s in sources if not _goes_back(s)] if op in self._heads else sources

    def _comes_after(self, enter: Operation, late: Collection[Operation]) -> bool:
        """Whether a value that enters comes from behind a node that may wait."""
        return not reached([enter], self._needs.sources).keys().isdisjoint(late)


def _goes_back(op: Operation) -> bool:
    return op.type in NEXT_ITERATION_OPS
