"""CollectiveResolver: where members of all tasks are brought together, in the leader; PeerWatch: notices dead tasks.

Source: TensorFlow core/distributed_runtime/collective_param_resolver_distributed.cc,
CollectiveRemoteAccess::CheckPeerHealth in core/framework/collective.h.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.collectives.exchange import (
    Join,
    MemberPlace,
    Resolution,
    Tell,
    Token,
    failure,
    remember,
)
from opkernel.errors import OpError, UnavailableError
from opkernel.kernel import CancellationManager, CollectiveParams, LocalCollectiveExecutor
from opkernel.kernel.services.collective import check_collective

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


class CollectiveResolver:
    """Gathers the members of groups, checks that they agree, and tells them of each other.

    It does so as one process does, by a LocalCollectiveExecutor whose members bring their requests to join, and get
    Resolutions. The tasks of a group that has met before are watched, also those whose member is still to come.

    Args:
        incarnation: Of the leader's task.
        tell: Tells a member's executor the outcome.
        watch: Watches the tasks of members that wait.
    """

    def __init__(self, incarnation: int, tell: Tell, watch: PeerWatch) -> None:
        self._incarnation = incarnation
        self._tell = tell
        self._watch = watch
        self._numbers = itertools.count(1)
        self._members = LocalCollectiveExecutor(self._resolve)
        self._waiting: dict[tuple[TaskName, Token], CancellationManager] = {}
        self._groups: dict[int | str, Peers] = {}
        self._gone: OrderedDict[tuple[TaskName, Token], OpError] = OrderedDict()
        self._lock = threading.Lock()

    def join(self, join: Join) -> None:
        """Take a member in."""
        key = join.task, join.token
        manager = CancellationManager()
        group = join.params.group_key
        peers = {**self._groups.get(group, {}), join.task: join.token.incarnation}
        unwatch = self._watch.watch(peers, manager.start_cancel)
        with self._lock:
            self._waiting[key] = manager
            gone = self._gone.pop(key, None)

        def done(error: OpError | None, resolution: Resolution | None) -> None:
            unwatch()
            with self._lock:
                self._waiting.pop(key, None)
                if error is not None:
                    self._groups.pop(group, None)  # another group may meet by this key
            self._tell(join.task, "resolve", join.token, error, resolution)

        if gone is not None:
            manager.start_cancel(gone)
        self._members.execute_async(join.member, join.params, join, done, manager)

    def leave(self, task: TaskName, token: Token, error: OpError) -> None:
        """A member has failed: those that wait with it do, too. It may be heard of before it joins."""
        with self._lock:
            manager = self._waiting.get((task, token))
            if manager is None:
                remember(self._gone, (task, token), error)
        if manager is not None:
            manager.start_cancel(error)

    def start_abort(self, status: OpError) -> None:
        """Fail all that wait, and all that will."""
        self._members.start_abort(status)

    def _resolve(
        self, params: CollectiveParams, joins: Sequence[Join], is_source: Sequence[bool]
    ) -> list[Resolution]:
        check_collective(params, is_source)
        exchange = f"{self._incarnation:x}:{next(self._numbers)}"
        with self._lock:
            self._groups[params.group_key] = {j.task: j.token.incarnation for j in joins}
        places = [
            MemberPlace(join.task, join.token.incarnation, source)
            for join, source in zip(joins, is_source, strict=True)
        ]
        tensors: list[Any] | None = [join.tensor for join in joins]
        if all(join.tensor is None for join in joins):
            tensors = None
        return [Resolution(exchange, rank, places, tensors) for rank in range(len(joins))]
