"""PeerWatch: notices that a task has died on which something here depends.

Source: CollectiveRemoteAccess::CheckPeerHealth in TensorFlow core/framework/collective.h.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.collectives.messages import failure
from opkernel.errors import OpError, UnavailableError

Peers = Mapping[TaskName, int]
"""The incarnations of tasks."""


class _Watched(NamedTuple):
    peers: Peers
    lost: Callable[[OpError], object]


class PeerWatch:
    """Asks tasks from time to time for their incarnation, as long as somebody depends on them.

    Args:
        task: The own task, which is not asked.
        ask: Asks a task for its incarnation.
        period_s: The time between questions, in seconds.
    """

    def __init__(
        self, task: TaskName, ask: Callable[[TaskName], Future[int]], period_s: float = 1.0
    ) -> None:
        self._task = task
        self._ask = ask
        self._period_s = period_s
        self._lock = threading.Lock()
        self._keys = itertools.count()
        self._watched: dict[int, _Watched] = {}
        self._asked: set[TaskName] = set()
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()

    def watch(self, peers: Peers, lost: Callable[[OpError], object]) -> Callable[[], object]:
        """Have `lost` called with UnavailableError, once, if one of some tasks dies or has died.

        Returns:
            What ends that.
        """
        with self._lock:
            key = next(self._keys)
            self._watched[key] = _Watched(peers, lost)
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="opkernel peer watch")
                self._thread.daemon = True
                self._thread.start()
        return partial(self._watched.pop, key, None)

    def close(self) -> None:
        """Watch no more."""
        self._closed.set()

    def check(self) -> None:
        """Ask all tasks now, but those that still owe an answer."""
        with self._lock:
            tasks = {task for one in list(self._watched.values()) for task in one.peers}
            tasks -= self._asked | {self._task}
            self._asked |= tasks
            asked = next(self._keys)
        for task in tasks:
            self._ask(task).add_done_callback(partial(self._answered, task, asked))

    def _run(self) -> None:
        """Ask until there has been nothing to ask for a whole period."""
        while not self._closed.wait(self._period_s):
            with self._lock:
                if not self._watched:
                    self._thread = None
                    return
            self.check()

    def _answered(self, task: TaskName, asked: int, answer: Future[int]) -> None:
        """Tell those who depend on a task what has become of it; not those who came after the question."""
        self._asked.discard(task)
        error = failure(answer)
        for key, one in list(self._watched.items()):
            known = one.peers.get(task)
            is_well = error is None and answer.result() == known
            if known is None or is_well or key > asked:
                continue
            if self._watched.pop(key, None) is not None:
                one.lost(error or UnavailableError(f"{task} has restarted"))
