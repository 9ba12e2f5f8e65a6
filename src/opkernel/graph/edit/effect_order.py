"""EffectOrder: behind a pass the same effects happen as before it, in the order that the graph gave.

A pass that leaves out an operation, or leads edges past it, also loses the operations that it
waited for or that were needed for it alone. So after each pass the order of effects is compared
with the order before the pass. Missing edges are put back as control edges: at the next operation
that has or sees an effect, or else at the fetches. The operations between get no such edges, and
further passes may change them.

Operations with effects are needed. Operations that only see effects, such as a read of a variable,
may go; if they stay, they keep their place. A control edge cannot cross the control flow of
TensorFlow 1; it starts at the last Switch, Merge, Enter or Exit on the way.

Source: TensorFlow core/grappler/op_types.cc (IsFreeOfSideEffect), optimizers/constant_folding.cc
(AddControlDependency).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from opkernel.errors import InternalError
from opkernel.graph import Operation
from opkernel.graph.core.edges import behind
from opkernel.graph.core.signature import NodeSignature
from opkernel.graph.core.structural_ops import EXIT_OPS
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.records import dataclass, field


@dataclass
class _Order:
    """The order of effects. A set of operations is an int with a bit for each of them.

    Attributes:
        before: the predecessors of each impure operation and each root, in order.
        marked: the impure operations.
        watched: the marked operations without control flow.
        needed: the operations with effects, and the Exits behind them.
    """

    before: dict[Operation, int] = field(default_factory=dict)
    marked: int = 0
    watched: int = 0
    needed: int = 0

    @cached_property
    def last_first(self) -> list[Operation]:
        """The operations from the last to the first."""
        return [*reversed(self.before)]

    @cached_property
    def places(self) -> dict[Operation, int]:
        """Where each stands in this list."""
        return {op: place for place, op in enumerate(self.last_first)}


class EffectOrder:
    """Keeps the order of effects in a graph that passes edit.

    Args:
        roots: the operations that the graph is run for.
        readers: operations that take references: they see effects, whatever their op is.
        order: the needed operations, inputs before consumers.

    State: `_known` is the order that passes must keep. `_bits` gives the bit of each operation of
    `_marked` in sets.
    """

    def __init__(
        self,
        roots: Collection[Operation],
        readers: Collection[Operation],
        order: Sequence[Operation],
    ) -> None:
        self._roots, self._readers = roots, readers
        self._effects: dict[NodeSignature, Effect] = {}
        self._bits: dict[Operation, int] = {}
        self._marked: list[Operation] = []
        acting = [op for op in order if self._effect(op) is Effect.ACTS]
        has_loops = acting and any(op.type in EXIT_OPS for op in acting[0].graph)
        # The Exits of loops that depend on operations with effects, also by a back edge.
        self._exits = {op for op in behind(acting) if op.type in EXIT_OPS} if has_loops else set()
        self._known = self._find(order)

    def keep(
        self, order: Sequence[Operation], dropped: Collection[Operation] = ()
    ) -> Sequence[Operation]:
        """Put back effects that a pass has left out, or brought out of order.

        Args:
            order: the operations that are needed, inputs before consumers.
            dropped: the operations that the pass has left out on purpose.

        Returns:
            The operations that are needed.

        Raises:
            InternalError: an effect cannot be put back.
            InvalidArgumentError: the operations depend on each other in a cycle.
        """
        needed = self._still_needed(dropped)
        while True:
            alive = set(order)
            lost = [op for op in self._members(needed) if op not in alive]
            if lost:
                order = self._operations(lost)
            found = self._find(order)
            if not self._put_back(found, needed, dropped):
                break
            order = self._operations()
        if lost:
            raise InternalError(f"The effect of node '{lost[0].name}' is lost")
        self._known = found
        return order

    def _operations(self, first: Iterable[Operation] = ()) -> list[Operation]:
        """The operations that the roots need, and some others before them."""
        roots = sorted(self._roots, key=lambda op: op.number)
        return prune_and_order((), [*first, *roots], ())

    def _effect(self, op: Operation) -> Effect:
        effect = self._effects.get(op.signature)
        if effect is None:
            effect = self._effects[op.signature] = effect_of(op.signature)
        is_reader = effect is Effect.PURE and op.edges and op in self._readers
        return Effect.SEES if is_reader else effect

    def _find(self, order: Sequence[Operation]) -> _Order:
        """The order of the effects; an empty one without effects."""
        effects = [self._effect(op) for op in order]
        found, behind = _Order(), dict[Operation, int]()
        if Effect.ACTS not in effects:
            return found
        for op, effect in zip(order, effects, strict=True):
            before = 0
            for source in (*op.edges[::2], *op.control_inputs):
                before |= behind.get(source, 0)  # nothing of a back edge
            if effect:
                if op not in self._bits:
                    self._bits[op] = 1 << len(self._marked)
                    self._marked.append(op)
                bit = self._bits[op]
                found.marked |= bit
                found.watched |= bit if effect is not Effect.LEADS else 0
                found.needed |= bit if effect is Effect.ACTS or op in self._exits else 0
                behind[op] = before | bit
            elif before:
                behind[op] = before
            if effect or op in self._roots:
                found.before[op] = before
        return found

    def _bits_of(self, ops: Iterable[Operation]) -> int:
        """The bits of operations, without the pure ones."""
        return sum({self._bits.get(op, 0) for op in ops})

    def _members(self, some: int) -> Iterator[Operation]:
        """The operations of a set."""
        while some:
            number = some.bit_length() - 1
            yield self._marked[number]
            some ^= 1 << number

    def _still_needed(self, dropped: Collection[Operation]) -> int:
        """The needed effects, without those that a pass has removed or replaced."""
        there = [op for op in self._members(self._known.needed) if op not in dropped]
        there = [op for op in there if op.graph.by_name.get(op.name) is op]
        acts = [op for op in there if self._effect(op) is Effect.ACTS]
        exits = [op for op in there if op in self._exits] if acts else []
        return self._bits_of((*acts, *exits))

    def _put_back(self, found: _Order, needed: int, dropped: Collection[Operation]) -> bool:
        """Have operations wait for their missing predecessors; whether any was missing."""
        gone = self._bits_of(dropped)  # of which roots stay, dead
        watched = needed | self._known.watched & found.marked & ~gone
        is_changed = False
        for op, before in self._known.before.items():
            if op not in found.before:
                continue
            missing = before & (watched if self._effect(op) else needed) & ~found.before[op]
            sources = self._sources(op, missing, found, dropped) if missing else []
            if sources:
                op.add_control_inputs(sources)
                is_changed = True
        return is_changed

    def _sources(
        self, op: Operation, missing: int, found: _Order, dropped: Collection[Operation]
    ) -> list[Operation]:
        """The operations to wait for, so that all missing predecessors come before."""
        known, there = self._known.before, found.before[op]
        sources, place = [], self._known.places[op]
        for one in islice(self._known.last_first, place + 1, None):
            bit = self._bits.get(one, 0)
            if not bit & known[op]:
                continue
            if bit & there:  # what came before it, it brings along
                missing &= ~known[one]
            elif bit & missing or (
                known[one] & missing and self._effect(one) is Effect.LEADS and one not in dropped
            ):
                sources.append(one)
                missing &= ~(bit | known[one])
            if not missing:
                break
        return sources
