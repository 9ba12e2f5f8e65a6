"""Cancellation: callbacks, children, deadlines."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from opkernel.errors import CancelledError, Code, InternalError
from opkernel.kernel import CancellationManager, Deadline, register_cancellation_callback

WAIT_S = 300.0


def register(manager: CancellationManager, callback: Callable[[], object]) -> int:
    token = manager.get_cancellation_token()
    assert manager.register_callback(token, callback)
    return token


def state(manager: CancellationManager) -> tuple[bool, bool]:
    return manager.is_cancelling, manager.is_cancelled


def in_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


class BlockedCancellation:
    """A manager whose cancellation hangs in a callback until `release`."""

    def __init__(self) -> None:
        self.manager = CancellationManager()
        self.started, self.release = threading.Event(), threading.Event()
        self.token = register(self.manager, self._block)
        self.thread = in_thread(self.manager.start_cancel)
        assert self.started.wait(WAIT_S)

    def _block(self) -> None:
        self.started.set()
        assert self.release.wait(WAIT_S)


def test_a_callback_that_was_deregistered_is_not_called() -> None:
    calls: list[int] = []
    with CancellationManager() as manager:
        token = register(manager, lambda: calls.append(1))
        assert manager.deregister_callback(token)
        manager.start_cancel()
    assert calls == []


def test_cancelling_calls_every_callback_once() -> None:
    calls: list[int] = []
    manager = CancellationManager()
    for number in range(3):
        register(manager, partial(calls.append, number))
    assert state(manager) == (False, False)
    manager.start_cancel()
    manager.start_cancel()
    assert sorted(calls) == [0, 1, 2]
    assert state(manager) == (False, True)


def test_registering_after_cancellation_fails() -> None:
    calls: list[int] = []
    manager = CancellationManager()
    token = manager.get_cancellation_token()
    manager.start_cancel()
    assert not manager.register_callback(token, lambda: calls.append(1))
    assert calls == []


def test_deregistering_after_cancellation_fails() -> None:
    manager = CancellationManager()
    token = register(manager, lambda: None)
    manager.start_cancel()
    assert not manager.deregister_callback(token)
    assert not manager.try_deregister_callback(token)


def test_tokens_differ_and_rise() -> None:
    manager = CancellationManager()
    tokens = [manager.get_cancellation_token() for _ in range(5)]
    assert tokens == sorted(set(tokens))


def test_while_callbacks_run_nothing_can_be_registered() -> None:
    blocked = BlockedCancellation()
    manager = blocked.manager
    assert state(manager) == (True, False)
    assert not manager.register_callback(manager.get_cancellation_token(), lambda: None)
    assert not manager.try_deregister_callback(blocked.token)
    assert CancellationManager(manager).is_cancelled
    manager.start_cancel()  # does not wait for the first call
    blocked.release.set()
    blocked.thread.join(WAIT_S)
    assert state(manager) == (False, True)


def test_deregistering_waits_for_the_callbacks_of_another_thread() -> None:
    blocked = BlockedCancellation()
    results: list[bool] = []
    thread = in_thread(lambda: results.append(blocked.manager.deregister_callback(blocked.token)))
    time.sleep(0.05)
    assert results == []
    blocked.release.set()
    thread.join(WAIT_S)
    assert results == [False]
    assert blocked.manager.is_cancelled


def test_a_callback_can_deregister_without_waiting_for_itself() -> None:
    results: list[bool] = []
    manager = CancellationManager()
    token = register(manager, lambda: results.append(manager.deregister_callback(token)))
    manager.start_cancel()
    assert results == [False]


def test_threads_that_poll_see_the_cancellation() -> None:
    manager = CancellationManager()

    def poll() -> None:
        while not manager.is_cancelled:
            time.sleep(0.001)

    threads = [in_thread(poll) for _ in range(8)]
    manager.start_cancel()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_a_callback_that_raises_does_not_stop_the_others() -> None:
    calls: list[int] = []

    def fail() -> None:
        raise InternalError("first")

    manager = CancellationManager()
    child = CancellationManager(manager)
    register(manager, fail)
    register(manager, lambda: calls.append(1))
    register(child, lambda: calls.append(2))
    with pytest.raises(InternalError, match="first"):
        manager.start_cancel()
    assert sorted(calls) == [1, 2]
    assert manager.is_cancelled
    assert child.is_cancelled


class TestChildren:
    def test_are_cancelled_with_their_parent(self) -> None:
        calls: list[str] = []
        parent = CancellationManager()
        child = CancellationManager(parent)
        grandchild = CancellationManager(child)
        register(grandchild, lambda: calls.append("grandchild"))
        reason = InternalError("why")
        parent.start_cancel(reason)
        assert calls == ["grandchild"]
        assert grandchild.status is reason

    def test_do_not_cancel_their_parent(self) -> None:
        parent = CancellationManager()
        child = CancellationManager(parent)
        child.start_cancel()
        assert child.is_cancelled
        assert not parent.is_cancelled

    def test_of_a_cancelled_parent_are_cancelled_from_the_start(self) -> None:
        parent = CancellationManager()
        parent.start_cancel(InternalError("why"))
        child = CancellationManager(parent)
        assert child.is_cancelled
        assert child.status is parent.status
        assert not child.register_callback(child.get_cancellation_token(), lambda: None)

    def test_that_are_closed_leave_their_parent(self) -> None:
        calls: list[int] = []
        parent = CancellationManager()
        with CancellationManager(parent) as child:
            register(child, lambda: calls.append(1))
        assert calls == [1]  # what was left registered is cancelled at the end
        parent.start_cancel()
        assert calls == [1]
        assert not list(parent._children)

    def test_that_nobody_keeps_leave_their_parent(self) -> None:
        parent = CancellationManager()
        CancellationManager(parent)
        assert not list(parent._children)


def test_a_named_callback_logs_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    for reason, messages in [
        (None, []),
        (
            InternalError("broken"),
            ['Cancellation callback "recv" is triggered due to a INTERNAL error: broken'],
        ),
    ]:
        manager = CancellationManager()
        token = manager.get_cancellation_token()
        assert manager.register_callback_with_error_logging(token, lambda: None, "recv")
        with caplog.at_level(logging.ERROR):
            manager.start_cancel(reason)
        assert caplog.messages == messages


def test_registering_a_callback_gives_the_function_that_deregisters() -> None:
    calls: list[int] = []
    manager = CancellationManager()
    deregister = register_cancellation_callback(manager, lambda: calls.append(1))
    register_cancellation_callback(manager, lambda: calls.append(2))
    deregister()
    manager.start_cancel()
    assert calls == [2]
    with pytest.raises(CancelledError, match="Operation was cancelled"):
        register_cancellation_callback(manager, lambda: None)


def test_without_a_manager_there_is_nothing_to_register() -> None:
    register_cancellation_callback(None, lambda: None)()


class TestDeadline:
    def test_cancels_when_time_is_up(self) -> None:
        manager = CancellationManager()
        cancelled = threading.Event()
        register(manager, cancelled.set)
        with Deadline(manager, 0.01):
            assert cancelled.wait(WAIT_S)
        assert manager.status is not None
        assert manager.status.code is Code.DEADLINE_EXCEEDED

    def test_that_was_met_cancels_nothing(self) -> None:
        manager = CancellationManager()
        before = set(threading.enumerate())
        with Deadline(manager, 1000):
            (timer,) = set(threading.enumerate()) - before
        timer.join(WAIT_S)
        assert not timer.is_alive()
        assert not manager.is_cancelled


def test_each_callback_of_many_threads_is_called_or_deregistered() -> None:
    manager = CancellationManager()
    called: list[int] = []
    outcomes: list[tuple[int, bool, bool]] = []

    def work(first: int) -> None:
        for number in range(first, first + 200):
            token = manager.get_cancellation_token()
            registered = manager.register_callback(token, partial(called.append, number))
            outcomes.append((number, registered, registered and manager.deregister_callback(token)))

    threads = [in_thread(partial(work, first)) for first in range(0, 1600, 200)]
    time.sleep(0.002)
    manager.start_cancel()
    for thread in threads:
        thread.join(WAIT_S)
    expected = sorted(
        n for n, registered, deregistered in outcomes if registered and not deregistered
    )
    assert len(outcomes) == 1600
    assert sorted(called) == expected
