"""Objects that end when their last owner gives them up."""

import gc
import threading

import pytest

from opkernel.errors import InternalError
from opkernel.kernel import RefCounted


class Thing(RefCounted):
    def __init__(self, ended: list[str]) -> None:  # leaves RefCounted's __init__ out
        self.ended = ended

    def on_destroy(self) -> None:
        self.ended.append("ended")


def test_the_last_owner_ends_it() -> None:
    ended: list[str] = []
    thing = Thing(ended)
    assert (thing.ref_count, thing.ref_count_is_one) == (1, True)
    thing.ref()
    assert (thing.ref_count, thing.ref_count_is_one) == (2, False)
    assert not thing.unref()
    assert ended == []
    assert thing.unref()
    assert ended == ["ended"]


def test_what_has_ended_stays_so() -> None:
    thing = Thing([])
    thing.unref()
    assert not thing.try_ref()
    with pytest.raises(InternalError, match="Thing has no references left to share"):
        thing.ref()
    with pytest.raises(InternalError, match="Thing has no references left to give up"):
        thing.unref()


def test_a_block_gives_up_one_reference() -> None:
    thing = Thing([])
    thing.ref()
    with thing as same:
        assert same is thing
    assert thing.ref_count_is_one


def test_what_is_collected_ends_once() -> None:
    ended: list[str] = []
    thing = Thing(ended)
    del thing
    gc.collect()
    assert ended == ["ended"]
    thing = Thing(ended)
    thing.unref()
    del thing
    gc.collect()
    assert ended == ["ended"] * 2


def test_threads_lose_no_reference() -> None:
    ended: list[str] = []
    thing = Thing(ended)

    def share() -> None:
        for _ in range(1000):
            thing.ref()
        for _ in range(1000):
            thing.unref()

    threads = [threading.Thread(target=share) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert thing.ref_count_is_one
    assert ended == []
