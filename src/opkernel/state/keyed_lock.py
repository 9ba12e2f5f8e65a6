"""KeyedLock: one lock for each key, to make a thing once under contention."""

import threading
from collections.abc import Hashable, Iterator

from opkernel.errors import InternalError
from opkernel.interrupts import contextmanager
from opkernel.records import dataclass, field


@dataclass(eq=False, slots=True)
class _HeldLock:
    users: set[object] = field(default_factory=set)
    owner: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class KeyedLock:
    """Locks that exist while they are held or wanted; used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[Hashable, _HeldLock] = {}

    @contextmanager
    def hold(self, key: Hashable) -> Iterator[None]:
        """Keep other threads that ask for the key waiting for the end of the block.

        Raises:
            InternalError: the thread holds the key.
        """
        entry, this_thread, user = _HeldLock(), threading.get_ident(), object()
        try:
            with self._lock:
                entry = self._entries.setdefault(key, entry)
                if entry.owner == this_thread:
                    raise InternalError(f"The creator of {key!r} asks for what it is to make")
                entry.users |= {user}
            with entry.lock:
                try:
                    entry.owner = this_thread
                    yield
                finally:
                    entry.owner = None
        finally:
            with self._lock:
                entry.users -= {user}
                if not entry.users and self._entries.get(key) is entry:
                    del self._entries[key]
