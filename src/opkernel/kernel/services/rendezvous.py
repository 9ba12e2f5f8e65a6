"""Rendezvous: senders and receivers of tensors meet here, in either order; and the keys under which they do.

A key names the sender, the receiver, the tensor, and the iteration:
`src_device;src_incarnation;dst_device;edge_name;frame_id:iter_id`, the incarnation as 16 hexadecimal
digits. It changes when the sender restarts, so that no receiver gets a tensor sent before.

Source: TensorFlow core/framework/rendezvous.{h,cc}, local_rendezvous.cc.
"""

from __future__ import annotations

import copy
import re
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from opkernel.device.local_device import AllocatorAttributes
from opkernel.errors import CancelledError, DeadlineExceededError, InvalidArgumentError, OpError
from opkernel.kernel.context.inputs import FrameAndIter
from opkernel.kernel.services.cancellation import (
    INVALID_TOKEN,
    CancellationManager,
    CancellationToken,
    call_all,
)
from opkernel.opdef import DeviceName
from opkernel.records import dataclass, field, replace
from opkernel.state.resource_handle import RefCounted

_ROOT = FrameAndIter()
_UINT64 = 1 << 64
_HEXADECIMAL = re.compile(r"0*([0-9A-Fa-f]{1,16})")


@dataclass(frozen=True, slots=True)
class ParsedKey:
    """A key in parts.

    Attributes:
        full_key: The key.
        src_device: The name of the device that sends.
        src: It in parts.
        src_incarnation: Which start of the sender it is.
        dst_device: The name of the device that receives.
        dst: It in parts.
        edge_name: The name of the tensor.
    """

    full_key: str
    src_device: str = field(repr=False)
    src: DeviceName = field(repr=False, compare=False)
    src_incarnation: int = field(repr=False)
    dst_device: str = field(repr=False)
    dst: DeviceName = field(repr=False, compare=False)
    edge_name: str = field(repr=False)


def create_key(
    src_device: str,
    src_incarnation: int,
    dst_device: str,
    name: str,
    frame_iter: FrameAndIter = _ROOT,
) -> str:
    """The key of the tensor `name` from one device to another."""
    return (
        f"{src_device};{src_incarnation % _UINT64:016x};{dst_device};{name};"
        f"{frame_iter.frame_id}:{frame_iter.iter_id}"
    )


def parse_key(key: str) -> ParsedKey:
    """The parts of a key.

    Raises:
        InvalidArgumentError: it is no key, or a device is named by no full name.
    """
    parts = key.split(";")
    if len(parts) == 6 and not parts[5]:
        parts.pop()
    incarnation = _HEXADECIMAL.fullmatch(parts[1]) if len(parts) == 5 else None
    if incarnation is None or not parts[3] or not parts[4]:
        raise _invalid(key)
    try:
        source = DeviceName.parse_full_name(parts[0])
        destination = DeviceName.parse_full_name(parts[2])
    except InvalidArgumentError:
        raise _invalid(key) from None
    return ParsedKey(
        key, parts[0], source, int(incarnation[1], 16), parts[2], destination, parts[3]
    )


def _invalid(key: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Invalid  rendezvous key: {key}")


_ANY_MEMORY = AllocatorAttributes()


@dataclass(frozen=True, slots=True)
class RendezvousArgs:
    """Data that one side passes to the other, and to the rendezvous.

    Attributes:
        device_context: The device's own data for moving the tensor.
        alloc_attrs: Where the tensor is, or is to be.
        cancellation_manager: Cancels the wait of a receiver.
    """

    device_context: Any = None
    alloc_attrs: AllocatorAttributes = _ANY_MEMORY
    cancellation_manager: CancellationManager | None = None


_NO_ARGS = RendezvousArgs()

DoneCallback = Callable[[OpError | None, RendezvousArgs, RendezvousArgs, Any, bool], object]
"""Called with an error or None, the sender's and the receiver's args, the tensor, and whether it is
dead. It must not raise, and runs on the thread that completes the exchange."""


class Rendezvous(RefCounted):
    """A table of channels, one for each key; each hands over tensors in the order they were sent."""

    @abstractmethod
    def send(self, key: ParsedKey, args: RendezvousArgs, value: Any, is_dead: bool) -> None:
        """Hand a tensor over, now or when somebody asks for it; never waits.

        Raises:
            OpError: the rendezvous was aborted.
        """

    @abstractmethod
    def recv_async(self, key: ParsedKey, args: RendezvousArgs, done: DoneCallback) -> None:
        """Have `done` called with the next tensor; at once if it is there."""

    @abstractmethod
    def start_abort(self, status: OpError) -> None:
        """Fail all transfers, waiting and future, with `status`; the status of the first call counts."""

    def flush(self) -> None:
        """Let go of tensors that were kept back to be sent together: nothing else comes for now."""

    def recv(
        self, key: ParsedKey, args: RendezvousArgs = _NO_ARGS, timeout_s: float | None = None
    ) -> tuple[Any, bool]:
        """Wait for the next tensor.

        Returns:
            The tensor, and whether it is dead.

        Raises:
            DeadlineExceededError: the tensor did not come in time. The receiver no longer waits.
            CancelledError: the manager in `args` was cancelled.
            OpError: the rendezvous was aborted.
        """
        arrived = threading.Event()
        result: list[tuple[OpError | None, Any, bool]] = []

        def done(
            error: OpError | None, _: RendezvousArgs, __: RendezvousArgs, value: Any, dead: bool
        ) -> None:
            result.append((error, value, dead))
            arrived.set()

        with CancellationManager(args.cancellation_manager) as waiting:
            self.recv_async(key, replace(args, cancellation_manager=waiting), done)
            in_time = arrived.wait(timeout_s)
        if not in_time:
            arrived.wait()  # for the end of the cancellation, or of a send that was faster
        ((error, value, is_dead),) = result
        if not in_time and isinstance(error, CancelledError):
            raise DeadlineExceededError("Timed out waiting for notification")
        if error is not None:
            raise error
        return value, is_dead


@dataclass(eq=False, slots=True)
class _Sent:
    """A tensor without a receiver yet."""

    args: RendezvousArgs
    value: Any
    is_dead: bool


@dataclass(eq=False, slots=True)
class _Waiting:
    """A receiver that waits for a tensor not sent yet."""

    args: RendezvousArgs
    done: DoneCallback
    token: CancellationToken = INVALID_TOKEN

    def complete(
        self, error: OpError | None, args: RendezvousArgs, value: Any, is_dead: bool
    ) -> None:
        """Tell the receiver; its cancellation comes too late now."""
        if self.args.cancellation_manager is not None:
            self.args.cancellation_manager.try_deregister_callback(self.token)
        self.done(error, args, self.args, value, is_dead)


class LocalRendezvous(Rendezvous):
    """A rendezvous within one process; used from any thread.

    Callbacks run under no lock. Without owners the rendezvous aborts: no sender is left.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a collection may send
        self._queues: dict[str, deque[_Sent] | deque[_Waiting]] = {}  # each of one kind only
        self._status: OpError | None = None

    @property
    def status(self) -> OpError | None:
        """Why the rendezvous was aborted; None if it was not."""
        return self._status

    def send(self, key: ParsedKey, args: RendezvousArgs, value: Any, is_dead: bool) -> None:
        """Hand a tensor over to the first receiver that waits, or keep it."""
        with self._lock:
            if self._status is not None:
                raise copy.copy(self._status)
            receiver = self._take(key.full_key, _Waiting)
            if receiver is None:
                self._put(key.full_key, _Sent(args, value, is_dead))
                return
        receiver.complete(None, args, value, is_dead)

    def recv_async(self, key: ParsedKey, args: RendezvousArgs, done: DoneCallback) -> None:
        """Take the first tensor that was sent, or wait for one."""
        with self._lock:
            error = None if self._status is None else copy.copy(self._status)
            sent = None if error else self._take(key.full_key, _Sent)
            if error is None and sent is None:
                error = self._wait(key.full_key, _Waiting(args, done))
                if error is None:
                    return
        if sent is None:
            done(error, _NO_ARGS, args, None, False)
        else:
            done(None, sent.args, args, sent.value, sent.is_dead)

    def start_abort(self, status: OpError) -> None:
        """Fail all receivers, waiting and future; drop the tensors that were sent."""
        with self._lock:
            if self._status is None:
                self._status = copy.copy(status)
            queues, self._queues = self._queues, {}
        call_all(
            partial(item.complete, copy.copy(status), _NO_ARGS, None, False)
            for queue in queues.values()
            for item in queue
            if isinstance(item, _Waiting)
        )

    def on_destroy(self) -> None:
        """Abort."""
        self.start_abort(CancelledError("LocalRendezvous deleted"))

    def _wait(self, key: str, receiver: _Waiting) -> OpError | None:
        """Put a receiver into its queue; the error if it is cancelled already."""
        manager = receiver.args.cancellation_manager
        if manager is not None:
            receiver.token = manager.get_cancellation_token()
            if not manager.register_callback(receiver.token, partial(self._cancel, key, receiver)):
                return _cancelled()
        self._put(key, receiver)
        return None

    def _cancel(self, key: str, receiver: _Waiting) -> None:
        """Tell a receiver that it was cancelled, unless somebody else has told it something."""
        with self._lock:
            queue: Any = self._queues.get(key, ())
            if receiver not in queue:
                return
            queue.remove(receiver)
            if not queue:
                del self._queues[key]
        receiver.complete(_cancelled(), _NO_ARGS, None, False)

    def _put(self, key: str, item: Any) -> None:
        self._queues.setdefault(key, deque()).append(item)

    def _take(self, key: str, kind: type[Any]) -> Any:
        """The first of a queue if it is of that kind."""
        queue = self._queues.get(key)
        if queue is None or not isinstance(queue[0], kind):
            return None
        item = queue.popleft()
        if not queue:
            del self._queues[key]
        return item


def _cancelled() -> CancelledError:
    return CancelledError("RecvAsync is cancelled.")
