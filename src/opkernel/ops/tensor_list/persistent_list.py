"""A list that is never changed, and cheap to copy with one element changed.

A loop of n turns that sets one element a turn would take n * n steps if each new list were a copy.
The elements stand in chunks instead: a changed list shares with the old one all chunks but one, so
that a change copies one chunk and the list of chunks.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar

_T = TypeVar("_T")
_BITS = 6
_CHUNK = 1 << _BITS
_IN_CHUNK = _CHUNK - 1


class PersistentList(Generic[_T]):
    """An immutable list; `replaced`, `appended` and `resized` return changed copies of it.

    Args:
        elements: The elements.

    Indices are not checked to lie in the list: they must.
    """

    __slots__ = ("_chunks", "_length")

    _chunks: list[list[_T]]
    """All but the last hold `_CHUNK` elements. A chunk is shared, and never changed."""

    def __init__(self, elements: Iterable[_T] = ()) -> None:
        flat = list(elements)
        self._length = len(flat)
        self._chunks = [flat[i : i + _CHUNK] for i in range(0, len(flat), _CHUNK)]

    @classmethod
    def filled(cls, length: int, element: _T) -> "PersistentList[_T]":
        """A list of `length` times `element`, which takes memory for one chunk of them."""
        whole, rest = divmod(length, _CHUNK)
        chunks = [[element] * _CHUNK] * whole
        return _of_chunks([*chunks, [element] * rest] if rest else chunks, length)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> _T:
        return self._chunks[index >> _BITS][index & _IN_CHUNK]

    def __iter__(self) -> Iterator[_T]:
        return chain.from_iterable(self._chunks)

    def replaced(self, index: int, element: _T) -> "PersistentList[_T]":
        """The list with another element at `index`."""
        chunks = self._chunks.copy()
        chunk = chunks[index >> _BITS].copy()
        chunk[index & _IN_CHUNK] = element
        chunks[index >> _BITS] = chunk
        return _of_chunks(chunks, self._length)

    def appended(self, element: _T) -> "PersistentList[_T]":
        """The list with one element more."""
        chunks = self._chunks.copy()
        if self._length & _IN_CHUNK:
            chunks[-1] = [*chunks[-1], element]
        else:
            chunks.append([element])
        return _of_chunks(chunks, self._length + 1)

    def mapped(self, function: Callable[[_T], _T]) -> "PersistentList[_T]":
        """The list of a function's results; a chunk that repeats is mapped once."""
        known = {id(chunk): chunk for chunk in self._chunks}
        made = {key: list(map(function, chunk)) for key, chunk in known.items()}
        return _of_chunks([made[id(chunk)] for chunk in self._chunks], self._length)

    def resized(self, length: int, fill: _T) -> "PersistentList[_T]":
        """The first `length` elements; those beyond the end are `fill`."""
        if length > self._length:
            return self._extended(length, fill)
        chunks = self._chunks[: -(-length // _CHUNK)]
        if length & _IN_CHUNK:
            chunks[-1] = chunks[-1][: length & _IN_CHUNK]
        return _of_chunks(chunks, length)

    def _extended(self, length: int, fill: _T) -> "PersistentList[_T]":
        chunks = self._chunks.copy()
        missing = -self._length & _IN_CHUNK
        if missing:
            chunks[-1] = chunks[-1] + [fill] * min(missing, length - self._length)
        start = len(chunks) << _BITS
        if start < length:
            chunks += PersistentList.filled(length - start, fill)._chunks
        return _of_chunks(chunks, length)


def _of_chunks(chunks: list[list[_T]], length: int) -> PersistentList[_T]:
    made: PersistentList[_T] = PersistentList.__new__(PersistentList)
    made._chunks = chunks
    made._length = length
    return made
