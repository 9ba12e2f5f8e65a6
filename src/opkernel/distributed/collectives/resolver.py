"""CollectiveResolver: where members of all tasks are brought together, in the leader.

Source: TensorFlow core/distributed_runtime/collective_param_resolver_distributed.cc.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.collectives.messages import Join, Place, Resolution, Tell, Token
from opkernel.distributed.collectives.peer_watch import Peers, PeerWatch
from opkernel.errors import OpError
from opkernel.kernel import CancellationManager, CollectiveParams, LocalCollectiveExecutor
from opkernel.kernel.services.collective_results import check_collective

_MOST_GONE = 10_000
"""The members that are remembered as gone before they have joined."""


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
                self._gone[task, token] = error
                if len(self._gone) > _MOST_GONE:
                    self._gone.popitem(last=False)
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
            Place(join.task, join.token.incarnation, source)
            for join, source in zip(joins, is_source, strict=True)
        ]
        tensors: list[Any] | None = [join.tensor for join in joins]
        if all(join.tensor is None for join in joins):
            tensors = None
        return [Resolution(exchange, rank, places, tensors) for rank in range(len(joins))]
