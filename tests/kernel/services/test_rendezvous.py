"""Rendezvous: keys, and tensors that are handed over under them."""

import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
)
from opkernel.kernel import (
    AllocatorAttributes,
    CancellationManager,
    FrameAndIter,
    LocalRendezvous,
    ParsedKey,
    RendezvousArgs,
    create_key,
    parse_key,
)
from opkernel.opdef import DeviceName

WAIT_S = 300.0
SOURCE = "/job:mnist/replica:1/task:2/device:CPU:0"
DESTINATION = "/job:mnist/replica:1/task:2/device:GPU:0"
ARGS = RendezvousArgs()


def key(name: str) -> ParsedKey:
    return parse_key(create_key(SOURCE, 7890, DESTINATION, name))


def in_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


class Receiver:
    """Collects what a rendezvous calls back with."""

    def __init__(self) -> None:
        self.results: list[tuple[OpError | None, RendezvousArgs, RendezvousArgs, Any, bool]] = []
        self.called = threading.Event()

    def __call__(self, *result: Any) -> None:
        self.results.append(result)
        self.called.set()

    @property
    def values(self) -> list[Any]:
        return [result[3] for result in self.results]

    @property
    def errors(self) -> list[OpError | None]:
        return [result[0] for result in self.results]


class TestKey:
    def test_create(self) -> None:
        assert create_key(SOURCE, 7890, DESTINATION, "var0") == (
            "/job:mnist/replica:1/task:2/device:CPU:0;0000000000001ed2;"
            "/job:mnist/replica:1/task:2/device:GPU:0;var0;0:0"
        )
        assert create_key("a", 2**64 - 1, "b", "t", FrameAndIter(123, 7)) == (
            "a;ffffffffffffffff;b;t;123:7"
        )

    def test_parse(self) -> None:
        text = create_key("/cpu:0", 7890, DESTINATION, "var0", FrameAndIter(5, 7))
        parsed = parse_key(text)
        assert parsed == ParsedKey(
            full_key=text,
            src_device="/cpu:0",
            src=DeviceName(type="CPU", id=0),
            src_incarnation=7890,
            dst_device=DESTINATION,
            dst=DeviceName("mnist", 1, 2, "GPU", 0),
            edge_name="var0",
        )
        assert parsed.src == DeviceName(type="CPU", id=0)
        assert parsed.dst == DeviceName("mnist", 1, 2, "GPU", 0)

    @pytest.mark.parametrize(
        "text",
        [
            "", "foo;bar;baz", f"{SOURCE};{DESTINATION};", f"{SOURCE};1;{DESTINATION};var0;",
            f"{SOURCE};1;{DESTINATION};;0:0", f"{SOURCE};1;{DESTINATION};x;y;0:0",
            f"{SOURCE};xyz;{DESTINATION};x;0:0", f"{SOURCE};0x1;{DESTINATION};x;0:0",
            f"{SOURCE};;{DESTINATION};x;0:0", f"{SOURCE};-1;{DESTINATION};x;0:0",
            f"{SOURCE};10000000000000000;{DESTINATION};x;0:0", f"a;1;{DESTINATION};x;0:0",
            f"{SOURCE};1;cpu:0;x;0:0", f"{SOURCE};1;{DESTINATION};x;0:0;;",
        ],
    )  # fmt: skip
    def test_what_is_no_key(self, text: str) -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            parse_key(text)
        assert caught.value.message == f"Invalid  rendezvous key: {text}"

    @given(
        st.integers(0, 2**64 - 1),
        st.text(st.characters(exclude_characters=";"), min_size=1),
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**63 - 1),
    )
    def test_what_was_created_can_be_parsed(
        self, incarnation: int, name: str, frame: int, iteration: int
    ) -> None:
        text = create_key(SOURCE, incarnation, DESTINATION, name, FrameAndIter(frame, iteration))
        parsed = parse_key(text)
        assert (parsed.full_key, parsed.src_incarnation) == (text, incarnation)
        assert (parsed.src_device, parsed.edge_name, parsed.dst_device) == (
            SOURCE, name, DESTINATION,
        )  # fmt: skip


def test_send_then_recv() -> None:
    rendezvous = LocalRendezvous()
    value = np.ones(3)
    rendezvous.send(key("a"), ARGS, value, False)
    received, is_dead = rendezvous.recv(key("a"))
    assert received is value
    assert not is_dead


def test_recv_then_send() -> None:
    rendezvous = LocalRendezvous()
    results: list[Any] = []
    thread = in_thread(lambda: results.append(rendezvous.recv(key("a"))))
    time.sleep(0.02)
    rendezvous.send(key("a"), ARGS, None, True)
    thread.join(WAIT_S)
    assert results == [(None, True)]


def test_ping_pong() -> None:
    rendezvous = LocalRendezvous()
    rounds = 200

    def pong() -> None:
        for _ in range(rounds):
            value, _ = rendezvous.recv(key("ping"))
            rendezvous.send(key("pong"), ARGS, value + 1, False)

    thread = in_thread(pong)
    value = 0
    for _ in range(rounds):
        rendezvous.send(key("ping"), ARGS, value, False)
        value, _ = rendezvous.recv(key("pong"))
    thread.join(WAIT_S)
    assert value == rounds


def test_what_is_sent_under_one_key_is_received_in_order() -> None:
    rendezvous = LocalRendezvous()
    for value in range(5):
        rendezvous.send(key("a"), ARGS, value, value % 2 == 0)
    received = [rendezvous.recv(key("a")) for _ in range(5)]
    assert received == [(value, value % 2 == 0) for value in range(5)]


def test_those_who_wait_for_one_key_are_served_in_order() -> None:
    rendezvous = LocalRendezvous()
    receivers = [Receiver() for _ in range(3)]
    for receiver in receivers:
        rendezvous.recv_async(key("a"), ARGS, receiver)
    for value in range(3):
        rendezvous.send(key("a"), ARGS, value, False)
    assert [receiver.values for receiver in receivers] == [[0], [1], [2]]


def test_keys_do_not_mix() -> None:
    rendezvous = LocalRendezvous()
    receiver = Receiver()
    rendezvous.recv_async(key("a"), ARGS, receiver)
    rendezvous.send(key("b"), ARGS, 1, False)
    assert receiver.results == []


def test_each_side_gets_the_args_of_the_other() -> None:
    sent = RendezvousArgs("context of the sender", AllocatorAttributes(on_host=True))
    asked = RendezvousArgs("context of the receiver", AllocatorAttributes(gpu_compatible=True))
    for send_first in (True, False):
        rendezvous, receiver = LocalRendezvous(), Receiver()
        if send_first:
            rendezvous.send(key("a"), sent, 1, False)
        rendezvous.recv_async(key("a"), asked, receiver)
        if not send_first:
            rendezvous.send(key("a"), sent, 1, False)
        assert receiver.results == [(None, sent, asked, 1, False)]


def test_random_sends_and_receives_all_match() -> None:
    rendezvous = LocalRendezvous()
    keys = [key(f"key{number}") for number in range(100)]
    received: dict[str, Any] = {}
    order = random.Random(7)

    def send() -> None:
        for one in order.sample(keys, len(keys)):
            rendezvous.send(one, ARGS, one.edge_name, False)

    def receive(mine: list[ParsedKey]) -> None:
        for one in mine:
            received[one.edge_name], _ = rendezvous.recv(one)

    threads = [in_thread(partial(receive, keys[part::4])) for part in range(4)]
    threads.append(in_thread(send))
    for thread in threads:
        thread.join(WAIT_S)
    assert received == {one.edge_name: one.edge_name for one in keys}


class TestCancel:
    def test_before_recv(self) -> None:
        rendezvous, manager, receiver = LocalRendezvous(), CancellationManager(), Receiver()
        manager.start_cancel()
        rendezvous.recv_async(key("a"), RendezvousArgs(cancellation_manager=manager), receiver)
        (error,) = receiver.errors
        assert isinstance(error, CancelledError)
        assert error.message == "RecvAsync is cancelled."
        with pytest.raises(CancelledError):
            rendezvous.recv(key("a"), RendezvousArgs(cancellation_manager=manager))

    def test_after_recv(self) -> None:
        rendezvous, manager, receiver = LocalRendezvous(), CancellationManager(), Receiver()
        rendezvous.recv_async(key("a"), RendezvousArgs(cancellation_manager=manager), receiver)
        assert receiver.results == []
        manager.start_cancel()
        (error,) = receiver.errors
        assert isinstance(error, CancelledError)
        rendezvous.send(key("a"), ARGS, 1, False)  # nobody waits any more: it is kept
        assert rendezvous.recv(key("a")) == (1, False)

    def test_a_thread_that_waits(self) -> None:
        rendezvous, manager = LocalRendezvous(), CancellationManager()
        threading.Timer(0.02, manager.start_cancel).start()
        with pytest.raises(CancelledError, match="RecvAsync is cancelled"):
            rendezvous.recv(key("a"), RendezvousArgs(cancellation_manager=manager))

    def test_when_the_tensor_is_there_already(self) -> None:
        rendezvous, manager = LocalRendezvous(), CancellationManager()
        manager.start_cancel()
        rendezvous.send(key("a"), ARGS, 1, False)
        args = RendezvousArgs(cancellation_manager=manager)
        receiver = Receiver()
        rendezvous.recv_async(key("a"), args, receiver)
        assert receiver.values == [1]

    def test_when_the_receiver_has_gone(self) -> None:
        rendezvous, manager, receiver = LocalRendezvous(), CancellationManager(), Receiver()
        rendezvous.recv_async(key("a"), RendezvousArgs(cancellation_manager=manager), receiver)
        rendezvous.send(key("a"), ARGS, 1, False)
        manager.start_cancel()
        assert receiver.errors == [None]

    def test_of_several_only_those_whose_manager_is_cancelled(self) -> None:
        rendezvous, manager = LocalRendezvous(), CancellationManager()
        other = CancellationManager()
        receivers = [Receiver() for _ in range(5)]
        for receiver, cancels in zip(receivers, [None, manager, other, manager, None], strict=True):
            args = RendezvousArgs(cancellation_manager=cancels)
            rendezvous.recv_async(key("a"), args, receiver)
        manager.start_cancel()
        for value in range(3):
            rendezvous.send(key("a"), ARGS, value, False)
        assert [receiver.values for receiver in receivers] == [[0], [None], [1], [None], [2]]
        assert [isinstance(one.errors[0], CancelledError) for one in receivers] == [
            False, True, False, True, False,
        ]  # fmt: skip


class TestAbort:
    def test_fails_what_waits(self) -> None:
        rendezvous, receiver = LocalRendezvous(), Receiver()
        rendezvous.recv_async(key("a"), ARGS, receiver)
        rendezvous.start_abort(AbortedError("stopped"))
        (error,) = receiver.errors
        assert isinstance(error, AbortedError)
        assert error.message == "stopped"

    def test_wakes_threads_that_wait(self) -> None:
        rendezvous = LocalRendezvous()
        threading.Timer(0.02, lambda: rendezvous.start_abort(AbortedError("stopped"))).start()
        with pytest.raises(AbortedError, match="stopped"):
            rendezvous.recv(key("a"))

    def test_fails_what_is_to_come(self) -> None:
        rendezvous = LocalRendezvous()
        rendezvous.send(key("a"), ARGS, 1, False)
        rendezvous.start_abort(AbortedError("stopped"))
        for _ in range(2):
            with pytest.raises(AbortedError, match="stopped"):
                rendezvous.send(key("a"), ARGS, 1, False)
            with pytest.raises(AbortedError, match="stopped"):
                rendezvous.recv(key("a"))

    def test_the_first_reason_counts(self) -> None:
        rendezvous = LocalRendezvous()
        rendezvous.start_abort(AbortedError("first"))
        rendezvous.start_abort(CancelledError("second"))
        with pytest.raises(AbortedError, match="first"):
            rendezvous.recv(key("a"))

    def test_each_receiver_gets_an_error_of_its_own(self) -> None:
        rendezvous, one, other = LocalRendezvous(), Receiver(), Receiver()
        rendezvous.recv_async(key("a"), ARGS, one)
        rendezvous.recv_async(key("a"), ARGS, other)
        rendezvous.start_abort(AbortedError("stopped"))
        assert one.errors[0] is not other.errors[0]

    def test_comes_when_the_last_owner_leaves(self) -> None:
        rendezvous, receiver = LocalRendezvous(), Receiver()
        rendezvous.recv_async(key("a"), ARGS, receiver)
        rendezvous.ref()
        assert not rendezvous.unref()
        assert rendezvous.unref()
        (error,) = receiver.errors
        assert isinstance(error, CancelledError)
        assert error.message == "LocalRendezvous deleted"

    def test_deregisters_what_could_still_be_cancelled(self) -> None:
        rendezvous, manager, receiver = LocalRendezvous(), CancellationManager(), Receiver()
        rendezvous.recv_async(key("a"), RendezvousArgs(cancellation_manager=manager), receiver)
        rendezvous.start_abort(AbortedError("stopped"))
        manager.start_cancel()
        assert len(receiver.results) == 1


class TestTimeout:
    def test_ends_the_wait(self) -> None:
        rendezvous = LocalRendezvous()
        with pytest.raises(DeadlineExceededError, match="Timed out waiting for notification"):
            rendezvous.recv(key("a"), timeout_s=0.01)

    def test_loses_no_tensor(self) -> None:
        rendezvous = LocalRendezvous()
        with pytest.raises(DeadlineExceededError):
            rendezvous.recv(key("a"), timeout_s=0.01)
        rendezvous.send(key("a"), ARGS, 1, False)
        assert rendezvous.recv(key("a"), timeout_s=WAIT_S) == (1, False)


def test_each_tensor_reaches_one_receiver_under_threads_and_cancellation() -> None:
    rendezvous = LocalRendezvous()
    total = 400
    received: list[int] = []
    cancelled = threading.Semaphore(0)

    def done(error: OpError | None, *rest: Any) -> None:
        if error is None:
            received.append(rest[2])
        else:
            cancelled.release()

    def ask() -> None:
        for _ in range(total // 4):
            manager = CancellationManager()
            args = RendezvousArgs(cancellation_manager=manager)
            rendezvous.recv_async(key("a"), args, done)
            manager.start_cancel()

    def send(first: int) -> None:
        for value in range(first, first + total // 4):
            rendezvous.send(key("a"), ARGS, value, False)

    threads = [in_thread(ask) for _ in range(4)]
    threads += [in_thread(partial(send, first)) for first in range(0, total, total // 4)]
    for thread in threads:
        thread.join(WAIT_S)
    while len(received) < total:
        received.append(rendezvous.recv(key("a"), timeout_s=WAIT_S)[0])
    assert sorted(received) == list(range(total))
