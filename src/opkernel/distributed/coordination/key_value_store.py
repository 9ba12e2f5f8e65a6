"""KeyValueStore: texts by key, for which tasks may wait.

Source: TensorFlow core/distributed_runtime/coordination/key_value_store (tsl/distributed_runtime).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import Future

from opkernel.distributed.coordination.outcomes import Outcomes
from opkernel.errors import AlreadyExistsError, DeadlineExceededError, NotFoundError


class KeyValueStore:
    """Values by key. A key is a path: slashes at its ends, and empty steps, do not count."""

    def __init__(self) -> None:
        self._values: dict[str, str | bytes] = {}
        self._outcomes = Outcomes()
        self._waiting: defaultdict[str, list[Future[str | bytes]]] = defaultdict(list)

    def insert(self, key: str, value: str | bytes, allow_overwrite: bool) -> None:
        """Set the value of a key.

        Raises:
            AlreadyExistsError: it has one, and is not to be overwritten.
        """
        path = _path(key)
        with self._outcomes.locked():
            if path in self._values and not allow_overwrite:
                raise AlreadyExistsError(f"Config key {key} already exists.")
            self._values[path] = value
            for future in self._waiting.pop(path, ()):
                self._outcomes.complete(future, None, value)

    def get(self, key: str, timeout_s: float | None = None) -> Future[str | bytes]:
        """The value of a key, once it has one.

        The result fails with DeadlineExceededError where that takes too long.
        """
        future: Future[str | bytes] = Future()
        path = _path(key)
        with self._outcomes.locked():
            if path in self._values:
                self._outcomes.complete(future, None, self._values[path])
                return future
            self._waiting[path].append(future)
        if timeout_s is not None:
            timer = threading.Timer(timeout_s, self._give_up, (key, future))
            timer.daemon = True
            timer.start()
            future.add_done_callback(lambda _: timer.cancel())
        return future

    def try_get(self, key: str) -> str | bytes:
        """The value of a key.

        Raises:
            NotFoundError: it has none.
        """
        value = self._values.get(_path(key))
        if value is None:
            raise NotFoundError(f"Config key {key} not found.")
        return value

    def get_dir(self, directory: str) -> dict[str, str | bytes]:
        """The values of all keys below a path, by key."""
        prefix = _path(directory)
        with self._outcomes.locked():
            return {k: v for k, v in self._values.items() if _is_below(k, prefix)}

    def delete(self, key: str) -> None:
        """Forget a key, and all below it; nothing to do where there is none."""
        path = _path(key)
        with self._outcomes.locked():
            for one in [k for k in self._values if k == path or _is_below(k, path)]:
                del self._values[one]

    def _give_up(self, key: str, future: Future[str | bytes]) -> None:
        path = _path(key)
        with self._outcomes.locked():
            waiting = self._waiting.get(path, [])
            if future in waiting:
                waiting.remove(future)
                late = DeadlineExceededError(f"GetKeyValue() timed out with key: {key}")
                self._outcomes.complete(future, late)
            if not waiting:
                self._waiting.pop(path, None)


def _path(key: str) -> str:
    return "/".join(filter(None, key.split("/")))


def _is_below(key: str, path: str) -> bool:
    return not path or key.startswith(path + "/")
