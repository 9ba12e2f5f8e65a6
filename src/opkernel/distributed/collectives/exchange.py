"""Exchange: a member's part in the rounds in which the members of a group send each other tensors.

Tasks tell each other about collectives in messages, which they send to their peers.

In a round each member sends a part to each other member, and gets one from each. A reduction takes two rounds:
each member merges one part of all tensors, and then all get all merged parts. It moves no more than a ring
does, (2 - 2/n) times the tensor for each of n members, with two steps of latency instead of 2n - 2. Each
element is merged in the order of the ranks, so the result has the bits that one process gets; only the sign of a NaN
that comes of two NaNs depends on where in a part it stands.

Source: TensorFlow core/common_runtime/ring_reducer.cc, ring_gatherer.cc, all_to_all.cc, core/protobuf/worker.proto
(CompleteGroup, CompleteInstance, RecvBuf).
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.errors import OpError, UnavailableError, as_op_error
from opkernel.kernel import CollectiveMember, CollectiveParams, CollectiveType
from opkernel.kernel.services.collective import merged
from opkernel.libraries import library

LARGE_BYTES = 100_000
"""From this size on Ray puts a value into its object store; below, it sends it with the message."""


class ObjectStore:
    """Where tasks share values. This one is for tasks of one process, which share its memory."""

    def share(self, value: Any) -> Any:
        """What stands for a value in messages to any number of tasks; a small value may be it itself."""
        return value

    def fetch(self, shared: Sequence[Any]) -> list[Any]:
        """The values of what `share` has given, in any task; values may be read-only.

        Raises:
            UnavailableError: a task that has shared a value is not there any more.
        """
        return list(shared)


class RayObjectStore(ObjectStore):
    """Ray's object store; to be made in a process where Ray is initialised."""

    def __init__(self) -> None:
        self._ray = library("ray", "A task")

    def share(self, value: Any) -> Any:
        """A reference to a large value; a small value itself."""
        return self._ray.put(value) if getattr(value, "nbytes", 0) >= LARGE_BYTES else value

    def fetch(self, shared: Sequence[Any]) -> list[Any]:
        """The values, read-only where they are in the store."""
        places = [i for i, one in enumerate(shared) if isinstance(one, self._ray.ObjectRef)]
        values = list(shared)
        try:
            found = self._ray.get([shared[i] for i in places]) if places else []
        except self._ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())
            raise UnavailableError(f"A tensor of another task is gone: {reason}") from error
        for i, value in zip(places, found, strict=True):
            values[i] = value
        return values


Tell = Callable[..., object]
"""Calls a method of another task's executor, `tell(task, method, *args)`, and waits for nothing."""


CallTask = Callable[..., Future[Any]]
"""Calls a method of another task's executor: `call(task, method, *args)`.

The result fails with UnavailableError where the task is not there."""


class TaskLinks(NamedTuple):
    """How a task reaches the others.

    Attributes:
        leader: The task that brings the members of groups together.
        tell: Calls another task, and waits for nothing.
        call: Calls another task for a result.
        store: Where large tensors of groups are shared.
    """

    leader: TaskName
    tell: Tell
    call: CallTask
    store: ObjectStore


_MOST_ENDED = 10_000


def remember(ended: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    """Note what has ended under a key; the oldest is forgotten where there are too many."""
    ended[key] = value
    if len(ended) > _MOST_ENDED:
        ended.popitem(last=False)


def failure(answer: Future[Any]) -> OpError | None:
    """Why a call has failed; None where it has not."""
    error = answer.exception()
    if error is None or isinstance(error, OpError):
        return error
    return UnavailableError(f"A task is not there: {type(error).__name__}: {error}")


class Token(NamedTuple):
    """The name of a member in its task.

    Attributes:
        incarnation: Of the task.
        number: A number that the task has given to no other member.
    """

    incarnation: int
    number: int


class Join(NamedTuple):
    """A member wants to take part.

    Attributes:
        task: Its task.
        token: Names the member.
        member: The member.
        params: The collective, with the names of its functions.
        tensor: What it brings, as the object store has it, where the leader is to pass it on.
    """

    task: TaskName
    token: Token
    member: CollectiveMember
    params: CollectiveParams
    tensor: Any


class MemberPlace(NamedTuple):
    """A member, as the other members know it.

    Attributes:
        task: Its task.
        incarnation: Of the task.
        is_source: Whether it is the source of a broadcast.
    """

    task: TaskName
    incarnation: int
    is_source: bool


class Resolution(NamedTuple):
    """All members have come.

    Attributes:
        exchange: Names what the members do now, among all exchanges of the cluster.
        rank: The rank of the one who is told.
        places: All members, by rank.
        tensors: What they bring, by rank, as the object store has it; None where the members exchange it.
    """

    exchange: str
    rank: int
    places: Sequence[MemberPlace]
    tensors: Sequence[Any] | None


class Part(NamedTuple):
    """A part of a tensor, or the reason why there is none, for another member.

    Attributes:
        exchange: The name of the exchange.
        incarnation: Of the task that it is for.
        receiver: The rank of the member that it is for.
        sender: The rank of the member that it is from.
        round: The round of the exchange.
        value: The part, as the object store has it; None where the sender has failed.
        error: Why the sender has failed.
    """

    exchange: str
    incarnation: int
    receiver: int
    sender: int
    round: int
    value: Any
    error: OpError | None = None


Rounds = Generator[Sequence[Any], Sequence[Any], Any]
"""Yields what goes to each member, gets what has come from each, and returns the member's result.

The part for the member itself comes back to it. None stands for nothing: it is not sent."""

_ALIGNMENT = 64
"""Parts begin at multiples of so many elements."""


def rounds(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    """What a member does.

    Args:
        params: The collective.
        tensor: What the member brings; None where it only receives.
        size: How many members there are.
    """
    return _ROUNDS[params.type](params, tensor, size)


def _reduce(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    flat = np.ravel(tensor)
    bounds = [len(flat) * rank // size // _ALIGNMENT * _ALIGNMENT for rank in range(size)]
    parts = yield np.split(flat, bounds[1:])
    parts = yield [merged(params, parts)] * size
    return np.concatenate(parts).reshape(params.shape)


def _reduce_scatter(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    parts = yield np.split(tensor, size)
    return merged(params, parts)


def _gather(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    return np.concatenate((yield [tensor] * size))


def _all_to_all(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    return np.stack((yield list(tensor)))


def _broadcast(params: CollectiveParams, tensor: Any, size: int) -> Rounds:
    parts = yield [tensor] * size
    return next(part for part in parts if part is not None)


_ROUNDS = {
    CollectiveType.REDUCTION_COLLECTIVE: _reduce,
    CollectiveType.REDUCE_SCATTER_COLLECTIVE: _reduce_scatter,
    CollectiveType.GATHER_COLLECTIVE: _gather,
    CollectiveType.ALL_TO_ALL_COLLECTIVE: _all_to_all,
    CollectiveType.BROADCAST_COLLECTIVE: _broadcast,
}


Send = Callable[[TaskName, Part], object]
"""Sends a part to the task of its receiver."""


class Exchange:
    """A member's part in an exchange; used from any thread. Nothing is sent under a lock.

    Args:
        resolution: The members, and which of them this is.
        params: The collective.
        tensor: What this member brings; None where it only receives.
        store: Where parts are shared.
        send: Sends a part to a task.
        done: Called once, with an error or None, and the result.
    """

    def __init__(
        self,
        resolution: Resolution,
        params: CollectiveParams,
        tensor: Any,
        store: ObjectStore,
        send: Send,
        done: Callable[[OpError | None, Any], object],
    ) -> None:
        self.resolution = resolution
        self._rounds = rounds(params, tensor, len(resolution.places))
        self._senders = _senders(params, resolution)
        self._store = store
        self._send = send
        self._done = done
        self._lock = threading.Lock()
        self._round = 0
        self._received: defaultdict[int, dict[int, Any]] = defaultdict(dict)
        self._is_advancing = True

    def receive(self, part: Part) -> None:
        """Take a part that another member has sent."""
        if part.error is not None:
            self._done(part.error, None)
            return
        with self._lock:
            self._received[part.round][part.sender] = part.value
            parts = self._complete_round()
        if parts is not None:
            self.advance(parts)

    def _complete_round(self) -> list[Any] | None:
        """The parts of the present round, once all are there and nobody works at it."""
        received = self._received[self._round]
        if self._is_advancing or len(received) < len(self._senders):
            return None
        self._is_advancing = True
        del self._received[self._round]
        self._round += 1
        return [received.get(rank) for rank in range(len(self.resolution.places))]

    def advance(self, parts: Sequence[Any] | None = None) -> None:
        """Begin; or go on with the parts of a round, and with later rounds whose parts are there already."""
        try:
            while True:
                if parts is not None:
                    parts = self._store.fetch(parts)
                with np.errstate(all="ignore"):
                    outgoing = next(self._rounds) if parts is None else self._rounds.send(parts)
                self._send_to_others(outgoing)
                with self._lock:
                    own = self.resolution.rank
                    if outgoing[own] is not None:
                        self._received[self._round][own] = outgoing[own]
                    self._is_advancing = False
                    parts = self._complete_round()
                if parts is None:
                    return
        except StopIteration as stop:
            self._done(None, stop.value)
        except Exception as error:  # a merge op may raise anything
            failure = as_op_error(error)
            try:
                send_failure(self.resolution, failure, self._send)
            finally:
                self._done(failure, None)

    def _send_to_others(self, outgoing: Sequence[Any]) -> None:
        """Send each its part; one that is for several is shared once."""
        name, own, places = self.resolution.exchange, self.resolution.rank, self.resolution.places
        shared: dict[int, Any] = {}
        for rank, value in enumerate(outgoing):
            if rank != own and value is not None:
                if id(value) not in shared:
                    shared[id(value)] = self._store.share(value)
                place = places[rank]
                part = Part(name, place.incarnation, rank, own, self._round, shared[id(value)])
                self._send(place.task, part)


def send_failure(resolution: Resolution, error: OpError, send: Send) -> None:
    """Tell the other members of an exchange that one has failed."""
    name, own = resolution.exchange, resolution.rank
    for rank, place in enumerate(resolution.places):
        if rank != own:
            send(place.task, Part(name, place.incarnation, rank, own, 0, None, error))


def _senders(params: CollectiveParams, resolution: Resolution) -> frozenset[int]:
    """The ranks of those that send to a member in each round."""
    is_broadcast = params.type is CollectiveType.BROADCAST_COLLECTIVE
    places = enumerate(resolution.places)
    return frozenset([rank for rank, place in places if place.is_source or not is_broadcast])
