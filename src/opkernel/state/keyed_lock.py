"""KeyedLock: one lock for each key, to make a thing once under contention."""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from opkernel.errors import InternalError
from opkernel.records import dataclass, field

__all__ = ["KeyedLock"]


@dataclass(eq=False, slots=True)
class _Entry:
    users: int = 0
    owner: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class KeyedLock:
    """Locks that exist while they are held or wanted; used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[Hashable, _Entry] = {}

    @contextmanager
    def hold(self, key: Hashable) -> Iterator[None]:
        """Keep other threads that ask for the key waiting for the end of the block.

        Raises:
            InternalError: the thread holds the key.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            if entry.owner == threading.get_ident():
                raise InternalError(f"The creator of {key!r} asks for what it is to make")
            entry.users += 1
        try:
            with entry.lock:
                entry.owner = threading.get_ident()
                try:
                    yield
                finally:
                    entry.owner = None
        finally:
            with self._lock:
                entry.users -= 1
                if entry.users == 0:
                    del self._entries[key]
