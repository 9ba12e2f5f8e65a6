"""One lock for each key."""

import threading

import pytest

from opkernel.errors import InternalError
from opkernel.state.keyed_lock import KeyedLock

WAIT_S = 300.0


def test_one_thread_at_a_time_holds_a_key() -> None:
    locks = KeyedLock()
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            with locks.hold("key"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert most == 1
    assert not locks._entries


def test_other_keys_are_free() -> None:
    locks = KeyedLock()
    entered = threading.Event()

    def work() -> None:
        with locks.hold("other"):
            entered.set()

    with locks.hold("key"):
        thread = threading.Thread(target=work)
        thread.start()
        assert entered.wait(WAIT_S)
        with locks.hold("third"):
            pass
    thread.join(WAIT_S)


def test_a_thread_cannot_hold_a_key_twice() -> None:
    locks = KeyedLock()
    with locks.hold("key"), pytest.raises(InternalError, match="'key'"), locks.hold("key"):
        pass
    with locks.hold("key"):
        pass


def test_an_error_sets_the_key_free() -> None:
    locks = KeyedLock()
    with pytest.raises(ZeroDivisionError), locks.hold("key"):
        raise ZeroDivisionError
    with locks.hold("key"):
        pass
