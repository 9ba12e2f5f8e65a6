"""Which nodes are computed together: connected element-wise nodes of one block of a plan.

A group is computed where its last node stands. Up to there nobody else may have wanted a result of
it: the first node from outside that does closes the group, and so does whatever may decide where the
program goes on. So a group can be computed at one place, and one walk finds all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from typing import Any

from opkernel.graph import Operation, Tensor
from opkernel.records import dataclass
from opkernel.runtime.plan.keys import Key, key_of, keys_of_inputs
from opkernel.runtime.plan.pointwise import FEWEST, PointwiseFunction
from opkernel.runtime.plan.tiled import TiledFunction, TiledNode

_MOST = 256

_NODES_AN_INPUT = 2
"""For so many nodes the size of one more input is looked at: it must not weigh against them."""


@dataclass(slots=True, eq=False)
class ElementwiseGroup:
    """Nodes that may be computed together, in the order of the plan.

    Attributes:
        ops: The nodes.
        functions: The function of each on tiles.
        reads: The outputs that each reads.
        block: The names of all nodes that stand in the same block.
        is_open: Whether it may still grow.
    """

    ops: list[Operation]
    functions: list[PointwiseFunction]
    reads: list[list[Key]]
    block: Collection[str]
    is_open: bool = True

    @property
    def is_worthwhile(self) -> bool:
        """Whether there is something to win: enough nodes, some of floating point numbers.

        Loops and sizes are reckoned in integers, and scalars.
        """
        return len(self.ops) >= FEWEST and any(
            function.dtype.kind not in "biu" for function in self.functions
        )


class GroupedNodes:
    """A group as a plan needs it: computed together if the arrays are big, else one by one.

        y = tiled(x, b) if x.size >= 131072 else None  # 4 nodes
        if y is None:
            ...

    Attributes:
        ops: The nodes.
        function: The function that computes them together.
        inputs: The keys of the tensors that it takes.
        sized: Those whose sizes say whether it is worthwhile.
        results: The nodes whose outputs it gives.
    """

    def __init__(
        self,
        group: ElementwiseGroup,
        readers: Mapping[Key, int],
        constants: Collection[Key],
        given: Collection[Key],
    ) -> None:
        self.ops = group.ops
        inside = Counter(chain.from_iterable(group.reads))
        own = {(op.name, 0): None for op in group.ops}
        outside = [key for key in inside if key not in own]
        number_of = dict(zip([*outside, *own], count(), strict=False)).__getitem__
        steps = [
            TiledNode(function, tuple(map(number_of, keys)))
            for function, keys in zip(group.functions, group.reads, strict=True)
        ]
        wanted = [i for i, key in enumerate(own) if readers.get(key, 0) > inside[key]]
        dying = [
            i
            for i, key in enumerate(outside)
            if readers.get(key) == inside[key] and key[0] in group.block and key not in given
        ]
        self.inputs = outside
        computed = [key for key in outside if key not in constants]
        most_read = sorted(computed, key=lambda key: -inside[key])
        self.sized = most_read[: len(self.ops) // _NODES_AN_INPUT]
        self.results = [group.ops[i] for i in wanted]
        self.function = TiledFunction(len(outside), steps, wanted, dying)


class GroupsOfPlan:
    """Finds the groups in the blocks of a plan.

    Args:
        order: The operations.
        functions: The functions of the nodes on tiles, by their names.
        aliases: The tensors that are other names for tensors.
        constants: The tensors that are constants.
        feeds: The tensors that are fed.
        fetches: The tensors that are fetched.
    """

    def __init__(
        self,
        order: Sequence[Operation],
        functions: Mapping[str, PointwiseFunction],
        aliases: Mapping[Key, Tensor],
        constants: Collection[Key],
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
    ) -> None:
        self._order = order
        self._functions = functions
        self._aliases = aliases
        self._constants = constants
        self._given = set(map(key_of, feeds))
        self._fetches = fetches

    def find(self, items: Sequence[Any]) -> Iterator[Any]:
        """The items of a block, with a group in the place of its last node and without its other nodes.

        The nodes stay where nothing is computed together that anybody wants.
        """
        finder = _Finder(self._reads, {item.name for item in items if isinstance(item, Operation)})
        given = {name for name, index in self._given if index == 0}
        for item in items:
            if not isinstance(item, Operation):
                finder.close_all()
                continue
            function = self._functions.get(item.name)
            if function is None or item.name in given:
                finder.pass_by(item)  # a node that gives a fed tensor is not computed for its value
            else:
                finder.add(item, function)
        worthwhile = {group for group in set(finder.group_of.values()) if group.is_worthwhile}
        for item in items:
            group = finder.group_of.get(item.name) if isinstance(item, Operation) else None
            if group is None or group not in worthwhile:
                yield item
            elif item is group.ops[-1]:
                made = GroupedNodes(group, self._readers, self._constants, self._given)
                yield from [made] if made.results and made.sized else group.ops

    @cached_property
    def _roots(self) -> dict[Key, Key]:
        """The output behind each tensor that is another name for it and is not fed."""
        roots: dict[Key, Key] = {}
        for alias in self._aliases:
            key, behind = alias, []
            while key in self._aliases and key not in self._given and key not in roots:
                behind.append(key)
                key = key_of(self._aliases[key])
            roots.update(dict.fromkeys(behind, roots.get(key, key)))
        return roots

    @cached_property
    def _reads(self) -> dict[str, list[Key]]:
        """The tensors that each node reads, by its name, without those that it passes on."""
        roots, aliases = self._roots, self._aliases
        reads = {op.name: keys_of_inputs(op) for op in self._order}
        if roots:
            reads = {name: [roots.get(key, key) for key in keys] for name, keys in reads.items()}
        for name, index in aliases:
            if index == 0 and name in reads:  # it is its first input
                reads[name] = reads[name][1:]
        return reads

    @cached_property
    def _readers(self) -> Counter[Key]:
        """How often each tensor is read, without the reads that pass it on."""
        roots = self._roots
        fetched = [roots.get(key, key) for key in map(key_of, self._fetches)]
        return Counter(chain(fetched, chain.from_iterable(self._reads.values())))


class _Finder:
    """One walk over a block. `group_of` are the groups by the names of their nodes, `_open` those that may still grow."""

    def __init__(self, reads: Mapping[str, list[Key]], block: Collection[str]) -> None:
        self.group_of: dict[str, ElementwiseGroup] = {}
        self._open: set[ElementwiseGroup] = set()
        self._reads = reads
        self._block = block

    def add(self, op: Operation, function: PointwiseFunction) -> None:
        """A node that may be in a group: in that of its inputs, which becomes one."""
        reads = self._reads[op.name]
        groups = self._groups_of(reads)
        if groups and sum([len(group.ops) for group in groups]) >= _MOST:
            self._close(groups)
            groups = []
        group = groups[0] if groups else self._new()
        for other in groups[1:]:
            self._merge(group, other)
        group.ops.append(op)
        group.functions.append(function)
        group.reads.append(reads)
        self.group_of[op.name] = group

    def pass_by(self, op: Operation) -> None:
        """A node that is in no group; its inputs must have been computed."""
        if op.control_inputs:
            self.close_all()
        elif self._open:
            self._close(self._groups_of(self._reads[op.name]))

    def close_all(self) -> None:
        """Let no group grow any more."""
        self._close([*self._open])

    def _groups_of(self, reads: Iterable[Key]) -> list[ElementwiseGroup]:
        """The groups that outputs come from."""
        found: list[ElementwiseGroup] = []
        for name, _ in reads:
            group = self.group_of.get(name)
            if group is not None and group.is_open and group not in found:
                found.append(group)
        return found

    def _new(self) -> ElementwiseGroup:
        group = ElementwiseGroup([], [], [], self._block)
        self._open.add(group)
        return group

    def _close(self, groups: Iterable[ElementwiseGroup]) -> None:
        for group in groups:
            group.is_open = False
            self._open.discard(group)

    def _merge(self, group: ElementwiseGroup, other: ElementwiseGroup) -> None:
        """Put two groups together; the nodes stay in order, for neither reads of the other."""
        group.ops[:0], group.functions[:0] = other.ops, other.functions
        group.reads[:0] = other.reads
        self._close([other])
        for op in other.ops:
            self.group_of[op.name] = group
