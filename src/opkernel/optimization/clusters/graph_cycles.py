"""GraphCycles: a graph whose nodes are joined as long as no cycle arises.

Nodes are numbers. Each has a rank, and every edge leads to a higher rank, so that a search for a path looks at the ranks
between its ends alone.

Source: TensorFlow compiler/jit/graphcycles/graphcycles.h; Pearce and Kelly, "A dynamic topological sort algorithm for
directed acyclic graphs", 2007.
"""

from __future__ import annotations

from collections.abc import Iterator

from opkernel.graph.core.edges import reached


class GraphCycles:
    """A directed graph without cycles.

    Args:
        count: The number of nodes. Edges that lead to higher numbers are the cheapest.
    """

    def __init__(self, count: int) -> None:
        self._behind: list[set[int]] = [set() for _ in range(count)]
        self._before: list[set[int]] = [set() for _ in range(count)]
        self._ranks = list(range(count))

    def successors(self, node: int) -> list[int]:
        """The nodes that edges from a node lead to, in the order of their ranks."""
        return sorted(self._behind[node], key=self._ranks.__getitem__)

    def insert_edge(self, source: int, target: int) -> bool:
        """Add an edge; False, and nothing else, where it would close a cycle."""
        if source == target:
            return False
        if target in self._behind[source]:
            return True
        if self._ranks[source] > self._ranks[target]:
            after = self._reached(target, self._behind, self._ranks[source], upwards=True)
            if source in after:
                return False
            before = self._reached(source, self._before, self._ranks[target], upwards=False)
            nodes = [*before, *after]  # they get each other's ranks, in a new order
            for node, rank in zip(nodes, sorted(self._ranks[one] for one in nodes), strict=True):
                self._ranks[node] = rank
        self._behind[source].add(target)
        self._before[target].add(source)
        return True

    def contract_edge(self, source: int, target: int) -> int | None:
        """Join the ends of an edge.

        Returns:
            The end that stands for both from now on; None, and nothing has changed, where another path leads from the
            one to the other.
        """
        if self._has_another_path(source, target):
            return None
        self._unlink(source, target)
        if len(self._behind[source]) + len(self._before[source]) < len(self._behind[target]) + len(
            self._before[target]
        ):
            source, target = target, source
        ends = [(source, one) for one in self._behind[target]]
        ends += [(one, source) for one in self._before[target]]
        for one in [*self._behind[target]]:
            self._unlink(target, one)
        for one in [*self._before[target]]:
            self._unlink(one, target)
        for start, end in ends:
            self.insert_edge(start, end)
        return source

    def post_order(self) -> list[int]:
        """All nodes, each after those that its edges lead to."""
        order: list[int] = []
        seen: set[int] = set()
        for root in range(len(self._ranks)):
            if root not in seen:
                seen.add(root)
                self._visit(root, seen, order)
        return order

    def _visit(self, root: int, seen: set[int], order: list[int]) -> None:
        stack: list[tuple[int, Iterator[int]]] = [(root, iter(self.successors(root)))]
        while stack:
            node, following = stack[-1]
            new = next((one for one in following if one not in seen), None)
            if new is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(new)
                stack.append((new, iter(self.successors(new))))

    def _unlink(self, source: int, target: int) -> None:
        self._behind[source].discard(target)
        self._before[target].discard(source)

    def _has_another_path(self, source: int, target: int) -> bool:
        """Whether a path of more than one edge leads from one node to another."""
        limit, ranks, behind = self._ranks[target], self._ranks, self._behind
        stack = [one for one in behind[source] if ranks[one] < limit]
        seen = set(stack)
        while stack:
            node = stack.pop()
            if target in behind[node]:
                return True
            new = [one for one in behind[node] if ranks[one] < limit and one not in seen]
            seen.update(new)
            stack += new
        return False

    def _reached(
        self, start: int, edges: list[set[int]], limit: int, *, upwards: bool
    ) -> list[int]:
        """The nodes that edges lead to from `start`, up to a rank; in the order of their ranks."""
        ranks = self._ranks

        def within(node: int) -> list[int]:
            found = edges[node]
            return [
                one for one in found if (ranks[one] <= limit if upwards else ranks[one] >= limit)
            ]

        return sorted(reached([start], within), key=ranks.__getitem__)
