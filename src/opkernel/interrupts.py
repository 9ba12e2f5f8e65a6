"""Blocks that an interrupt leaves neither half entered nor half left: `contextmanager`, as in contextlib.

Ctrl-C raises KeyboardInterrupt where Python looks for signals: at the beginning of a Python function, after the call of
a C function, and at the end of a loop's turn. With contextlib, one of these places is the beginning of `__exit__`. An
interrupt there leaves what the block has set as it is, for as long as somebody has the traceback: a prompt or a
notebook has it until the next error.

Here the generator of a block ends with the `with` statement, whatever happens: only the statement holds the object
that ends it. A generator sets nothing before its `try`, since an interrupt may come between the two.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar
from weakref import ref

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from threading import Lock, RLock
    from types import TracebackType

_P = ParamSpec("_P")
_T = TypeVar("_T")


def contextmanager(
    function: Callable[_P, Iterator[_T]],
) -> Callable[_P, AbstractContextManager[_T]]:
    """Make a generator function one that gives context managers; see the module."""

    @wraps(function)
    def block(*args: _P.args, **kwargs: _P.kwargs) -> AbstractContextManager[_T]:
        return _Block(function(*args, **kwargs))

    return block


class _Leave(partial):  # type: ignore[type-arg]  # the class takes no arguments at run time
    """Has a generator go on after its block. It is the only one to hold the generator, and dies with the statement."""

    generator: Generator[Any] | None


class _LeaveAttribute:
    """`__exit__` of blocks."""

    def __get__(self, block: _Block[Any] | None, owner: Any) -> Any:
        if block is None:
            return self
        leave = _Leave(_leave, block.reference)
        leave.generator, block.generator = block.generator, None
        return leave

    def __call__(self, block: _Block[Any], *error: Any) -> bool | None:
        """Leave a block that an ExitStack has entered."""
        return _leave(block.reference, *error)


class _Block(Generic[_T]):
    __slots__ = ("generator", "reference")

    def __init__(self, generator: Any) -> None:
        self.generator: Generator[_T] | None = generator
        self.reference: ref[Generator[_T]] = ref(generator)

    def __enter__(self) -> _T:
        for value in _alive(self.reference):
            return value
        raise RuntimeError("The generator of a block ended before the block")

    __exit__ = _LeaveAttribute()


def _alive(reference: ref[Generator[_T]]) -> Generator[_T]:
    generator = reference()
    assert generator is not None
    return generator


def _leave(
    reference: ref[Generator[Any]],
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
) -> bool:
    """Have a generator go on, with the error of the block; whether it has dealt with the error.

    No variable here holds the generator: the traceback of an interrupt would keep it alive.
    """
    if reference() is None:
        return False  # it is collected together with the statement, and ends by itself
    if error is None:
        for _ in _alive(reference):
            raise RuntimeError("The generator of a block goes on after the block")
        return False
    try:
        _alive(reference).throw(error)
    except StopIteration as end:
        return end is not error
    except BaseException as raised:
        # Python raises a RuntimeError for a StopIteration that is thrown into a generator.
        is_stop = isinstance(error, StopIteration) and type(raised) is RuntimeError
        if raised is error or (is_stop and raised.__cause__ is error):
            error.__traceback__ = traceback  # without the lines of the generator
            return False
        raise
    raise RuntimeError("The generator of a block goes on after an error in the block")


class Closing:
    """Is closed at the end of a `with` statement's block."""

    __slots__ = ()

    def close(self) -> None:
        """End what the block has begun."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextmanager
def setting(values: Mapping[ContextVar[Any], Any], gives: Any = None) -> Iterator[Any]:
    """Within the block, which gives `gives`, context variables have values."""
    restoring = map(ContextVar.set, values, [variable.get() for variable in values])
    try:
        _ = [*map(ContextVar.set, values, values.values())]  # no interrupt divides this
        yield gives
    finally:
        _ = [*restoring]


@contextmanager
def trying(lock: Lock | RLock, *, blocking: bool = False) -> Iterator[bool]:
    """Within the block, a lock is held unless another thread has it; whether it is."""
    is_ours = False
    try:
        # No interrupt divides an unpacking: the lock is held, and that is known, or neither.
        (is_ours,) = map(lock.acquire, [blocking])
        yield is_ours
    finally:
        if is_ours:
            lock.release()


@contextmanager
def holding(locks: Iterable[Lock | RLock]) -> Iterator[None]:
    """Within the block, several locks are held, which are taken in their order."""
    taken: list[tuple[bool, Callable[[], None]]] = []
    release_all = map(operator.call, map(operator.itemgetter(1), taken))  # once it is gone through
    try:
        for lock in locks:
            taking = zip(map(lock.acquire, [True]), [lock.release], strict=True)
            taken += taking  # nor does one divide this, or what is done to the list below
        yield
    finally:
        _ = [*release_all]
