"""Pools of threads: of one session, shared, named, chosen for a step; threads that come and go."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import register
from tests.runtime.dataflow.loop_builders import Builder
from tests.runtime.dataflow.test_functions import call, define

import opkernel
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel
from opkernel.runtime.program.inter_op_pool import InterOpPool, InterOpPools, ThreadPoolOption
from opkernel.runtime.program.run_step import RunStep
from opkernel.types import DataType


def ends(is_so: Callable[[], bool]) -> bool:
    """Whether something becomes true."""
    until = time.monotonic() + 300
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)
    return is_so()


@pytest.fixture
def pool() -> Iterator[InterOpPool]:
    pool = InterOpPool(2, "of the test")
    yield pool
    pool.shutdown()


def test_there_are_no_more_threads_than_work_and_no_more_than_asked_for(pool: InterOpPool) -> None:
    before = threading.active_count()
    go_on = threading.Event()
    assert pool.submit(go_on.wait, lambda: None)
    assert threading.active_count() == before + 1
    done: list[int] = []
    assert pool.submit(go_on.wait, lambda: None)
    assert not pool.submit(lambda: done.append(0), lambda: done.append(1))  # none is free
    for number in range(2, 5):
        pool.schedule(partial(done.append, number))
    assert threading.active_count() == before + 2
    go_on.set()
    pool.shutdown()
    assert sorted(done) == [1, 2, 3, 4]  # what was given is done before the threads end
    assert threading.active_count() == before


def test_threads_without_work_end_and_come_back() -> None:
    pool = InterOpPool(3, idle_s=0.02)
    before = threading.active_count()
    for _ in range(3):
        done = threading.Event()
        pool.schedule(done.set)
        assert done.wait(300)
        assert ends(lambda: threading.active_count() == before)


def test_work_that_raises_leaves_the_thread_to_others(
    pool: InterOpPool, caplog: pytest.LogCaptureFixture
) -> None:
    done = threading.Event()
    for _ in range(4):
        pool.schedule(lambda: 1 // 0)
    pool.schedule(done.set)
    assert done.wait(300)
    assert "ZeroDivisionError" in caplog.text


def test_scheduled_work_has_the_context_of_its_caller(pool: InterOpPool) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="none")
    variable.set("the caller's")
    found: list[str] = []
    pool.schedule(lambda: found.append(variable.get()))
    assert ends(lambda: bool(found))
    pool.shutdown()
    pool.schedule(lambda: found.append(threading.current_thread().name))  # now by the caller
    assert found == ["the caller's", threading.current_thread().name]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(pool: InterOpPool) -> None:
    pool.schedule(lambda: None)
    child = os.fork()
    if child == 0:
        done = threading.Event()
        pool.schedule(done.set)
        os._exit(0 if done.wait(300) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sessions_share_the_pool_of_their_number_or_have_their_own() -> None:
    assert InterOpPools(3).choose() is InterOpPools(3).choose()
    assert InterOpPools(3).choose() is not InterOpPools(4).choose()
    own, other = (InterOpPools(3, per_session=True) for _ in range(2))
    assert own.choose() not in (other.choose(), InterOpPools(3).choose(), None)
    assert InterOpPools(0).choose() is InterOpPools(os.cpu_count() or 1).choose()
    before = threading.active_count()
    pool, shared = own.choose(), InterOpPools(3).choose()
    assert pool is not None
    assert shared is not None
    done = threading.Event()
    pool.schedule(done.set)
    assert done.wait(300)
    own.close()
    InterOpPools(3).close()  # the others who share it go on
    assert threading.active_count() == before
    assert shared.submit(lambda: None, lambda: None)


def test_a_pool_is_chosen_by_its_index() -> None:
    options = [ThreadPoolOption(2), ThreadPoolOption(0), ThreadPoolOption(1, "test_index")]
    pools = InterOpPools(5, pools=options)
    chosen = [pools.choose(index) for index in range(3)]
    assert [pool and pool.threads for pool in chosen] == [2, 5, 1]
    assert pools.choose(-1) is None
    assert InterOpPools(7, pools=[ThreadPoolOption(1, "test_index")]).choose() is chosen[2]
    for index in (-2, 3):
        with pytest.raises(InvalidArgumentError, match=f"Invalid inter_op_thread_pool: {index}"):
            pools.choose(index)
    pools.close()


def test_a_named_pool_keeps_its_number_of_threads() -> None:
    InterOpPools(1, pools=[ThreadPoolOption(2, "test_named")])
    with pytest.raises(InvalidArgumentError, match=r"test_named configured .*num_threads=2.*=3"):
        InterOpPools(1, pools=[ThreadPoolOption(3, "test_named")])
    with pytest.raises(InvalidArgumentError, match="-1"):
        InterOpPools(1, pools=[ThreadPoolOption(-1)])


def test_where_there_are_no_pools_the_callers_thread_computes() -> None:
    pools = InterOpPools.none()
    assert pools.choose() is None
    with pytest.raises(InvalidArgumentError, match="1"):
        pools.choose(1)


def test_the_runner_of_a_step_uses_its_pool(pool: InterOpPool) -> None:
    found: list[str] = []
    done = threading.Event()

    def work() -> None:
        found.append(threading.current_thread().name)
        done.set()

    RunStep().runner(work)
    assert found == [threading.current_thread().name]
    done.clear()
    RunStep(inter_op_pool=pool).runner(work)
    assert done.wait(300)
    assert "of the test" in found[1]


class Works(OpKernel):
    """Takes a millisecond of a thread, and notes which."""

    threads: ClassVar[set[str]] = set()

    def compute(self, ctx: Any) -> None:
        time.sleep(0.001)
        self.threads.add(threading.current_thread().name)
        ctx.set_output(0, np.float32(ctx.input(0) + 1))


def nested(b: Builder, depth: int) -> Any:
    """f<depth>(x): three calls of f<depth - 1>, and of two expensive kernels, added up."""
    register("PoolWorks", Works)
    types = [DataType.DT_FLOAT]
    function = define(b, "f0", types, lambda g, x: [g.op("PoolWorks", g.op("PoolWorks", x))])
    for level in range(1, depth):

        def body(g: Builder, x: Any, inner: Any = function) -> list[Any]:
            works = g.op("PoolWorks", x)
            return [g.op("AddN", [call(g, inner, works), call(g, inner, works)])]

        function = define(b, f"f{level}", types, body)
    return function


@pytest.mark.parametrize("threads", [1, 3])
def test_functions_five_deep_in_eight_steps_never_starve_the_pool(threads: int) -> None:
    b = Builder()
    function = nested(b, 5)
    y = call(b, function, b.placeholder("x"))
    found: list[Any] = []
    pools = InterOpPools(threads, per_session=True)
    with opkernel.Session(b.graph, inter_op_threads=threads) as session:
        plan = session.plan(y, ["x:0"])

        def run(x: float) -> None:
            step = RunStep(inter_op_pool=pools.choose())
            found.append((x, *plan.run(step, np.float32(x))))
            step.end()

        steps = [threading.Thread(target=run, args=[float(x)], daemon=True) for x in range(8)]
        for step in steps:
            step.start()
        for step in steps:
            step.join(600)
        assert not any(step.is_alive() for step in steps)
    pools.close()
    # f0(x) = x + 2; f(x) = 2 * inner(x + 1)
    assert sorted(found) == [(x, 16 * (x + 6)) for x in range(8)]
    assert any("inter-op" in name for name in Works.threads)
