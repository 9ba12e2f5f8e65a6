"""Ready: what may be placed next, by context."""

from heapq import heappop, heappush
from typing import Generic, TypeVar

from opkernel.runtime.plan.functionalize.contexts import ALWAYS, Context

T = TypeVar("T")

_Predicates = tuple[int, ...]


class Ready(Generic[T]):
    """Gives an item of the context that was last taken from, or else of the nearest context.

    Near are contexts of the same predicates. Within a context, and between those that are equally
    near, the lowest number comes first.
    """

    def __init__(self) -> None:
        self._heaps: dict[Context, list[tuple[int, int, T]]] = {}
        self._under: dict[_Predicates, dict[Context, None]] = {}
        self._all: list[tuple[int, Context]] = []
        self._current: Context = ALWAYS
        self._puts = 0

    def put(self, number: int, context: Context, item: T) -> None:
        """Add an item."""
        self._puts += 1
        if context not in self._heaps:
            self._heaps[context] = []
            for predicates in _prefixes(context):
                self._under.setdefault(predicates, {})[context] = None
        heappush(self._heaps[context], (number, self._puts, item))
        heappush(self._all, (number, context))

    def take(self) -> T | None:
        """Remove and return the next item; None if there is none."""
        if not self._heaps:
            return None
        context = self._current = self._nearest()
        heap = self._heaps[context]
        _, _, item = heappop(heap)
        if not heap:
            del self._heaps[context]
            for predicates in _prefixes(context):
                del self._under[predicates][context]
        return item

    def _nearest(self) -> Context:
        if self._current in self._heaps:
            return self._current
        for predicates in reversed(_prefixes(self._current)):
            near = self._under.get(predicates)
            if near:
                return min(near, key=lambda context: self._heaps[context][0])
        if ALWAYS in self._heaps:
            return ALWAYS
        while self._all[0][1] not in self._heaps:
            heappop(self._all)
        return self._all[0][1]


def _prefixes(context: Context) -> list[_Predicates]:
    """The predicates of a context: the first, the first two, and so on."""
    numbers = tuple(number for number, _ in context)
    return [numbers[: length + 1] for length in range(len(numbers))]
