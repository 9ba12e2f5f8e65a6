"""ClusterCollectiveExecutor: where the members of one task meet those of all tasks.

A member asks the leader, the first task of the cluster, to be brought together with the others of its group. Small
tensors come along, in themselves or in the object store: each member gets all. Of large ones members send parts to each
other.
Each member merges with the functions of its own kernel, which therefore never travel.

Source: TensorFlow core/distributed_runtime/rpc_collective_executor_mgr.cc,
collective_rma_distributed.cc, core/common_runtime/base_collective_executor.cc.
"""

from __future__ import annotations

import copy
import itertools
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.distributed.collectives.exchange import (
    Exchange,
    Join,
    Part,
    Resolution,
    TaskLinks,
    Token,
    failure,
    remember,
    send_failure,
)
from opkernel.distributed.collectives.resolver import CollectiveResolver, Peers, PeerWatch
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    OpError,
    UnavailableError,
    as_op_error,
)
from opkernel.kernel import (
    CancellationManager,
    CollectiveDone,
    CollectiveExecutor,
    CollectiveMember,
    CollectiveParams,
)
from opkernel.kernel.services.collective import collective_result
from opkernel.logs import logger
from opkernel.records import replace


class Participant:
    """A member.

    Attributes:
        params: The collective.
        tensor: What it brings; None where it only receives.
        exchange: Its exchange with the other members, once they have all come.
    """

    def __init__(self, params: CollectiveParams, tensor: Any, done: CollectiveDone) -> None:
        self.params = params
        self.tensor = tensor
        self.exchange: Exchange | None = None
        self._done = done
        self._ends: list[Callable[[], object]] = []
        self._is_over = False
        self._lock = threading.Lock()

    def wait(
        self, manager: CancellationManager | None, fail: Callable[[OpError], object]
    ) -> OpError | None:
        """Have `fail` called at its cancellation, and when it has waited too long.

        Returns:
            Why it was cancelled, where it was already.
        """
        if manager is not None:
            token = manager.get_cancellation_token()
            if not manager.register_callback(token, lambda: fail(_reason(manager))):
                return _reason(manager)
            self.add_end(partial(manager.try_deregister_callback, token))
        if self.params.timeout_seconds > 0:
            late = DeadlineExceededError("Collective has timed out waiting for other workers.")
            timer = threading.Timer(self.params.timeout_seconds, fail, (late,))
            timer.daemon = True
            timer.start()
            self.add_end(timer.cancel)
        return None

    def add_end(self, end: Callable[[], object]) -> None:
        """Have a function called when it is complete, or now if it is already."""
        with self._lock:
            if not self._is_over:
                self._ends.append(end)
                return
        end()

    def complete(self, error: OpError | None, result: Any) -> None:
        """Tell it the outcome; to be called once."""
        with self._lock:
            self._is_over = True
            ends, self._ends = self._ends, []
        for end in ends:
            end()
        self._done(error, result)


def _reason(manager: CancellationManager) -> OpError:
    return manager.status or CancelledError("op cancelled")


SMALL_BYTES = 8 * 1024 * 1024
"""Measured with Ray on one machine: an exchange of parts pays from 4 to 8 MB a tensor on."""


class ClusterCollectiveExecutor(CollectiveExecutor):
    """The collectives of one task with those of all tasks of its cluster; used from any thread.

    Groups, ranks and mismatches are those of `LocalCollectiveExecutor`, and so are the bits of results. A member
    that fails, is cancelled, or whose task dies ends the collective for all, with an error that names the task.

    Args:
        task: The task.
        incarnation: A number that no earlier start of the task had.
        links: How it reaches the executors of other tasks.
        small_bytes: Of a group whose tensors have no more bytes together, each member gets all.

    Attributes:
        task: The task.
        incarnation: Its number.
        watch: Watches the tasks on which members depend.
    """

    def __init__(
        self, task: TaskName, incarnation: int, links: TaskLinks, small_bytes: int = SMALL_BYTES
    ) -> None:
        self.task = task
        self.incarnation = incarnation
        self._links = links
        self._small_bytes = small_bytes
        self.watch = PeerWatch(task, lambda peer: links.call(peer, "get_incarnation"))
        self._resolver = CollectiveResolver(incarnation, self._tell, self.watch)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._participants: dict[Token, Participant] = {}
        self._exchanges: dict[tuple[str, int], Exchange] = {}
        self._early: dict[tuple[str, int], list[Part]] = {}
        self._left: OrderedDict[Token, OpError] = OrderedDict()
        self._over: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._status: OpError | None = None

    def execute_async(
        self,
        member: CollectiveMember,
        params: CollectiveParams,
        tensor: Any,
        done: CollectiveDone,
        cancellation_manager: CancellationManager | None = None,
    ) -> None:
        """Take part in a collective; see `CollectiveExecutor`."""
        token = Token(self.incarnation, next(self._numbers))
        participant = Participant(params, tensor, done)
        with self._lock:
            aborted = copy.copy(self._status)
            if aborted is None:
                self._participants[token] = participant
        if aborted is not None:
            done(aborted, None)
            return
        cancelled = participant.wait(cancellation_manager, partial(self._fail, token))
        shared = None
        if tensor is not None and _total_bytes(params) <= self._small_bytes:
            shared = self._links.store.share(tensor)
        join = Join(self.task, token, member, _named(params), shared)
        if self._links.leader == self.task:
            self._resolver.join(join)
        else:
            answer = self._links.call(self._links.leader, "join", join)
            answer.add_done_callback(partial(self._joined, token))
        if cancelled is not None:
            self._fail(token, cancelled)

    def start_abort(self, status: OpError) -> None:
        """Fail all collectives, waiting and future, with `status`; the status of the first call counts."""
        with self._lock:
            self._status = self._status or copy.copy(status)
            tokens = list(self._participants)
        self._resolver.start_abort(status)
        for token in tokens:
            self._fail(token, copy.copy(status))

    def close(self) -> None:
        """Fail all that wait, and watch no more tasks."""
        self.start_abort(UnavailableError(f"{self.task} has ended"))
        self.watch.close()

    # What other tasks call.

    def get_incarnation(self) -> int:
        """The incarnation of the task."""
        return self.incarnation

    def join(self, join: Join) -> int:
        """Take in a member of another task, as the leader; the leader's incarnation."""
        self._resolver.join(join)
        return self.incarnation

    def leave(self, task: TaskName, token: Token, error: OpError) -> None:
        """Hear, as the leader, that a member of another task has failed."""
        self._resolver.leave(task, token, error)

    def resolve(self, token: Token, error: OpError | None, resolution: Resolution | None) -> None:
        """Hear from the leader that all members have come, or that one has failed."""
        if resolution is None:
            self._end(token, error, None)
        elif resolution.tensors is not None:
            self._compute(token, resolution)
        else:
            self._exchange(token, resolution)

    def receive(self, part: Part) -> None:
        """Take a part that a member has sent, perhaps before its receiver knows of the exchange."""
        if part.incarnation != self.incarnation:
            return
        key = part.exchange, part.receiver
        with self._lock:
            exchange = self._exchanges.get(key)
            if exchange is None and self._participants and key not in self._over:
                self._early.setdefault(key, []).append(part)
        if exchange is not None:
            exchange.receive(part)

    # The stages of a member.

    def _joined(self, token: Token, answer: Future[int]) -> None:
        """The leader has answered: from now on its death is noticed."""
        error = failure(answer)
        if error is not None:
            self._fail(token, error)
        else:
            self._depend_on({self._links.leader: answer.result()}, token)

    def _depend_on(self, peers: Peers, token: Token) -> None:
        """Have a member fail when one of some tasks dies."""
        participant = self._participants.get(token)
        if participant is not None:
            participant.add_end(self.watch.watch(peers, partial(self._fail, token)))

    def _compute(self, token: Token, resolution: Resolution) -> None:
        """Complete a member to which the leader has sent all tensors."""
        participant = self._participants.get(token)
        if participant is None:
            return
        is_source = [place.is_source for place in resolution.places]
        try:
            tensors = self._links.store.fetch(resolution.tensors or ())
            result = collective_result(participant.params, tensors, is_source, resolution.rank)
        except Exception as error:  # a merge op may raise anything
            self._end(token, as_op_error(error), None)
        else:
            self._end(token, None, result)

    def _exchange(self, token: Token, resolution: Resolution) -> None:
        """Have a member exchange tensors with the others; one that has failed tells them so."""
        key = resolution.exchange, resolution.rank
        with self._lock:
            participant = self._participants.get(token)
            reason = self._left.pop(token, None)
            if participant is None:
                remember(self._over, key, None)
                self._early.pop(key, None)
            else:
                exchange = participant.exchange = Exchange(
                    resolution,
                    participant.params,
                    participant.tensor,
                    self._links.store,
                    self._send,
                    partial(self._end, token),
                )
                self._exchanges[key] = exchange
                early = self._early.pop(key, ())
        if participant is None:
            # Where there is no reason, the member was of an earlier incarnation.
            reason = reason or UnavailableError(f"{self.task} has restarted")
            send_failure(resolution, reason, self._tell_part)
            return
        self._depend_on({place.task: place.incarnation for place in resolution.places}, token)
        for part in early:
            exchange.receive(part)
        exchange.advance()

    def _fail(self, token: Token, error: OpError) -> None:
        """End a member by what has happened here, and tell the others."""
        participant = self._pop(token, error)
        if participant is None:
            return
        reason = _from_task(error, self.task)
        if participant.exchange is not None:
            send_failure(participant.exchange.resolution, reason, self._tell_part)
        else:
            self._tell(self._links.leader, "leave", self.task, token, reason)
        participant.complete(error, None)

    def _end(self, token: Token, error: OpError | None, result: Any) -> None:
        """End a member by what it was told, or has computed."""
        participant = self._pop(token, None)
        if participant is not None:
            participant.complete(error, result)

    def _pop(self, token: Token, error: OpError | None) -> Participant | None:
        """Take a member out; None where it has ended already.

        Args:
            token: The member.
            error: Why it leaves; for the others, who may all have come by now.
        """
        with self._lock:
            participant = self._participants.pop(token, None)
            if participant is None:
                return None
            if participant.exchange is not None:
                resolution = participant.exchange.resolution
                key = resolution.exchange, resolution.rank
                del self._exchanges[key]
                remember(self._over, key, None)
            elif error is not None:
                remember(self._left, token, _from_task(error, self.task))
            if not self._participants:
                self._early.clear()  # what has come for members that will never exchange
        return participant

    def _send(self, task: TaskName, part: Part) -> None:
        """Send a part; raises what keeps it from being sent."""
        if task == self.task:
            self.receive(part)
        else:
            self._links.tell(task, "receive", part)

    def _tell(self, task: TaskName, method: str, *args: Any) -> None:
        """Call a method of a task's executor; one that is not there is noticed by those who depend on it."""
        if task == self.task:
            getattr(self, method)(*args)
            return
        try:
            self._links.tell(task, method, *args)
        except Exception as error:
            logger(__name__).warning("%s could not be told: %s", task, error)

    def _tell_part(self, task: TaskName, part: Part) -> None:
        self._tell(task, "receive", part)


class StepCollectiveExecutor(CollectiveExecutor):
    """The executor of a task for one step, by whose name its members are known in all tasks.

    Args:
        executor: The executor of the task.
        session: The name of the session, the same in all tasks.
        step: The name of the step, the same in all tasks.
    """

    def __init__(self, executor: ClusterCollectiveExecutor, session: str, step: str) -> None:
        self._executor = executor
        self._session = session
        self._step = step

    def execute_async(
        self,
        member: CollectiveMember,
        params: CollectiveParams,
        tensor: Any,
        done: CollectiveDone,
        cancellation_manager: CancellationManager | None = None,
    ) -> None:
        """Take part in a collective; see `CollectiveExecutor`."""
        named = replace(member, session_handle=self._session, step_id=self._step)
        self._executor.execute_async(named, params, tensor, done, cancellation_manager)

    def start_abort(self, status: OpError) -> None:
        """Fail all collectives of the task, waiting and future."""
        self._executor.start_abort(status)


def _total_bytes(params: CollectiveParams) -> int:
    """The bytes of the tensors of all members together."""
    return math.prod(params.shape) * params.data_type.size * params.group_size


def _named(params: CollectiveParams) -> CollectiveParams:
    """Parameters for the leader: functions by name, and no timeout, which the member itself has."""
    names = [getattr(one, "__name__", repr(one)) for one in (params.merge_op, params.final_op)]
    return replace(
        params, merge_op=None, final_op=None, timeout_seconds=0.0, reduction=", ".join(names)
    )


def _from_task(error: OpError, task: TaskName) -> OpError:
    """An error for members in other tasks, which says where it is from."""
    told = copy.copy(error)
    if not told.message.startswith("From /job:"):
        told.message = f"From {task}:\n{told.message}"
        told.args = (told.message,)
    return told
