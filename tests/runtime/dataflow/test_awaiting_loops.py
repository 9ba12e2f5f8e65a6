"""Loops with kernels that wait: as plans where nothing else could have an effect meanwhile, else turn by turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_loops import counted

import opkernel
from opkernel import RunOptions
from opkernel.errors import DeadlineExceededError, OutOfRangeError
from opkernel.graph import Operation, Tensor

EXECUTORS = pytest.mark.parametrize("executor", ["", "DATAFLOW"])
WAIT_S = 20


def queue_of(b: Builder, name: str = "queue", capacity: int = -1) -> Tensor:
    attrs = {"component_types": [FLOAT], "capacity": capacity}
    return b.op("FIFOQueueV2", name=name, **attrs)


def put(b: Builder, queue: Tensor, value: Tensor, name: str = "put") -> Operation:
    return b.operation("QueueEnqueueV2", queue, [value], name=name, Tcomponents=[FLOAT])


def take(b: Builder, queue: Tensor, *after: Operation, name: str = "taken") -> Tensor:
    types = [FLOAT]
    taken = b.operation("QueueDequeueV2", queue, name=name, after=after, component_types=types)
    return taken.outputs[0]


def sum_of_elements(b: Builder, queue: Tensor) -> Tensor:
    """A loop that adds up `n` elements of a queue."""
    n = b.placeholder("n", INT32)

    def add(i: Tensor, total: Tensor, queue: Tensor) -> list[Tensor]:
        return [b.op("AddV2", total, take(b, queue, i.op))]

    return counted(b, n, add, [b.constant(0.0)], [queue])[0]


def numbers_into(b: Builder, queue: Tensor, count: int) -> Tensor:
    """A loop that puts 1, 2, 3 ... into a queue, and gives the number after the last."""
    one = b.constant(1.0)

    def body(i: Tensor, x: Tensor, queue: Tensor) -> list[Tensor]:
        after = [put(b, queue, x, "number")]
        step = b.operation("Identity", b.constant(1.0), after=after).outputs[0]
        return [b.op("AddV2", x, step)]

    return counted(b, b.constant(count), body, [one], [queue])[0]


def source_of(session: opkernel.Session, fetches: Any, feeds: list[str]) -> str:
    return str(session.plan(fetches, feeds).source)


class Running:
    """A step on another thread."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self._found: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._found.append(run()), daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        self._thread.join(WAIT_S)
        return self._found[0]


@EXECUTORS
def test_a_loop_waits_for_each_of_its_elements(executor: str) -> None:
    b = Builder()
    queue, x = queue_of(b), b.placeholder("x")
    total, add = sum_of_elements(b, queue), put(b, queue, x)
    with opkernel.Session(b.graph, executor_type=executor) as session:
        assert ("while True:" in source_of(session, total, ["n:0"])) == (not executor)
        session.run(add, {"x:0": 0.5})
        running = Running(lambda: session.run(total, {"n:0": 4}))
        for value in (1.0, 2.0, 4.0):
            time.sleep(0.01)
            assert not running.is_over
            session.run(add, {"x:0": value})
        assert running.result() == 7.5
        assert session.run(total, {"n:0": 0}) == 0


@EXECUTORS
@pytest.mark.parametrize("capacity", [1, 3, 100])
def test_two_loops_of_a_step_wait_for_each_other(executor: str, capacity: int) -> None:
    b = Builder()
    queue = queue_of(b, capacity=capacity)
    last, total = numbers_into(b, queue, 50), sum_of_elements(b, queue)
    with opkernel.Session(b.graph, executor_type=executor) as session:
        assert source_of(session, [last, total], ["n:0"]).count("while True:") == 2 * (not executor)
        assert session.run([last, total], {"n:0": 50}) == [51, 50 * 51 / 2]
        assert session.run([total, last], {"n:0": 50}) == [50 * 51 / 2, 51]


@EXECUTORS
def test_effects_of_later_turns_do_not_wait_with_a_turn_that_needs_them_not(executor: str) -> None:
    b = Builder()
    x, filled, awaited = b.placeholder("x"), queue_of(b, "filled"), queue_of(b, "awaited")

    def body(i: Tensor, total: Tensor, filled: Tensor, awaited: Tensor) -> list[Tensor]:
        number = b.op("Cast", i, SrcT=INT32, DstT=FLOAT)
        step = b.operation("Identity", b.constant(0.0), after=[put(b, filled, number)])
        return [b.op("AddN", [total, take(b, awaited, i.op), step.outputs[0]], N=3)]

    (total,) = counted(b, b.constant(5), body, [b.constant(0.0)], [filled, awaited])
    size, add = b.op("QueueSizeV2", filled), put(b, awaited, x)
    with opkernel.Session(b.graph, executor_type=executor) as session:
        running = Running(lambda: session.run(total))
        until = time.monotonic() + WAIT_S
        while session.run(size) < 5 and time.monotonic() < until:
            time.sleep(0.001)
        assert (session.run(size), running.is_over) == (5, False)
        for _ in range(5):
            session.run(add, {"x:0": 2.0})
        assert running.result() == 10


@EXECUTORS
def test_a_loop_starts_though_a_value_that_enters_waits_for_it(executor: str) -> None:
    b = Builder()
    queue, x = queue_of(b), b.placeholder("x")
    first = take(b, queue)

    def body(i: Tensor, x: Tensor, total: Tensor, first: Tensor, queue: Tensor) -> list[Tensor]:
        after = [put(b, queue, x)]
        more = b.operation("Neg", x, after=after).outputs[0]
        return [more, b.op("AddV2", total, first)]

    variables, invariants = [x, b.constant(0.0)], [first, queue]
    fetches = counted(b, b.constant(3), body, variables, invariants)
    assert b.run(fetches, {"x:0": 2.0}, executor) == [-2, 6]


@EXECUTORS
def test_the_end_of_a_queue_in_a_loop_names_the_node(executor: str) -> None:
    b = Builder()
    queue = queue_of(b)
    total, close = sum_of_elements(b, queue), b.operation("QueueCloseV2", queue)
    with opkernel.Session(b.graph, executor_type=executor) as session:

        def fail() -> OutOfRangeError:
            with pytest.raises(OutOfRangeError) as found:
                session.run(total, {"n:0": 1})
            return found.value

        running = Running(fail)
        time.sleep(0.01)
        session.run(close)
        for error in (running.result(), fail()):
            assert (error.node, error.op) == ("taken", "QueueDequeueV2")


@EXECUTORS
def test_a_timeout_ends_a_wait_in_a_loop(executor: str) -> None:
    b = Builder()
    queue, x = queue_of(b), b.placeholder("x")
    total, add = sum_of_elements(b, queue), put(b, queue, x)
    with opkernel.Session(b.graph, executor_type=executor) as session:
        session.run(add, {"x:0": 1.0})
        with pytest.raises(
            DeadlineExceededError, match=r"waiting for QueueDequeueV2 \(node 'taken'"
        ):
            session.run(total, {"n:0": 2}, options=RunOptions(timeout_in_ms=50))
        session.run(add, {"x:0": 3.0})
        assert session.run(total, {"n:0": 1}) == 3


def test_elements_of_a_queue_are_not_shared_with_variables_of_a_loop() -> None:
    """An array that a queue holds stays as it is, whatever the loop does with its variables afterwards."""
    b = Builder()
    queue, x = queue_of(b), b.placeholder("x")

    def body(i: Tensor, x: Tensor, queue: Tensor) -> list[Tensor]:
        value = b.op("Neg", x)
        step = b.operation("Identity", value, after=[put(b, queue, value)]).outputs[0]
        return [b.op("AddV2", step, b.op("Square", value))]

    (y,) = counted(b, b.constant(4), body, [x], [queue])
    element = take(b, queue)
    start = expected = np.array([1, -2, 3], np.float32) / 4
    with opkernel.Session(b.graph) as session:
        found = session.run(y, {"x:0": start})
        for _ in range(4):
            np.testing.assert_array_equal(session.run(element), -expected)
            expected = -expected + expected * expected
        np.testing.assert_array_equal(found, expected)
