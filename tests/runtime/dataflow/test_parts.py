"""Graphs in which something waits: their other parts run as plans, and nothing else about them differs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.dataflow.kernels import Together, register
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_loops import counted
from tests.runtime.dataflow.test_random_loops import nest

import opkernel
from opkernel.errors import DeadlineExceededError, InvalidArgumentError
from opkernel.graph import Operation, Tensor
from opkernel.kernel import AsyncOpKernel, OpKernelContext
from opkernel.opdef import unchanged_shape, unknown_shape

F = np.float32


class AtOnce(AsyncOpKernel):
    """Passes its input on; it might have waited."""

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        ctx.set_output(0, np.asarray(ctx.input(0)).copy())
        done()


class FromThread(AsyncOpKernel):
    """Passes its input on from another thread."""

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        def finish() -> None:
            ctx.set_output(0, np.float32(ctx.input(0)))
            done()

        threading.Thread(target=finish).start()


register("PartsAtOnce", AtOnce, shape_fn=unchanged_shape)
register("PartsFromThread", FromThread)
register("PartsTogether", Together)


def queue_of(b: Builder) -> Tensor:
    return b.op("FIFOQueueV2", name="queue", component_types=[FLOAT])


def enqueue(b: Builder, queue: Tensor, value: Tensor) -> Operation:
    return b.operation("QueueEnqueueV2", queue, [value], Tcomponents=[FLOAT])


def dequeue(b: Builder, queue: Tensor) -> Tensor:
    return b.op("QueueDequeueV2", queue, component_types=[FLOAT])


def source_of(b: Builder, fetches: Any, feeds: list[str]) -> str:
    with opkernel.Session(b.graph) as session:
        return str(session.plan(fetches, feeds).source)


def test_a_loop_beside_a_queue_is_a_while_statement() -> None:
    b = Builder()
    n, x = b.placeholder("n", INT32), b.placeholder("x")
    (doubled,) = counted(b, n, lambda i, x: [b.op("AddV2", x, x)], [x])
    queue = queue_of(b)
    put, taken = enqueue(b, queue, doubled), dequeue(b, queue)
    assert "while True:" in source_of(b, [taken, put], ["n:0", "x:0"])
    assert b.run([taken, put], {"n:0": 5, "x:0": 3.0}) == [96, None]


def test_a_loop_whose_turns_need_what_a_queue_gave_is_a_while_statement() -> None:
    b = Builder()
    n, x, queue = b.placeholder("n", INT32), b.placeholder("x"), queue_of(b)

    def body(i: Tensor, x: Tensor, queue: Tensor) -> list[Tensor]:
        more = b.op("AddV2", b.op("Mul", x, x), b.op("Neg", x))
        after = [enqueue(b, queue, more)]
        taken = b.operation("QueueDequeueV2", queue, after=after, component_types=[FLOAT])
        return [b.op("AddV2", b.op("Neg", taken.outputs[0]), b.constant(2.0))]

    (y,) = counted(b, n, body, [x], [queue])
    expected = F(0.5)
    for _ in range(7):
        expected = 2 - (expected * expected - expected)
    assert "while True:" in source_of(b, y, ["n:0", "x:0"])
    assert b.run(y, {"n:0": 7, "x:0": 0.5}) == pytest.approx(float(expected), rel=1e-6)


def test_nodes_that_feed_a_queue_do_not_wait_for_those_that_it_feeds() -> None:
    """No edge says that one needs the other."""
    b = Builder()
    x, queue = b.placeholder("x"), queue_of(b)
    put = enqueue(b, queue, b.op("Neg", b.op("Sin", x)))
    taken = b.op("Square", b.op("Neg", dequeue(b, queue)))
    both = b.op("AddV2", b.op("Mul", taken, taken), b.op("Cos", b.op("Exp", x)))
    s = np.sin(F(0.5))
    expected = (s * s) ** 2 + np.cos(np.exp(F(0.5)))
    for executor in ("", "DATAFLOW"):
        found, _ = b.run([both, put], {"x:0": 0.5}, executor)
        assert found == pytest.approx(expected, rel=1e-6)


def test_nodes_that_wait_side_by_side_start_before_any_has_ended() -> None:
    b = Builder()
    x, waiting = b.placeholder("x"), []
    for _ in range(20):
        x = b.op("AddV2", b.op("Neg", x), b.constant(1.0))
        waiting.append(b.op("PartsTogether", b.op("Mul", x, x)))
    # 1 - 2 and 2 take turns
    assert b.run(b.op("AddN", waiting, N=20), {"x:0": 2.0}, "") == 10 * 1 + 10 * 4


def test_a_part_on_a_branch_that_is_not_taken_is_dead() -> None:
    b = Builder()
    p, x, queue = b.placeholder("p", BOOL), b.placeholder("x"), queue_of(b)
    put = enqueue(b, queue, x)
    value = dequeue(b, queue)
    (y,) = b.cond(
        p,
        lambda x: counted(b, b.constant(3), lambda i, x: [b.op("Mul", x, x)], [b.op("Neg", x)]),
        lambda x: [b.op("AddV2", b.op("Sin", b.op("Neg", b.op("Neg", x))), b.constant(1.0))],
        [value],
    )
    for taken, expected in ((True, 256), (False, 1 + np.sin(F(2)))):
        for executor in ("", "DATAFLOW"):
            found, _ = b.run([y, put], {"p:0": taken, "x:0": 2.0}, executor)
            assert found == pytest.approx(expected, rel=1e-6)


def test_errors_of_parts_name_the_node_and_its_inputs() -> None:
    b = Builder()
    x = b.op("PartsAtOnce", b.placeholder("x"))
    sliced = b.op("MatMul", b.op("Neg", x), b.op("Sin", x), name="product")
    for executor in ("", "DATAFLOW"):
        with pytest.raises(
            InvalidArgumentError, match=r"node 'product', inputs float32\[2,3\]"
        ) as found:
            b.run(b.op("Neg", sliced), {"x:0": np.ones((2, 3), F)}, executor)
        assert (found.value.node, found.value.op) == ("product", "MatMul")


def test_steps_that_wait_name_the_node_in_a_part_that_lacks_something() -> None:
    b = Builder()
    taken = dequeue(b, queue_of(b))
    y = b.op("Neg", b.op("Sin", taken), name="y")
    with opkernel.Session(b.graph) as session:
        options = opkernel.RunOptions(timeout_in_ms=50)
        with pytest.raises(DeadlineExceededError, match="waiting for QueueDequeueV2"):
            session.run(y, options=options)


def test_a_loop_that_is_a_part_ends_with_the_time_of_its_step() -> None:
    b = Builder()
    true = b.constant(True)
    (endless,) = b.while_loop(
        lambda x, go: b.op("Identity", go),
        lambda x, go: [b.op("AddV2", x, b.constant(1.0))],
        [b.op("PartsAtOnce", b.placeholder("x"))],
        [true],
    )
    with opkernel.Session(b.graph, optimize=False) as session:
        options = opkernel.RunOptions(timeout_in_ms=50)
        with pytest.raises(DeadlineExceededError):
            session.run(endless, {"x:0": 0.0}, options=options)


def test_parts_free_their_inputs_after_the_last_use() -> None:
    made: list[weakref.ref[Any]] = []
    alive: list[bool] = []

    class Makes(AsyncOpKernel):
        def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
            array = np.ones(1000, F) * ctx.input(0)
            made.append(weakref.ref(array))
            ctx.set_output(0, array)
            done()

    def looks(x: Any) -> Any:
        alive.append(made[-1]() is not None)
        return x[0]

    register("PartsMakes", Makes, shape_fn=unknown_shape)
    register("PartsLooks", looks)
    b = Builder()
    x = b.op("Exp", b.op("PartsMakes", b.placeholder("x")))
    y = b.op("PartsLooks", b.op("Neg", b.op("Neg", b.op("Neg", x))))
    assert b.run(y, {"x:0": 0.0}, "", optimize=False) == -1
    assert alive == [False]


@pytest.mark.parametrize("optimize", [False, True])
def test_a_fed_value_stands_for_what_its_node_passes_on(optimize: bool) -> None:
    b = Builder()
    x, queue = b.placeholder("x"), queue_of(b)
    passed = b.op("Identity", b.op("PartsAtOnce", x), name="passed")
    y = b.op("Neg", passed)
    put, taken = enqueue(b, queue, y), dequeue(b, queue)
    feeds = {"x:0": 0.5, "passed:0": 2.0}
    for executor in ("", "DATAFLOW"):
        found = b.run([y, passed, passed.op, taken, put], feeds, executor, optimize=optimize)
        assert found == [-2, 2, None, -2, None]


def test_partial_runs_compute_what_their_feeds_allow() -> None:
    b = Builder()
    x, z = b.placeholder("x"), b.placeholder("z")
    first = b.op("Neg", b.op("PartsAtOnce", b.op("Sin", x)))
    second = b.op("AddV2", b.op("Neg", z), first)
    with opkernel.Session(b.graph) as session:
        handle = session.partial_run_setup([first, second], [x, z])
        value = session.partial_run(handle, first, {x: 0.5})
        assert value == -np.sin(F(0.5))
        assert session.partial_run(handle, second, {z: 2.0}) == value - 2


@given(st.data(), st.lists(st.integers(-8, 8), min_size=3, max_size=3))
@settings(max_examples=25, deadline=None)
def test_random_nests_in_which_some_nodes_wait(data: Any, starts: list[int]) -> None:
    b = Builder()
    waits = st.sampled_from(["Identity", "Identity", "PartsAtOnce", "PartsFromThread"])
    build, python = nest(data.draw, b, 3, leaf=lambda: data.draw(waits))
    y = build(b.op("PartsAtOnce", b.placeholder("x")), b.placeholder("w"))
    with opkernel.Session(b.graph) as session, np.errstate(all="ignore"):
        for start in starts:
            feeds = {"x:0": start / 4, "w:0": 0.75}
            assert session.run(y, feeds) == python(F(start / 4), F(0.75))
