"""Kernels that wait for queues: in sessions, between threads, and until they are told to stop."""

import threading
import time
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.ops.data_flow.waiting_steps import WAIT_S, no_threads_left, started

from opkernel import Graph, RunOptions, Session, raw_ops
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
)
from opkernel.kernel import CancellationManager, Step
from opkernel.testing import run_op
from opkernel.types import PartialTensorShape, int32

SOON = RunOptions(timeout_in_ms=100)


class Steps:
    """A graph around one queue of integers, and a session that runs it from any thread."""

    def __init__(self, capacity: int = -1, executor_type: str = "", **attrs: Any) -> None:
        self.graph = Graph()
        with self.graph.as_default():
            queue = raw_ops.FIFOQueueV2(
                component_types=[int32],
                shapes=[PartialTensorShape([])],
                capacity=capacity,
                shared_name="q",
                **attrs,
            )
            self.x, self.n = (raw_ops.Placeholder(dtype=int32) for _ in "xn")
            self._put = raw_ops.QueueEnqueueV2(handle=queue, components=[self.x])
            self._put_many = raw_ops.QueueEnqueueManyV2(handle=queue, components=[self.x])
            self.element = raw_ops.QueueDequeueV2(handle=queue, component_types=[int32])[0]
            batch = {"handle": queue, "n": self.n, "component_types": [int32]}
            self._batch = raw_ops.QueueDequeueManyV2(**batch)[0]
            self._small_batch = raw_ops.QueueDequeueUpToV2(**batch)[0]
            self._size = raw_ops.QueueSizeV2(handle=queue)
            self._close = [
                raw_ops.QueueCloseV2(handle=queue, cancel_pending_enqueues=cancel)
                for cancel in (False, True)
            ]
        self.session = Session(self.graph, executor_type=executor_type)

    def put(self, value: int, **kwargs: Any) -> None:
        self.session.run(self._put, {self.x: value}, **kwargs)

    def put_many(self, values: Any, **kwargs: Any) -> None:
        self.session.run(self._put_many, {self.x: values}, **kwargs)

    def get(self, **kwargs: Any) -> int:
        return int(self.session.run(self.element, **kwargs))

    def get_many(self, n: int, **kwargs: Any) -> list[int]:
        return list(self.session.run(self._batch, {self.n: n}, **kwargs))

    def get_up_to(self, n: int) -> list[int]:
        return list(self.session.run(self._small_batch, {self.n: n}))

    def close(self, *, cancel: bool = False) -> None:
        self.session.run(self._close[cancel])

    @property
    def size(self) -> int:
        return int(self.session.run(self._size))


def result(future: "Future[Any]") -> Any:
    return future.result(WAIT_S)


@pytest.mark.parametrize("executor_type", ["", "COMPILED_PLAN", "DATAFLOW"])
def test_a_dequeue_waits_for_an_enqueue(executor_type: str) -> None:
    steps = Steps(executor_type=executor_type)
    waiting = started(steps.get)
    assert not waiting.done()
    steps.put(5)
    assert result(waiting) == 5
    assert steps.size == 0


@pytest.mark.parametrize("executor_type", ["", "COMPILED_PLAN", "DATAFLOW"])
def test_an_enqueue_waits_while_the_queue_is_full(executor_type: str) -> None:
    steps = Steps(capacity=1, executor_type=executor_type)
    steps.put(1)
    waiting = started(steps.put, 2)
    assert steps.size == 1
    assert steps.get() == 1
    result(waiting)
    assert steps.get() == 2


def test_batches_larger_than_the_queue_pass_through_it_in_parts() -> None:
    steps = Steps(capacity=2)
    taking = started(steps.get_many, 4)
    steps.put_many([1, 2, 3])
    assert steps.size == 0  # taken, for the batch
    putting = started(steps.put_many, [7, 8, 9, 10, 11])
    assert result(taking) == [1, 2, 3, 7]
    assert steps.size == 2
    assert [steps.get(), steps.get()] == [8, 9]
    result(putting)
    assert steps.get_many(2) == [10, 11]


def test_those_who_wait_are_served_in_order() -> None:
    steps = Steps()
    batch, single = started(steps.get_many, 2), started(steps.get)
    steps.put(1)
    assert not single.done()
    steps.put_many([2, 3])
    assert result(batch) == [1, 2]
    assert result(single) == 3


def test_a_close_comes_after_the_enqueues_that_wait() -> None:
    steps = Steps(capacity=2)
    putting = started(steps.put_many, [1, 2, 3, 4])
    closing = started(steps.close)
    assert not closing.done()
    assert steps.get_many(4) == [1, 2, 3, 4]
    result(putting)
    result(closing)
    with pytest.raises(OutOfRangeError):
        steps.get()


def test_a_close_may_cancel_the_enqueues_that_wait() -> None:
    steps = Steps(capacity=2)
    putting = started(steps.put_many, [1, 2, 3, 4])
    steps.close(cancel=True)
    with pytest.raises(CancelledError, match="Enqueue operation was cancelled"):
        result(putting)
    assert steps.get_up_to(3) == [1, 2]


def test_a_close_ends_the_dequeues_that_wait() -> None:
    steps = Steps()
    steps.put_many([1, 2])
    batch = started(steps.get_many, 4)
    single = started(steps.get)
    assert steps.size == 0
    steps.close()
    with pytest.raises(OutOfRangeError, match=r"\(requested 2, current size 0\)"):
        result(batch)
    assert result(single) == 1  # of those that the batch gave back
    assert steps.get() == 2
    with pytest.raises(OutOfRangeError):
        steps.get()


def test_a_closed_queue_ends_a_wait_for_a_small_batch_with_what_there_is() -> None:
    steps = Steps()
    steps.put_many([1, 2])
    batch = started(steps.get_up_to, 4)
    steps.close()
    assert result(batch) == [1, 2]


@pytest.mark.parametrize("executor_type", ["", "COMPILED_PLAN", "DATAFLOW"])
def test_a_timeout_ends_a_wait(executor_type: str) -> None:
    steps = Steps(capacity=1, executor_type=executor_type)
    with no_threads_left():
        with pytest.raises(DeadlineExceededError):
            steps.get(options=SOON)
        steps.put(1)
        with pytest.raises(DeadlineExceededError):
            steps.put(2, options=SOON)
        with pytest.raises(DeadlineExceededError):
            steps.get_many(3, options=SOON)
        assert steps.get() == 1  # what the batch had is there again
        assert steps.size == 0


@pytest.mark.parametrize("executor_type", ["", "COMPILED_PLAN", "DATAFLOW"])
def test_closing_the_session_ends_all_waits(executor_type: str) -> None:
    steps = Steps(capacity=1, executor_type=executor_type)
    with no_threads_left():
        waits = [started(steps.get), started(steps.get_many, 3), started(steps.get_up_to, 2)]
        steps.session.close()
        for wait in waits:
            with pytest.raises(CancelledError):
                result(wait)


def test_a_wait_ends_when_another_node_of_the_step_fails() -> None:
    steps = Steps()
    with steps.graph.as_default():
        fails = raw_ops.CheckNumerics(tensor=np.float32(np.nan), message="broken")
    with pytest.raises(InvalidArgumentError, match="broken"):
        steps.session.run([steps.element, fails])
    steps.put(1)
    assert steps.get() == 1


def test_other_nodes_of_a_step_run_while_one_waits() -> None:
    steps = Steps()
    assert steps.session.run([steps.element, steps._put], {steps.x: 4}) == [4, None]


def test_a_step_of_queues_and_arithmetic() -> None:
    steps = Steps()
    with steps.graph.as_default():
        squared = raw_ops.Mul(x=steps.element, y=steps.element)
        with steps.graph.control_dependencies([squared.op]):
            left = raw_ops.Identity(input=steps._size)
    steps.put_many([3, 4])
    assert steps.session.run(squared) == 9
    assert steps.session.run([squared, left])[0] == 16


@pytest.mark.parametrize("capacity", [-1, 3])
def test_sixteen_threads_lose_and_duplicate_nothing(capacity: int) -> None:
    steps, each = Steps(capacity=capacity), 40
    taken: list[int] = []
    with no_threads_left():
        puts = [
            threading.Thread(target=_produce, args=(steps, start, each), daemon=True)
            for start in range(0, 8 * each, each)
        ]
        gets = [
            threading.Thread(target=_consume, args=(steps, taken, i % 2), daemon=True)
            for i in range(8)
        ]
        for thread in (*puts, *gets):
            thread.start()
        for thread in puts:
            thread.join(WAIT_S)
        steps.close()
        for thread in gets:
            thread.join(WAIT_S)
    assert sorted(taken) == list(range(8 * each))


def _produce(steps: Steps, start: int, count: int) -> None:
    for value in range(start, start + count, 4):
        steps.put(value)
        steps.put_many([value + 1, value + 2, value + 3])


def _consume(steps: Steps, taken: list[int], in_batches: int) -> None:
    try:
        while True:
            taken += steps.get_up_to(3) if in_batches else [steps.get()]
    except OutOfRangeError:
        pass


def test_threads_feed_a_training_loop_through_a_shuffled_queue() -> None:
    """The pattern of queue runners: threads read, a queue shuffles, a loop takes batches."""
    shapes = [PartialTensorShape([]), PartialTensorShape([2])]
    dtypes = [int32, int32]
    with Graph().as_default() as graph:
        names = raw_ops.FIFOQueueV2(component_types=[int32], shapes=shapes[:1], capacity=4)
        number = raw_ops.Placeholder(dtype=int32)
        put_name = raw_ops.QueueEnqueueV2(handle=names, components=[number])
        close_names = raw_ops.QueueCloseV2(handle=names)
        examples = raw_ops.RandomShuffleQueueV2(
            component_types=dtypes, shapes=shapes, capacity=8, min_after_dequeue=3
        )
        name = raw_ops.QueueDequeueV2(handle=names, component_types=[int32])[0]
        example = [name, raw_ops.Pack(values=[name, raw_ops.Neg(x=name)])]
        put_example = raw_ops.QueueEnqueueV2(handle=examples, components=example)
        close_examples = raw_ops.QueueCloseV2(handle=examples)
        batch = raw_ops.QueueDequeueUpToV2(handle=examples, n=np.int32(5), component_types=dtypes)
    with no_threads_left(), Session(graph) as session:
        runner = started(_run_until_closed, session, put_example, close_examples)
        feeding = started(_feed, session, put_name, number, close_names)
        seen = _batches_until_closed(session, list(batch))
        result(feeding)
        result(runner)
        assert sorted(seen) == list(range(23))
        assert seen != sorted(seen)


def _batches_until_closed(session: Session, batch: Any) -> list[int]:
    seen: list[int] = []
    try:
        while True:
            keys, pairs = session.run(batch)
            assert (pairs == np.stack([keys, -keys], axis=1)).all()
            seen += keys.tolist()
    except OutOfRangeError:
        return seen


def _feed(session: Session, enqueue: Any, number: Any, close: Any) -> None:
    for value in range(23):
        session.run(enqueue, {number: value})
    session.run(close)


def _run_until_closed(session: Session, enqueue: Any, close: Any) -> None:
    try:
        while True:
            session.run(enqueue)
    except OutOfRangeError:
        session.run(close)


def test_a_cancelled_step_starts_no_wait_and_leaves_none() -> None:
    attrs = {"component_types": [int32]}
    queue = raw_ops.FIFOQueueV2(**attrs, shared_name="cancelled")
    step = Step()
    step.cancellation_manager = CancellationManager()
    dequeue = partial(run_op, "QueueDequeueV2", [queue], attrs=attrs, step=step)
    waiting = started(dequeue)
    step.cancellation_manager.start_cancel()
    for attempt in (lambda: result(waiting), dequeue):
        with pytest.raises(CancelledError, match="Dequeue operation was cancelled"):
            attempt()
    raw_ops.QueueEnqueueV2(handle=queue, components=[np.int32(3)])
    assert raw_ops.QueueDequeueV2(handle=queue, component_types=[int32])[0] == 3


def test_a_hundred_waits_take_no_threads_but_those_of_their_steps() -> None:
    steps = Steps()
    before = threading.active_count()
    with steps.graph.as_default():
        elements = [
            raw_ops.QueueDequeueV2(handle=steps.element.op.inputs[0], component_types=[int32])[0]
            for _ in range(100)
        ]
    waiting = started(steps.session.run, elements)
    time.sleep(0.05)
    assert threading.active_count() <= before + 1
    steps.put_many(list(range(100)))
    assert sorted(result(waiting)) == list(range(100))


def test_errors_name_the_node() -> None:
    steps = Steps()
    steps.close()
    with pytest.raises(OpError) as raised:
        steps.get()
    assert raised.value.op == "QueueDequeueV2"
    assert raised.value.node == steps.element.op.name
