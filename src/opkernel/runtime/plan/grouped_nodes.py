"""How a plan computes groups of element-wise nodes: together if the arrays are big, else one by one.

y = tiled(x, b) if x.size >= 131072 else None  # 4 nodes
if y is None:
...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from opkernel.graph import Operation, Tensor
from opkernel.runtime.plan.elementwise import PointwiseFunction
from opkernel.runtime.plan.functionalize import Key, key_of, keys_of_inputs

if TYPE_CHECKING:
    from opkernel.runtime.plan.elementwise import ElementwiseGroup

_NODES_AN_INPUT = 2
"""For so many nodes the size of one more input is looked at: it must not weigh against them."""


class GroupedNodes:
    """A group as a plan needs it.

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
        from opkernel.runtime.plan.elementwise import TiledFunction, TiledNode  # for large arrays

        self.ops = group.ops
        inside = Counter(chain.from_iterable(group.reads))
        own = {(op.name, 0): None for op in group.ops}
        outside = [key for key in inside if key not in own]
        numbers = {key: number for number, key in enumerate([*outside, *own])}
        steps = [
            TiledNode(function, tuple([numbers[key] for key in keys]))
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


class NodesOfGroups:
    """Finds the groups of a plan.

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

    def find(self, items: Sequence[Any]) -> Sequence[Any]:
        """The items of a block, with groups in the place of their nodes."""
        from opkernel.runtime.plan.elementwise import find_groups  # for large arrays

        if not self._functions:
            return items
        found = find_groups(items, self._functions, self._roots, self._given)
        return [one for item in found for one in self._prepared(item)]

    def _prepared(self, item: Any) -> Sequence[Any]:
        """A group as the plan needs it, or its nodes where nothing is computed that anybody wants."""
        from opkernel.runtime.plan.elementwise import ElementwiseGroup  # for large arrays

        if not isinstance(item, ElementwiseGroup):
            return (item,)
        group = GroupedNodes(item, self._readers, self._constants, self._given)
        return (group,) if group.results and group.sized else item.ops

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
    def _readers(self) -> Counter[Key]:
        """How often each tensor is read, without the reads that pass it on."""
        read = list(map(key_of, self._fetches))
        for op in self._order:
            is_alias = (op.name, 0) in self._aliases  # of its first input
            read += keys_of_inputs(op)[is_alias:]
        return Counter([self._roots.get(key, key) for key in read])
