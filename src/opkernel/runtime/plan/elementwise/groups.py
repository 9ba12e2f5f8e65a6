"""Which nodes are computed together: connected element-wise nodes of one block of a plan.

A group is computed where its last node stands. Up to there nobody else may have wanted a result of
it: the first node from outside that does closes the group, and so does whatever may decide where the
program goes on. So a group can be computed at one place, and one walk finds all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from opkernel.graph import Operation
from opkernel.records import dataclass
from opkernel.runtime.plan.elementwise.pointwise import FEWEST, PointwiseFunction
from opkernel.runtime.plan.functionalize import Key, keys_of_inputs

_MOST = 256


@dataclass(slots=True, eq=False)
class ElementwiseGroup:
    """Nodes that may be computed together, in the order of the plan.

    Attributes:
        ops: The nodes.
        functions: The function of each on tiles.
        reads: The outputs that each reads.
        block: The names of all nodes that stand in the same block.
    """

    ops: list[Operation]
    functions: list[PointwiseFunction]
    reads: list[list[Key]]
    block: Collection[str]

    @property
    def is_worthwhile(self) -> bool:
        """Whether there is something to win: enough nodes, some of floating point numbers.

        Loops and sizes are reckoned in integers, and scalars.
        """
        return len(self.ops) >= FEWEST and any(
            function.dtype.kind not in "biu" for function in self.functions
        )


def find_groups(
    items: Sequence[Any],
    functions: Mapping[str, PointwiseFunction],
    roots: Mapping[Key, Key],
    fed: Collection[Key],
) -> list[Any]:
    """The items of a block, with a group in the place of its last node and without the others.

    Args:
        items: Operations and items of control flow, in order.
        functions: The functions of the nodes on tiles, by their names.
        roots: Of tensors that are other names for outputs, these.
        fed: The tensors that are fed: nodes that give them are not computed for their value.
    """
    finder = _Finder(roots, {item.name for item in items if isinstance(item, Operation)})
    for item in items:
        if not isinstance(item, Operation):
            finder.close_all()
            continue
        function = functions.get(item.name)
        if function is None or (item.name, 0) in fed:
            finder.pass_by(item)
        else:
            finder.add(item, function)
    return list(_replaced(items, finder.group_of))


def _replaced(items: Iterable[Any], group_of: dict[str, ElementwiseGroup]) -> Iterable[Any]:
    worthwhile = {group for group in set(group_of.values()) if group.is_worthwhile}
    for item in items:
        group = group_of.get(item.name) if isinstance(item, Operation) else None
        if group is None or group not in worthwhile:
            yield item
        elif item is group.ops[-1]:
            yield group


class _Finder:
    """One walk over a block.

    `_open` are the groups that may still grow, by the names of their nodes; `group_of` all of them.
    """

    def __init__(self, roots: Mapping[Key, Key], block: Collection[str]) -> None:
        self.group_of: dict[str, ElementwiseGroup] = {}
        self._open: dict[str, ElementwiseGroup] = {}
        self._roots = roots
        self._block = block

    def add(self, op: Operation, function: PointwiseFunction) -> None:
        """A node that may be in a group: in that of its inputs, which becomes one."""
        reads = self._reads(op)
        groups = self._groups_of(reads)
        if sum([len(group.ops) for group in groups]) >= _MOST:
            self._close(groups)
            groups = []
        group = groups[0] if groups else ElementwiseGroup([], [], [], self._block)
        for other in groups[1:]:
            self._merge(group, other)
        group.ops.append(op)
        group.functions.append(function)
        group.reads.append(reads)
        self.group_of[op.name] = self._open[op.name] = group

    def pass_by(self, op: Operation) -> None:
        """A node that is in no group; its inputs must have been computed."""
        if op.control_inputs:
            self.close_all()
        elif self._open:
            self._close(self._groups_of(self._reads(op)))

    def close_all(self) -> None:
        """Let no group grow any more."""
        self._open.clear()

    def _reads(self, op: Operation) -> list[Key]:
        keys, roots = keys_of_inputs(op), self._roots
        return [roots.get(key, key) for key in keys] if roots else keys

    def _groups_of(self, reads: Iterable[Key]) -> list[ElementwiseGroup]:
        """The groups that outputs come from."""
        found: dict[ElementwiseGroup, None] = {}
        for name, _ in reads:
            group = self._open.get(name)
            if group is not None:
                found[group] = None
        return list(found)

    def _close(self, groups: Iterable[ElementwiseGroup]) -> None:
        for group in groups:
            for op in group.ops:
                self._open.pop(op.name, None)

    def _merge(self, group: ElementwiseGroup, other: ElementwiseGroup) -> None:
        """Put two groups together; the nodes stay in order, for neither reads of the other."""
        group.ops[:0], group.functions[:0] = other.ops, other.functions
        group.reads[:0] = other.reads
        for op in other.ops:
            self.group_of[op.name] = self._open[op.name] = group
