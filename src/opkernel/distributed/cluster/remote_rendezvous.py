"""RemoteRendezvous: where a step's part in one task meets its parts in other tasks.

What is for another task is handed to an outbox, which sends tensors that are ready at about the same
time together.

Source: TensorFlow core/distributed_runtime/base_rendezvous_mgr.cc.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from opkernel.distributed.cluster.task_name import TaskName
from opkernel.distributed.collectives.object_store import LARGE_BYTES
from opkernel.errors import OpError
from opkernel.kernel import (
    DoneCallback,
    LocalRendezvous,
    ParsedKey,
    Rendezvous,
    RendezvousArgs,
    parse_key,
)

_NO_ARGS = RendezvousArgs()
_DELAY_S = 0.001
"""How long a tensor waits for others while its task has something else to do."""


class SentTensor(NamedTuple):
    """A tensor on its way to another task.

    Attributes:
        step: The key of the step.
        key: The key of the tensor in the step's rendezvous.
        value: The tensor; None where it is dead.
        is_dead: Whether it is dead.
    """

    step: str
    key: str
    value: Any
    is_dead: bool


class RemoteRendezvous(Rendezvous):
    """A rendezvous of one step in one task.

    Args:
        task: The task.
        step: The key of the step, the same in all tasks.
        outbox: Takes the tensors for other tasks.
    """

    def __init__(self, task: TaskName, step: str, outbox: Outbox) -> None:
        super().__init__()
        self._local = LocalRendezvous()
        self._task = task
        self._step = step
        self._outbox = outbox

    def send(self, key: ParsedKey, args: RendezvousArgs, value: Any, is_dead: bool) -> None:
        """Hand a tensor over, to a receiver of this task or to the outbox."""
        receiver = TaskName(key.dst.job or "", key.dst.task or 0)
        if receiver == self._task:
            self._local.send(key, args, value, is_dead)
        else:
            self._outbox.put(receiver, SentTensor(self._step, key.full_key, value, is_dead))

    def recv_async(self, key: ParsedKey, args: RendezvousArgs, done: DoneCallback) -> None:
        """Have `done` called with the next tensor of a key, whichever task sends it."""
        self._local.recv_async(key, args, done)

    def start_abort(self, status: OpError) -> None:
        """Fail all receivers of this task; what was sent to other tasks still goes there."""
        self._local.start_abort(status)

    def flush(self) -> None:
        """Send what is in the outbox."""
        self._outbox.flush()

    def deliver(self, sent: SentTensor) -> None:
        """Take a tensor that another task has sent; raises OpError where the step was aborted."""
        self._local.send(parse_key(sent.key), _NO_ARGS, sent.value, sent.is_dead)


class Outbox:
    """The tensors of a task that are for other tasks; used from any thread.

    They leave when their task has nothing else to do (`flush`), or after a moment.

    Args:
        send: Sends tensors to a task.
    """

    def __init__(self, send: Callable[[TaskName, list[SentTensor]], object]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._waiting: defaultdict[TaskName, list[SentTensor]] = defaultdict(list)
        self._has_some = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def put(self, receiver: TaskName, sent: SentTensor) -> None:
        """Take a tensor; a large one is sent at once."""
        if getattr(sent.value, "nbytes", 0) >= LARGE_BYTES:
            self._send(receiver, [sent])
            return
        with self._lock:
            self._waiting[receiver].append(sent)
            if self._thread is None:
                self._thread = threading.Thread(target=self._flush_later, name="opkernel outbox")
                self._thread.daemon = True
                self._thread.start()
        self._has_some.set()

    def flush(self) -> None:
        """Send all that is here, to each task by one message."""
        if not self._waiting:
            return
        with self._lock:
            waiting, self._waiting = self._waiting, defaultdict(list)
            self._has_some.clear()
        for receiver, tensors in waiting.items():
            self._send(receiver, tensors)

    def close(self) -> None:
        """End the thread; what is here is not sent any more."""
        self._is_closed = True
        self._has_some.set()

    def _flush_later(self) -> None:
        """Send what waits, each time that a moment has gone by since something came."""
        pause = threading.Event()
        while True:
            self._has_some.wait()
            if self._is_closed:
                return
            pause.wait(_DELAY_S)
            self.flush()
