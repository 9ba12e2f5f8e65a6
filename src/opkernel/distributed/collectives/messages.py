"""What tasks tell each other about collectives, and how they reach each other.

Source: TensorFlow core/protobuf/worker.proto (CompleteGroup, CompleteInstance, RecvBuf).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.collectives.object_store import ObjectStore
from opkernel.errors import OpError, UnavailableError
from opkernel.kernel import CollectiveMember, CollectiveParams

Tell = Callable[..., object]
"""Calls a method of another task's executor, `tell(task, method, *args)`, and waits for nothing."""


class CallTask(Protocol):
    """Calls a method of another task's executor: `call(task, method, *args)`."""

    def __call__(self, task: TaskName, method: str, *args: Any) -> Future[Any]:
        """The result; fails with UnavailableError where the task is not there."""


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


class Place(NamedTuple):
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
    places: Sequence[Place]
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
