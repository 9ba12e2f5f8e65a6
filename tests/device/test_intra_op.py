"""shard: one kernel's work on several threads, without waiting for helpers that are busy."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.device import intra_op
from opkernel.device.budget import Budget, current_budget, spending
from opkernel.device.intra_op import _openblas, one_blas_thread
from opkernel.errors import DeadlineExceededError
from opkernel.kernel import (
    cut,
    intra_op_parallelism,
    intra_op_threads,
    openblas_functions,
    shard,
)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_every_part_is_done_once(threads, count):
    done: list[int] = []
    with intra_op_parallelism(threads):
        shard(done.append, range(count))
    assert sorted(done) == list(range(count))


def test_parts_are_done_side_by_side():
    meeting = threading.Barrier(3, timeout=300)
    with intra_op_parallelism(3):
        shard(lambda _: meeting.wait(), range(3))


def test_one_thread_is_the_calling_one():
    found = []
    with intra_op_parallelism(1):
        shard(lambda _: found.append(threading.get_ident()), range(9))
    assert set(found) == {threading.get_ident()}


@pytest.mark.parametrize("failing", [0, 7])
def test_an_error_is_raised_when_all_threads_have_stopped(failing):
    at_work = set()

    def work(part):
        at_work.add(part)
        try:
            if part == failing:
                raise ValueError("part")
            time.sleep(0.001)
        finally:
            at_work.remove(part)

    with intra_op_parallelism(4), pytest.raises(ValueError, match="part"):
        shard(work, range(1000))
    assert not at_work


def test_work_within_work_does_not_wait_for_busy_helpers():
    done = []

    def outer(part):
        shard(lambda inner: done.append((part, inner)), range(5))

    with intra_op_parallelism(2):
        shard(outer, range(20))
    assert sorted(done) == [(part, inner) for part in range(20) for inner in range(5)]


def test_callers_side_by_side():
    done: list[list[int]] = [[] for _ in range(8)]

    def call(mine):
        with intra_op_parallelism(3):
            for _ in range(50):
                shard(mine.append, range(4))

    callers = [threading.Thread(target=call, args=(mine,)) for mine in done]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert [sorted(mine) for mine in done] == [sorted(list(range(4)) * 50)] * 8


def test_helpers_keep_to_the_budget_of_the_caller():
    meeting = threading.Barrier(3, timeout=300)
    budgets = []

    def work(_):
        meeting.wait()
        budgets.append(current_budget())

    with intra_op_parallelism(3), spending(Budget(1 << 20)) as budget:
        shard(work, range(3))
    assert budgets == [budget] * 3
    shard(lambda _: budgets.append(current_budget()), range(3))
    assert budgets[3:] == [None] * 3


def test_no_part_is_begun_when_time_is_up():
    done: list[int] = []
    late = Budget(deadline=time.monotonic() - 1)
    with intra_op_parallelism(3), spending(late), pytest.raises(DeadlineExceededError):
        shard(done.append, range(100))
    assert len(done) < 100


def test_helpers_ignore_floating_point_errors():
    with intra_op_parallelism(4), np.errstate(all="raise"):
        barrier = threading.Barrier(4, timeout=300)
        raised = []

        def work(_):
            barrier.wait()
            try:
                np.divide(np.ones(1), 0)
            except FloatingPointError:
                raised.append(threading.get_ident())

        shard(work, range(4))
    assert raised == [threading.get_ident()]


@pytest.mark.skipif(_openblas() is None, reason="NumPy has another BLAS")
def test_blas_is_held_to_the_calling_thread():
    functions = _openblas()
    assert functions is not None
    get, put = functions
    before = get()
    try:
        put(2)
        found = []
        shard(lambda _: found.append(get()), range(2))
        assert (found, get()) == ([1, 1], 2)
        with one_blas_thread(), one_blas_thread():
            assert get() == 1
        assert get() == 2
    finally:
        put(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_may_hold_blas_whatever_threads_did_meanwhile():
    is_over = threading.Event()

    def hold():
        while not is_over.is_set():
            with one_blas_thread():
                pass

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(10)
                with one_blas_thread():
                    users = len(one_blas_thread.blocks)
                os._exit(0 if (users, len(one_blas_thread.blocks)) == (1, 0) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        is_over.set()
        thread.join()


def test_threads_are_at_least_one():
    with intra_op_parallelism(-3):
        assert intra_op_threads() == 1


@given(st.integers(0, 300), st.integers(1, 20), st.integers(1, 9))
def test_a_range_is_cut_into_parts_of_about_one_size(size, parts, multiple):
    found = cut(size, parts, multiple)
    assert [number for one in found for number in range(size)[one]] == [*range(size)]
    assert len(found) <= parts or size <= parts * multiple
    assert all(one.start % multiple == 0 for one in found)
    lengths = [one.stop - one.start for one in found]
    assert all(length == lengths[0] for length in lengths[:-1])
    assert not lengths or lengths[0] < -(-size // parts) + multiple


@pytest.mark.parametrize(
    ("size", "parts", "multiple", "lengths"),
    [
        (10, 3, 1, [4, 4, 2]),
        (9, 3, 1, [3] * 3),
        (10, 3, 4, [4, 4, 2]),
        (2, 5, 1, [1, 1]),
        (0, 3, 1, []),
    ],
)
def test_cuts(size, parts, multiple, lengths):
    assert [one.stop - one.start for one in cut(size, parts, multiple)] == lengths


def test_without_a_multiple_parts_begin_anywhere():
    assert cut(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert cut(3, 3) == [slice(0, 1), slice(1, 2), slice(2, 3)]


@pytest.mark.parametrize(
    ("asked", "threads"),
    [("3", "3"), ("1", "1"), ("", "2"), ("0", "2"), ("-3", "2"), ("many", "2"), (None, "2")],
)
def test_the_environment_says_how_many_threads_there_are(asked, threads, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 5}, raising=False)
    monkeypatch.delenv("OPKERNEL_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OPKERNEL_NUM_THREADS", asked)
    assert str(intra_op._default_threads()) == threads


def test_where_the_system_does_not_say_which_processors_it_may_use_it_uses_all(monkeypatch):
    monkeypatch.delenv("OPKERNEL_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for processors, threads in ((7, 7), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda processors=processors: processors)
        assert intra_op._default_threads() == threads


def test_no_more_helpers_come_than_there_are_parts():
    idents: set[int] = set()
    with intra_op_parallelism(64):
        shard(lambda _: idents.add(threading.get_ident()), range(1))
    assert idents == {threading.get_ident()}


def test_parts_without_a_helper_are_left_out_after_an_error():
    done: list[int] = []

    def work(part):
        done.append(part)
        if part == 2:
            raise KeyError("part")

    with intra_op_parallelism(1), pytest.raises(KeyError):
        shard(work, range(9))
    assert done == [0, 1, 2]


@pytest.mark.skipif(_openblas() is None, reason="NumPy has another BLAS")
def test_blas_may_be_held_for_good_and_is_told_once():
    functions = _openblas()
    assert functions is not None
    get, put = functions
    before, block = get(), object()
    assert one_blas_thread.holds
    try:
        put(3)
        one_blas_thread.hold(block)
        assert get() == 1
        with one_blas_thread():
            pass
        assert get() == 1  # somebody else holds it still
        one_blas_thread.blocks.discard(block)
        with one_blas_thread():
            pass
        assert get() == 3
    finally:
        put(before)


def test_another_blas_is_left_alone(monkeypatch):
    monkeypatch.setattr("opkernel.device.intra_op._openblas", lambda: None)
    assert not one_blas_thread.holds
    with one_blas_thread():
        assert len(one_blas_thread.blocks) == 1
    assert not one_blas_thread.blocks
    assert openblas_functions("no_such_function") is None
